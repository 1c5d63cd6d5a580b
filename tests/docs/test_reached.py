"""Nothing is shipped that only tests use: every definition is reached from a command."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEPT = {  # by beginning: no command reaches them, each with the reason why they stay
    "migrate.cli.main: LazyGroup.": "click calls them",
    "migrate.cli.options: OutputPath.": "click calls it",
    "migrate.errors.base: PythonTooOld": "printed before anything of ours can be imported; `explain` knows it",
}
CALLED_BY_OTHERS = (  # by libraries
    *("get_command", "invoke", "serialize", "deserialize", "addInPlace", "zero"),
    *("do_GET", "do_POST", "log_message", "redirect_request"),
)
ENTRIES = ("migrate.__main__", "migrate.cli.main")
PROGRAMS = (  # started as processes of their own, here or on a host
    "migrate.hosts.collect_disks",
    "migrate.hosts.host_program",
    "migrate.lab.load_watch",
)

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Defined:
    """A function, class or method, and the names that its own code uses."""

    module: str
    name: str
    owner: str
    uses: frozenset[str]
    imports: frozenset[str]
    decorated: bool
    line: int

    @property
    def label(self) -> str:
        """Its name inside the module."""
        return f"{self.owner}.{self.name}" if self.owner else self.name


def _names(nodes: list[ast.AST]) -> tuple[frozenset[str], frozenset[str]]:
    """Names that these nodes use, and modules that they import; definitions inside a class body are left out."""
    uses: set[str] = set()
    imports: set[str] = set()
    while nodes:
        node = nodes.pop()
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                uses.add(name)
            case ast.Constant(value=str(text)):
                uses.update(text.replace(":", ".").split(".")[-1:] if text.replace(":", ".").count(".") else [text])
                imports.add(text.partition(":")[0])
            case ast.ImportFrom(module=str(module), names=names):
                imports.update({module, *(f"{module}.{entry.name}" for entry in names)})
            case ast.Import(names=names):
                imports.update(entry.name for entry in names)
            case _:
                pass
        nodes.extend(ast.iter_child_nodes(node))
    return frozenset(uses), frozenset(imports)


def _defined(module: str, body: list[ast.stmt], owner: str = "") -> Iterator[Defined]:
    """Each definition of a module or class; what stands beside them belongs to the module or class itself."""
    rest: list[ast.AST] = []
    for node in body:
        if not isinstance(node, Definition):
            rest.append(node)
            continue
        rest.extend(node.decorator_list)
        inner: list[ast.AST] = list(node.bases) if isinstance(node, ast.ClassDef) else list(ast.iter_child_nodes(node))
        decorated = any(
            not (isinstance(entry, ast.Name) and entry.id in ("property", "classmethod", "staticmethod"))
            and not (isinstance(entry, ast.Call) and isinstance(entry.func, ast.Name) and entry.func.id == "dataclass")
            for entry in node.decorator_list
        )
        if isinstance(node, ast.ClassDef):
            yield from _defined(module, node.body, node.name)
        else:
            yield Defined(module, node.name, owner, *_names(inner), decorated, node.lineno)
            continue
        yield Defined(module, node.name, owner, *_names(inner), decorated, node.lineno)
    yield Defined(module, "", owner, *_names(rest), decorated=False, line=1)


def _package() -> list[Defined]:
    found: list[Defined] = []
    for path in sorted((ROOT / "migrate").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.extend(_defined(module, ast.parse(path.read_text(encoding="utf-8")).body))
    return found


def unreached() -> list[str]:
    """`module: name` of what no command reaches; a use of a name reaches every definition of that name."""
    left = _package()
    modules, names, classes = {*ENTRIES, *PROGRAMS}, {*CALLED_BY_OTHERS}, set[tuple[str, str]]()
    known = {entry.module for entry in left}
    while True:
        new = [entry for entry in left if _is_reached(entry, modules, names, classes)]
        if not new:
            named = (f"{entry.module}: {entry.label}" for entry in left if entry.name)
            return sorted(name for name in named if not name.startswith(tuple(KEPT)))
        for entry in new:
            names |= entry.uses
            modules |= {parent for found in entry.imports & known for parent in _with_parents(found)}
            if entry.name and entry.name[0].isupper() | entry.name.startswith("_"):
                classes.add((entry.module, entry.name))
        gone = {id(entry) for entry in new}
        left = [entry for entry in left if id(entry) not in gone]


def _with_parents(module: str) -> Iterator[str]:
    while module:
        yield module
        module = module.rpartition(".")[0]


def _is_reached(entry: Defined, modules: set[str], names: set[str], classes: set[tuple[str, str]]) -> bool:
    if entry.module not in modules:
        return False
    if entry.owner:
        special = not entry.name or entry.name.startswith("__") or entry.decorated
        return (entry.module, entry.owner) in classes and (special or entry.name in names)
    return not entry.name or entry.decorated or entry.name in names


def test_every_definition_is_reached_from_a_command() -> None:
    """What tests alone use belongs to the tests."""
    assert unreached() == []
