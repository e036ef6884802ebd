"""The documentation as a site: it builds strictly, and no link of it leads nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


class Page(HTMLParser):
    """Where the links and pictures of a page lead, and what can be linked on it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.names: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.targets.append(value)
            elif name in ("id", "name") and value:
                self.names.add(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="mkdocs-material is not installed: pip install 'foh_pg[docs]'")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(build, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_there_and_in_the_navigation(site: Path) -> None:
    first = Page(site / "index.html")
    reached = {(site / unquote(urlsplit(target).path)).resolve() for target in first.targets}
    for page in [*DOCS.rglob("*.md"), DOCS / "start.md", DOCS / "contributing.md", DOCS / "changelog.md"]:
        path = page.relative_to(DOCS).with_suffix("")
        place = site if path == Path("index") else site / path
        assert (place / "index.html").exists(), page
        assert place.resolve() in reached, f"{page}: no link on the first page"


def test_no_link_is_dead(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    dead = []
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            place = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = place / "index.html" if place.is_dir() else place
            known = pages.get(place)
            if not place.exists() or (
                parts.fragment and known and unquote(parts.fragment) not in known.names
            ):
                dead.append(f"{path.relative_to(site)}: {target}")
    assert dead == []


def test_the_first_page_shows_the_demo_and_the_frontier(site: Path) -> None:
    targets = Page(site / "index.html").targets
    assert {"pictures/demo.svg", "pictures/frontier.png"} <= set(targets)


def test_the_reference_has_the_docstrings(site: Path) -> None:
    reference = Page(site / "reference" / "python" / "index.html")
    expected = {"Index.search", "Index.search_many", "Index.search_like", "Index.create", "Index.open"}
    assert {f"foh_pg.index.sync_index.{name}" for name in expected} <= reference.names
    assert "foh_pg.langchain.FOHVectorStore" in reference.names
