"""What a browser would make of a page, without a browser."""

from __future__ import annotations

from html.parser import HTMLParser


class Page(HTMLParser):
    """Gathers what a page asks a browser to load, its headings, and whether its tags are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.counts: dict[str, int] = {}
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "data")]
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.words += data.split()

    @property
    def text(self) -> str:
        """What a person reads, with single blanks."""
        return " ".join(self.words)
