"""The second look in SQL and in Python: the same voters, the same likely labels, the same order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from foh_pg.geometry import LONGEST
from foh_pg.model.ranking import CONSTANTS, LOOKED, LOOKED_TIMES, Ranking
from foh_pg.quality.advise.condition import EXACT_ROWS
from foh_pg.quality.advise.measuring import FULL_DIAL
from foh_pg.updater.gathering import NEAR_BY_BITS
from foh_pg.updater.trial import Looked
from tests.support.postgres import Database
from tests.support.shop import BITS, Shop, text, vectors

ROWS, SIGNATURE = 200, 64
CODE, VOTES = 0.3, 1.5

# All rows are in one list, with the marks that a test gives them.
MARK = "UPDATE {list} SET marks = (SELECT array_agg(m::bit(96) ORDER BY n) FROM unnest(%s::text[]) WITH ORDINALITY AS x (m, n))"
LISTED = "SELECT ids, geometry::text[] FROM {list}"
NEAR = "SELECT keys, bits, leans FROM {near}(%s, %s, 1, 0, NULL, %s, 1, false)"


def packed(rows: list[str]) -> np.ndarray[Any, Any]:
    return np.packbits(np.array([[bit == "1" for bit in row] for row in rows]), axis=1)


def differing(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """In how many bits packed rows differ."""
    return np.unpackbits(left ^ right, axis=1).sum(axis=1).astype(np.int64)


def fill_one_list(database: Database) -> None:
    shop = Shop(database.connect("app_owner"), labels="label")
    shop.weigh(CODE, VOTES)
    shop.fill(range(ROWS), vectors(ROWS))
    shop.install(centers=1)


pytestmark = pytest.mark.prepared(by=fill_one_list)


@pytest.fixture
def listed(database: Database) -> Shop:
    return Shop(database.connect("app_owner"), create=False, labels="label")


def test_python_reads_the_constants_of_sql(listed: Shop) -> None:
    row = listed.connection.execute("SELECT foh._ranking()").fetchone()
    assert row == (CONSTANTS,)
    found = listed.connection.execute(
        "SELECT foh.items_dialfactor(1), (foh._default_options() ->> 'exact_rows')::int, split_part(foh._names(i) ->> 'longest', ':', 1)::float8 FROM foh.index i"
    )
    assert found.fetchone() == (FULL_DIAL, EXACT_ROWS, LONGEST)
    defaults = listed.connection.execute(
        """SELECT column_name::text, column_default::text FROM information_schema.columns
           WHERE table_schema = 'foh' AND table_name = 'model' AND column_name LIKE 'weight%'"""
    ).fetchall()
    assert {name: float(value) for name, value in defaults} == {
        "weight_code": Ranking().code,
        "weight_votes": Ranking().votes,
    }


@pytest.mark.one_version(but={"share": [0.5], "dial": [1]})
@pytest.mark.parametrize("dial", [1, 50])
@pytest.mark.parametrize(
    ("share", "labels"),
    [(1, 1), (1, 5), (0.5, 1), (0.5, 20), (0.04, 3), (0.01, 64), (0, 1)],
    ids=["all, one each", "all, several", "half", "half, many", "few", "next to none, all labels", "none"],
)
def test_leans_are_those_of_python(listed: Shop, share: float, labels: int, dial: float) -> None:
    """However many rows have labels, and however many each of them has."""
    rng = np.random.default_rng(int(1000 * share) + labels)
    ids, geometry = listed.run(LISTED).fetchone() or ()
    width = len(geometry[0])
    order = np.argsort(ids)
    rows_geometry = packed([geometry[at] for at in order])
    put_back = 0
    for query in vectors(8, seed=3):
        signatures = np.zeros((ROWS, SIGNATURE), dtype=bool)
        for row in np.flatnonzero(rng.random(ROWS) < share):
            # Some labels are common: several voters have them.
            signatures[row, (rng.integers(SIGNATURE, size=labels) * rng.random() ** 2).astype(int)] = True
        codes = rng.random((ROWS, BITS)) < 0.5
        marks = np.concatenate([signatures, codes], axis=1)
        listed.run(MARK, [["".join("01"[int(bit)] for bit in marks[key]) for key in ids]])
        bits = listed.code(query)
        wanted = LOOKED // LOOKED_TIMES
        keys, estimates, leans = listed.run(NEAR, [text(query), wanted, dial]).fetchone() or ()
        looks = [packed([look]) for look in listed.looks(query)]
        far = differing(looks[0], rows_geometry)
        first = np.argsort(far, kind="stable")[:LOOKED]
        if far[first[-1]] == np.sort(far)[LOOKED]:
            # Which of these rows are looked at is not told.
            continue
        near = np.zeros((1, LOOKED), dtype=NEAR_BY_BITS)
        near["bits"] = sum(differing(look, rows_geometry[first]) for look in looks) - differing(*looks[1:])
        near["code"] = differing(packed([bits[width:]]), np.packbits(codes[first], axis=1))
        near["labels"] = np.packbits(signatures[first], axis=1).view(np.uint64)[:, 0]
        trial: Any = SimpleNamespace(near=near, index=SimpleNamespace(bits=BITS, geometry=width))
        looked = Looked.of(trial, np.arange(LOOKED)[None])
        if tied(looked):
            continue
        lean = looked.lean(Ranking(CODE, dial * VOTES))[0]
        expected = dict(zip(first.tolist(), lean, strict=True))
        assert len(keys) == wanted
        assert leans == [expected[key] for key in keys]
        put_back += int((lean > 0).sum())
        scores = looked.estimates[0] * (1 + lean)
        assert np.sort(scores)[:wanted] == pytest.approx(
            np.array(estimates) / width * (1 + np.array(leans)), abs=1e-9
        )
    assert put_back > 0 or share < 0.5


def tied(looked: Looked) -> bool:
    """Whether the last voter is no better than the next row: who votes is not told then."""
    labelled = looked.labels[0] > 0
    order = np.sort((looked.estimates + CODE * looked.codes)[0][labelled])
    return len(order) > 9 and bool(np.isclose(order[8], order[9], atol=1e-12))
