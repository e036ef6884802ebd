"""FOH indexes in Django: declare one in Meta.indexes, search it with a queryset. Needs ``foh_pg[django]``.

>>> class Product(models.Model):
...     embedding = VectorField(dimensions=512)
...     tags = ArrayField(models.TextField())
...     objects = FohManager()
...
...     class Meta:
...         indexes = [FohIndex("embedding", labels="tags", name="products")]
>>> Product.objects.filter(price__lt=100).nearest(vector, k=10)

Migrations install schema `foh` with the operations of `foh_pg.django.operations`. In INSTALLED_APPS,
"foh_pg.django" adds the system checks and the command ``manage.py foh``.
"""

from __future__ import annotations

from foh_pg.django.index import FohIndex
from foh_pg.django.queryset import FohManager, FohQuerySet

__all__ = ["FohIndex", "FohManager", "FohQuerySet"]
