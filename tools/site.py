"""What mkdocs is told beyond mkdocs.yml: pages at the top of the repository, and pages that nav leaves out.

On GitHub the README, the changelog and the page for contributors are found at the top, and the pages of
`docs/` link there. The site has them as pages of its own.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
TOP = {"README.md": "start.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
# The fences of our pages may have words for the test that runs them, as in ```sql norun.
FENCE_WORDS = re.compile(r"^(```\w+) +\S.*$", flags=re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put pages that nav does not name at the end of the section of their folder."""
    docs = Path(config.docs_dir)
    named = set(_paths(config.nav))
    for page in sorted(docs.rglob("*.md")):
        path = page.relative_to(docs).as_posix()
        if path not in named:
            _section(config, path).append(path)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, target in TOP.items():
        text = (ROOT / source).read_text(encoding="utf-8").replace("](docs/", "](")
        for name, page in TOP.items():
            text = text.replace(f"]({name}", f"]({page}")
        files.append(File.generated(config, target, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to the top of the repository lead to the pages made above, one level further down."""
    for name, page in TOP.items():
        markdown = re.sub(rf"\]\(((?:\.\./)*)\.\./{re.escape(name)}", rf"](\g<1>{page}", markdown)
    return FENCE_WORDS.sub(r"\1", markdown)


def _paths(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    if isinstance(nav, dict):
        return [path for value in nav.values() for path in _paths(value)]
    return [path for item in nav or [] for path in _paths(item)]


def _section(config: MkDocsConfig, path: str) -> list[Any]:
    folder = path.rpartition("/")[0].partition("/")[0]
    sections = config.extra["sections"]
    title = sections.get(folder, sections[""])
    for entry in config.nav or []:
        if isinstance(entry, dict) and title in entry:
            found: list[Any] = entry[title]
            return found
    raise ValueError(f"mkdocs.yml: nav has no section {title!r}, where pages of docs/{folder} go")
