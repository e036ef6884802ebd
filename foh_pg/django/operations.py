"""Operations for migrations: InstallFoh, UpgradeFoh, AlterFohIndex, RefreshFohIndex."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import router
from django.db.migrations.operations.base import Operation
from django.db.migrations.operations.models import IndexOperation

from foh_pg.django import statements
from foh_pg.django.databases import driver_connection, is_postgresql
from foh_pg.django.index import FohIndex
from foh_pg.errors import InputError
from foh_pg.schema.indexed import INDEXED, refuse_indexed


class UpgradeFoh(Operation):
    """Bring schema `foh` to the version of the installed foh_pg, after an upgrade of the package.

    Going back leaves the schema as it is: what the package needs does not depend on your migrations.
    """

    def state_forwards(self, app_label: str, state: Any) -> None:
        pass

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        from foh_pg.schema import migrations

        if not _is_ours(app_label, schema_editor):
            return
        if schema_editor.collect_sql:
            start = migrations.revision(driver_connection(schema_editor.connection))
            _collect(schema_editor, migrations.offline_statements(start=start))
        else:
            migrations.migrate(driver_connection(schema_editor.connection))

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        pass

    def describe(self) -> str:
        return "Bring schema foh up to date"

    @property
    def migration_name_fragment(self) -> str:
        return "upgrade_foh"


class InstallFoh(UpgradeFoh):
    """Install schema `foh`, or bring one that is there up to date. pgvector must be there already.

    Going back removes the schema, and is refused while a table has an index: AddIndex, undone first, removes
    those of the same migrations.
    """

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        from foh_pg.schema import migrations

        if not _is_ours(app_label, schema_editor):
            return
        if schema_editor.collect_sql:
            _collect(schema_editor, migrations.offline_statements(migrations.BASE, migrations.HEAD))
            return
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(INDEXED)
            tables = [name for (name,) in cursor.fetchall()]
        refuse_indexed(tables, "manage.py migrate --fake")
        migrations.migrate(driver_connection(schema_editor.connection), migrations.BASE)

    def describe(self) -> str:
        return "Install schema foh"

    @property
    def migration_name_fragment(self) -> str:
        return "install_foh"


class _OfFohIndex(IndexOperation):
    """An operation on an index that stays, and keeps what it has learned."""

    model_name: str
    name: str

    def _declared(self, app_label: str, state: Any) -> FohIndex:
        """The index as the state of the project declares it."""
        index = state.models[app_label, self.model_name_lower].get_index_by_name(self.name)
        if not isinstance(index, FohIndex):
            raise InputError(
                f"{self.name!r} of {self.model_name} is a {type(index).__name__}, not a FohIndex"
            )
        return index

    def _declare(self, app_label: str, state: Any, index: FohIndex) -> None:
        state.remove_index(app_label, self.model_name_lower, self.name)
        state.add_index(app_label, self.model_name_lower, index)

    def _concerns(self, app_label: str, schema_editor: Any, state: Any) -> bool:
        """Whether the table of the index is in this database."""
        model = state.apps.get_model(app_label, self.model_name)
        return bool(self.allow_migrate_model(schema_editor.connection.alias, model))


class AlterFohIndex(_OfFohIndex):
    """Change options of an index and keep what it has learned.

    >>> AlterFohIndex("product", "products", {"probes": 8, "dial": None})

    Write it in place of the RemoveIndex and AddIndex that makemigrations writes for a changed option: these
    would make another index, to be built. None is for options that are declared no longer; they get their
    defaults.
    """

    def __init__(self, model_name: str, name: str, options: Mapping[str, Any]) -> None:
        self.model_name = model_name
        self.name = name
        self.options = options

    def state_forwards(self, app_label: str, state: Any) -> None:
        new = self._declared(app_label, state).clone()
        options = {**new.options, **self.options}
        new.options = {name: value for name, value in options.items() if value is not None}
        self._declare(app_label, state, new)

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if self._concerns(app_label, schema_editor, to_state):
            schema_editor.execute(statements.alter(schema_editor, self.name, self.options), params=None)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if self._concerns(app_label, schema_editor, to_state):
            declared = self._declared(app_label, to_state).options
            before = {name: declared.get(name) for name in self.options}
            schema_editor.execute(statements.alter(schema_editor, self.name, before), params=None)

    def describe(self) -> str:
        return f"Alter {', '.join(self.options)} of index {self.name} on {self.model_name}"

    @property
    def migration_name_fragment(self) -> str:
        return f"alter_{self.model_name_lower}_{self.name.lower()}"


class RefreshFohIndex(_OfFohIndex):
    """Let an index follow its table, after RenameModel, AlterModelTable or an AlterField of its columns.

    It stands in the same migration as that operation, behind it, and follows the way back too. Without it
    searches are refused; writes are not. `embedding` and `labels` name fields that were renamed, as
    makemigrations writes them.
    """

    def __init__(
        self, model_name: str, name: str, *, embedding: str | None = None, labels: str | None = None
    ) -> None:
        self.model_name = model_name
        self.name = name
        self.embedding = embedding
        self.labels = labels

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        given = {"model_name": self.model_name, "name": self.name}
        for name in ("embedding", "labels"):
            if getattr(self, name) is not None:
                given[name] = getattr(self, name)
        return self.__class__.__qualname__, [], given

    def state_forwards(self, app_label: str, state: Any) -> None:
        if self.embedding is None and self.labels is None:
            return
        new = self._declared(app_label, state).clone()
        if self.embedding is not None:
            new.fields = [self.embedding]
            new.fields_orders = [(self.embedding, "")]
        new.labels = self.labels or new.labels
        self._declare(app_label, state, new)

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if self._concerns(app_label, schema_editor, to_state):
            schema_editor.execute(statements.refresh(schema_editor, self.name), params=None)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        # This is undone before the operation that it followed, so it waits for the end of the migration.
        if self._concerns(app_label, schema_editor, to_state):
            schema_editor.deferred_sql.append(statements.refresh(schema_editor, self.name))

    def describe(self) -> str:
        return f"Let index {self.name} follow {self.model_name}"

    @property
    def migration_name_fragment(self) -> str:
        return f"refresh_{self.model_name_lower}_{self.name.lower()}"


def _is_ours(app_label: str, schema_editor: Any) -> bool:
    connection = schema_editor.connection
    return is_postgresql(connection) and router.allow_migrate(connection.alias, app_label)


def _collect(schema_editor: Any, collected: list[str]) -> None:
    for statement in collected:
        schema_editor.execute(statement, params=None)
