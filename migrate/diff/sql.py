"""Conditions and values as Spark's SQL: one call of the driver for each, where columns take one for each operator.

All of it is made of our own constants; a name or a value that is not plain is quoted here.
"""

from __future__ import annotations

from collections.abc import Mapping


def literal(text: str) -> str:
    """A text as a value; `${...}` in it is no variable of Spark's."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024") + "'"


def name_of(text: str) -> str:
    """A text as the name of a column."""
    return "`" + text.replace("`", "``") + "`"


def chosen(cases: Mapping[str, str], otherwise: str = "NULL") -> str:
    """The value of the first condition that holds; both are SQL."""
    whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in cases.items())
    return f"CASE {whens} ELSE {otherwise} END"
