"""Gaps that a person fills in: how they are written, and where they are found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from migrate.playbook.document import Document, Mapping, Node, Scalar, Sequence
from migrate.playbook.problems import Fault, Location, refuse

OPENING: Final = "<fill in"


def gap(what: str) -> str:
    """The text that stands for a value that is not known."""
    return f"{OPENING}: {what}>"


def refuse_gaps(document: Document) -> None:
    """Raise DocumentInvalid with every gap that is left, each with its line and what belongs there."""
    refuse(
        document,
        [
            Fault(
                at,
                f"{'.'.join(map(str, at))} is not filled in: {text.removeprefix(OPENING).strip(' :>') or 'a value'}",
                "the cluster could not tell it when this file was written",
                "replace the text with the value",
            )
            for at, text in _gaps(document.root, ())
        ],
    )


def _gaps(node: Node, at: Location) -> Iterator[tuple[Location, str]]:
    match node:
        case Scalar():
            if node.text.lstrip().startswith(OPENING):
                yield at, node.text.strip()
        case Mapping():
            for key, entry in node.entries.items():
                yield from _gaps(entry.value, (*at, key))
        case Sequence():
            for index, item in enumerate(node.items):
                yield from _gaps(item, (*at, index))
