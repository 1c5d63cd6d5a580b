"""Reads our HTML as strictly as we promise it: every element closed, nothing fetched, no script."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"meta", "br", "link", "img", "hr", "input"})
FETCHES = frozenset({"src", "srcset", "data", "poster", "action", "formaction", "background", "xlink:href"})


@dataclass
class Page:
    """What a walk over the page found."""

    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def words(self) -> str:
        """All text, in order."""
        return " ".join(" ".join(self.text).split())

    def count(self, name: str) -> int:
        """How many elements of that name."""
        return sum(tag == name for tag, _ in self.elements)

    def attributes(self, key: str) -> list[str]:
        """Every value of that attribute."""
        return [values[key] for _, values in self.elements if key in values]


class Walker(HTMLParser):
    """Fills a page and notes every fault."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Judge and open an element."""
        values = {key: value or "" for key, value in attrs}
        if len(values) != len(attrs):
            self.page.faults.append(f"<{tag}> has an attribute twice")
        self.page.elements.append((tag, values))
        self._judge(tag, values)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element closed at once."""
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the innermost element, or note a fault."""
        if tag in VOID:
            return
        if not self.open or self.open[-1] != tag:
            self.page.faults.append(f"</{tag}> closes {self.open[-3:]}")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        """Keep text; read the style sheet for fetches."""
        inside = self.open[-1] if self.open else ""
        if inside == "style" and ("url(" in data or "@import" in data):
            self.page.faults.append("the style sheet fetches something")
        if inside != "style":
            self.page.text.append(data)

    def _judge(self, tag: str, values: dict[str, str]) -> None:
        if tag in {"script", "link", "iframe", "object", "embed", "img", "base", "form"}:
            self.page.faults.append(f"<{tag}> is not allowed")
        for key, value in values.items():
            outward = key in FETCHES or (key == "href" and not value.startswith("#"))
            if key.startswith("on") or outward:
                self.page.faults.append(f"<{tag} {key}={value!r}> reaches out")


def read(html: str) -> Page:
    """Walk the page; the tests then ask for `faults`."""
    walker = Walker()
    walker.feed(html)
    walker.close()
    if walker.open:
        walker.page.faults.append(f"never closed: {walker.open}")
    return walker.page
