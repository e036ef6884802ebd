"""Indexes of ours, with budgets and weights of labels of all kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from foh_pg.updater import build as build_index
from lab.search.contenders import Contender, Form
from lab.search.table import Rows, create_index


def table_of(name: str) -> str:
    """The table that an index is made on."""
    return f"items_{name}"


# Curves: what a search costs and gives over a range of budgets, as learned, with nothing read from the table,
# and with labels left out; and what it gives over a range of the dial.
LEARNED, BY_BITS, NEAREST, DIALS = "as learned", "nothing read", "labels 0", "over the dial"


class Budgets(NamedTuple):
    """Probes and shortlists of searches as learned, with labels left out, and probes with nothing read."""

    learned: Sequence[tuple[int, int]] = ()
    nearest: Sequence[tuple[int, int]] = ()
    by_bits: Sequence[int] = ()
    # Recalls that are asked for with labels left out.
    recalls: Sequence[float] = ()


NO_BUDGETS = Budgets()


def ours(
    name: str,
    title: str,
    bits: int,
    budgets: Budgets = NO_BUDGETS,
    dials: Sequence[float] = (),
) -> Contender:
    """An index of ours: as it comes, and over a range of budgets (probes and shortlist) and of the dial."""
    forms = [
        _form(name, "default", 10, LEARNED),
        _form(name, "no shortlist", 10, BY_BITS, shortlist=0),
        _form(name, "default", 100, LEARNED),
        _form(name, "no shortlist", 100, BY_BITS, shortlist=0),
        _form(name, "labels 0", 10, NEAREST, labels=0),
        _form(name, "labels 0", 100, NEAREST, labels=0),
        _form(name, "labels 1", 10, DIALS, labels=1),
    ]
    forms += [_form(name, f"labels {dial:g}", 10, DIALS, labels=dial) for dial in dials]
    for probes, shortlist in budgets.learned:
        about = f"probes {probes}, shortlist {shortlist}"
        forms.append(_form(name, about, 10, LEARNED, probes=probes, shortlist=shortlist))
    for probes, shortlist in budgets.nearest:
        about = f"labels 0, probes {probes}, shortlist {shortlist}"
        forms.append(_form(name, about, 10, NEAREST, probes=probes, shortlist=shortlist, labels=0))
    for target in budgets.recalls:
        forms.append(_form(name, f"labels 0, recall {target:g}", 10, NEAREST, labels=0, recall=target))
    for probes in budgets.by_bits:
        forms.append(_form(name, f"no shortlist, probes {probes}", 10, BY_BITS, probes=probes, shortlist=0))
        about = f"labels 0, no shortlist, probes {probes}"
        forms.append(_form(name, about, 10, NEAREST, probes=probes, shortlist=0, labels=0))
    table = table_of(name)

    def build(dsn: str, connection: psycopg.Connection[Any], _rows: Rows) -> None:
        create_index(connection, name, bits, on=table)
        build_index(dsn, name)

    size = sql.SQL("SELECT sum(bytes)::bigint FROM foh.index_size({})").format(sql.Literal(name))
    reached = sql.SQL("SELECT count(DISTINCT l.id) FROM (SELECT unnest(ids) AS id FROM {}) l").format(
        sql.Identifier("foh", f"{name}_list")
    )
    return Contender(title, table, build, size, forms, reached)


def _form(index: str, label: str, k: int, curve: str = "", **arguments: float) -> Form:
    rest = [
        sql.SQL(", {} => {}").format(sql.Identifier(key), sql.Literal(value))
        for key, value in arguments.items()
    ]
    statement = sql.SQL("SELECT r.id FROM {}(%b, {}{}) r").format(
        sql.Identifier("foh", f"{index}_search"), sql.Literal(k), sql.Composed(rest)
    )
    return Form(label, k, statement, curve=curve)
