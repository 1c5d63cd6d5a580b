"""Everything that becomes markup is escaped here, once: templates, SVG elements, Markdown."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup, escape

from migrate.report import wording
from migrate.report.lines import title
from migrate.report.wording import printable

if TYPE_CHECKING:
    from jinja2 import Environment


# -- templates ---
def _safe(value: Any) -> Any:
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return wording.printable(value)


@functools.cache
def environment() -> Environment:
    """Autoescape on, unknown names are errors, cluster text printable."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    env = Environment(
        loader=PackageLoader("migrate.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_safe,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters.update(
        moment=wording.moment,
        clock=wording.clock,
        duration=wording.duration,
        plural=wording.plural,
        title_of=title,
        prose=prose,
    )
    return env


def render(name: str, **values: Any) -> str:
    """The template of that name with these values."""
    return environment().get_template(name).render(**values)


_CODES: Final = re.compile(r"`([^`]+)`|\b([A-Z]-[A-Z]{2,5}-\d\d)\b")


def prose(said: str) -> Markup:
    """Sentences: what is in backquotes as code, and the code of a check never broken at its hyphens."""
    kinds = itertools.cycle(("", "code", "span"))
    return Markup("").join(
        element(kind, piece, class_="whole") if kind else escape(printable(piece))
        for kind, piece in zip(kinds, _CODES.split(said), strict=False)
        if piece
    )


# -- SVG ---
Attribute = str | float


def _number(value: Attribute) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else printable(str(value))


def element(name: str, *children: str, **attributes: Attribute) -> Markup:
    """One element.  Attributes: `_` becomes `-`, a trailing `_` falls (`class_`); a plain str child is escaped."""
    spelled = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _number(value))
        for key, value in attributes.items()
    )
    inside = Markup("").join(child if isinstance(child, Markup) else escape(printable(child)) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(name, spelled, inside)


def text(x: float, y: float, words: str, class_: str = "", **attributes: Attribute) -> Markup:
    """Words whose baseline starts (or by `text_anchor` ends) at x, y."""
    return element("text", words, x=float(x), y=float(y), class_=class_ or "t", **attributes)


def box(place: tuple[float, float, float, float], class_: str, title: str = "", **attributes: Attribute) -> Markup:
    """A rectangle (x, y, width, height) with a tool tip."""
    x, y, width, height = map(float, place)
    tip = (element("title", title),) if title else ()
    return element("rect", *tip, x=x, y=y, width=max(width, 0.0), height=max(height, 0.0), class_=class_, **attributes)


def line(start: tuple[float, float], end: tuple[float, float], class_: str) -> Markup:
    """A straight line."""
    return element("line", x1=float(start[0]), y1=float(start[1]), x2=float(end[0]), y2=float(end[1]), class_=class_)


def picture(width: float, height: float, label: str, *children: Markup) -> Markup:
    """The whole drawing; `label` is what a screen reader says.  It shrinks with the page, and never grows."""
    return element(
        "svg",
        *children,
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=float(width),
        height=float(height),
        role="img",
        aria_label=label,
    )


# -- Markdown ---
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~&])|(?<=[a-zA-Z])(?=:/)|(?<=www)(?=\.)")


def words(text: str) -> str:
    """Text as it stands: characters with a meaning are escaped, addresses are no links, one line."""
    return _SPECIAL.sub(lambda found: "\\" + (found[1] or ""), printable(text))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table.  Cells are markup already (`words`); a title that ends in `>` is set to the right."""
    names = [name.removesuffix(">") for name in head]
    rule = ["---:" if name.endswith(">") else "---" for name in head]
    return [f"| {' | '.join(cells)} |" for cells in (names, rule, *rows)]
