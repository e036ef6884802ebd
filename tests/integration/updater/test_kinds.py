"""Every kind of key, embedding, label and distance goes through build, update, rebuild and rollback."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from foh_pg.updater import build, rebuild, rollback, update
from tests.support.digits import digits, vector

Connection = psycopg.Connection[Any]


class Table:
    """A table of digits with an index of the same name, both of a chosen kind."""

    def __init__(
        self,
        connection: Connection,
        *,
        name: str = "digit",
        key: str = "int",
        embedding: str = "extensions.vector(64)",
        labels: str | None = "text",
        partitioned: bool = False,
        **arguments: Any,
    ) -> None:
        self.connection = connection
        self.name = name
        self.quoted = '"' + name.replace('"', '""') + '"'
        # Where parameters are passed, psycopg reads every % as the beginning of one.
        self.escaped = self.quoted.replace("%", "%%")
        self.key = key
        self.array = embedding.endswith("]")
        self.labels = labels
        part = " PARTITION BY HASH (the_key)" if partitioned else ""
        connection.execute(
            f"CREATE TABLE {self.quoted} (the_key {key} PRIMARY KEY, embedding {embedding},"
            f" label {labels or 'text'}){part}"
        )
        for i in range(2 if partitioned else 0):
            connection.execute(
                f"CREATE TABLE part{i} PARTITION OF {self.quoted} FOR VALUES WITH (MODULUS 2, REMAINDER {i})"
            )
        self.insert(range(0, 500, 2))
        given = {"source": self.quoted, "bits": 24, "labels": "label" if labels else None, **arguments}
        given["options"] = json.dumps({"learn_rows": 150, **given.get("options", {})})
        passed = ", ".join(f"{argument} => %({argument})s" for argument in given)
        connection.execute(
            f"SELECT foh.create_index(%(name)s, embedding => 'embedding', {passed})".replace(
                "%(source)s", "%(source)s::text::regclass"
            ),
            {**given, "name": name},
        )

    def key_of(self, i: int) -> str:
        if self.key == "uuid":
            return f"{i:08x}-0000-4000-8000-00000000{i % 16:x}000"
        return str(i * 7 - 900) if "int" in self.key else f"k'{i}\"{{\\%"

    def insert(self, rows: range) -> None:
        data, target = digits()

        def row(i: int) -> list[Any]:
            label: Any = str(target[i])
            if self.labels and self.labels.endswith("[]"):
                label = [label, str(target[i] % 2), None] if i % 5 else None
            return [self.key_of(i), data[i].tolist() if self.array else vector(data[i]), label]

        statement = f"INSERT INTO {self.escaped} VALUES (%s::text::{self.key}, %s, %s)"
        self.connection.cursor().executemany(statement, [row(i) for i in rows])

    def check(self) -> None:
        assert self.connection.execute("SELECT * FROM foh.check(%s)", [self.name]).fetchall() == []


# Keys, embeddings, labels and distances have nothing to do with each other: an index has one of each.
KINDS: dict[str, dict[str, Any]] = {
    "bigint, halfvec, l2": {"key": "bigint", "embedding": "extensions.halfvec(64)", "distance": "l2"},
    "uuid, real, many labels": {
        "key": "uuid",
        "embedding": "real[]",
        "dimensions": 64,
        "labels": "text[]",
    },
    "double, int labels, ip": {
        "embedding": "double precision[]",
        "dimensions": 64,
        "labels": "int",
        "distance": "ip",
    },
    "open dimensions, no labels": {"embedding": "extensions.vector", "dimensions": 64, "labels": None},
    "text, partitioned": {"key": "text", "partitioned": True},
    "a name of forty letters, symmetric": {"name": "n" * 40, "key": "text", "options": {"label_weight": 0.0}},
    "forget, centers": {"options": {"forget": 0.9, "centers": 10}},
}


# The other kinds run the same SQL, or change what Python does.
@pytest.mark.one_version(but={"kind": ["uuid, real, many labels", "text, partitioned"]})
@pytest.mark.parametrize("kind", KINDS)
def test_the_life_of_an_index(connection: Connection, kind: str) -> None:
    table = Table(connection, **KINDS[kind])
    table.check()
    assert build(connection, table.name).rows == 250
    table.check()
    table.insert(range(1, 500, 2))
    table.connection.execute(
        f"DELETE FROM {table.escaped} WHERE the_key = %s::text::{table.key}", [table.key_of(2)]
    )
    table.connection.execute(
        f"UPDATE {table.escaped} SET embedding = NULL WHERE the_key = %s::text::{table.key}",
        [table.key_of(4)],
    )
    run = update(connection, table.name, batch_size=100)
    assert run.rows == 252 or table.labels is None
    table.check()
    items = connection.execute(f'SELECT count(*) FROM foh.{table.quoted[:-1]}_item"').fetchone()
    assert items == (498,)
    present = connection.execute("SELECT version FROM foh.index").fetchone()
    rebuild(connection, table.name)
    table.check()
    assert present is not None
    rollback(connection, table.name, present[0])
    table.check()
    stream = connection.execute(f'SELECT count(*) FROM foh.{table.quoted[:-1]}_stream"').fetchone()
    assert stream == (0,)


@pytest.mark.one_version
def test_labels_in_a_table_of_their_own(connection: Connection) -> None:
    connection.execute("CREATE TABLE digit (id int PRIMARY KEY, embedding extensions.vector(64))")
    connection.execute("CREATE TABLE tag (digit int, name text)")
    data, target = digits()
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO digit VALUES (%s, %s)", [(i, vector(data[i])) for i in range(400)])
        cursor.executemany("INSERT INTO tag VALUES (%s, %s)", [(i, str(target[i])) for i in range(400)])
    connection.execute(
        "SELECT foh.create_index('digits', source => 'digit', embedding => 'embedding', labels => 'name',"
        " labels_from => 'tag', labels_key => 'digit', bits => 24, options => '{\"learn_rows\": 100}')"
    )
    build(connection, "digits")
    assert connection.execute("SELECT trained FROM foh.model WHERE version = 2").fetchone() == (True,)
    connection.execute("UPDATE tag SET name = 'seven' WHERE name = '7'")
    connection.execute("DELETE FROM tag WHERE name = '3'")
    update(connection, "digits")
    assert connection.execute("SELECT * FROM foh.check('digits')").fetchall() == []
    connection.execute("UPDATE tag SET name = name || '!'")
    update(connection, "digits")
    assert connection.execute("SELECT * FROM foh.check('digits')").fetchall() == []
    known = {name for (name,) in connection.execute("SELECT name FROM foh.label")}
    assert "seven!" in known
    connection.execute("TRUNCATE tag")  # all rows must be read again
    update(connection, "digits")
    assert connection.execute("SELECT * FROM foh.check('digits')").fetchall() == []
    assert connection.execute("SELECT count(*) FROM foh.digits_stream").fetchone() == (0,)
