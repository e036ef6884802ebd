"""Everyone who takes part."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

from lab.search.bare_codes import codes_graph, codes_scan, reencoded
from lab.search.bit_graph import bits_graph
from lab.search.contenders import Contender
from lab.search.ours import Budgets, ours
from lab.search.pgvector import exact, graph, inverted, quantized
from lab.search.supervised import classified, projected
from lab.search.table import Rows

# By the names that --contenders takes; the first two are in every comparison, `--quick` takes the first nine.
NAMES = (
    "foh",
    "hnsw",
    "exact",
    "symmetric",
    "encoded-again",
    "supervised",
    "classify",
    "our-bits",
    "signs",
    "halfvec",
    "ivfflat",
    "code-graph",
    "code-scan",
    "symmetric-scan",
)
ALWAYS, QUICK = NAMES[:2], NAMES[:9]

# The last ones with labels left out are for users who want nearly all of the exact nearest.
BUDGETS = Budgets(
    learned=((16, 30), (32, 40), (64, 100)),
    nearest=((16, 30), (32, 30), (48, 40), (64, 40), (96, 60), (128, 100), (192, 200), (256, 400)),
    by_bits=(16, 48),
    recalls=(0.9, 0.95, 0.97),
)
BUDGETS_QUICK = Budgets(learned=((32, 40),), nearest=((32, 30), (96, 60)), by_bits=(16,), recalls=(0.95,))


def line_up(rows: Rows, bits: int, quick: bool, names: Sequence[str] = ()) -> list[Contender]:
    """Those named, without names everyone; `quick` leaves out what takes long to build or to ask."""
    d = rows.dimensions
    none, half = sql.SQL(""), sql.SQL("::halfvec({})").format(sql.Literal(d))
    ef = (40, 100) if quick else (10, 20, 40, 60, 100, 200)
    budgets = BUDGETS_QUICK if quick else BUDGETS
    dials = (0.25,) if quick else (0.25, 0.75)
    lists = max(10, round(len(rows.base) ** 0.5))
    everyone = {
        "foh": ours("anchored", "foh", bits, 1, budgets, dials),
        "symmetric": ours("symmetric", "foh, symmetric codes", bits, 0),
        "hnsw": graph("pgvector HNSW", "items_graph", none, "vector_cosine_ops", ef),
        "exact": exact(),
        # Each of its answers takes seconds where there are a hundred thousand rows.
        "encoded-again": reencoded("symmetric", bits, d, most=5 if quick else 10),
        "halfvec": graph("pgvector HNSW on halfvec", "items_half", half, "halfvec_cosine_ops", ef),
        "supervised": projected(rows, ef),
        "classify": classified(rows),
        "ivfflat": inverted("items_lists", lists, (1, 5, 20)),
        "our-bits": bits_graph("anchored", (40, 60, 100) if quick else (20, 40, 60, 100, 200)),
        "signs": quantized("items_signs", d, (100,) if quick else (40, 100, 200)),
        "code-graph": codes_graph("anchored", bits, 40),
        "code-scan": codes_scan("anchored", "scan of our codes", bits),
        "symmetric-scan": codes_scan("symmetric", "scan of symmetric codes", bits),
    }
    wanted = {*names, *ALWAYS} if names else set(QUICK if quick else NAMES)
    if {"encoded-again", "symmetric-scan"} & wanted:
        wanted.add("symmetric")
    return [contender for name, contender in everyone.items() if name in wanted]
