"""`explain`: what a code means, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from migrate.cli.errors import EXIT_OK
from migrate.cli.options import output_option
from migrate.cli.screen import say_page
from migrate.errors import UsageWrong

if TYPE_CHECKING:
    from migrate.checks.pages import ErrorDoc
    from migrate.model.findings import CodeDoc
    from migrate.model.waiting import WaitDoc


@click.command()
@click.argument("codes", metavar="[CODE]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Every code, one per line.")
@output_option
def explain(codes: tuple[str, ...], every: bool, output: str) -> int:
    """What CODE means (B-ZKN-01, E-JAVA-01, S-STUCK-33), why it matters, and what to do about it."""
    import json
    from dataclasses import asdict

    from migrate import checks
    from migrate.checks import pages as texts
    from migrate.checks import stuck

    if not codes and not every:
        raise UsageWrong("name a code, such as B-ZKN-01, or give --all")
    known = list({**texts.error_docs(), **checks.CODES, **stuck.CODES})
    found = [texts.find(code) for code in (known if every else codes)]
    if output == "json":
        say_page(json.dumps([{**asdict(doc), "blocks": _blocks(doc)} for doc in found], indent=2))
    elif every:
        say_page("\n".join(f"{doc.code:<13} {_title(doc)}" for doc in found))
    else:
        say_page("\n\n".join(_text(doc) for doc in found))
    return EXIT_OK


def _blocks(doc: ErrorDoc | CodeDoc | WaitDoc) -> str:
    from migrate.checks.pages import blocks
    from migrate.model.findings import CodeDoc

    return blocks(doc.code) if isinstance(doc, CodeDoc) else ""


def _title(doc: ErrorDoc | CodeDoc | WaitDoc) -> str:
    from migrate.checks.pages import ErrorDoc

    return doc.meaning if isinstance(doc, ErrorDoc) else doc.title


def _text(doc: ErrorDoc | CodeDoc | WaitDoc) -> str:
    from migrate.model.findings import CodeDoc
    from migrate.model.waiting import WaitDoc

    rows: tuple[tuple[str, str], ...]
    if isinstance(doc, WaitDoc):
        rows = (
            ("state", doc.driver),
            ("log", doc.line),
            ("why", doc.why),
            ("fix", doc.fix),
            ("alone", doc.by_itself),
            ("source", doc.source),
        )
    elif isinstance(doc, CodeDoc):
        rows = (
            ("blocks", _blocks(doc)),
            ("why", doc.why),
            ("cause", doc.cause),
            ("fix", doc.fix),
            ("source", doc.source),
        )
    else:
        tried = "the tool has tried it again by itself before it says so" if doc.retried else ""
        rows = (
            ("error", doc.name),
            ("exit", str(doc.exit_code)),
            ("retried", tried),
            ("next", doc.next_step),
            ("", ""),
        )
    head = click.wrap_text(f"{doc.code}: {_title(doc)}", 100)
    body = [click.wrap_text(text, 100, f"  {label:<8}", " " * 10) for label, text in rows if text not in ("", "-")]
    return "\n".join([head, *body])
