"""The mistakes themselves: each kind is made once where it can be, is compiled, and is taken back."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutants.__main__ import main
from tests.mutants.modules import GROUPS
from tests.mutants.mutations import Mutant, mutants
from tests.mutants.page import MODULES, ROOT, names_of, page, reasons
from tests.mutants.trial import change, functions

SOURCE = '''
LIMIT = 10

class Kept:
    """A value."""
    most: int = 3

    def __init__(self, most: int = 3) -> None:
        self.most = most

def gate(world, down=2, *, hard=True) -> Readiness:
    """A gate."""
    if world.dead and not world.excused:
        return Refused(f"{world.dead + 1} are dead", ("B", 1))
    return first(world.one, world.two)

def held(entries, most) -> bool:
    for entry in entries:
        if entry > most:
            raise ValueError(f"{entry} > {most}")
    return any(0 < entry <= LIMIT for entry in entries if entry != 7)
'''


def found(source: str = SOURCE) -> list[Mutant]:
    """The mistakes that can be put into it."""
    return list(mutants("sample", ast.parse(source)))


@pytest.mark.parametrize(
    ("function", "old", "new"),
    [
        ("", "10", "11"),
        ("", "3", "4"),
        ("", "True", "False"),
        ("gate", "world.dead and (not world.excused)", "world.dead or not world.excused"),
        ("gate", "world.dead and (not world.excused)", "world.dead"),
        ("gate", "not world.excused", "world.excused"),
        ("gate", "first(world.one, world.two)", "first(world.one)"),
        ("gate", "return first(world.one, world.two)", "return Ready()"),
        ("held", "entry > most", "entry >= most"),
        ("held", "raise ValueError(f'{entry} > {most}')", "(nothing)"),
        ("held", "0 < entry <= LIMIT", "0 < entry < LIMIT"),
        ("held", "for entry in entries if entry != 7", "for entry in entries"),
        ("held", "if entry > most: / raise ValueError(f'{entry} > {most}')", "(nothing)"),
    ],
)
def test_each_kind_of_mistake_is_made(function: str, old: str, new: str) -> None:
    """By its function, its text before and after."""
    assert (function, old, new) in [(mutant.function, mutant.old, mutant.new) for mutant in found()]


def test_what_only_words_a_message_is_left_alone() -> None:
    """Neither numbers in texts nor the arguments of a refusal or an error."""
    changed = {mutant.old for mutant in found() if mutant.function == "gate"}
    assert not changed & {"world.dead + 1", "1", "('B', 1)"}


def test_a_mistake_has_one_name_that_does_not_depend_on_its_line() -> None:
    """Results are kept by it."""
    names = [mutant.key for mutant in found()]
    assert len(names) == len(set(names))
    assert names == [mutant.key for mutant in found("\n\n" + SOURCE)]


def sample(tmp_path: Path) -> tuple[ModuleType, str]:
    """The source as a module that was imported."""
    file = tmp_path / "sample.py"
    file.write_text(SOURCE, encoding="utf-8")
    module = ModuleType("sample")
    module.__file__ = str(file)
    exec(compile(SOURCE, str(file), "exec", dont_inherit=True, flags=_future()), vars(module))
    return module, str(file)


def _future() -> int:
    import __future__

    return __future__.annotations.compiler_flag


@pytest.mark.slow
@pytest.mark.parametrize(
    ("new", "ask"),
    [
        ("entry >= most", lambda module: module.held([5], 5)),
        ("11", lambda module: module.held([11], 99)),
        ("4", lambda module: module.Kept().most == 4),
    ],
)
def test_a_mistake_reaches_those_who_hold_the_function_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: str, ask: object
) -> None:
    """They imported it before; a constant and a default too."""
    assert callable(ask)
    module, file = sample(tmp_path)
    monkeypatch.setitem(sys.modules, "sample", module)
    tree = ast.parse("from __future__ import annotations\n" + SOURCE.removeprefix("\n"))
    picked = [mutant for mutant in mutants("sample", tree) if mutant.new == new]
    try:
        before = ask(module)
    except ValueError:
        before = "raised"
    for mutant in picked:
        change(mutant, tree, file, functions(file))
    try:
        after = ask(module)
    except ValueError:
        after = "raised"
    assert after != before


@pytest.mark.slow
def test_every_module_of_the_table_is_there_with_its_tests() -> None:
    """And each one has something that can be wrong."""
    for modules, tests in GROUPS.values():
        assert all((ROOT / path).exists() for path in tests)
        assert all(names_of(module) for module in modules)
    assert len(MODULES) == len(set(MODULES))


@pytest.mark.slow
def test_every_reason_is_of_a_mistake_that_can_still_be_made() -> None:
    """One whose code is gone, or reads otherwise now, explains nothing."""
    known = {name for module in MODULES for name in names_of(module)}
    assert set(reasons()) <= known


@pytest.mark.slow
def test_the_page_counts_what_was_tried_and_names_each_survivor() -> None:
    """With its reason, or that there is none."""
    name, other = list(names_of(MODULES[0]))[:2]
    text, unexplained = page({name: ("survived", ""), other: ("killed", "a test")})
    assert "| 2 | 1 | 0 | 1 | 50.0 % |" in text
    assert unexplained == 1
    assert "no test notices it yet" in text


@pytest.mark.long
def test_a_sample_of_mistakes_in_every_module_is_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    """Another one with each seed; this one is the same each time."""
    assert main(["--sample", "10", "--resume"]) == 0, capsys.readouterr().out
