"""Make the pictures of the documentation's first page.

``python tools/pictures.py demo`` runs the demo on an embedded server, about a minute, and writes what it
prints to docs/pictures/demo.svg. The frontier is made by a benchmark:
``python -m lab search --data FILE --png docs/pictures/frontier.png``.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from foh_pg.demo import tell
from foh_pg.postgres.embedded import EmbeddedServer

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
WIDTH = 110
# Black on white, as the page around it.
THEME = TerminalTheme(
    (255, 255, 255),
    (33, 37, 41),
    [
        (33, 37, 41),
        (201, 42, 42),
        (43, 138, 62),
        (230, 119, 0),
        (24, 100, 171),
        (134, 46, 156),
        (11, 114, 133),
        (134, 142, 150),
    ],
)


def demo() -> None:
    """Write the demo's story as a picture of a terminal."""
    console = Console(record=True, width=WIDTH, highlight=False, file=io.StringIO())
    with (
        tempfile.TemporaryDirectory(prefix="foh-demo-", ignore_cleanup_errors=True) as directory,
        EmbeddedServer(Path(directory) / "data") as server,
    ):
        tell(server, console)
    picture = console.export_svg(title="foh-pg demo", theme=THEME, unique_id="demo")
    picture = picture.replace(str(server.directory), ".foh-demo")
    # The line has become shorter, and would be stretched.
    picture = re.sub(r' textLength="[\d.]+"(?=[^>]*>[^<]*\.foh-demo)', "", picture)
    # rich names fonts on a server of others; a page of ours loads nothing from elsewhere.
    picture = re.sub(r"@font-face \{.*?\}\n?", "", picture, flags=re.DOTALL)
    (PICTURES / "demo.svg").write_text(picture)


if __name__ == "__main__":
    if sys.argv[1:] != ["demo"]:
        sys.exit(__doc__)
    demo()
