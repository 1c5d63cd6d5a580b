"""Small mistakes that can be put into a module: which there are, and the module's source with one of them in it.

Changed are comparisons, `and`/`or`/`not`, numbers and flags, returns of gates, arguments of `first`, statements,
branches and defaults of arguments.  Not changed is what only words a message: f-strings, `raise X(...)`'s arguments
and those of values such as `Refused(...)`; nor `assert` (it narrows types), decorators, annotations and enums.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

FLIPPED: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
CALLS: Final = {"any": "all", "all": "any", "max": "min", "min": "max"}
WORDED: Final = {"Refused", "NotYet", "Unknown", "Awaited", "Failed", "Action", "HalfDone", "AlreadyDone", "Verified"}
LEAVES: Final = (ast.Return, ast.Raise, ast.Continue, ast.Break)
READY: Final = ast.parse("Ready()", mode="eval").body
Place = tuple[ast.AST, str, int | None]  # a node, its field, and the index where the field is a list
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake: where it is, how the text reads before and after, and the node to put there."""

    module: str
    function: str  # qualified name; "" for what runs when the module is imported
    line: int
    lines: tuple[int, int]  # a test that runs none of them cannot notice
    old: str
    new: str
    place: Place
    node: ast.AST | None
    path: tuple[ast.stmt, ...]  # the statements around it, outermost first
    number: int = 1  # of those that read the same

    @property
    def key(self) -> str:
        """Names it as long as its function and its text are the same, wherever they move to."""
        more = f" (number {self.number})" if self.number > 1 else ""
        return f"{self.module} {self.function or '(module)'}: {self.old} -> {self.new}{more}"


def mutants(module: str, tree: ast.Module) -> Iterator[Mutant]:
    """Every mistake that can be put into the module, in the order of its text."""
    met: Counter[str] = Counter()
    for path, place, node in _places(tree):
        for changed in _changes(node, path):
            mutant = _mutant(module, path, place, node, changed)
            at_import = not mutant.function and not isinstance(path[-1], Function | ast.Assign | ast.AnnAssign)
            if not at_import and mutant.old != mutant.new:
                met[mutant.key] += 1
                yield replace(mutant, number=met[mutant.key])


def put(mutant: Mutant, node: ast.AST | None) -> None:
    """Write a node into the mutant's place of the tree (None: a statement that does nothing)."""
    parent, name, index = mutant.place
    node = ast.copy_location(ast.Pass(), mutant.path[-1]) if node is None else node
    if index is None:
        setattr(parent, name, node)
    else:
        getattr(parent, name)[index] = node


def taken(mutant: Mutant) -> ast.AST:
    """What is in the mutant's place of the tree."""
    parent, name, index = mutant.place
    found = getattr(parent, name)
    node: ast.AST = found if index is None else found[index]
    return node


def _places(tree: ast.Module) -> Iterator[tuple[tuple[ast.stmt, ...], Place, ast.AST]]:
    def below(node: ast.AST, path: tuple[ast.stmt, ...]) -> Iterator[tuple[tuple[ast.stmt, ...], Place, ast.AST]]:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params", "msg"):
                continue
            for index, child in enumerate(value) if isinstance(value, list) else ((None, value),):
                if not isinstance(child, ast.AST) or _is_words(child, node):
                    continue
                inside = (*path, child) if isinstance(child, ast.stmt) else path
                yield inside, (node, name, index), child
                yield from below(child, inside)

    yield from below(tree, ())


def _is_words(child: ast.AST, parent: ast.AST) -> bool:
    if isinstance(child, ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom | ast.expr_context):
        return True
    if isinstance(parent, ast.Raise) or (isinstance(parent, ast.Call) and _name(parent.func) in WORDED):
        return True
    enum = isinstance(child, ast.ClassDef) and any(
        (_name(base) or "").endswith(("Enum", "Flag")) for base in child.bases
    )
    typing = isinstance(child, ast.If) and _name(child.test) == "TYPE_CHECKING"
    return enum or typing or (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant))


