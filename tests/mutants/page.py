"""The kept results as a page: per module what was tried and noticed, and each survivor with its reason."""

from __future__ import annotations

import ast
import json
import tomllib
from pathlib import Path
from typing import Final

from tests.mutants.modules import GROUPS
from tests.mutants.mutations import mutants

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "runs" / "mutants.md"
REASONS: Final = Path(__file__).with_name("reasons.toml")
MODULES: Final = tuple(name for modules, _ in GROUPS.values() for name in modules)
HEAD: Final = """# Small mistakes in the modules that decide

Written by `python -m tests mutants`. Each mistake is one small change (a comparison flipped, a condition dropped, a
gate that opens, a statement deleted); a test of the fast tier has to fail with it. A survivor is one that no test
noticed.
"""


def names_of(module: str) -> dict[str, int]:
    """Every mistake that can be made in the module as it is now, and its line."""
    tree = ast.parse((ROOT / (module.replace(".", "/") + ".py")).read_text(encoding="utf-8"))
    return {mutant.key: mutant.line for mutant in mutants(module, tree)}


def results(kept: Path) -> dict[str, tuple[str, str]]:
    """How each mistake fared when it was last run, and by which test it was noticed."""
    found: dict[str, tuple[str, str]] = {}
    for line in kept.read_text(encoding="utf-8").splitlines() if kept.exists() else ():
        entry = json.loads(line)
        if entry["end"] != "not run":
            found[entry["key"]] = entry["end"], entry["by"]
    return found


def reasons() -> dict[str, str]:
    """Why no test can notice a mistake, by its name."""
    found: dict[str, str] = tomllib.loads(REASONS.read_text(encoding="utf-8"))
    return found


def page(found: dict[str, tuple[str, str]]) -> tuple[str, int]:
    """The page, and how many survivors have no reason."""
    why, lines, below, unexplained = reasons(), [], [], 0
    sums = [0, 0, 0, 0, 0]
    for module in MODULES:
        known = names_of(module)
        ends = {key: found[key][0] for key in known if key in found}
        survived = [key for key, end in ends.items() if end.startswith("survived")]
        explained = [key for key in survived if key in why]
        unexplained += len(survived) - len(explained)
        row = [len(known), len(ends), len(ends) - len(survived), len(explained), len(survived) - len(explained)]
        sums = [total + number for total, number in zip(sums, row, strict=True)]
        lines.append(_row(f"`{module}`", row))
        if survived:
            below.append(f"\n## `{module}`\n")
        below += [
            f"- {key.removeprefix(module).strip().replace(' -> ', '`, changed to `').replace(': ', ': `', 1)}`: "
            f"{why.get(key, 'no test notices it yet')}"
            for key in survived
        ]
    head = "| module | possible | tried | noticed | survived with a reason | survived | noticed of the tried |\n"
    table = head + "|---|---:|---:|---:|---:|---:|---:|\n" + "\n".join([*lines, _row("all", sums)])
    return f"{HEAD}\n{table}\n" + "\n".join(below) + "\n", unexplained


def _row(name: str, row: list[int]) -> str:
    share = f"{100 * row[2] / row[1]:.1f} %" if row[1] else "-"
    return f"| {name} | {' | '.join(str(number) for number in row)} | {share} |"
