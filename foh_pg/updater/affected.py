"""Which lists new hash functions make stale, judged by the few members that are remembered of each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foh_pg import clustering
from foh_pg.model.model import Model
from foh_pg.runs.session import Session
from foh_pg.tables.centers import SAMPLE, Centers
from foh_pg.tables.index_row import IndexRow
from foh_pg.tables.keys import KeyArray, member
from foh_pg.updater.placing import marks_now

# Members looked at in all: the more lists there are, the fewer of each, so that the cost does not grow.
MEMBERS = 8192
LEAST_PER_LIST = 2


def find_affected(
    session: Session, index: IndexRow, centers: Centers, model: Model, changed: KeyArray, budget: int | None
) -> clustering.Affected:
    """Compare the remembered codes of some members with what the model gives them now.

    `changed`: keys in the stream: what the lists hold of them is void anyway. `budget`: at most this many
    rows may be encoded again.
    """
    if len(centers) == 0:
        return clustering.Affected(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32))
    lists, keys, stored = _members(centers, changed)
    marks, there = marks_now(session, index, model, keys)
    found = clustering.find_affected(
        lists[there],
        stored[there],
        model.codes_of(marks),
        bits=index.bits,
        total=len(centers),
        max_stale=float(index.options["max_stale"]),
    )
    if budget is None:
        return found
    return found._replace(lists=found.lists[np.cumsum(centers.lengths[found.lists]) <= budget])


def _members(
    centers: Centers, changed: KeyArray
) -> tuple[npt.NDArray[np.int64], KeyArray, npt.NDArray[np.uint8]]:
    per_list = int(np.clip(MEMBERS // len(centers), LEAST_PER_LIST, SAMPLE))
    within = np.arange(SAMPLE) < np.minimum(centers.sampled, per_list)[:, None]
    lists = np.nonzero(within)[0]
    keys, codes = centers.sample_keys[within], centers.sample_codes[within]
    usable = ~member(keys, changed)
    return lists[usable], keys[usable], codes[usable]
