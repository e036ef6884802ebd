"""Everyone who takes part."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

from lab.search.bit_graph import bits_graph
from lab.search.contenders import Contender
from lab.search.ours import Budgets, ours
from lab.search.pgvector import exact, graph, inverted, quantized
from lab.search.supervised import classified, projected
from lab.search.table import Rows

# By the names that --contenders takes; the first two always take part, `--quick` takes the first seven.
NAMES = (
    "foh",
    "hnsw",
    "exact",
    "supervised",
    "classify",
    "our-bits",
    "signs",
    "halfvec",
    "ivfflat",
)
ALWAYS, QUICK = NAMES[:2], NAMES[:7]

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
        "foh": ours("anchored", "foh", bits, budgets, dials),
        "hnsw": graph("pgvector HNSW", "items_graph", none, "vector_cosine_ops", ef),
        "exact": exact(),
        "halfvec": graph("pgvector HNSW on halfvec", "items_half", half, "halfvec_cosine_ops", ef),
        "supervised": projected(rows, ef),
        "classify": classified(rows),
        "ivfflat": inverted("items_lists", lists, (1, 5, 20)),
        "our-bits": bits_graph("anchored", (40, 60, 100) if quick else (20, 40, 60, 100, 200)),
        "signs": quantized("items_signs", d, (100,) if quick else (40, 100, 200)),
    }
    wanted = {*names, *ALWAYS} if names else set(QUICK if quick else NAMES)
    return [contender for name, contender in everyone.items() if name in wanted]
