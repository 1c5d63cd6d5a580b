"""SVG elements as escaped markup: every text and attribute that goes in is escaped here, once."""

from __future__ import annotations

from markupsafe import Markup, escape

from migrate.report.wording import printable

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
