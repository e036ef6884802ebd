import numpy as np

from foh_pg.updater import rebuild, update
from tests.digits import *


def prec(c, **kw):
    data, target = digits()
    hits = []
    extra = "".join(f", {k} => {v}" for k, v in kw.items())
    for i in HELD_OUT:
        f = c.execute(
            f"SELECT d.label FROM foh.digits_search(%s::extensions.vector, 10{extra}) s JOIN digit d USING (id)",
            [vector(data[i])],
        ).fetchall()
        hits.append(np.mean([l == str(target[i]) for (l,) in f]))
    return round(float(np.mean(hits)), 4)


def show(c, what):
    print(
        what,
        c.execute(
            "select count(*), avg(length), max(length), (select count(*) from foh.digits_area) from foh.digits_center"
        ).fetchone(),
        c.execute(
            "select version, trained, learned, placed, first_center, weight_code,weight_linear,weight_votes, probes, shortlist from foh.model order by version desc limit 1"
        ).fetchone(),
        {
            n: prec(c, **kw)
            for n, kw in dict(
                default={},
                l0=dict(labels=0),
                short0=dict(shortlist=0),
                p64=dict(probes=64),
                p64l0=dict(probes=64, labels=0),
            ).items()
        },
    )


def test_x(connection, database):
    create_table(connection)
    create_index(connection, options='{"learn_rows": 300}')
    for start in range(0, 1500, 300):
        insert(connection, range(start, start + 300))
        r = update(database.dsn(), "digits")
        print(r.rows, r.lists, r.rows_encoded, r.metrics, {k: round(v, 3) for k, v in r.phases.items()})
    show(connection, "grown")
    update(database.dsn(), "digits", full=True)
    show(connection, "full")
    rebuild(connection, "digits")
    show(connection, "rebuilt")
