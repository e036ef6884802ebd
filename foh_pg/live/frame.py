"""The document around every live page: its style, the script that keeps it fresh, and what it may load."""

from __future__ import annotations

import base64
import hashlib

from foh_pg.quality.report.page import STYLE as REPORT_STYLE
from foh_pg.quality.report.page import document

STYLE = (
    REPORT_STYLE
    + """
body { margin-top: 1.4rem; max-width: 68rem; }
a { color: #005b8f; }
nav { font-size: .9rem; margin-bottom: .8rem; }
p.alarm { background: #fdecea; border-left: 4px solid #b02a37; color: #842029; margin: .8rem 0;
          padding: .5rem .8rem; overflow-wrap: anywhere; }
div.indexes { display: grid; grid-template-columns: repeat(auto-fill, minmax(30rem, 1fr)); gap: 1.2rem;
              margin: 1.2rem 0; }
article { border: 1px solid #dee2e6; border-radius: 8px; padding: .9rem 1.1rem; min-width: 0; }
article h2 { display: flex; justify-content: space-between; align-items: baseline; gap: 1rem; margin: 0;
             font-size: 1.2rem; overflow-wrap: anywhere; }
article dl { grid-template-columns: repeat(4, 1fr); gap: .6rem .8rem; margin: .9rem 0; }
article dl div { border-top-width: 1px; min-width: 0; }
article dd { font-size: 1.02rem; }
article p.problem { color: #b02a37; font-size: .9rem; margin: .3rem 0; overflow-wrap: anywhere; }
.pill { border-radius: 1rem; color: #fff; font-size: .78rem; font-weight: 600; padding: .12rem .7rem;
        white-space: nowrap; }
.well { background: #146c43; }
.ill { background: #b02a37; }
.working { background: #0b5394; }
td.now { color: #0b5394; font-weight: 600; }
table.all th:nth-child(3), table.all td:nth-child(3) { text-align: left; }
@media (max-width: 34rem) {
  div.indexes { grid-template-columns: 1fr; }
  article dl { grid-template-columns: repeat(2, 1fr); }
}
"""
)

# Puts the newest <main> in place of the one that is shown, unless nobody looks or something is selected.
SCRIPT = """
(() => {
  const alarm = document.getElementById("silent");
  const renew = async () => {
    try {
      if (!document.hidden && !String(getSelection())) {
        const answer = await fetch(location.href, {cache: "no-store", signal: AbortSignal.timeout(20000)});
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const main = page.querySelector("main");
        if (main === null) throw new Error(answer.statusText);
        document.querySelector("main").replaceWith(main);
        document.title = page.title;
      }
      alarm.hidden = true;
    } catch {
      alarm.hidden = false;
    }
    setTimeout(renew, 5000);
  };
  setTimeout(renew, 5000);
})();
"""

# For browsers without scripts; not shorter than a person needs to read on.
HEAD = '\n<link rel="icon" href="data:,">\n<noscript><meta http-equiv="refresh" content="15"></noscript>'
SILENT = (
    '<p class="alarm" id="silent" role="alert" hidden>The watcher does not answer. '
    "What is shown below is what it said last.</p>"
)


def digest(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


# A page loads nothing from elsewhere and runs only this script, whatever a name or an error contains.
POLICY = (
    f"default-src 'none'; style-src {digest(STYLE)}; script-src {digest(SCRIPT)}; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {"Content-Security-Policy": POLICY, "X-Frame-Options": "DENY"}


def frame(title: str, main: str) -> str:
    """The document whose main part this is; `title` is text, `main` is HTML."""
    body = f"{SILENT}\n<main>\n{main}\n</main>\n<script>{SCRIPT}</script>"
    return document(title, body, style=STYLE, head=HEAD)
