"""What stands in foh.model_state is read only as far as an updater could have written it."""

from __future__ import annotations

import hashlib
import io
import tracemalloc
import zipfile
from typing import Any

import numpy as np
import psycopg
import pytest

from foh_pg.errors import StateError
from foh_pg.updater import update
from tests.support.digits import create_index, create_table, insert
from tests.support.postgres import Database

Connection = psycopg.Connection[Any]


def claiming_terabytes() -> bytes:
    """An archive of a few hundred bytes with an array whose header says that it has 8 TB."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)}
    )
    return archive("pending.npy", header.getvalue(), zipfile.ZIP_STORED)


def bomb() -> bytes:
    """An archive of 300 kB that unpacks to 300 MB."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": (3 * 10**8,)}
    )
    return archive("pending.npy", header.getvalue() + bytes(3 * 10**8), zipfile.ZIP_DEFLATED)


def archive(name: str, content: bytes, compression: int) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as file:
        file.writestr(name, content)
    return packed.getvalue()


@pytest.mark.one_version
@pytest.mark.parametrize("planted", [claiming_terabytes, bomb])
def test_is_refused(planted: Any, connection: Connection, superuser: Connection, database: Database) -> None:
    create_table(connection)
    create_index(connection)
    insert(connection, range(50))
    update(database.dsn(), "digits")
    insert(connection, range(50, 60))
    data = planted()
    changed = superuser.execute(
        "UPDATE foh.model_state SET data = %s, digest = %s WHERE name = 'progress'",
        [data, hashlib.sha256(data).digest()],
    )
    assert changed.rowcount == 1
    tracemalloc.start()
    try:
        with pytest.raises(StateError, match=r"state 'progress', version 0, of index .*digits.* --again"):
            update(database.dsn(), "digits")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100e6
