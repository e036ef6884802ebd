"""The settings; the database is what libpq's environment variables say."""

from __future__ import annotations

import os

SECRET_KEY = "not in production"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["foh_pg.django", "tests.django_shop.catalog"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ.get("PGDATABASE", "postgres"),
        "USER": os.environ.get("PGUSER", ""),
        "PASSWORD": os.environ.get("PGPASSWORD", ""),
        "HOST": os.environ.get("PGHOST", ""),
        "PORT": os.environ.get("PGPORT", ""),
        # pgvector is apart, as managed databases have it.
        "OPTIONS": {"options": "-c search_path=public,extensions"},
    }
}
