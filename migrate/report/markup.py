"""Everything that becomes markup is escaped here, once: templates, sentences, Markdown."""

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
        _whole(kind, piece) if kind else escape(printable(piece))
        for kind, piece in zip(kinds, _CODES.split(said), strict=False)
        if piece
    )


def _whole(kind: str, piece: str) -> Markup:
    return Markup('<{0} class="whole">{1}</{0}>').format(kind, printable(piece))


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
