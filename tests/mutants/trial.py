"""Try mistakes one by one: each in a fork of a process that has imported and collected all that its tests need.

The functions that a module has are given the code of the changed text, so that whoever imported them has the mistake
too, and nothing is imported anew: a trial costs a fork and the tests that run the changed lines, the ones that noticed
most first, up to the first that fails.  mutmut 3 changes function bodies only (here constants, defaults and fields of
classes decide as well) and looks for the tests of a function in a run of the whole suite; cosmic-ray starts pytest
anew for each mistake, which takes longer here than the tests.
"""

from __future__ import annotations

import ast
import gc
import importlib
import os
import pickle
import resource
import select
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from migrate.model.outcome import Ready, Verified
from tests.mutants.mutations import Mutant, mutants, put, taken

GIGABYTES = 4 * 1024**3  # of memory for a trial: a mistake may let a loop collect without end
LONGEST = 60.0  # seconds of tests (by the run without a mistake) that a mistake is tried against


class End(StrEnum):
    """How a mistake fared."""

    KILLED = "killed"
    TIMEOUT = "killed (time limit)"
    SURVIVED = "survived"
    UNREACHED = "survived (no test runs it)"
    NOT_RUN = "not run"


@dataclass
class Trials:
    """A pytest plugin that tries mistakes where pytest would run the tests."""

    modules: Sequence[str]
    wanted: Callable[[list[Mutant]], list[Mutant]]  # those of a module that are to be tried
    report: Callable[[Mutant, End, str], None]
    until: float = float("inf")  # by `time.monotonic`: mistakes left by then are not run
    seconds: list[float] = field(default_factory=list)  # each test's, without a mistake
    runs: dict[tuple[str, int], set[int]] = field(default_factory=lambda: defaultdict(set))  # the tests of a line

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run every test once to see which lines it runs, then try the mistakes."""
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # once, not in every fork
        files = {name: importlib.import_module(name).__file__ or "" for name in self.modules}
        trees = {file: ast.parse(Path(file).read_text(encoding="utf-8")) for file in files.values()}
        for _, same in groupby(session.items, key=lambda item: item.path):  # what one file leaves behind is its own
            some = list(same)
            seconds, found = forked(partial(traced, some, set(files.values())), 3600.0, ([0.0] * len(some), []))
            for index, lines in enumerate(found, len(self.seconds)):
                for line in lines:
                    self.runs[line].add(index)
            self.seconds += seconds
        held = {file: functions(file) for file in files.values()}
        gc.collect()
        gc.freeze()  # a fork that walks every object copies every page; nothing frozen is listed any more
        for name, file in files.items():
            tree = trees[file]
            killers: Counter[int] = Counter()
            for mutant in self.wanted(list(mutants(name, tree))):
                if time.monotonic() > self.until:
                    self.report(mutant, End.NOT_RUN, "")
                else:
                    self.report(mutant, *self.tried(session.items, tree, mutant, file, held[file], killers))
        return True

    def tried(
        self,
        items: list[pytest.Item],
        tree: ast.Module,
        mutant: Mutant,
        file: str,
        held: list[FunctionType],
        killers: Counter[int],
    ) -> tuple[End, str]:
        """How it fares against the tests that run its lines, and which test noticed."""
        first, last = mutant.lines
        picked = {
            test for (at, line), tests in self.runs.items() if at == file and first <= line <= last for test in tests
        }
        if not mutant.function:  # a constant may decide in another module alone: then any test may notice it
            picked = {test for (at, _), tests in self.runs.items() if at == file for test in tests}
            picked = picked or set(range(len(items)))
        if not picked:
            return End.UNREACHED, ""
        chosen, total = [], 0.0
        for test in sorted(picked, key=lambda test: (-killers[test], self.seconds[test])):
            if total <= LONGEST:
                chosen.append(test)
                total += self.seconds[test]

        def trial() -> int | None:
            try:
                change(mutant, tree, file, held)
            except Exception:  # noqa: BLE001 - whatever it is, no test noticed anything
                return -3
            return next((test for test in chosen if not passes(items[test])), None)

        noticed = forked(trial, 20 + 5 * total, dies=-1)
        if noticed is None:
            return End.SURVIVED, f"{len(chosen)} tests"
        if noticed < 0:
            return {-1: End.KILLED, -2: End.TIMEOUT}.get(noticed, End.NOT_RUN), ""
        killers[noticed] += 1
        return End.KILLED, items[noticed].nodeid


def passes(item: pytest.Item) -> bool:
    """Run one test by itself."""
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def traced(items: list[pytest.Item], files: set[str]) -> tuple[list[float], list[set[tuple[str, int]]]]:
    """How long each test takes, and which lines of the files it runs; none for a test that fails as it is."""

    def local(frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            lines.add((frame.f_code.co_filename, frame.f_lineno))
        return local

    def called(frame: FrameType, _: str, __: object) -> Any:
        return local if frame.f_code.co_filename in files else None

    seconds, found = [], []
    for item in items:
        lines: set[tuple[str, int]] = set()
        began = time.monotonic()
        threading.settrace(called)
        sys.settrace(called)
        try:
            passed = passes(item)
        finally:
            sys.settrace(None)
            threading.settrace(None)
        seconds.append(time.monotonic() - began)
        found.append(lines if passed else set())
    return seconds, found


def forked(work: Callable[[], Any], limit: float, dies: Any = None) -> Any:
    """What the work returns in a fork of this process; `dies` where it ends without, -2 after `limit` seconds."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setpgid(0, 0)
            quiet = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(quiet, number)
            resource.setrlimit(resource.RLIMIT_DATA, (GIGABYTES, GIGABYTES))
            said = pickle.dumps(work())
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(said)
        finally:
            os._exit(0)
    os.close(writing)
    said, end = b"", time.monotonic() + limit
    try:
        while select.select([reading], [], [], max(0.0, end - time.monotonic()))[0]:
            more = os.read(reading, 1 << 20)
            if not more:
                return pickle.loads(said) if said else dies
            said += more
        return -2
    finally:
        os.close(reading)
        try:
            os.killpg(child, signal.SIGKILL)  # and what the tests started
        except (ProcessLookupError, PermissionError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def change(mutant: Mutant, tree: ast.Module, file: str, held: list[FunctionType]) -> None:
    """Give this process the module with the mistake in it."""
    module, before = sys.modules[mutant.module], taken(mutant)
    put(mutant, mutant.node)
    ast.fix_missing_locations(tree)
    vars(module).update({"Ready": Ready, "Verified": Verified})
    if mutant.function:
        now = compile(tree, file, "exec")
        codes = dict(functions_of(now))
        for function in held:
            code = function.__code__
            if f"{code.co_qualname}.".startswith(f"{mutant.function}."):
                function.__code__ = codes[code.co_qualname, code.co_firstlineno]
    else:
        change_value(mutant, module, held)
    put(mutant, before)


def functions_of(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """The code of each function and method of a module, nested ones apart."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield (part.co_qualname, part.co_firstlineno), part
            yield from functions_of(part)


def functions(file: str) -> list[FunctionType]:
    """Those that the module has, wherever they are held by now (decorated, in a registry, in a copied class)."""
    return [
        entry for entry in gc.get_objects() if isinstance(entry, FunctionType) and entry.__code__.co_filename == file
    ]


def change_value(mutant: Mutant, module: ModuleType, held: list[FunctionType]) -> None:
    """A default of an argument, a constant of the module, or a field of a class."""
    statement = mutant.path[-1]
    if isinstance(statement, ast.FunctionDef):
        for function in held:
            if function.__code__.co_name == statement.name and function.__code__.co_firstlineno <= statement.lineno <= (
                function.__code__.co_firstlineno + 5
            ):
                args = statement.args
                function.__defaults__ = tuple(_value(node, module) for node in args.defaults) or None
                named = zip(args.kwonlyargs, args.kw_defaults, strict=True)
                function.__kwdefaults__ = {arg.arg: _value(node, module) for arg, node in named if node is not None}
        return
    assert isinstance(statement, ast.Assign | ast.AnnAssign)
    assert statement.value is not None
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    name, new = ast.unparse(target), _value(statement.value, module)
    owners = [around.name for around in mutant.path if isinstance(around, ast.ClassDef)]
    if not owners:
        old = getattr(module, name)
        for other in list(sys.modules.values()):
            if getattr(other, "__dict__", {}).get(name) is old:
                setattr(other, name, new)
        return
    owner = module
    for part in owners:
        owner = getattr(owner, part)
    known = owner.__init__  # type: ignore[misc]
    defaulted = known.__code__.co_varnames[: known.__code__.co_argcount][-len(known.__defaults__ or ()) :]
    if name in defaulted and known.__defaults__:
        known.__defaults__ = tuple(
            new if at == name else is_ for at, is_ in zip(defaulted, known.__defaults__, strict=True)
        )
    else:
        setattr(owner, name, new)


def _value(node: ast.expr, module: ModuleType) -> Any:
    return eval(compile(ast.Expression(node), "<mistake>", "eval"), dict(vars(module)))
