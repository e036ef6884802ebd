"""The environment of the sample application, as `alembic init` writes it, with a connection that may be given."""

from __future__ import annotations

from alembic import context
from sqlalchemy import create_engine

from tests.shop.models import Base

config = context.config
target_metadata = config.attributes.get("target_metadata", Base.metadata)
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
    given = config.attributes.get("connection")
    engine = given if given is not None else create_engine(config.get_main_option("sqlalchemy.url"))
    with engine.connect() as connection:
        context.configure(connection=connection, **options)
        with context.begin_transaction():
            context.run_migrations()
