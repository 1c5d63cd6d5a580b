"""What a shell completes: stages, codes, kinds and runs (click prints the script that asks)."""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

from migrate.model.stage import MIGRATION


def _begin(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.lower().startswith(incomplete.lower())]


def complete_stage(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """The stages of a MigrationPlaybook."""
    return _begin((stage.label for stage in MIGRATION), incomplete)


def complete_code(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """All codes that `explain` knows, their families, and words."""
    from migrate.checks import pages, words

    codes = pages.all_docs()
    named = dict.fromkeys(doc.code for doc in words.all_words().values())
    return _begin([*codes, *pages.families(codes), *named], incomplete)


def complete_kind(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """The kinds of files that have a schema."""
    from migrate.playbook.load import KINDS

    return _begin(KINDS, incomplete)


def complete_run(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Folders of runs below the present folder, the newest first; where there is none, files."""
    from migrate.cli.given import runs_below

    runs = _begin((str(path.parent) for path in runs_below("*/journal.jsonl")), incomplete)
    return [CompletionItem(run) for run in runs] or [CompletionItem(incomplete, type="file")]
