"""Small charts as SVG text: lines, stacked bars, horizontal bars. Nothing is loaded from anywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 760, 240
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 30, 40
# Colors that people with color blindness can tell apart (Okabe and Ito).
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#6c757d", "#000000")


@dataclass(frozen=True)
class Series:
    """Points of one line; `dashed` for what is only there to compare with."""

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from at most `low` to at least `high`, about `count` of them.

    Examples
    --------
    >>> ticks(0, 87)
    [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    >>> ticks(0.71, 0.78)
    [0.7, 0.72, 0.74, 0.76, 0.78]
    >>> ticks(3, 3)
    [3.0, 4.0]
    """
    if high <= low:
        high = low + 1
    raw = (high - low) / max(1, count - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def number(value: float | None) -> str:
    """A number as short as it can be read; a dash where it is not known.

    Examples
    --------
    >>> [number(x) for x in (0, 0.25, 3.0, 1500, 25000, 2_500_000, None)]
    ['0', '0.25', '3', '1500', '25k', '2.5M', '–']
    """
    if value is None:
        return "–"
    if value == 0:
        return "0"
    for bound, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= bound:
            return f"{value / (1e3 if unit == 'k' else bound):.4g}{unit}"
    return f"{value:.4g}"


def percent(value: float | None) -> str:
    """A share in percent; a dash where it is not known."""
    return "–" if value is None else f"{value:.2%}"


@dataclass(frozen=True)
class Axes:
    """Where numbers stand on the drawing."""

    x_low: float
    x_high: float
    y_ticks: Sequence[float]
    width: float = WIDTH
    height: float = HEIGHT

    def x(self, value: float) -> float:
        """The place of a number; the only one there is stands in the middle, not on the axis.

        Examples
        --------
        >>> Axes(2, 4, [0, 1]).x(2), Axes(2, 2, [0, 1]).x(2)
        (58.0, 402.0)
        """
        span = self.x_high - self.x_low
        share = (value - self.x_low) / span if span else 0.5
        return LEFT + share * (self.width - LEFT - RIGHT)

    def y(self, value: float) -> float:
        low, high = self.y_ticks[0], self.y_ticks[-1]
        return self.height - BOTTOM - (value - low) / (high - low) * (self.height - TOP - BOTTOM)

    def grid(self, y_label: str, x_label: str) -> list[str]:
        parts = []
        for tick in self.y_ticks:
            y, right = self.y(tick), self.width - RIGHT
            parts.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(text(LEFT - 7, y + 4, number(tick), "end"))
        parts.append(text(LEFT, 14, y_label, "start", "axis"))
        parts.append(text(self.width - RIGHT, self.height - 4, x_label, "end", "axis"))
        return parts


def text(x: float, y: float, words: str, anchor: str = "middle", kind: str = "tick") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def drawing(parts: Sequence[str], label: str, height: float = HEIGHT, width: float = WIDTH) -> str:
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(label, quote=True)}">'
        + "".join(parts)
        + "</svg>"
    )


def legend(names: Sequence[str], width: float = WIDTH) -> list[str]:
    """Names with their colors, from the right of the top line; nothing for a single one."""
    if len(names) < 2:
        return []
    parts, x = [], float(width - RIGHT)
    for i, name in reversed(list(enumerate(names))):
        # About the width of a letter at this size.
        x -= 7.2 * len(name)
        parts.append(text(x, 14, name, "start"))
        x -= 15
        parts.append(f'<rect x="{x:.1f}" y="5" width="10" height="10" rx="2" fill="{color(i)}"/>')
        x -= 12
    return parts


def color(i: int) -> str:
    return COLORS[i % len(COLORS)]


def lines(
    series: Sequence[Series],
    *,
    y_label: str,
    x_label: str,
    from_zero: bool = False,
    size: tuple[float, float] = (WIDTH, HEIGHT),
) -> str:
    """Lines with their points; whole numbers on the horizontal axis."""
    points = [point for one in series for point in one.points]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    low = 0.0 if from_zero else min(ys)
    axes = Axes(min(xs), max(xs), ticks(low, max(ys)), *size)
    parts = axes.grid(y_label, x_label)
    parts += [
        text(axes.x(tick), axes.height - BOTTOM + 16, number(tick))
        for tick in ticks(min(xs), max(xs), 8)
        if min(xs) <= tick <= max(xs) and tick == int(tick)
    ]
    for i, one in enumerate(series):
        path = " ".join(f"{axes.x(x):.1f},{axes.y(y):.1f}" for x, y in one.points)
        dash = ' stroke-dasharray="5 4"' if one.dashed else ""
        parts.append(f'<polyline class="line" stroke="{color(i)}"{dash} points="{path}"/>')
        for x, y in one.points:
            about = escape(f"{one.name}, {x_label} {number(x)}: {y:.4g}")
            parts.append(
                f'<circle cx="{axes.x(x):.1f}" cy="{axes.y(y):.1f}" r="2.6" fill="{color(i)}">'
                f"<title>{about}</title></circle>"
            )
    names = legend([one.name for one in series], axes.width)
    return drawing([*parts, *names], y_label, axes.height, axes.width)


def bars(
    columns: Sequence[tuple[str, Mapping[str, float]]], *, y_label: str, x_label: str, note: str = ""
) -> str:
    """Bars side by side, each of stacked parts, with names below as far as there is room."""
    names = list(dict.fromkeys(name for _, parts in columns for name in parts))
    heights = [sum(parts.values()) for _, parts in columns]
    axes = Axes(0, len(columns), ticks(0, max(heights, default=0)))
    drawn = axes.grid(y_label, x_label)
    room = (WIDTH - LEFT - RIGHT) / max(1, len(columns))
    # A bar of its own width for few columns, and no gap narrower than a hair for many.
    width = min(46.0, max(room * 0.78, room - 3))
    longest = max((len(title) for title, _ in columns), default=1)
    every = max(1, math.ceil((6.2 * longest + 8) / room))
    for i, (title, parts) in enumerate(columns):
        x, base = axes.x(i + 0.5) - width / 2, 0.0
        for name, value in parts.items():
            top, bottom = axes.y(base + value), axes.y(base)
            about = escape(f"{x_label} {title}, {name}: {number(value)}")
            drawn.append(
                f'<rect x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="{max(0.0, bottom - top):.1f}" '
                f'fill="{color(names.index(name))}"><title>{about}</title></rect>'
            )
            base += value
        if i % every == 0:
            drawn.append(text(axes.x(i + 0.5), HEIGHT - BOTTOM + 16, title))
    return drawing([*drawn, *legend(names)], note or y_label)


def lying(rows: Sequence[tuple[str, float]], *, label: str) -> str:
    """Horizontal bars, with their names on the left and their values on the right."""
    step, names = 20, 190
    height = step * len(rows) + 6
    greatest = max((value for _, value in rows), default=1) or 1
    parts = []
    for i, (name, value) in enumerate(rows):
        y, width = 3 + i * step, value / greatest * (WIDTH - names - 80)
        short = name if len(name) <= 30 else name[:29] + "…"
        parts.append(text(names - 8, y + 13, short, "end"))
        parts.append(
            f'<rect x="{names}" y="{y + 2}" width="{max(width, 1):.1f}" height="{step - 6}" '
            f'fill="{color(0)}">'
            f"<title>{escape(name)}: {number(value)}</title></rect>"
        )
        parts.append(text(names + width + 6, y + 13, number(value), "start"))
    return drawing(parts, label, height)
