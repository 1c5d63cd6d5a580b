"""The comparison's counts by kind and class: one row a kind, one tile a class, in numbers and colour."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from migrate.model.difference import EXCUSED, DifferenceClass
from migrate.report.run_values import DiffMoment
from migrate.report.svg import box, picture, text
from migrate.report.wording import clip

CLASSES: Final = (
    DifferenceClass.EQUAL,
    DifferenceClass.EXPECTED,
    DifferenceClass.ACCEPTED,
    DifferenceClass.DIFFERS,
    DifferenceClass.ONLY_ZK,
    DifferenceClass.ONLY_KRAFT,
)
GUTTER: Final = 170.0
TILE: Final = (104.0, 26.0)


def counts_matrix(diff: DiffMoment) -> Markup:
    """The figure for one comparison, the sum of all kinds in the last row."""
    wide, tall = TILE
    parts = [
        text(GUTTER + at * wide + wide / 2, 14, str(name), "h", text_anchor="middle") for at, name in enumerate(CLASSES)
    ]
    total = {str(name): sum(classes.get(name, 0) for classes in diff.counts.values()) for name in CLASSES}
    rows = [*diff.counts.items(), ("all kinds", total)]
    for row, (kind, classes) in enumerate(rows):
        y = 24 + row * tall + (6 if row == len(rows) - 1 else 0)
        parts.append(text(GUTTER - 12, y + 17, clip(kind, 24), "t", text_anchor="end"))
        for at, name in enumerate(CLASSES):
            parts += _tile((GUTTER + at * wide, y), name, int(classes.get(name, 0)), kind)
    height = 24 + len(rows) * tall + 10
    return picture(GUTTER + len(CLASSES) * wide, height, "Compared fields by kind and class", *parts)


def _tile(place: tuple[float, float], name: DifferenceClass, count: int, kind: str) -> list[Markup]:
    x, y = place
    wide, tall = TILE
    excused = name in EXCUSED
    class_ = "tile-none" if not count else f"tile-{name.lower().replace('_', '-')}" if excused else "tile-bad"
    words = f"{count:,}" if count else "0"
    ink = "d" if not count else "tile-words" if excused else "tile-bad-words"
    return [
        box((x + 1, y + 1, wide - 2, tall - 2), class_, f"{kind}: {count:,} {name}", rx=2.0),
        text(x + wide / 2, y + 17, words, ink, text_anchor="middle"),
    ]
