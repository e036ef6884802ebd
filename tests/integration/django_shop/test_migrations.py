"""The project's migrations, forward and back, and what makemigrations makes of changed models."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import ProgrammingError, connection, migrations, models
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.questioner import MigrationQuestioner
from django.db.migrations.state import ModelState, ProjectState
from django.db.migrations.writer import MigrationWriter
from pgvector.django import VectorField

from foh_pg.django import FohIndex
from foh_pg.django.autodetector import FohAutodetector
from foh_pg.django.operations import AlterFohIndex, InstallFoh, RefreshFohIndex, UpgradeFoh
from foh_pg.errors import IndexNotFound, InputError, SchemaError
from tests.django_shop.catalog.models import Product
from tests.support.postgres import Database

INDEXES = """
SELECT name, source_name, embedding, labels, labels_from_name, labels_key[1], bits, dimensions, distance,
       options ->> 'probes', options ->> 'shortlist', options ->> 'dial' FROM foh.index ORDER BY name
"""

LEFT = """
SELECT c.oid::regclass::text FROM pg_class c
WHERE c.relkind IN ('r', 'v') AND c.relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema')
UNION ALL SELECT nspname FROM pg_namespace WHERE nspname = 'foh'
"""


def migrate(*arguments: str, **options: Any) -> str:
    out = io.StringIO()
    call_command("migrate", *arguments, stdout=out, stderr=out, no_color=True, **options)
    return out.getvalue()


def rows(statement: str) -> list[tuple[Any, ...]]:
    """What a statement returns; of several, the last."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        while cursor.nextset():
            pass
        return cursor.fetchall() if cursor.description else []


class TestSampleProject:
    def test_forward_and_back_and_forward(self, empty: Database) -> None:
        assert "foh_pg" not in migrate()  # no warning about what the migrations themselves install
        assert rows(INDEXES) == [
            ("articles", "public.catalog_article", "embedding", "name", "public.catalog_topic", "article_id", 32, 8, "l2", None, None, "0.3"),
            ("films_by_plot", "public.catalog_film", "plot", "genre_id", "public.catalog_film_genres", "film_id", 32, 8, "cosine", None, None, "0.5"),
            ("films_by_poster", "public.catalog_film", "poster", "maker_id", None, None, 32, 4, "cosine", None, None, "0.5"),
            ("products", "public.products", "embedding", "tags", None, None, 64, 8, "cosine", "8", None, "0.5"),
        ]  # fmt: skip
        migrate("catalog", "0003")
        assert [row[-3:] for row in rows(INDEXES) if row[0] == "products"] == [("6", "20", "0.5")]
        migrate("catalog", "0002")
        assert rows("SELECT name FROM foh.index") == []
        migrate("catalog", "0001")
        assert rows("SELECT to_regnamespace('foh')") == [(None,)]
        migrate("catalog", "0004")
        assert len(rows(INDEXES)) == 4
        migrate("catalog", "zero")
        assert rows(LEFT) == [("django_migrations",)]

    def test_models_and_migrations_agree(self, empty: Database) -> None:
        call_command("makemigrations", "--check", "--dry-run", verbosity=0)

    def test_sqlmigrate_prints_all_of_it(self, empty: Database) -> None:
        def printed(name: str, **options: Any) -> str:
            out = io.StringIO()
            call_command("sqlmigrate", "catalog", name, stdout=out, no_color=True, **options)
            return out.getvalue()

        # Of each step, what is printed has to do what is run.
        migrate("catalog", "0001")
        for name in ("0002_foh", "0003_search", "0004_probes"):
            rows(printed(name))
        assert len(rows(INDEXES)) == 4
        for name in ("0004_probes", "0003_search", "0002_foh"):
            rows(printed(name, backwards=True))
        assert rows("SELECT to_regnamespace('foh')") == [(None,)]


def changed(**index: Any) -> list[Any]:
    """The operations that makemigrations finds where the index of Product has these arguments."""
    loader = MigrationLoader(None)
    start = loader.project_state()
    end = start.clone()
    arguments = {"fields": ["vector"], "labels": "tags", "name": "products", "bits": 64, "probes": 8}
    end.models["catalog", "product"].options["indexes"] = [FohIndex(**{**arguments, **index})]
    detector = MigrationAutodetector(start, end, MigrationQuestioner())
    found = detector.changes(graph=loader.graph)
    return found["catalog"][0].operations if found else []


class Agrees(MigrationQuestioner):
    """Says yes where makemigrations asks whether a field was renamed."""

    def ask_rename(self, *arguments: Any) -> bool:
        return True


