"""A project of Django's: models with indexes, and their migrations."""
