"""The templates' environment: everything is escaped, and control characters are spelled out before they are."""

from __future__ import annotations

import functools
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from migrate.report import wording
from migrate.report.lines import title


def _safe(value: Any) -> Any:
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return wording.printable(value)


@functools.cache
def environment() -> Environment:
    """Autoescape on, unknown names are errors, cluster text printable."""
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
        moment=wording.moment, clock=wording.clock, duration=wording.duration, plural=wording.plural, title_of=title
    )
    return env


def render(name: str, **values: Any) -> str:
    """The template of that name with these values."""
    return environment().get_template(name).render(**values)
