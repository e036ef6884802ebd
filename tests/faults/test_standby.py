from __future__ import annotations

import os
from pathlib import Path

import pytest

from foh_pg import updater
from foh_pg.errors import SessionError
from foh_pg.postgres.embedded import EmbeddedServer, server_user
from tests.support.postgres import SETTINGS


def test_a_standby_is_refused(embedded_version: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = Path(tmp_path_factory.mktemp("s")) / "data"
    embedded = EmbeddedServer(directory, embedded_version, SETTINGS)
    with embedded:
        pass
    signal = directory / "standby.signal"
    signal.touch()
    if os.geteuid() == 0:
        os.chown(signal, *server_user())
    with embedded, pytest.raises(SessionError, match="connect to the primary"):
        updater.update(embedded.dsn(), "digits")
