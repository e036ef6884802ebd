"""Label sets and vocabularies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foh_pg.arrays.labels import LabelSets
from foh_pg.arrays.vocabulary import Vocabulary
from foh_pg.errors import InputError

names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4)
batches = st.lists(st.lists(names, max_size=4), max_size=12)
id_rows = st.lists(st.lists(st.integers(0, 6), max_size=4), max_size=15)


def as_sets(sets, vocabulary):
    return [{vocabulary.names[i] for i in sets.row(row)} for row in range(len(sets))]


@given(batches)
def test_reading_loses_nothing(batch):
    sets, vocabulary = Vocabulary().read(batch)
    assert as_sets(sets, vocabulary) == [set(row) for row in batch]
    assert all((np.diff(sets.row(i)) > 0).all() for i in range(len(sets)))


@given(batches, st.randoms())
def test_order_inside_a_set_does_not_matter(batch, random):
    shuffled = [random.sample([*row, *row], 2 * len(row)) for row in batch]
    assert Vocabulary().read(batch) == Vocabulary().read(shuffled)


@given(batches, batches)
def test_ids_never_change(first, second):
    _, before = Vocabulary().read(first)
    sets, after = before.read(second)
    assert after.names[: len(before)] == before.names
    assert as_sets(sets, after) == [set(row) for row in second]
    known = [{name for name in row if name in before.index} for row in second]
    assert as_sets(before.find(second), before) == known


@given(id_rows)
def test_multi_hot_and_back(rows):
    sets = LabelSets.of(rows)
    assert LabelSets.from_multi_hot(sets.multi_hot(7)) == sets
    assert np.array_equal(sets.occurrences(7), sets.multi_hot(7).sum(axis=0))


@given(id_rows, st.data())
def test_take_and_append(rows, data):
    sets = LabelSets.of(rows)
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8)) if rows else []
    taken = sets.take(np.array(chosen, dtype=np.int64))
    assert taken == LabelSets.of([rows[i] for i in chosen])
    assert sets.append(taken) == LabelSets.of([*rows, *[rows[i] for i in chosen]])
    mask = np.array([len(row) > 1 for row in rows], dtype=bool)
    assert sets.take(mask) == LabelSets.of([row for row in rows if len(row) > 1])


@given(id_rows)
def test_renumber_drops_what_has_no_number(rows):
    new = np.array([-1, 0, 1, -1, 2, 3, -1])
    expected = [[int(new[i]) for i in row if new[i] >= 0] for row in rows]
    assert LabelSets.of(rows).renumber(new) == LabelSets.of(expected)


@given(id_rows)
def test_groups_are_the_distinct_sets(rows):
    groups = LabelSets.of(rows).group()
    keys = [frozenset(row) for row in rows]
    assert [keys.index(key) for key in keys] == groups.first[groups.of_row].tolist()
    assert list(dict.fromkeys(keys)) == [frozenset(groups.sets.row(i).tolist()) for i in range(len(groups))]
    assert groups.sizes.sum() == len(rows)


def test_a_colliding_hash_is_noticed(monkeypatch):
    from foh_pg.arrays import labels

    def poor(ids, salt):
        return np.ones(len(ids), dtype=np.uint64) if salt < 3 else original(ids, salt)

    original = labels._scramble
    monkeypatch.setattr(labels, "_scramble", poor)
    assert len(LabelSets.of([[0], [1], [0]]).group()) == 2


@pytest.mark.parametrize(
    "given_labels",
    [
        [3, 10, 3],
        ["3", "10", "3"],
        [{3}, {10}, {3}],
        np.array([3, 10, 3]),
        np.array([3.0, 10.0, 3.0]),
        [np.int64(3), [np.uint8(10)], ("3",)],
        np.array(["3", "10", "3"]),
    ],
)
def test_all_forms_say_the_same(given_labels):
    sets, vocabulary = Vocabulary().read(given_labels)
    assert vocabulary.names == ("3", "10")
    assert sets.ids.tolist() == [0, 1, 0]


def test_multi_hot_columns_are_names():
    sets, vocabulary = Vocabulary(("1",)).read(np.array([[1, 1, 0], [0, 0, 0]]))
    assert vocabulary.names == ("1", "0", "2")
    assert as_sets(sets, vocabulary) == [{"0", "1"}, set()]


def test_nulls_and_case():
    sets, vocabulary = Vocabulary().read([None, [None, "a", "A"], []])
    assert as_sets(sets, vocabulary) == [set(), {"a", "A"}, set()]
    assert Vocabulary().read(None, 3)[0] == LabelSets.empty(3)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([["a"], [1.5]], "row 1 has the label 1.5"),
        ([True], "strings or integers"),
        ([b"a"], "strings or integers"),
        (["a\0"], "NUL"),
        ("abc", "one label set per row"),
        ({"a"}, "no order"),
        (np.array([[0, 2]]), "multi-hot"),
        (np.array([["a"]]), "multi-hot"),
        (3, "one label set per row"),
    ],
)
def test_bad_labels_are_refused(labels, message):
    with pytest.raises(InputError, match=message):
        Vocabulary().read(labels)


def test_wrong_number_of_sets():
    for labels in ([["a"]], np.array([1]), np.array([[1]])):
        with pytest.raises(InputError, match="1 label sets were given for 2 rows"):
            Vocabulary().read(labels, 2)
