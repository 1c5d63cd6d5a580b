"""What the tool offers, a line each: commands, options, findings, errors, rules, playbook keys, events, claims.

`python -m tests features` compares it with tests/features.txt and names what was added or removed; `--write` writes
the file.  A change of the code that is meant to keep every feature leaves this file as it was.

The list grows only with a decision (docs/adr): the newest one that has a table of counts is the limit.  `--write`
lowers the counts of that table, and refuses to write where they would rise.
"""

from __future__ import annotations

import ast
import difflib
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from migrate.checks import CODES
from migrate.checks.pages import error_docs
from migrate.checks.stuck import CODES as STUCK
from migrate.cli.main import cli
from migrate.diff.expected import RULES

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "tests" / "features.txt"
COUNTED = re.compile(r"^\| ([a-z ]+) \| (\d+) \|$", re.MULTILINE)
HEAD = "| kind | at most |\n"
BUDGETED = max(path for path in (ROOT / "docs" / "adr").glob("*.md") if HEAD in path.read_text(encoding="utf-8"))
COMMANDS = ("command", "argument", "option", "playbook key", "event", "claim")
KINDS = (*COMMANDS, "finding", "stuck", "expected difference", "error")
CLAIMED_IN = tuple(
    f"migrate/{path}.py" for path in ("report/run_report", "cli/demo", "cli/rollback_demo", "lab/rollback_proofs")
)


def features() -> list[str]:
    """Every line, sorted."""
    return sorted({*_commands(cli, "kraft-migrate"), *_codes(), *_pages(), *_claims()})


def _commands(command: click.Command, name: str) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    yield f"command {name}"
    yield from (f"option {name} {word}" for word in command.get_help_option_names(context))
    for entry in command.params:  # `get_params` would keep a help option that is made for this context
        if isinstance(entry, click.Argument):
            yield f"argument {name} {entry.human_readable_name}"
        else:
            yield from (f"option {name} {word}" for word in (*entry.opts, *entry.secondary_opts))
    if isinstance(command, click.Group):
        for word in command.list_commands(context):
            found = command.get_command(context, word)
            assert found is not None
            yield from _commands(found, f"{name} {word}")


def _codes() -> Iterator[str]:
    yield from (f"finding {code}" for code in CODES)
    yield from (f"stuck {code}" for code in STUCK)
    yield from (f"error {code} exits {entry.exit_code}" for code, entry in error_docs().items())
    yield from (f"expected difference {rule.id}" for rule in RULES)


def _pages() -> Iterator[str]:
    """Playbook keys and events, from the pages that are generated from them."""
    for kind, page in (("playbook key", "playbook-keys.md"), ("event", "automation.md")):
        for line in (ROOT / "docs" / page).read_text(encoding="utf-8").split("\n"):
            if line.startswith("| `"):
                yield from (f"{kind} {name}" for name in re.findall(r"`([^`]+)`", line.split("|")[1]))


def _claims() -> Iterator[str]:
    """The sentences of a run's report that end with a full stop."""
    for path in CLAIMED_IN:
        nodes = list(ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if id(node) not in docstrings and isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = " ".join(node.value.split())
                if re.fullmatch(r"(Every|No|The|Nothing|Each|All)\b[^{}]{20,}\.", text) and "\n" not in node.value:
                    yield f"claim {text}"


def counts(lines: Iterable[str]) -> dict[str, int]:
    """How many of each kind."""
    found = Counter(next(kind for kind in KINDS if line.startswith(f"{kind} ")) for line in lines)
    return {kind: found[kind] for kind in KINDS}


def budget(text: str) -> dict[str, int]:
    """How many of each kind that decision allows."""
    return {kind: int(number) for kind, number in COUNTED.findall(text.partition(HEAD)[2])}


def _write(lines: list[str]) -> int:
    text = BUDGETED.read_text(encoding="utf-8")
    allowed, wanted = budget(text), counts(lines)
    over = [
        f"{kind}: {number}, and {allowed.get(kind, 0)} are allowed"
        for kind, number in wanted.items()
        if number > allowed.get(kind, 0)
    ]
    if over:
        print("\n".join([f"not written: {BUDGETED.relative_to(ROOT)} is the limit", *over]))
        print("a new feature needs a decision in docs/adr, with a table of counts of its own")
        return 1
    KEPT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    BUDGETED.write_text(COUNTED.sub(lambda found: f"| {found[1]} | {wanted[found[1]]} |", text), encoding="utf-8")
    return 0


def main(words: list[str]) -> int:
    """0 where nothing changed."""
    now = features()
    if words == ["--write"]:
        return _write(now)
    kept = KEPT.read_text(encoding="utf-8").splitlines()
    lines = difflib.unified_diff(kept, now, lineterm="", n=0)
    changed = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    print("\n".join(changed) or f"{len(now)} features, as in {KEPT.relative_to(ROOT)}")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
