"""`explain`: what a code or a word means, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from migrate.checks.words import WordDoc
from migrate.cli.answers import give_answer
from migrate.cli.completion import complete_code
from migrate.cli.errors import EXIT_OK
from migrate.cli.options import output_option
from migrate.cli.screen import page_width, say_lines, say_text
from migrate.model.findings import CodeDoc, WaitDoc
from migrate.report.lines import Page, Tone

if TYPE_CHECKING:
    from migrate.checks.pages import Doc


@click.command()
@click.argument("codes", metavar="[CODE]...", nargs=-1, shell_complete=complete_code)
@output_option
def explain(codes: tuple[str, ...], output: str) -> int:
    """What CODE means (B-ZKN-01, E-JAVA-01, S-STUCK-33), why it matters, and what to do about it.

    It may also be a family of codes (B-DIR), a state of a replica (MIGRATING), a stage, an exit code or a term.

    Without one, every code, one per line.
    """
    from migrate.checks import pages as texts

    found = _found(codes)
    if output == "json":
        give_answer(found)
    elif not codes:
        say_text("\n".join(f"{doc.code:<13} {texts.title(doc)}" for doc in found))
    else:
        page = Page(width=page_width())
        for number, doc in enumerate(found):
            if number:
                page.add()
            _write(page, doc)
        say_lines(page.lines)
    return EXIT_OK


def _found(codes: tuple[str, ...]) -> list[Doc]:
    """What was asked for, every code where nothing was; `not on disk` is one word in three."""
    from migrate.checks import pages as texts
    from migrate.checks.words import all_words, key

    if (phrase := all_words().get(key(" ".join(codes)))) is not None:
        return [phrase]
    if len(codes) > 1 and all(code.isalpha() for code in codes) and not all(key(code) in all_words() for code in codes):
        texts.find(" ".join(codes))  # one question, not several: it is refused as one
    return [texts.find(code) for code in codes] or list(texts.all_docs().values())


def _write(page: Page, doc: Doc) -> None:
    from migrate.checks.pages import title

    match doc:
        case WaitDoc():
            rows = {"state": doc.driver, "log": doc.line, "why": doc.why, "fix": doc.fix, "waiting": doc.by_itself}
            rows["source"] = doc.source
        case CodeDoc():
            rows = {"blocks": doc.blocks, "why": doc.why, "fix": doc.fix, "source": doc.source}
        case WordDoc():
            rows = {"kind": doc.kind, "next": doc.next_step}
        case _:
            tried = "the tool has retried before it reports this" if doc.retried else ""
            rows = {"error": doc.name, "exit": str(doc.exit_code), "retried": tried, "next": doc.next_step}
    page.wrap(f"{doc.code}: {title(doc)}", Tone.TITLE, indent=0)
    for label, text in rows.items():
        if text not in ("", "-"):
            page.wrap(f"{label:<8}{text}", hang=8)
    for line in doc.codes if isinstance(doc, WordDoc) else ():
        page.wrap(line, hang=13)
