"""The environment of the sample application, on the engine that a test gives."""

from __future__ import annotations

from alembic import context

from tests.shop.models import Base

config = context.config
target_metadata = config.attributes.get("target_metadata") or Base.metadata
options = {
    "target_metadata": target_metadata,
    "include_schemas": True,
    **config.attributes.get("options", {}),
}

if context.is_offline_mode():
    # The dialect's own paramstyle, pyformat: what a script prints must not depend on it.
    context.configure(url="postgresql+psycopg://", literal_binds=True, **options)
    with context.begin_transaction():
        context.run_migrations()
else:
    with config.attributes["connection"].connect() as connection:
        context.configure(connection=connection, **options)
        with context.begin_transaction():
            context.run_migrations()
