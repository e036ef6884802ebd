"""Products with tags in a column, articles with topics in a table of their own, films with genres (many to many)."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from pgvector.django import HalfVectorField, VectorField

from foh_pg.django import FohIndex, FohManager, FohQuerySet

DIMENSIONS = 8


class Brand(models.Model):
    name = models.TextField()


class ProductQuerySet(FohQuerySet):
    def cheap(self):
        return self.filter(price__lt=20)


class Product(models.Model):
    name = models.CharField(max_length=20)
    price = models.DecimalField(max_digits=10, decimal_places=2)
    tags = ArrayField(models.TextField(), default=list)
    details = models.JSONField(default=dict)
    made = models.DateTimeField(null=True)
    serial = models.UUIDField(null=True)
    brand = models.ForeignKey(Brand, models.CASCADE, null=True, related_name="products")
    vector = VectorField(dimensions=DIMENSIONS, db_column="embedding", null=True)

    objects = ProductQuerySet.as_manager()

    class Meta:
        db_table = "products"
        indexes = [FohIndex("vector", labels="tags", name="products", bits=64, probes=8)]

    def __str__(self):
        return self.name


class Book(Product):
    isbn = models.TextField()

    objects = FohManager()


class Review(models.Model):
    product = models.ForeignKey(Product, models.CASCADE, related_name="reviews")
    stars = models.IntegerField()


class Article(models.Model):
    slug = models.TextField(primary_key=True)
    score = models.IntegerField(default=0)
    embedding = HalfVectorField(dimensions=DIMENSIONS, null=True)

    objects = FohManager()

    class Meta:
        indexes = [
            FohIndex(
                fields=["embedding"], labels="topics__name", name="articles", bits=32, distance="l2", dial=0.3
            )
        ]


class Topic(models.Model):
    article = models.ForeignKey(Article, models.CASCADE, related_name="topics")
    name = models.TextField()


class Genre(models.Model):
    name = models.TextField()


class Film(models.Model):
    id = models.UUIDField(primary_key=True)
    genres = models.ManyToManyField(Genre, related_name="films")
    maker = models.ForeignKey(Brand, models.CASCADE, null=True)
    plot = VectorField(dimensions=DIMENSIONS, null=True)
    poster = ArrayField(models.FloatField(), null=True)

    objects = FohManager()

    class Meta:
        indexes = [
            FohIndex("plot", labels="genres", name="films_by_plot", bits=32),
            FohIndex("poster", labels="maker", name="films_by_poster", bits=32, dimensions=4),
        ]