def _name(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def _changes(node: ast.AST, path: tuple[ast.stmt, ...]) -> Iterator[ast.AST | None]:
    """What may stand for the node; None: nothing."""
    changed = copy.copy(node)
    match node, changed:
        case ast.Compare(ops=ops), _:
            for index, op in enumerate(ops):
                flipped = [*ops[:index], FLIPPED[type(op)](), *ops[index + 1 :]]
                yield ast.Compare(node.left, flipped, node.comparators)  # type: ignore[arg-type]
        case ast.BoolOp(values=values), ast.BoolOp():
            changed.op = FLIPPED[type(node.op)]()  # type: ignore[assignment]
            yield changed
            for index in range(len(values)):
                rest = values[:index] + values[index + 1 :]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(op=node.op, values=rest)
        case ast.UnaryOp(op=ast.Not()), _:
            yield node.operand
        case ast.BinOp(), ast.BinOp() if type(node.op) in FLIPPED and not _is_text(node):
            changed.op = FLIPPED[type(node.op)]()  # type: ignore[assignment]
            yield changed
        case ast.Constant(value=bool()), _:
            yield ast.Constant(value=not node.value)
        case ast.Constant(value=int() | float() as value), _:
            yield from (ast.Constant(value=value + 1), ast.Constant(value=value - 1))
        case ast.IfExp(), ast.IfExp():
            changed.body, changed.orelse = node.orelse, node.body
            yield changed
        case ast.comprehension(ifs=ifs), ast.comprehension() if ifs:
            for index in range(len(ifs)):
                yield ast.comprehension(node.target, node.iter, ifs[:index] + ifs[index + 1 :], node.is_async)
        case ast.Call(func=ast.Name(id=name)), ast.Call() if name in CALLS:
            changed.func = ast.Name(CALLS[name], ast.Load())
            yield changed
        case ast.Call(args=args), ast.Call() if _name(node.func) == "first" and len(args) > 1:
            for index in range(len(args)):
                yield ast.Call(node.func, args[:index] + args[index + 1 :], node.keywords)
        case ast.Return(value=ast.expr() as value), _:
            yield from (ast.Return(other) for other in _returned(value, path))
        case ast.If(), _:
            if node.orelse or not isinstance(node.body[-1], LEAVES):
                changed.test = ast.Constant(value=True)  # type: ignore[attr-defined]
                yield changed
            yield (
                node.orelse[0]
                if len(node.orelse) == 1
                else None
                if not node.orelse
                else ast.If(ast.Constant(value=True), node.orelse, [])
            )
        case ast.Match(), ast.Match():
            for index, case in enumerate(node.cases[:-1]):
                changed.cases = node.cases[:index] + node.cases[index + 1 :]
                yield copy.copy(changed)
                if case.guard is not None:
                    bare = ast.match_case(case.pattern, None, case.body)
                    changed.cases = [*node.cases[:index], bare, *node.cases[index + 1 :]]
                    yield copy.copy(changed)
        case ((ast.Raise() | ast.AugAssign() | ast.Continue() | ast.Break() | ast.Delete()), _):
            yield None
        case ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom() | ast.Await()), _:
            yield None


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(part, ast.JoinedStr) or isinstance(getattr(part, "value", None), str | bytes)
        for part in (node.left, node.right)
    )


def _returned(value: ast.expr, path: tuple[ast.stmt, ...]) -> Iterator[ast.expr]:
    """By what the function promises: an open gate, the other truth, nothing found."""
    function = next((around for around in reversed(path) if isinstance(around, Function)), None)
    promised = "" if function is None or function.returns is None else ast.unparse(function.returns)
    if promised in ("Readiness", "Outcome") and ast.unparse(value) != "Ready()":
        yield READY if promised == "Readiness" else ast.parse("Verified()", mode="eval").body
    elif promised == "bool" and not isinstance(value, ast.Constant | ast.Compare | ast.BoolOp):
        yield ast.UnaryOp(ast.Not(), value)
    elif promised.endswith("| None") and not (isinstance(value, ast.Constant) and value.value is None):
        yield ast.Constant(value=None)


def _mutant(module: str, path: tuple[ast.stmt, ...], place: Place, node: ast.AST, changed: ast.AST | None) -> Mutant:
    names, outer = [], ""
    for around in path:
        if isinstance(around, Function | ast.ClassDef):
            names.append(around.name)
        if isinstance(around, Function):
            outer = outer or ".".join(names)
    statement = path[-1]
    if isinstance(statement, Function | ast.ClassDef):  # a default, or a base
        outer = "" if len([around for around in path if isinstance(around, Function)]) == 1 else outer
    body = getattr(statement, "body", None)
    end = body[0].lineno - 1 if isinstance(body, list) and body else statement.end_lineno
    if isinstance(statement, ast.Match):
        end = statement.end_lineno
    line = getattr(node, "lineno", statement.lineno)
    return Mutant(
        module,
        outer,
        line,
        (statement.lineno, max(end or statement.lineno, statement.lineno)),
        _shown(node),
        "(nothing)" if changed is None else _shown(changed),
        place,
        changed,
        path,
    )


def _shown(node: ast.AST) -> str:
    """The text of a node on one line, without what is below a statement."""
    if isinstance(node, ast.If | ast.Match):
        text = " / ".join(line.strip() for line in ast.unparse(node).splitlines())
    elif isinstance(node, ast.comprehension):
        text = ast.unparse(node).strip()
    else:
        text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 160 else f"{text[:120]} ... {text[-35:]}"