class TestRenamedFields:
    @pytest.fixture
    def renamed(self) -> tuple[Any, list[Any]]:
        """What makemigrations writes where two fields of the index of Product are renamed, and the state after."""
        loader = MigrationLoader(None)
        start = loader.project_state()
        end = start.clone()
        end.rename_field("catalog", "product", "vector", "meaning")
        end.rename_field("catalog", "product", "tags", "keywords")
        index = FohIndex("meaning", labels="keywords", name="products", bits=64, probes=8)
        end.models["catalog", "product"].options["indexes"] = [index]
        detector = FohAutodetector(start, end, Agrees())
        [migration] = detector.changes(graph=loader.graph)["catalog"]
        return migration.mutate_state(start), migration.operations

    def test_the_index_is_followed(self, renamed: tuple[Any, list[Any]]) -> None:
        state, operations = renamed
        assert not any(isinstance(each, (migrations.AddIndex, migrations.RemoveIndex)) for each in operations)
        assert sum(isinstance(each, migrations.RenameField) for each in operations) == 2
        [follow] = [each for each in operations if isinstance(each, RefreshFohIndex)]
        assert operations.index(follow) == len(operations) - 1
        assert follow.deconstruct()[2] == {
            "model_name": "product",
            "name": "products",
            "embedding": "meaning",
            "labels": "keywords",
        }
        [index] = state.models["catalog", "product"].options["indexes"]
        assert index == FohIndex("meaning", labels="keywords", name="products", bits=64, probes=8)

    def test_and_keeps_what_it_learned(self, migrated: Database, renamed: tuple[Any, list[Any]]) -> None:
        index = "SELECT id, embedding, labels, status FROM foh.index WHERE name = 'products'"
        [(number, embedding, labels, status)] = rows(index)
        found = "SELECT count(*) FROM foh.products_search('[1,0,0,0,0,0,0,0]', 3)"
        run(*renamed[1])
        assert rows(index) == [(number, embedding, "keywords", status)]
        assert rows(found) == [(3,)]
        run(*renamed[1], back=True)
        assert rows(index) == [(number, embedding, labels, status)]
        assert rows(found) == [(3,)]

    def test_the_command_has_our_autodetector(self) -> None:
        from django.core.management import get_commands, load_command_class

        assert get_commands()["makemigrations"] == "foh_pg.django"
        assert load_command_class("foh_pg.django", "makemigrations").autodetector is FohAutodetector


