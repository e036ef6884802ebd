"""Everything an updater writes, for comparing two databases."""

from __future__ import annotations

from typing import Any

import psycopg

QUERIES = {
    "index": "SELECT version, status, next_center FROM foh.index",
    "model": "SELECT version, trained, learned, mean::text, scale, placed, first_center, weight_code, weight_votes,"
    " probes, shortlist FROM foh.model ORDER BY version",
    "label": "SELECT label, name, projection::text FROM foh.label ORDER BY label",
    "projection": "SELECT bit, weights::text, bias, mask FROM foh.digits_projection ORDER BY bit",
    "quantizer": "SELECT threshold::text, signs::text FROM foh.digits_quantizer",
    "area": "SELECT area, part, ids, geometry FROM foh.digits_area ORDER BY 1, 2",
    "center": "SELECT center, length, version, stale, checked FROM foh.digits_center ORDER BY 1",
    "sample": "SELECT center, tried, ids, codes FROM foh.digits_sample ORDER BY 1",
    "list": "SELECT center, part, ids, geometry, marks FROM foh.digits_list ORDER BY 1, 2",
    "item": "SELECT key, home FROM foh.digits_item ORDER BY 1",
    "stream": "SELECT key, op FROM foh.digits_stream ORDER BY seq",
    "state": "SELECT version, name, chunk FROM foh.model_state ORDER BY 1, 2, 3",
}


def recorded_state(connection: psycopg.Connection[Any]) -> dict[str, list[tuple[Any, ...]]]:
    return {name: connection.execute(query).fetchall() for name, query in QUERIES.items()}
