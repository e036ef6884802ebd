"""After any sequence of writes and installs a search returns what brute force returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from psycopg import sql
from psycopg.types.json import Jsonb

from foh_pg.updater import update
from tests.support.postgres import Database
from tests.support.shop import GEOMETRY, Shop, exact_distance, text, vectors

KEYS = st.integers(0, 14)
# Few vectors, so that codes and distances tie; the origin and no vector at all among them.
VECTORS = [*vectors(10, seed=20), np.zeros(8, dtype=np.float32), None]
CHOICE = st.integers(0, len(VECTORS) - 1)
QUERIES = vectors(3, seed=30)

# The geometry bits by which a search finds a key; null where it reads the row itself.
STORED = """
WITH marker AS (SELECT coalesce(max(seq) FILTER (WHERE op = 't'), 0) AS truncated FROM {stream}),
newest AS (SELECT DISTINCT ON (t.key) t.key, t.op, t.center, t.geometry FROM {stream} t, marker m
           WHERE t.key IS NOT NULL AND t.op <> 'l' AND t.seq > m.truncated ORDER BY t.key, t.seq DESC)
SELECT {n_key}, CASE WHEN n.center >= m.first_center THEN n.geometry::text END
FROM newest n, foh.index i JOIN foh.model m ON m.index = i.id AND m.version = i.version WHERE n.op = 'u'
UNION ALL
SELECT {l_key}, l.geometry::text FROM (SELECT unnest(ids) AS key, unnest(geometry) AS geometry FROM {list}, marker m
                                     WHERE m.truncated = 0) l
WHERE NOT EXISTS (SELECT FROM newest n WHERE n.key = l.key)
"""


def differing(bits: str, others: str) -> int:
    """In how many places two texts differ."""
    return sum(a != b for a, b in zip(bits, others, strict=True))


# A column that follows from the key makes a key of two with it.
TWO_COLUMNS = """
SELECT foh.drop_index('items');
ALTER TABLE {source} ADD part int NOT NULL GENERATED ALWAYS AS (abs({key}) % 3) STORED;
CREATE UNIQUE INDEX ON {source} (part, {key});
SELECT foh.create_index('items', {literal}::regclass, 'embedding', labels => 'label', bits => 16, key => '{{part,id}}',
                        options => {options})
