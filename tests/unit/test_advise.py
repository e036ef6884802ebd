"""What advise says of figures that are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foh_pg.arrays.ragged import Ragged
from foh_pg.quality.advise import Advice, Figure, Sample, Table, decide
from foh_pg.quality.advise.measuring import EXACT, FILTERED, LEARNED

TABLE = Table("public", "item", ("id",), "embedding", "vector", "label", "text")
QUERIES = 300


def sample() -> Sample:
    labels = Ragged.of([["a"]] * 1000, object)
    return Sample(TABLE, 1000, 1000, np.zeros((1000, 4), dtype=np.float32), labels)


def shares(mean: float, noise: float = 0.0) -> np.ndarray:
    """Shares with this mean, half of them `noise` above it and half below."""
    return mean + noise * np.where(np.arange(QUERIES) % 2, 1.0, -1.0)


def figures(cosine: np.ndarray, codes: dict[int, np.ndarray], filtered: np.ndarray) -> list[Figure]:
    return [
        Figure(EXACT, cosine),
        Figure(FILTERED, filtered, ranked_by="likeliest label"),
        *(Figure("foh", found, bits, LEARNED, recall=0.4) for bits, found in codes.items()),
    ]


def advise(cosine: np.ndarray, codes: dict[int, np.ndarray], filtered: np.ndarray) -> Advice:
    return decide(sample(), figures(cosine, codes, filtered))


def test_the_figures_are_those_of_the_bits_that_are_recommended() -> None:
    advice = advise(shares(0.25), {32: shares(0.395), 64: shares(0.4)}, shares(0.3))
    assert advice.use == "Use this index with 32 bits."
    assert "P@10 0.395 and 0.250, +0.145" in advice.gain


def test_the_same_gain_in_more_noise_is_no_clear_difference() -> None:
    # Of noise .2 in 300 queries the standard error is .0116; of .4 it is .0231.
    clear = advise(shares(0.25), {32: shares(0.28, 0.2)}, shares(0.2))
    assert (clear.choice, clear.bits) == ("foh", 32)
    unclear = advise(shares(0.25), {32: shares(0.28, 0.4)}, shares(0.2))
    assert unclear.choice == "pgvector"
    assert "no clear difference: a gain of +0.030 with a standard error of 0.023 over 300" in unclear.gain


def test_noise_that_both_ways_share_is_none() -> None:
    """Some queries are hard for every way: what counts is the difference at each."""
    assert advise(shares(0.25, 0.25), {32: shares(0.28, 0.25)}, shares(0.2)).choice == "foh"


def test_a_clear_gain_that_is_not_worth_it() -> None:
    advice = advise(shares(0.25), {32: shares(0.265)}, shares(0.2))
    assert advice.choice == "pgvector"
    assert "a gain of +0.015, and 0.02 would be worth it" in advice.gain


def test_a_filter_must_be_clearly_better() -> None:
    assert advise(shares(0.1), {32: shares(0.4)}, shares(0.43)).choice == "label filter"
    assert advise(shares(0.1), {32: shares(0.4)}, shares(0.43, 0.4)).choice == "foh"


def test_a_filter_that_gives_any_rows_of_the_label_is_told_and_not_chosen() -> None:
    def far(known: list[Figure]) -> list[Figure]:
        return [replace(figure, recall=0.01) if figure.way == FILTERED else figure for figure in known]

    advice = decide(sample(), far(figures(shares(0.1), {32: shares(0.4)}, shares(0.5))))
    assert advice.choice == "foh"
    assert "filter by label would reach 0.500 (recall of the exact ten 0.010)" in " ".join(advice.notes)
    # An index that is no better than the distance alone is no choice, however near its answers are.
    useless = far(figures(shares(0.4), {32: shares(0.4)}, shares(0.5)))
    assert decide(sample(), useless).choice == "label filter"


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
    useless = advise(shares(0.4), {32: shares(0.4)}, shares(0.1))
    assert "foh-pg drop-index items removes" in useless.for_index("items", 32)
