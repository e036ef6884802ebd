"""The first page: a card for each index, and the last runs of all."""

from __future__ import annotations

import logging
from datetime import datetime, timezone
from html import escape
from urllib.parse import quote

import foh_pg
from foh_pg.arrays.metrics import BOTH_IS, PRECISION_IS, RECALL_IS
from foh_pg.errors import one_line
from foh_pg.live.overview import IndexNow, LatestRun, Overview
from foh_pg.quality.history import Quality, age, duration, held_out_maps
from foh_pg.quality.report import svg
from foh_pg.quality.report.figures import drawn, measures
from foh_pg.quality.report.page import run_row, runs_table
from foh_pg.quality.report.svg import Series, number, percent

log = logging.getLogger(__name__)

# Width and height of the drawing on a card.
SMALL = (460, 180)
WORDS = f'<p class="note">By foh-pg evaluate: {PRECISION_IS}, {RECALL_IS}, {BOTH_IS}.</p>'


def first_page(overview: Overview) -> str:
    """The main part of the page."""
    when = overview.read_at.strftime("%Y-%m-%d %H:%M:%S UTC")
    # Indexes that need attention stand first.
    order = sorted(overview.indexes, key=lambda index: (index.health["healthy"], index.stat["name"]))
    cards = [card_or_reason(index, overview) for index in order]
    none = '<p class="note">No index yet: foh-pg create-index --help says how to make one.</p>'
    parts = [
        f"<h1>Indexes of {escape(overview.database)}</h1>",
        f'<p class="note">as of {when}; foh-pg {foh_pg.__version__}</p>',
        f'<div class="indexes">{"".join(cards)}</div>{WORDS}' if cards else none,
        "<h2>The last runs</h2>",
        table(overview.runs)
        if overview.runs
        else f'<p class="note">{escape(overview.unread or "No run yet.")}</p>',
    ]
    return "\n".join(parts)


def title_of(overview: Overview) -> str:
    """What the tab of the browser says.

    Examples
    --------
    >>> title_of(Overview("shop", [], [], datetime.now(timezone.utc)))
    'Indexes of shop'
    """
    ill = sum(not index.health["healthy"] for index in overview.indexes)
    return f"({ill} not well) Indexes of {overview.database}" if ill else f"Indexes of {overview.database}"


def address(name: str) -> str:
    """The path of the page about an index.

    Examples
    --------
    >>> address('a/b "c"')
    '/index/a%2Fb%20%22c%22'
    """
    return "/index/" + quote(name, safe="")


def card_or_reason(index: IndexNow, overview: Overview) -> str:
    """A card that cannot be drawn says so, and leaves the others alone."""
    try:
        return card(index, overview)
    except Exception as error:
        name = index.stat["name"]
        log.exception("the card of index %r could not be drawn", name)
        said = f"what the database says of it cannot be shown: {one_line(error)}"
        head = f"<h2>{escape(name)}{pill(False, False)}</h2>"
        return f'<article>{head}<p class="problem">{escape(said)}</p></article>'


def card(index: IndexNow, overview: Overview) -> str:
    stat, name = index.stat, index.stat["name"]
    under_way = any(latest.under_way for latest in overview.runs if latest.index == name)
    facts = {
        "rows in lists": number(stat["rows"]),
        "waiting": number(stat["stream"]),
        "oldest has waited": duration(stat["lag_seconds"]) if stat["stream"] else "–",
        "stale bits": percent(stat["stale"]),
        "version": str(stat["version"]),
        "hash functions": "learned" if stat["trained"] else "random",
        "P@10": figure(index.quality, "p10"),
        "recall@10": figure(index.quality, "recall10"),
        "both@10": figure(index.quality, "both10"),
    }
    cells = "".join(f"<div><dt>{key}</dt><dd>{escape(value)}</dd></div>" for key, value in facts.items())
    problems = "".join(f'<p class="problem">{escape(text)}</p>' for text in index.health["problems"])
    return (
        f'<article><h2><a href="{escape(address(name), quote=True)}">{escape(name)}</a>'
        f"{pill(index.health['healthy'], under_way)}</h2>"
        f'<p class="note">on {escape(stat["source"])}; {last(index, overview.read_at)}</p>'
        f"{problems}<dl>{cells}</dl>{drawing(index, overview.read_at)}</article>"
    )


def pill(healthy: bool, under_way: bool) -> str:
    kind, text = (
        ("working", "updating") if under_way else ("well", "well") if healthy else ("ill", "not well")
    )
    return f'<span class="pill {kind}">{text}</span>'


def last(index: IndexNow, now: datetime) -> str:
    ended = index.health["last_run"]
    return "no update yet" if ended is None else f"last update {duration((now - ended).total_seconds())} ago"


def figure(points: list[Quality], name: str) -> str:
    """A figure of the last evaluation."""
    measured = [point.score("index", name) for point in points if point.evaluated]
    return "–" if not measured or measured[-1] is None else f"{measured[-1]:.3f}"


def drawing(index: IndexNow, now: datetime) -> str:
    """Quality over versions, by foh-pg evaluate or as the updater saw it, and the age of the last point."""
    points = index.quality
    at = [point.evaluated_at for point in points if point.evaluated_at]
    label = "by foh-pg evaluate" if at else "mAP on held-out rows"
    series = drawn(measures(points) if at else [Series(label, held_out_maps(points))])
    if not series:
        return f'<p class="note">{escape(unknown(index))}</p>'
    chart = svg.lines(series, y_label=label, x_label="version", from_zero=True, size=SMALL)
    return f'{chart}<p class="note">{age(at or [point.at for point in points], now)}</p>'


def unknown(index: IndexNow) -> str:
    return f"Nothing is known of its quality yet: run foh-pg evaluate {index.stat['name']}."


def table(runs: list[LatestRun]) -> str:
    heads = ("began (UTC)", "index", "kind", "version", "rows", "lists", "rows encoded", "seconds")
    return runs_table(heads, [line(latest) for latest in runs], ' class="all"')


def line(latest: LatestRun) -> str:
    run = latest.run
    cells = (
        run.started_at.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S"),
        latest.index,
        run.kind,
        str(run.version),
        number(run.rows),
        number(run.lists),
        number(run.rows_encoded),
        f"{run.seconds:.2f}",
    )
    if latest.under_way:
        kind, said = "now", "under way"
    elif run.error or run.finished_at is None:
        kind, said = "error", run.error or "did not end"
    else:
        kind, said = "note", "; ".join(run.metrics.get("notes", []))
    return run_row(cells, kind, said)
