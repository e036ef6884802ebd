"""What labels do to a search: how much they count, whom they favour, and that their writes hide nothing."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql

from foh_pg.updater import build, update
from tests.support.postgres import Database
from tests.support.shop import Shop, exact_distance, text, vectors

QUERY = vectors(1, seed=8)[0]
BASE = vectors(200)
EXACT = exact_distance(BASE, QUERY)


def learn(shop: Shop, *names: str) -> None:
    """Labels that the index knows: number n has bit n of the signatures."""
    for number, name in enumerate(names):
        shop.run(
            "INSERT INTO foh.label (index, label, name) SELECT id, %s, %s FROM foh.index", [number, name]
        )


def labelled(new_shop, labels: list[str | None], distance: str = "cosine") -> Shop:
    """200 rows in 8 lists, with labels that are given in the order in which the bits put the rows."""
    shop = new_shop(labels="label", distance=distance)
    # The nearest rows alone say of what kind the query is, and a row of another kind counts as twice as far.
    shop.weigh(code=0, votes=1)
    shop.fill(range(200), BASE)
    learn(shop, *sorted({label for label in labels if label is not None}))
    shop.install(centers=8)
    order = shop.found(QUERY, 200, probes=100, shortlist=0, labels=0)
    for key, label in zip(order, labels, strict=True):
        shop.run("UPDATE {source} SET label = %s WHERE {key} = %s", [label, key])
    shop.install(centers=8)
    return shop


def labels_of(shop: Shop) -> dict[int, str | None]:
    return dict(shop.run("SELECT {key}, label FROM {source}").fetchall())


def stock_two_kinds(database: Database) -> None:
    """Five of six rows, near and far, have one label, the others another."""
    labelled(partial(Shop, database.connect("app_owner")), ["a" if at % 6 else "b" for at in range(200)])


@pytest.mark.prepared(by=stock_two_kinds)
class TestDial:
    @pytest.fixture
    def shop(self, database: Database) -> Shop:
        return Shop(database.connect("app_owner"), create=False, labels="label")

    def test_at_0_labels_do_not_count(self, shop: Shop) -> None:
        rows = shop.search(QUERY, 100, probes=100, shortlist=200, labels=0)
        assert [row[0] for row in rows] == list(np.argsort(EXACT)[:100])
        assert [row[2] for row in rows] == pytest.approx(np.sort(EXACT)[:100], abs=1e-5)
        assert all(row[1] == row[2] for row in rows)
        assert shop.explain(QUERY, labels=0)["labels"] == "not asked: nearest vectors only"

    def test_at_1_they_count_more_than_any_distance(self, shop: Shop) -> None:
        label = labels_of(shop)
        nearest = [int(key) for key in np.argsort(EXACT)]
        assert len({label[key] for key in nearest[:20]}) == 2
        expected = sorted(nearest, key=lambda key: label[key] == "b")
        assert shop.found(QUERY, 150, probes=100, shortlist=200, labels=1) == expected[:150]

    @pytest.mark.one_version
    @pytest.mark.parametrize("dial", [None, 0.5, 0.25, 0.75])
    def test_between_them_rows_of_another_kind_are_put_back(self, shop: Shop, dial: float | None) -> None:
        """Of the nine nearest rows two have label b, less than half as many as have a."""
        label = labels_of(shop)
        factor = {None: 1, 0.5: 1, 0.25: 1 / 3, 0.75: 3}[dial]
        expected = [EXACT[key] * (1 + factor * (label[key] == "b")) for key in range(200)]
        rows = shop.search(QUERY, 150, probes=100, shortlist=200, labels=dial)
        assert [row[2] for row in rows] == pytest.approx(np.sort(expected)[:150], abs=1e-5)
        assert all(row[2] == pytest.approx(expected[row[0]], abs=1e-5) for row in rows)
        assert all(row[1] == pytest.approx(EXACT[row[0]], abs=1e-5) for row in rows)

    @pytest.mark.one_version
    @pytest.mark.parametrize("dial", [0, 0.5, 0.9, 0.97, 1])
    @pytest.mark.parametrize("shortlist", [None, 0])
    def test_a_row_is_first_for_its_own_vector(self, shop: Shop, dial: float, shortlist: int | None) -> None:
        """Whatever its label is, and that of the rows around it."""
        for key in range(0, 200, 7):
            found = shop.found(BASE[key], 5, probes=100, shortlist=shortlist, labels=dial)
            assert found[0] == key
        assert len({labels_of(shop)[key] for key in range(0, 200, 7)}) == 2

    @pytest.mark.one_version
    def test_is_an_option_of_the_index(self, shop: Shop) -> None:
        asked = {"k": 100, "probes": 100, "shortlist": 200}
        for dial in (0, 0.75, 1):
            expected = shop.search(QUERY, **asked, labels=dial)
            shop.execute(sql.SQL("SELECT foh.alter_index('items', {})").format(f'{{"dial": {dial}}}'))
            assert shop.search(QUERY, **asked) == expected

    @pytest.mark.one_version
    @pytest.mark.parametrize(
        "call", ["foh.items_search({}, labels => {})", "foh.items_explain({}, labels => {})"]
    )
    @pytest.mark.parametrize("dial", ["-0.01", "1.01", "'NaN'", "'Infinity'"])
    def test_out_of_range(self, shop: Shop, call: str, dial: str) -> None:
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=r"labels is .*, it must be between 0"):
            shop.execute_text("SELECT * FROM " + call.format(f"'{text(QUERY)}'", dial))

    @pytest.mark.one_version
    def test_with_a_filter(self, shop: Shop) -> None:
        label = labels_of(shop)
        nearest = [int(key) for key in np.argsort(EXACT) if key % 2]
        expected = sorted(nearest, key=lambda key: label[key] == "b")
        asked = {"probes": 100, "shortlist": 200, "filter": "id % 2 = 1"}
        assert shop.found(QUERY, 80, **asked, labels=1) == expected[:80]
        assert shop.found(QUERY, 80, **asked, labels=0) == nearest[:80]

    def test_rows_of_the_stream_have_labels_too(self, shop: Shop) -> None:
        near = QUERY + np.float32(0.3) * vectors(3, seed=9)
        shop.fill([300, 301, 302], near, label=["a", "b", "a"])
        distances = exact_distance(near, QUERY)
        rows = {row[0]: row[2] for row in shop.search(QUERY, 50, probes=100, shortlist=200)}
        assert rows[300] == pytest.approx(distances[0], abs=1e-5)
        assert rows[301] == pytest.approx(2 * distances[1], abs=1e-5)


@pytest.mark.one_version
class TestDialElsewhere:
    def test_inner_products_are_put_back_too(self, new_shop) -> None:
        """Where nearer is smaller, and most distances are negative."""
        shop = labelled(new_shop, ["a" if at % 6 else "b" for at in range(200)], distance="ip")
        label, products = labels_of(shop), exact_distance(BASE, QUERY, "ip")
        for key, far, score in shop.search(QUERY, 100, probes=100, shortlist=200):
            assert far == pytest.approx(products[key], abs=1e-4)
            assert score == pytest.approx(far + (label[key] == "b") * abs(far), abs=1e-4)

    def test_an_index_without_labels_takes_it_and_has_none(self, new_shop) -> None:
        shop = new_shop()
        shop.fill(range(200), BASE)
        shop.install(centers=8)
        for shortlist in (0, 200):
            asked = {"k": 100, "probes": 100, "shortlist": shortlist}
            assert shop.search(QUERY, **asked, labels=1) == shop.search(QUERY, **asked, labels=0)
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=r"labels is 2"):
            shop.search(QUERY, labels=2)


@pytest.mark.one_version
class TestRowsWithoutLabels:
    def test_are_not_pushed_out_where_labels_say_nothing(self, new_shop) -> None:
        """Half of the rows have one of two labels, drawn at random: nearness is all there is to go by."""
        rng = np.random.default_rng(7)
        shop = labelled(
            new_shop, [rng.choice(["a", "b"]) if rng.random() < 0.5 else None for _ in range(200)]
        )
        label = labels_of(shop)
        shares = {}
        for dial in (0, 0.5):
            found = [
                key
                for query in vectors(20, seed=11)
                for key in shop.found(query, 20, probes=100, shortlist=200, labels=dial)
            ]
            shares[dial] = np.mean([label[key] is None for key in found])
        assert abs(shares[0.5] - shares[0]) < 0.2
        assert 0.25 < shares[0.5] < 0.75

    def test_count_as_the_nearest_rows_do(self, new_shop) -> None:
        """All voters have one label: who has none is taken for one of them, who has another is not."""
        shop = labelled(new_shop, ["a"] * 10 + [None, "b"] * 95)
        label = labels_of(shop)
        for key, _, score in shop.search(QUERY, 150, probes=100, shortlist=200):
            assert score == pytest.approx(EXACT[key] * (1 + (label[key] == "b")), abs=1e-5)

    def test_labels_with_half_of_the_most_votes_are_likely(self, new_shop) -> None:
        """Of seven voters four have one label, two another, one a third: rows of the first two stay where they are."""
        shop = labelled(new_shop, ["a", "b", "a", "c", "a", "b", "a"] + [None] * 193)
        label = labels_of(shop)
        rows = shop.search(QUERY, 150, probes=100, shortlist=200)
        assert [score for *_, score in rows] == pytest.approx(
            [EXACT[key] * (1 + (label[key] == "c")) for key, *_ in rows], abs=1e-5
        )
        assert "c" in {label[key] for key, *_ in rows}

    def test_the_nearest_rows_have_none(self, new_shop) -> None:
        """Those behind them vote, all for one label: who has none is taken for one of them."""
        shop = labelled(new_shop, [None] * 9 + ["a", None] * 95 + ["b"])
        for dial in (0.5, 1):
            assert shop.found(QUERY, 100, probes=100, shortlist=200, labels=dial) == list(
                np.argsort(EXACT)[:100]
            )

    def test_no_row_has_any(self, new_shop) -> None:
        shop = labelled(new_shop, [None] * 200)
        assert shop.found(QUERY, 100, probes=100, shortlist=200, labels=1) == list(np.argsort(EXACT)[:100])


def stock_tagged(database: Database) -> None:
    """300 rows whose labels are in a table of their own, in lists."""
    connection = database.connect("app_owner")
    connection.execute("CREATE TABLE item (id int PRIMARY KEY, embedding extensions.vector(8))")
    connection.execute("CREATE TABLE tag (item int, label text)")
    connection.cursor().executemany(
        "INSERT INTO item VALUES (%s, %s)", [(key, text(row)) for key, row in enumerate(vectors(300))]
    )
    connection.execute("INSERT INTO tag SELECT id, substr('abc', id % 3 + 1, 1) FROM item")
    connection.execute(
        """SELECT foh.create_index('items', 'item', 'embedding', labels => 'label', labels_from => 'tag',
                                   labels_key => 'item', bits => 32, options => '{"exact_rows": 0}')"""
    )
    build(connection, "items")


@pytest.fixture
def tagged(database: Database) -> psycopg.Connection[Any]:
    return database.connect("app_owner")


def found(connection: psycopg.Connection[Any], query: Any, k: int = 1, **arguments: Any) -> list[int]:
    """From all lists: however many rows are asked for, the lists answer."""
    given = {"shortlist": None, "labels": None, **arguments}
    call = "SELECT id FROM foh.items_search(%(query)s, %(k)s, 1000, %(shortlist)s, labels => %(labels)s)"
    return [row[0] for row in connection.execute(call, {"query": text(query), "k": k, **given})]


def violations(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT problem, key FROM foh.check('items')").fetchall()


@pytest.mark.prepared(by=stock_tagged)
class TestLabelsInATableOfTheirOwn:
    @pytest.mark.one_version(but={"between": [True]})
    @pytest.mark.parametrize("between", [False, True], ids=["", "updated in between"])
    @pytest.mark.parametrize("change", ["INSERT INTO tag VALUES (7, 'new')", "UPDATE tag SET label = 'new' WHERE item = 7",
                                        "DELETE FROM tag WHERE item = 7"])  # fmt: skip
    def test_a_write_hides_no_embedding(
        self, tagged: psycopg.Connection[Any], database: Database, change: str, between: bool
    ) -> None:
        """The row is being written while its label is: of that the writer of the label sees nothing."""
        writer = database.connect("app_owner", autocommit=False)
        writer.execute("UPDATE item SET embedding = %s WHERE id = 7", [text(QUERY)])
        tagged.execute(change.encode())
        if between:
            update(tagged, "items")
            assert violations(tagged) == []
        assert found(tagged, QUERY, labels=0) != [7]
        assert found(tagged, vectors(300)[7], labels=0) == [7]
        writer.commit()
        for _ in range(2):
            for shortlist in (0, None):
                assert found(tagged, QUERY, labels=0, shortlist=shortlist) == [7]
                assert found(tagged, vectors(300)[7], labels=0, shortlist=shortlist) != [7]
            every = found(tagged, QUERY, 300)
            assert sorted(every) == list(range(300))
            assert violations(tagged) == []
            update(tagged, "items")
        assert tagged.execute("SELECT count(*) FROM foh.items_stream").fetchone() == (0,)

    @pytest.mark.parametrize("batch_size", [1, 2000])
    def test_a_label_that_is_written_before_its_row(
        self, tagged: psycopg.Connection[Any], database: Database, batch_size: int
    ) -> None:
        """Both are the first that the index hears of the key: no search finds it twice, wherever a batch ends."""
        writer = database.connect("app_owner", autocommit=False)
        writer.execute("INSERT INTO tag VALUES (900, 'new')")
        tagged.execute("INSERT INTO item VALUES (900, %s)", [text(QUERY)])
        writer.commit()

        reader = database.connect("app_owner")
        phases = []

        def once(phase: str, done: int, total: int) -> None:
            phases.append((phase, done))
            assert sorted(found(reader, QUERY, 301, shortlist=0)) == [*range(300), 900]

        once("before", 0, 0)
        update(tagged, "items", batch_size=batch_size, progress=once)
        once("after", 0, 0)
        assert phases.count(("switch", 0)) == (2 if batch_size == 1 else 1)
        assert violations(tagged) == []

    def test_a_deleted_row_stays_deleted(self, tagged: psycopg.Connection[Any], database: Database) -> None:
        writer = database.connect("app_owner", autocommit=False)
        writer.execute("DELETE FROM item WHERE id = 7")
        tagged.execute("INSERT INTO tag VALUES (7, 'new')")
        writer.commit()
        for _ in range(2):
            assert 7 not in found(tagged, vectors(300)[7], 299)
            assert violations(tagged) == []
            update(tagged, "items")


@pytest.mark.prepared(by=stock_tagged)
class TestCheck:
    WRONG = "a list or the stream has the bits of another vector than the row"

    def test_bits_of_a_list(self, tagged: psycopg.Connection[Any]) -> None:
        assert violations(tagged) == []
        center, key = tagged.execute("SELECT center, ids[1] FROM foh.items_list LIMIT 1").fetchone() or ()
        tagged.execute("UPDATE foh.items_list SET geometry[1] = ~geometry[1] WHERE center = %s", [center])
        assert violations(tagged) == [(self.WRONG, str(key))]
        tagged.execute("SELECT foh.repair('items')")
        update(tagged, "items")
        assert violations(tagged) == []

    def test_bits_of_the_stream(self, tagged: psycopg.Connection[Any]) -> None:
        tagged.execute("INSERT INTO item VALUES (900, %s), (901, %s)", [text(QUERY), text(-QUERY)])
        assert violations(tagged) == []
        tagged.execute("UPDATE foh.items_stream SET geometry = ~geometry WHERE key = 901")
        assert violations(tagged) == [(self.WRONG, "901")]
        tagged.execute("SELECT foh.repair('items')")
        assert found(tagged, -QUERY, labels=0) == [901]
        update(tagged, "items")
        assert violations(tagged) == []

    def test_an_embedding_that_was_written_past_the_triggers(self, tagged: psycopg.Connection[Any]) -> None:
        tagged.execute("ALTER TABLE item DISABLE TRIGGER USER")
        tagged.execute("UPDATE item SET embedding = %s WHERE id = 7", [text(-vectors(300)[7])])
        tagged.execute("ALTER TABLE item ENABLE TRIGGER USER")
        assert (self.WRONG, "7") in violations(tagged)
