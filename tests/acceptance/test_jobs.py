"""Recipes for jobs: their commands run, their files are what the tools that read them expect."""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from click.testing import CliRunner

from foh_pg.cli import app
from foh_pg.cli import commands as commands_of_ours
from tests.support.postgres import Database
from tests.support.waiting import until

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "jobs.md"
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = {
    found[1]: text
    for _, info, text in FENCE.findall(PAGE.read_text())
    if (found := re.search(r"file=(\S+)", info))
}
SQL = [(info.strip(), text) for language, info, text in FENCE.findall(PAGE.read_text()) if language == "sql"]
PROGRAM = "/opt/foh/bin/foh-pg"
MANIFESTS = [name for name in FILES if name.endswith(".yaml")]


def unit(name: str) -> ConfigParser:
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(FILES[name])
    return parser


def containers(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    spec = manifest["spec"].get("jobTemplate", manifest)["spec"]
    return spec.get("template", {}).get("spec", {}).get("containers", [])


def commands() -> Iterator[tuple[str, list[str]]]:
    """The arguments of foh-pg in every recipe, by the name of its file."""
    for name, text in FILES.items():
        if name.endswith(".service"):
            program, *arguments = shlex.split(unit(name)["Service"]["ExecStart"])
            assert program == PROGRAM
            yield name, arguments
        elif name.endswith(".yaml"):
            for manifest in yaml.safe_load_all(text):
                for container in containers(manifest):
                    yield name, container["args"]
        elif name.endswith(".py"):
            for node in ast.walk(ast.parse(text)):
                words: list[str] = []
                if isinstance(node, ast.Constant) and str(node.value).startswith("foh-pg "):
                    words = shlex.split(str(node.value))
                elif (
                    isinstance(node, ast.List)
                    and node.elts
                    and all(isinstance(x, ast.Constant) for x in node.elts)
                ):
                    words = [str(x.value) for x in node.elts]  # type: ignore[attr-defined]
                if words[:1] == ["foh-pg"]:
                    yield name, words[1:]


def test_every_recipe_has_commands() -> None:
    found: dict[str, list[str]] = {}
    for name, arguments in commands():
        found.setdefault(name, []).append(arguments[0])
        command = commands_of_ours.load(arguments[0])
        command.make_context(arguments[0], list(arguments[1:])).close()
    assert {name: sorted(names) for name, names in found.items()} == {
        "foh-pg-update.service": ["update"],
        "foh-pg-watch.service": ["watch"],
        "foh-update.yaml": ["update"],
        "foh-watch.yaml": ["watch"],
        "foh_dags.py": ["evaluate", "status", "update"],
        "foh_jobs.py": ["evaluate", "update"],
    }


@pytest.fixture
def shop(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    connection.execute(
        "CREATE TABLE products (id bigint PRIMARY KEY, tag text, embedding extensions.vector(8))"
    )
    connection.execute("SELECT foh.create_index('products', 'products', 'embedding', 'tag')")
    connection.execute(
        """INSERT INTO products SELECT i, 'tag ' || i % 5,
               ARRAY(SELECT sin(i % 5 + i * d * 0.001)::real FROM generate_series(1, 8) d)
           FROM generate_series(1, 2000) i"""
    )
    return connection


def test_the_commands_run(
    shop: psycopg.Connection[Any],
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for name, value in database.environment().items():
        monkeypatch.setenv(name, value)
    # The same command is in several recipes; `watch` has tests of its own.
    unique = {
        " ".join(arguments).replace("=", " ").removesuffix(" --json"): arguments
        for _, arguments in commands()
    }
    for arguments in sorted(unique.values(), key=lambda words: words[0] != "update"):
        if arguments[0] != "watch":
            done = CliRunner().invoke(app, arguments)
            assert done.exit_code == 0, f"{arguments}: {done.output}"
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    for line in FILES["foh-pg.cron"].splitlines()[1:]:
        *_, command = line.split(maxsplit=6)
        assert command.startswith("PGSERVICE=shop ")
        command = command.removeprefix("PGSERVICE=shop ").replace("/run/lock", str(tmp_path))
        command = command.replace("/var/log", str(tmp_path))
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: {done.stderr}"
    assert json.loads((tmp_path / "foh-quality.jsonl").read_text())["metrics"]["queries"] > 0
    assert shop.execute("SELECT healthy FROM foh.health()").fetchall() == [(True,)]


class TestSystemd:
    def test_units_fit_together(self) -> None:
        for name in FILES:
            if name.endswith(".timer"):
                assert name.replace(".timer", ".service") in FILES
                assert unit(name)["Install"]["WantedBy"] == "timers.target"
        # 4: an index was skipped because another updater is at work on it.
        assert unit("foh-pg-update.service")["Service"]["SuccessExitStatus"] == "4"

    def test_systemd_understands_them(self, tmp_path: Path) -> None:
        analyze = shutil.which("systemd-analyze")
        if analyze is None:
            pytest.skip("there is no systemd-analyze: Debian's package systemd")
        program = Path(sys.executable).parent / "foh-pg"
        paths = []
        for name, text in FILES.items():
            if name.endswith((".service", ".timer")):
                (tmp_path / name).write_text(text.replace(PROGRAM, str(program)))
                paths.append(str(tmp_path / name))
        done = subprocess.run([analyze, "verify", "--man=no", *paths], capture_output=True, text=True)
        ours = [line for line in done.stderr.splitlines() if "foh-pg" in line]
        assert (done.returncode, ours) == (0, []), done.stderr


class TestKubernetes:
    @pytest.mark.parametrize("name", MANIFESTS)
    def test_containers_have_no_rights_that_they_do_not_need(self, name: str) -> None:
        for manifest in yaml.safe_load_all(FILES[name]):
            for container in containers(manifest):
                assert container["securityContext"] == {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                }
                assert container["resources"]["limits"]["memory"]

    def test_the_service_finds_the_watcher(self) -> None:
        deployment, service = yaml.safe_load_all(FILES["foh-watch.yaml"])
        assert (
            service["spec"]["selector"].items()
            <= deployment["spec"]["template"]["metadata"]["labels"].items()
        )
        [container] = containers(deployment)
        [port] = container["ports"]
        assert (
            service["spec"]["ports"][0]["targetPort"]
            == port["name"]
            == container["livenessProbe"]["httpGet"]["port"]
        )
        assert f"--metrics-port={port['containerPort']}" in container["args"]
        # Probes come from outside of the pod.
        assert "--metrics-host=0.0.0.0" in container["args"]

    @pytest.mark.parametrize("name", MANIFESTS)
    def test_kubernetes_understands_them(self, name: str) -> None:
        validator = pytest.importorskip(
            "kubernetes_validate", reason="there is no validator: kubernetes-validate of PyPI"
        )
        for manifest in yaml.safe_load_all(FILES[name]):
            validator.validate(manifest, validator.latest_version(), strict=True)


class TestPgCron:
    @pytest.fixture
    def noted(self, shop: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
        shop.execute("SET search_path = public, extensions")
        for info, text in SQL:
            if not info:
                shop.execute(text.encode())
        return shop

    @staticmethod
    def jobs() -> dict[str, str]:
        """The statements that are scheduled, by the name of the job."""
        text = "\n".join(text for _, text in SQL)
        return dict(
            re.findall(r"cron\.schedule\('([\w-]+)', '[^']+', \$job\$(.*?)\$job\$\)", text, re.DOTALL)
        )

    def test_alerts_begin_once_and_end(self, noted: psycopg.Connection[Any]) -> None:
        alerts = "SELECT name, problems[1] ~ 'has waited', until IS NULL FROM foh_alert ORDER BY since"
        job = self.jobs()["foh-alerts"].encode()
        noted.execute(job)
        assert noted.execute(alerts).fetchall() == []
        noted.execute("UPDATE foh.products_stream SET written_at = now() - interval '1 hour'")
        for _ in range(2):
            noted.execute(job)
        assert noted.execute(alerts).fetchall() == [("products", True, True)]
        noted.execute("DELETE FROM foh.products_stream")
        noted.execute(job)
        assert noted.execute(alerts).fetchall() == [("products", True, False)]

    def test_the_other_job_repairs(self, noted: psycopg.Connection[Any]) -> None:
        jobs = self.jobs()
        assert set(jobs) == {"foh-alerts", "foh-repair"}
        noted.execute("ALTER TABLE products DISABLE TRIGGER USER")
        noted.execute("DELETE FROM products")
        noted.execute("ALTER TABLE products ENABLE TRIGGER USER")
        lost = "SELECT count(*) > 0 FROM foh.check('products')"
        assert noted.execute(lost).fetchone() == (True,)
        noted.execute(jobs["foh-repair"].encode())
        assert noted.execute(lost).fetchone() == (False,)

    def test_pg_cron_runs_them(
        self, noted: psycopg.Connection[Any], superuser: psycopg.Connection[Any], database: Database
    ) -> None:
        name = superuser.execute("SELECT current_setting('cron.database_name', true)").fetchone()[0]  # type: ignore[index]
        if not name:
            pytest.skip("this server has no pg_cron: shared_preload_libraries = 'pg_cron'")
        with psycopg.connect(database.dsn(None), dbname=name, autocommit=True) as cron:
            cron.execute("CREATE EXTENSION IF NOT EXISTS pg_cron")
            started = [
                cron.execute(
                    "SELECT cron.schedule_in_database(%s, '1 seconds', %s, %s, 'app_owner')",
                    [f"{job} {database.name}", statement, database.name],
                ).fetchone()[0]  # type: ignore[index]
                for job, statement in self.jobs().items()
            ]
            noted.execute("UPDATE foh.products_stream SET written_at = now() - interval '1 hour'")
            ended = "SELECT jobid, status FROM cron.job_run_details WHERE jobid = ANY (%s)"
            wanted = set(zip(started, ("succeeded", "succeeded"), strict=True))
            try:
                until(lambda: wanted <= set(cron.execute(ended, [started]).fetchall()), "both jobs succeed")
            finally:
                for job in started:
                    cron.execute("SELECT cron.unschedule(%s::bigint)", [job])
        assert noted.execute("SELECT name FROM foh_alert WHERE until IS NULL").fetchall() == [("products",)]