"""


def machine(
    database: Database, options: dict[str, Any], real: bool, two: bool
) -> type[RuleBasedStateMachine]:
    """With the updater itself, or with installs of any centers and hash functions in its place."""

    class Searches(RuleBasedStateMachine):
        """The rows that should be there are in `rows`; transactions keep a copy to go back to."""

        @initialize()
        def create(self) -> None:
            labels = {"labels": "label"} if real else {}
            self.shop = Shop(database.connect("app_owner"), options={"probes": 2, **options}, **labels)
            if two:
                names = {
                    "literal": sql.Literal(self.shop.source),
                    "options": sql.Literal(Jsonb(self.shop.options)),
                }
                self.shop.run(TWO_COLUMNS, **names)
            self.rows: dict[int, int] = {}
            self.kept: dict[int, int] | None = None

        @rule(key=KEYS, vector=CHOICE)
        def write(self, key: int, vector: int) -> None:
            self.shop.run(
                """INSERT INTO {source} ({key}, embedding, label) VALUES (%s, %s, %s)
                   ON CONFLICT ({key}) DO UPDATE SET embedding = excluded.embedding""",
                [key, text(VECTORS[vector]), "ab"[key % 2]],
            )
            self.rows[key] = vector

        @rule(keys=st.lists(KEYS, unique=True, max_size=6), vector=CHOICE)
        def write_deferred(self, keys: list[int], vector: int) -> None:
            with self.shop.connection.transaction():
                self.shop.run("SELECT set_config('foh.defer', 'on', true)")
                for key in keys:
                    self.write(key, vector)
                self.shop.run("SELECT set_config('foh.defer', 'off', true)")

        @rule(low=KEYS, high=KEYS, vector=CHOICE)
        def update(self, low: int, high: int, vector: int) -> None:
            self.shop.run(
                "UPDATE {source} SET embedding = %s WHERE {key} BETWEEN %s AND %s",
                [text(VECTORS[vector]), low, high],
            )
            self.rows |= {key: vector for key in self.rows if low <= key <= high}

        @rule(low=KEYS, high=KEYS)
        def delete(self, low: int, high: int) -> None:
            self.shop.run("DELETE FROM {source} WHERE {key} BETWEEN %s AND %s", [low, high])
            self.rows = {key: vector for key, vector in self.rows.items() if not low <= key <= high}

        @precondition(lambda self: not any(key < 0 for key in self.rows))
        @rule(low=KEYS)
        def rename_keys(self, low: int) -> None:
            self.shop.run("UPDATE {source} SET {key} = -{key} - 1 WHERE {key} >= %s", [low])
            taken = {-key - 1: vector for key, vector in self.rows.items() if key >= low}
            self.rows = {**{key: vector for key, vector in self.rows.items() if key < low}, **taken}

        @rule()
        def truncate(self) -> None:
            self.shop.run("TRUNCATE {source}")
            self.rows = {}

        @rule()
        def drop_negative_keys(self) -> None:
            self.delete(-100, -1)

        @precondition(lambda self: real and self.kept is None)
        @rule(full=st.booleans())
        def update_for_real(self, full: bool) -> None:
            update(self.shop.connection, "items", full=full)

        @precondition(lambda self: not real)
        @rule(centers=st.integers(1, 5), seed=st.one_of(st.none(), st.integers(0, 3)))
        def install(self, centers: int, seed: int | None) -> None:
            self.shop.install(centers=centers, seed=seed)

        @precondition(lambda self: self.kept is None)
        @rule()
        def begin(self) -> None:
            self.shop.run("BEGIN")
            self.kept = dict(self.rows)

        @precondition(lambda self: self.kept is not None)
        @rule(commit=st.booleans())
        def end(self, commit: bool) -> None:
            self.shop.run("COMMIT" if commit else "ROLLBACK")
            if not commit:
                assert self.kept is not None
                self.rows = self.kept
            self.kept = None

        @invariant()
        def finds_what_brute_force_finds(self) -> None:
            live = {key: VECTORS[at] for key, at in self.rows.items() if VECTORS[at] is not None}
            keys = {
                name: sql.SQL(f"({name[0]}.key).k2" if two else f"{name[0]}.key")
                for name in ("n_key", "l_key")
            }
            stored = dict(self.shop.run(STORED, **keys).fetchall())
            # Entries without bits may be those of rows that are gone: a search sees that in the table.
            assert {key for key, bits in stored.items() if bits is not None or key in live} == set(live)
            for number, query in enumerate(QUERIES):
                exact = self.exact(query, live)
                bits = self.estimates(query, {key: stored[key] for key in live})
                self.check_bits(query, exact, bits, k=3 + number * 4)
                self.check_exact(query, exact)

        def exact(self, query: Any, live: dict[int, Any]) -> dict[int, float]:
            if not live:
                return {}
            with np.errstate(invalid="ignore"):
                distances = np.nan_to_num(exact_distance(list(live.values()), query), nan=2.0)
            return dict(zip(live, distances, strict=True))

        def estimates(self, query: Any, stored: dict[int, str | None]) -> dict[int, int | None]:
            """How far rows are, by the bits of the query and by those of its numbers moved up and down."""
            looks = self.shop.looks(query)
            apart = differing(looks[1], looks[2])
            return {
                key: None if bits is None else sum(differing(look, bits) for look in looks) - apart
                for key, bits in stored.items()
            }

        def check_bits(self, query: Any, exact: dict, bits: dict, k: int) -> None:
            """Ranked by bits: where there are any, else by the exact distance."""
            every = self.shop.search(query, 100, probes=100, shortlist=0, labels=0)
            assert sorted(row[0] for row in every) == sorted(exact)
            few = self.shop.search(query, k, probes=100, shortlist=0, labels=0)
            assert len(few) == min(k, len(exact))
            scores = {key: exact[key] if n is None else n / GEOMETRY for key, n in bits.items()}
            # All with a distance: the table itself was read, unless rows without bits come before all others.
            first = sorted(bits, key=lambda key: scores[key])[:k]
            if all(row[1] is not None for row in few) and any(bits[key] is not None for key in first):
                scores = exact
            else:
                assert all((row[1] is None) == (bits[row[0]] is not None) for row in few)
            assert [row[2] for row in few] == pytest.approx(sorted(scores.values())[:k], abs=1e-5)
            assert all(row[2] == pytest.approx(scores[row[0]], abs=1e-5) for row in few)
            # Any number of probes: k rows whenever there are k.
            some = self.shop.found(query, k)
            assert len(some) == len(set(some)) == min(k, len(exact))
            assert set(some) <= set(exact)

        def check_exact(self, query: Any, exact: dict) -> None:
            """A shortlist of everything: the order is that of the exact distance."""
            if not exact:
                return
            rows = self.shop.search(query, len(exact), probes=100, shortlist=100, labels=0)
            assert [row[2] for row in rows] == pytest.approx(sorted(exact.values()), abs=1e-5)
            assert all(row[2] == pytest.approx(exact[row[0]], abs=1e-5) for row in rows)
            assert sorted(row[0] for row in rows) == sorted(exact)
            assert all(row[1] == row[2] for row in rows)
            within = [row for row in rows if row[1] <= 0.5]
            near = self.shop.search(query, len(exact), max_distance=0.5, probes=100, shortlist=100, labels=0)
            assert sorted(near) == sorted(within)
            # The labels change the order, not what is found.
            assert sorted(self.shop.found(query, len(exact), probes=100, shortlist=100)) == sorted(exact)

        def teardown(self) -> None:
            if hasattr(self, "shop"):
                # What a failure leaves must not fail the next run, which would hide it.
                with self.shop.connection:
                    try:
                        if self.kept is not None:
                            self.end(commit=True)
                        self.finds_what_brute_force_finds()
                        assert self.shop.violations() == []
                    finally:
                        self.shop.run("ROLLBACK")
                        self.shop.run("SELECT foh.drop_index('items')")
                        self.shop.run("DROP TABLE {source}")

    return Searches


@pytest.mark.one_version(but={"two": [True]})
@pytest.mark.parametrize(
    ("options", "real", "two"),
    [
        ({}, False, False),
        ({"learn_rows": 1}, True, False),
        ({"learn_rows": 1}, True, True),
    ],
    ids=["one by one", "updater", "key of two columns"],
)
def test_search_agrees_with_brute_force(
    database: Database, options: dict[str, Any], real: bool, two: bool
) -> None:
    run_state_machine_as_test(
        machine(database, options, real, two),
        settings=settings(max_examples=8, stateful_step_count=16),
    )
