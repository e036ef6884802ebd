"""The dashboard and the alerts ask for what a watcher serves: tried on a real Prometheus where there is one."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import psycopg
import pytest
import yaml

from foh_pg.quality.evaluate import evaluate
from foh_pg.watcher.counters import METRICS
from tests.support.digits import create_index, create_table, insert
from tests.support.postgres import Database
from tests.support.waiting import until
from tests.support.watching import Watch

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "foh-pg.json"
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
CASES = ROOT / "tests" / "data" / "alerts_test.yml"
# A function's seconds, a vector's labels and the like are not metrics of ours.
NAME = re.compile(r"\bfoh_\w+")
# As Grafana fills them in for all indexes.
VARIABLES = {"$index": ".*", "$__rate_interval": "1m"}


def panels() -> list[dict[str, Any]]:
    return [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]


def queries() -> dict[str, str]:
    """The queries of all panels and annotations, by title and letter."""
    found = {
        f"{panel['title']} {target['refId']} ({panel['id']})": target["expr"]
        for panel in panels()
        for target in panel["targets"]
    }
    annotations = json.loads(DASHBOARD.read_text())["annotations"]["list"]
    found |= {annotation["name"]: annotation["expr"] for annotation in annotations}
    for name, value in VARIABLES.items():
        found = {title: query.replace(name, value) for title, query in found.items()}
    return found


def rules() -> dict[str, str]:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


def test_every_metric_is_one_of_ours_and_is_shown() -> None:
    known = set(METRICS)
    asked = {name for text in (*queries().values(), *rules().values()) for name in NAME.findall(text)}
    assert asked <= known
    # Those that no panel needs: p100 says little beside p10 and mAP, the version of the program is a label.
    assert known - asked == {"foh_evaluated_p100", "foh_info"}
    table = (ROOT / "docs" / "how-to" / "monitor.md").read_text()
    assert {name for name in known if name not in table} == set()


def test_panels_do_not_overlap_and_say_what_they_show() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in panels():
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken[x, y]}"
                assert x < 24
                taken[x, y] = panel["title"]
        assert panel["description"]
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}
    assert len({panel["id"] for panel in panels()}) == len(panels())


def test_alerts_say_what_to_do() -> None:
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            assert set(rule["annotations"]) == {"summary", "description"}, rule["alert"]
            assert rule["labels"]["severity"] in {"info", "warning"}


def test_alerts_fire_when_they_should(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool: Debian's package prometheus")
    cases = tmp_path / "alerts_test.yml"
    cases.write_text(CASES.read_text().replace("[ALERTS]", f"[{ALERTS}]"))
    for command in (["check", "rules", str(ALERTS)], ["test", "rules", str(cases)]):
        done = subprocess.run([promtool, *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def watched(connection: psycopg.Connection[Any], database: Database) -> Iterator[Watch]:
    """A watcher that has had a run and has seen an evaluation."""
    create_table(connection)
    create_index(connection, options='{"learn_rows": 300, "held_out": 0.2}')
    insert(connection, range(600))
    watcher = Watch(database.dsn(), "--all")
    watcher.wait_for_line(r"rows=600 ")
    evaluate(database.dsn(), "digits", queries=40)
    insert(connection, range(600, 1200))
    watcher.wait_for_line(r"rows=600 .*\n(.*\n)*.*rows=600 ")
    watcher.wait(lambda: watcher.metric('foh_evaluated_version{index="digits"}') == 2)
    yield watcher
    watcher.kill()


def test_every_metric_is_served(watched: Watch) -> None:
    """What Prometheus would find, where there is none: each metric, and each label that a query asks for."""
    text = watched.get("/metrics")[1]
    served: dict[str, set[str]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, labels = re.fullmatch(r"(\w+)(\{.*\})? \S+", line).groups()  # type: ignore[union-attr]
            served.setdefault(name, set()).update(re.findall(r"(\w+)=\"", labels or ""))
    assert set(served) == set(METRICS)
    for title, query in {**queries(), **rules()}.items():
        for name, wanted in re.findall(r"(foh_\w+)\{([^}]*)\}", query):
            assert set(re.findall(r"(\w+)=~?\"", wanted)) <= served[name], title
        names = NAME.findall(query)
        for grouped in re.findall(r"by \(([\w, ]+)\)", query):
            # Prometheus itself says which instance it asked.
            assert set(grouped.split(", ")) - {"instance"} <= served[names[0]], title


@pytest.fixture
def program() -> str:
    found = shutil.which("prometheus")
    if found is None:
        pytest.skip("there is no Prometheus: Debian's package prometheus")
    return found


@pytest.fixture
def prometheus(program: str, watched: Watch, tmp_path: Path) -> Iterator[str]:
    """The address of a Prometheus that asks the watcher every second."""
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": [
            {"job_name": "foh-pg", "static_configs": [{"targets": [f"127.0.0.1:{watched.port}"]}]}
        ],
    }
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        program,
        f"--config.file={tmp_path / 'prometheus.yml'}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address={address}",
    ]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, stderr=log, stdout=log)
        try:
            yield address
        finally:
            process.terminate()
            process.wait(timeout=30)


def api(address: str, path: str, **parameters: str) -> Any:
    with urlopen(f"http://{address}/api/v1/{path}?{urlencode(parameters)}", timeout=30) as answer:
        return json.load(answer)["data"]


def shown(address: str, query: str) -> bool:
    """Whether a query finds something. One that Prometheus refuses is an error (HTTPError)."""
    try:
        return bool(api(address, "query", query=query)["result"])
    except HTTPError as error:
        if error.code == HTTPStatus.SERVICE_UNAVAILABLE:
            return False  # it is still starting
        pytest.fail(f"{query}: {error.read().decode()}")
    except OSError:
        return False  # it does not listen yet


def wait_for(address: str, queries: dict[str, str]) -> None:
    for title, query in queries.items():
        until(lambda query=query: shown(address, query), f"{title!r} shows something", pause=0.2)


def test_every_panel_shows_something(prometheus: str, connection: psycopg.Connection[Any]) -> None:
    """Each query is valid, and finds what the watcher serves."""
    wait_for(prometheus, {"a first look": "foh_runs_total"})
    insert(connection, range(1200, 1500))
    # A panel draws deferred rows where there are some, and here there are none.
    wait_for(prometheus, {title: query for title, query in queries().items() if "deferred" not in query})
    loaded = [rule for group in api(prometheus, "rules")["groups"] for rule in group["rules"]]
    assert {rule["name"] for rule in loaded} == set(rules())
    assert {rule["health"] for rule in loaded} <= {"ok", "unknown"}
    assert [rule["name"] for rule in loaded if rule["state"] == "firing"] == []
