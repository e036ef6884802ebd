"""FOH indexes in an application's own Alembic migrations; Alembic finds this package by its entry point."""
