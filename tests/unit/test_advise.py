"""What advise says of figures that are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foh_pg.arrays.labels import LabelSets
from foh_pg.quality.advise import LARGEST_SAMPLE, Advice, Figure, Sample, Table, decide
from foh_pg.quality.advise.measuring import LEARNED, LEARNED_QUARTER, NEAREST_OF_LABEL, QUARTER

TABLE = Table("public", "item", "id", "embedding", "vector", "label", "text")
QUERIES = 300


def sample(rows: int = 1000) -> Sample:
    X, sets = np.zeros((1000, 4), dtype=np.float32), LabelSets.single([0] * 1000)
    return Sample(TABLE, rows, rows, X, sets, ("a",))


def shares(mean: float, noise: float = 0.0) -> np.ndarray:
    """Shares with this mean, half of them `noise` above it and half below."""
    return mean + noise * np.where(np.arange(QUERIES) % 2, 1.0, -1.0)


def figures(
    cosine: np.ndarray,
    codes: dict[int, np.ndarray],
    filtered: np.ndarray,
    nearest: float = 0.0,
    quarter: tuple[float, float] = (0.0, 0.0),
) -> list[Figure]:
    return [
        Figure(QUARTER, None, "distance", {10: shares(quarter[0])}, None),
        Figure("exact cosine", None, "distance", {10: cosine, 100: shares(0.2)}, None),
        Figure("classify and filter", None, "likeliest label", {10: filtered, 100: shares(0.2)}, None),
        Figure(NEAREST_OF_LABEL, None, "distance", {10: shares(nearest), 100: shares(0.2)}, None, 0.7),
        *(
            Figure("foh", bits, LEARNED, {10: found, 100: shares(0.2)}, None, 0.4)
            for bits, found in codes.items()
        ),
        *(Figure("foh", bits, LEARNED_QUARTER, {10: shares(quarter[1])}, None) for bits in codes),
    ]


def advise(cosine: np.ndarray, codes: dict[int, np.ndarray], filtered: np.ndarray) -> Advice:
    return decide(sample(), figures(cosine, codes, filtered))


def test_a_gain_that_falls_with_more_rows_is_told() -> None:
    """Both ways gain from rows that the sample does not have: what counts is the difference."""
    codes = {32: shares(0.295), 64: shares(0.3)}
    fading = figures(shares(0.25), codes, shares(0.3), quarter=(0.15, 0.22))
    advice = decide(sample(16_000), fading)
    assert (advice.choice, advice.bits) == ("foh", 32)
    [note] = advice.notes
    assert "+0.070 on a quarter of the sample, +0.045 on all of it, which makes about -0.005 on" in note
    assert "try a larger --sample" in note
    assert decide(sample(), fading).notes == ()
    assert decide(sample(16_000), figures(shares(0.25), codes, shares(0.3), quarter=(0.2, 0.24))).notes == ()


def test_a_larger_sample_is_not_asked_for_where_there_is_none() -> None:
    largest = replace(sample(16_000_000), X=np.zeros((LARGEST_SAMPLE, 4), dtype=np.float32))
    known = figures(shares(0.25), {32: shares(0.295)}, shares(0.3), quarter=(0.15, 0.22))
    [note] = decide(largest, known).notes
    assert "--sample" not in note
    assert "it may not last" in note


def test_the_figures_are_those_of_the_bits_that_are_recommended() -> None:
    advice = decide(sample(), figures(shares(0.25), {32: shares(0.395), 64: shares(0.4)}, shares(0.3)))
    assert advice.use == "Use this index with 32 bits."
    assert "P@10 0.395 and 0.250, +0.145" in advice.gain


def test_a_classifier_with_a_filtered_search_is_told_where_it_is_as_good_and_nearer() -> None:
    known = figures(shares(0.25), {32: shares(0.3)}, shares(0.3), nearest=0.3)
    told = decide(sample(), known)
    assert told.choice == "foh"
    assert "reach 0.300 (recall of the exact ten 0.700)" in " ".join(told.notes)
    worse = figures(shares(0.25), {32: shares(0.3)}, shares(0.3), nearest=0.25)
    assert "iterative scan" not in " ".join(decide(sample(), worse).notes)


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
    assert "a gain of +0.015 where 0.02 would be worth it" in advice.gain


def test_a_filter_must_be_clearly_better() -> None:
    assert advise(shares(0.1), {32: shares(0.4)}, shares(0.43)).choice == "label filter"
    assert advise(shares(0.1), {32: shares(0.4)}, shares(0.43, 0.4)).choice == "foh"


def test_a_filter_that_gives_any_rows_of_the_label_is_told_and_not_chosen() -> None:
    known = figures(shares(0.1), {32: shares(0.4)}, shares(0.5))
    far = [
        replace(figure, recall=0.01) if figure.way == "classify and filter" else figure for figure in known
    ]
    advice = decide(sample(), far)
    assert advice.choice == "foh"
    assert "filter by label would reach 0.500 (recall of the exact ten 0.010)" in " ".join(advice.notes)
    # An index that is no better than the distance alone is no choice, however near its answers are.
    useless = figures(shares(0.4), {32: shares(0.4)}, shares(0.5))
    far = [
        replace(figure, recall=0.01) if figure.way == "classify and filter" else figure for figure in useless
    ]
    assert decide(sample(), far).choice == "label filter"


def test_the_fewest_bits_with_no_clear_loss() -> None:
    def bits(shorter: np.ndarray) -> int | None:
        return advise(shares(0.1), {32: shorter, 64: shares(0.4)}, shares(0.1)).bits

    assert bits(shares(0.385)) == 64
    assert bits(shares(0.385, 0.2)) == 32
    # Too much to give away on the strength of not knowing.
    assert bits(shares(0.37, 0.4)) == 64