class TestMakemigrations:
    def test_nothing_changed(self) -> None:
        assert changed() == []

    @pytest.mark.parametrize(
        "change", [{"bits": 32}, {"labels": None}, {"dial": 0.2}, {"name": "goods"}], ids=str
    )
    def test_another_index(self, change: dict[str, Any]) -> None:
        """Also for another name: ALTER INDEX, which RenameIndex is, cannot rename an index of ours."""
        remove, add = changed(**change)
        assert isinstance(remove, migrations.RemoveIndex)
        assert remove.name == "products"
        assert isinstance(add, migrations.AddIndex)
        assert isinstance(add.index, FohIndex)
        assert add.index.name == change.get("name", "products")

    def test_written_and_read_again(self) -> None:
        index = FohIndex("vector", labels="tags", name="x", distance="l2", dimensions=3, dial=0.2)
        text, imports = MigrationWriter.serialize(index)
        names: dict[str, Any] = {}
        exec("\n".join(imports), names)
        again = eval(text, names)
        assert again == index
        assert again.deconstruct() == index.deconstruct()
        assert index.clone() == index
        assert again != FohIndex("vector", name="x")
        assert "FohIndex" in repr(index)

    def test_a_name_of_its_own(self) -> None:
        index = FohIndex("vector")
        index.set_name_with_model(Product)
        assert index.name.startswith("products_embeddi_")
        assert index.name.endswith("_foh")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"fields": []}, "got nothing"),
            ({"fields": ["a", "b"]}, "one field.*got 'a', 'b'"),
            ({"fields": ["-a"]}, "got '-a'"),
            ({"fields": ["a"], "condition": 1}, "no condition: every row"),
            ({"fields": ["a"], "opclasses": ["b"]}, "no opclasses: the argument distance"),
        ],
    )
    def test_errors(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(InputError, match=message):
            FohIndex(name="x", **arguments)


def run(*operations: Any, back: bool = False) -> None:
    """Operations of a migration of its own, on the state that the sample project has in the end."""
    state = MigrationLoader(connection).project_state()
    migration = migrations.Migration("9999", "catalog")
    migration.operations = list(operations)
    with connection.schema_editor() as editor:
        if back:
            migration.unapply(state, editor)
        else:
            migration.apply(state, editor)


class TestOperations:
    def test_the_schema_stays_while_others_need_it(self, empty: Database) -> None:
        migrate("catalog", "0002")
        rows(
            "CREATE TABLE other (id int PRIMARY KEY, e extensions.vector(3)); SELECT foh.create_index('other', 'other', 'e')"
        )
        with pytest.raises(SchemaError, match=r"public\.other has an index"):
            migrate("catalog", "0001")
        rows("SELECT foh.drop_index('other')")
        migrate("catalog", "0001")
        assert rows("SELECT to_regnamespace('foh')") == [(None,)]

    def test_upgrade(self, empty: Database) -> None:
        migrate("catalog", "0001")
        run(UpgradeFoh())
        rows("UPDATE foh.code SET digest = 'older'")
        run(UpgradeFoh())
        assert rows("SELECT digest = 'older' FROM foh.code") == [(False,)]
        run(UpgradeFoh(), back=True)
        assert rows("SELECT to_regclass('foh.index') IS NOT NULL") == [(True,)]

    def test_installing_belongs_to_the_transaction_of_the_migration(self, empty: Database) -> None:
        with pytest.raises(ProgrammingError, match="nothing_there"):
            run(InstallFoh(), migrations.RunSQL("SELECT nothing_there()"))
        assert rows("SELECT to_regnamespace('foh')") == [(None,)]

    def test_an_index_needs_the_schema(self, empty: Database) -> None:
        migrate("catalog", "0001")
        with pytest.raises(IndexNotFound, match=r"run manage\.py migrate"):
            list(Product.objects.nearest([1] * 8))
        index = FohIndex("vector", name="goods")
        with pytest.raises(SchemaError, match=r"schema foh is not installed.*InstallFoh\(\)"):
            run(migrations.AddIndex("product", index))

    def test_alter_keeps_the_index(self, migrated: Database) -> None:
        [(number,)] = rows("SELECT id FROM foh.index WHERE name = 'products'")
        operation = AlterFohIndex("product", "products", {"dial": 0.1, "probes": None})
        options = "SELECT id, options ->> 'dial', options ->> 'probes' FROM foh.index WHERE name = 'products'"
        run(operation)
        assert rows(options) == [(number, "0.1", None)]
        run(operation, back=True)
        assert rows(options) == [(number, "0.5", "8")]
        written, _ = MigrationWriter.serialize(operation)
        assert "'dial': 0.1, 'probes': None" in " ".join(written.split())

    def test_the_state_after_an_alter_is_what_the_model_says(self) -> None:
        state = MigrationLoader(None).project_state()
        AlterFohIndex("product", "products", {"dial": 0.1, "probes": None}).state_forwards("catalog", state)
        [index] = state.models["catalog", "product"].options["indexes"]
        assert index == FohIndex("vector", labels="tags", name="products", dial=0.1)

    def test_a_renamed_table_is_followed(self, migrated: Database) -> None:
        operations = (migrations.AlterModelTable("product", "goods"), RefreshFohIndex("product", "products"))
        run(*operations)
        assert rows("SELECT source_name FROM foh.index WHERE name = 'products'") == [("public.goods",)]
        found = "SELECT count(*) FROM foh.products_search('[1,0,0,0,0,0,0,0]', 3)"
        assert rows(found) == [(3,)]
        run(*operations, back=True)
        assert rows("SELECT source_name FROM foh.index WHERE name = 'products'") == [("public.products",)]
        assert rows(found) == [(3,)]

    def test_a_name_that_an_index_cannot_have(self, migrated: Database) -> None:
        before = rows("SELECT name FROM foh.index")
        with pytest.raises(ProgrammingError, match="cannot be the name of an index"):
            run(migrations.AddIndex("product", FohIndex("vector", name='the "it\'s"')))
        assert rows("SELECT name FROM foh.index") == before


class TestModelsWithTheirIndexes:
    """CreateModel with the index among its options, as makemigrations of Django 5 writes it."""

    def operations(self) -> list[Any]:
        return [
            InstallFoh(),
            migrations.CreateModel(
                "Note",
                [("id", models.BigAutoField(primary_key=True)), ("embedding", VectorField(dimensions=3))],
                {"indexes": [FohIndex("embedding", name="notes")]},
            ),
        ]

    def test_a_dropped_model_takes_its_index_along(self, empty: Database) -> None:
        migrate("catalog", "0001")
        run(*self.operations())
        assert rows("SELECT name FROM foh.index") == [("notes",)]
        run(*self.operations(), back=True)
        assert rows("SELECT to_regnamespace('foh')") == [(None,)]

    def test_an_index_that_outlived_its_table_is_replaced(self, empty: Database) -> None:
        migrate("catalog", "0002")
        create = self.operations()[1]
        run(create)
        run(create, back=True)
        assert rows("SELECT name FROM foh.index") == [("notes",)]
        run(create)
        assert rows("SELECT count(*) FROM foh.notes_search('[1,0,0]')") == [(0,)]

    def test_labels_of_a_model_that_comes_later(self, empty: Database) -> None:
        """makemigrations does not know that the index of articles needs the table of their topics."""
        migrate("catalog", "0002")
        rows("DROP TABLE catalog_topic, catalog_article")
        state = ProjectState()
        index = FohIndex("embedding", labels="topics__name", name="articles")
        article = ModelState.from_model(apps.get_model("catalog", "Article"))
        topic = ModelState.from_model(apps.get_model("catalog", "Topic"))
        migration = migrations.Migration("9999", "catalog")
        migration.operations = [
            migrations.CreateModel("Article", list(article.fields.items()), {"indexes": [index]}),
            migrations.CreateModel("Topic", list(topic.fields.items())),
        ]
        with connection.schema_editor() as editor:
            migration.apply(state, editor)
        found = rows("SELECT name, labels_from_name FROM foh.index")
        assert found == [("articles", "public.catalog_topic")]
