"""A small application: products with tags in a column, articles with topics in a table of their own."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Optional

import sqlalchemy as sa
from pgvector.sqlalchemy import Vector
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from foh_pg.sqlalchemy import FOHIndex

DIMENSIONS = 8


class Base(DeclarativeBase):
    pass


class Brand(Base):
    __tablename__ = "brands"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


class Product(Base):
    __tablename__ = "products"

    id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(10))
    price: Mapped[Decimal] = mapped_column(sa.Numeric(10, 2))
    tags: Mapped[list[str]] = mapped_column(ARRAY(sa.Text))
    details: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default="{}")
    brand_id: Mapped[Optional[int]] = mapped_column(sa.ForeignKey("brands.id"))  # noqa: UP045
    vector: Mapped[Any] = mapped_column("embedding", Vector(DIMENSIONS), nullable=True)

    brand: Mapped[Optional[Brand]] = relationship()  # noqa: UP045

    __table_args__ = (FOHIndex("products_foh", vector, labels=tags, bits=64, probes=6),)


class Article(Base):
    __tablename__ = "articles"

    id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    embedding: Mapped[Any] = mapped_column(Vector(DIMENSIONS), nullable=True)

    topics: Mapped[list[Topic]] = relationship()


class Topic(Base):
    __tablename__ = "article_topics"

    article_id: Mapped[str] = mapped_column(sa.ForeignKey("articles.id"), primary_key=True)
    topic: Mapped[str] = mapped_column(sa.Text, primary_key=True)


FOHIndex(
    "articles_foh",
    Article.embedding,
    labels=Topic.topic,
    labels_key=Topic.article_id,
    bits=32,
    distance="l2",
    label_weight=0.5,
    probes=4,
)
