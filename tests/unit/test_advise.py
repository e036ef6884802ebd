"""What advise says of figures that are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from foh_pg.arrays.ragged import Ragged
from foh_pg.quality.advise.measuring import EXACT, FILTERED, LEARNED, NEAREST, Figure, foh_megabytes
from foh_pg.quality.advise.sampling import Sample, Table
from foh_pg.quality.advise.verdict import Advice, decide, statement
from foh_pg.updater.trial import Answers

TABLE = Table("public", "item", ("id",), "embedding", "vector", "label", "text")
QUERIES = 300


def sample() -> Sample:
    labels = Ragged.of([["a"]] * 1000, object)
    return Sample(TABLE, 1000, 1000, np.zeros((1000, 4), dtype=np.float32), labels)


def shares(mean: float, noise: float = 0.0) -> np.ndarray:
    """Shares with this mean, half of them `noise` above it and half below."""
    return mean + noise * np.where(np.arange(QUERIES) % 2, 1.0, -1.0)


def answers(precision: np.ndarray, recall: float = 0.4, both: np.ndarray | None = None) -> Answers:
    """Answers of that precision; unless said otherwise, as many of the nearest rows of the kind are found."""
    of_kind = precision if both is None else both
    return Answers(precision, np.full(QUERIES, recall), of_kind, np.ones(QUERIES))


def figures(cosine: np.ndarray, codes: dict[int, np.ndarray], filtered: np.ndarray) -> list[Figure]:
    return [
        Figure(EXACT, answers(cosine, 1.0)),
        Figure(FILTERED, answers(filtered), ranked_by="likeliest label"),
        *(Figure("foh", answers(found), bits, LEARNED) for bits, found in codes.items()),
    ]


def advise(cosine: np.ndarray, codes: dict[int, np.ndarray], filtered: np.ndarray) -> Advice:
    return decide(sample(), figures(cosine, codes, filtered))


def test_the_figures_are_those_of_the_bits_that_are_recommended() -> None:
    advice = advise(shares(0.25), {32: shares(0.395), 64: shares(0.4)}, shares(0.3))
    assert advice.use == "Use this index with 32 bits."
    assert "4.0 are of the 10 nearest that do; by exact distance 2.5 and 2.5 (P@10" in advice.gain
    assert "(P@10 +0.145 ± 0.000, both@10 +0.145 ± 0.000, on 1000 rows)" in advice.gain


@pytest.mark.parametrize(
    ("rows", "dimensions", "megabytes"),
    [
        (500, 256, 0.69),
        (1500, 256, 1.0),
        (3000, 256, 1.89),
        (8000, 256, 3.46),
        (29_000, 256, 9.63),
        (100_000, 256, 30.88),
        (3000, 512, 1.95),
        (40_000, 512, 14.79),
    ],
)
def test_the_size_is_about_what_an_index_took(rows: int, dimensions: int, megabytes: float) -> None:
    """With 32 bits, as foh.index_size gave them after a build."""
    table = replace(sample(), rows=rows, X=np.zeros((1, dimensions), dtype=np.float32))
    assert foh_megabytes(table, 32) == pytest.approx(megabytes, rel=0.05)


def test_the_same_gain_in_more_noise_is_no_clear_difference() -> None:
    # Of noise .2 in 300 queries the standard error is .0116; of .4 it is .0231.
    clear = advise(shares(0.25), {32: shares(0.28, 0.2)}, shares(0.2))
    assert (clear.choice, clear.bits) == ("foh", 32)
    unclear = advise(shares(0.25), {32: shares(0.28, 0.4)}, shares(0.2))
    assert unclear.choice == "pgvector"
    assert "no clear difference: +0.030 ± 0.023 may come from the choice of the queries" in unclear.gain


def test_noise_that_both_ways_share_is_none() -> None:
    """Some queries are hard for every way: what counts is the difference at each."""
    assert advise(shares(0.25, 0.25), {32: shares(0.28, 0.25)}, shares(0.2)).choice == "foh"


def test_a_clear_gain_that_is_not_worth_it() -> None:
    advice = advise(shares(0.25), {32: shares(0.265)}, shares(0.2))
    assert advice.choice == "pgvector"
    assert "A gain of +0.015 is less than the 0.02 that would be worth it" in advice.gain


def advise_both(p10: float, both: np.ndarray) -> Advice:
    """By exact distance 2.5 of the first ten rows share a label with the query; so many by the index."""
    ours = answers(shares(p10), 0.5, both)
    near = answers(shares(0.25), 0.95)
    return decide(
        sample(),
        [
            *figures(shares(0.25), {}, shares(0.2)),
            Figure("foh", ours, 32, LEARNED),
            Figure("foh", near, 32, NEAREST),
        ],
    )


def test_rows_of_the_kind_do_not_count_where_the_nearest_of_them_are_lost() -> None:
    """P@10 is .1 better, and of the nearest rows of the kind .018 are lost: that is worse than any HNSW."""
    advice = advise_both(0.35, shares(0.232, 0.1))
    assert (advice.choice, advice.bits) == ("pgvector", None)
    assert "both@10 -0.018 ± 0.006" in advice.gain
    assert advice.gain.endswith("An index that loses 0.018 of both@10 is no gain.")
    # What a build allows a search to lose is no reason against it, and is said.
    advice = advise_both(0.35, shares(0.245))
    assert advice.choice == "foh"
    assert "and 2.5 are of the 10 nearest that do; by exact distance 2.5 and 2.5 (P@10 +0.100" in advice.gain
    assert "both@10 -0.005" in advice.gain
    assert advice.cost.endswith("50% are among the first ten, 95% with labels => 0.")


def test_a_sample_cannot_tell_how_little_is_left_in_a_large_table() -> None:
    known = figures(shares(0.25), {32: shares(0.35)}, shares(0.2))
    assert "measures it after a build" not in decide(replace(sample(), rows=8000), known).gain
    assert "Among 8001 rows it is less: foh-pg evaluate" in decide(replace(sample(), rows=8001), known).gain


def test_more_of_the_nearest_rows_of_the_kind_are_a_gain() -> None:
    assert advise_both(0.255, shares(0.3)).choice == "foh"
    assert advise_both(0.235, shares(0.3)).gain.endswith("An index that loses 0.015 of P@10 is no gain.")


def test_a_filter_must_be_clearly_better() -> None:
    assert advise(shares(0.1), {32: shares(0.4)}, shares(0.43)).choice == "label filter"
    assert advise(shares(0.1), {32: shares(0.4)}, shares(0.43, 0.4)).choice == "foh"


def test_a_filter_that_gives_any_rows_of_the_label_is_told_and_not_chosen() -> None:
    def far(known: list[Figure]) -> list[Figure]:
        return [
            replace(figure, answers=answers(figure.answers.precision, 0.01, shares(0.01)))
            if figure.way == FILTERED
            else figure
            for figure in known
        ]

    advice = decide(sample(), far(figures(shares(0.1), {32: shares(0.4)}, shares(0.5))))
    assert advice.choice == "foh"
    assert "filter by label would reach P@10 0.500 (recall of the exact ten 0.010)" in " ".join(advice.notes)
    useless = decide(sample(), far(figures(shares(0.4), {32: shares(0.4)}, shares(0.5))))
    assert useless.choice == "pgvector"
    assert useless.gain.endswith("the choice if the label is all that counts.")


def test_the_fewest_bits_with_no_clear_loss() -> None:
    def bits(shorter: np.ndarray) -> int | None:
        return advise(shares(0.1), {32: shorter, 64: shares(0.4)}, shares(0.1)).bits

    assert bits(shares(0.385)) == 64
    assert bits(shares(0.385, 0.2)) == 32
    # Too much to give away on the strength of not knowing.
    assert bits(shares(0.37, 0.4)) == 64


def test_an_index_that_is_there() -> None:
    advice = advise(shares(0.1), {32: shares(0.3), 64: shares(0.4)}, shares(0.1))
    assert "64 bits are clearly better" in advice.for_index("items", 32)
    assert advice.for_index("items", 64).endswith("is there: keep it.")
    # What is shown are its figures, also where fewer bits would do.
    some = figures(shares(0.1), {32: shares(0.395), 64: shares(0.4)}, shares(0.1))
    assert [decide(sample(), some, there).bits for there in (None, 16, 32, 64, 256)] == [32, 32, 32, 64, 32]
    useless = advise(shares(0.4), {32: shares(0.4)}, shares(0.1))
    assert "foh-pg drop-index items removes" in useless.for_index("items", 32)


def test_the_statement_names_the_distance_that_was_measured() -> None:
    assert statement(sample(), 32, "l2").endswith("bits => 32, distance => 'l2');")
    assert "distance" not in statement(sample(), 32, "cosine")
