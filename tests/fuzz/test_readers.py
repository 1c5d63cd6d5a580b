"""Whatever is in a file that somebody hands over, its reader ends typed, soon, in little memory, and harms nothing."""

from __future__ import annotations

import functools
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from migrate.errors import InputError
from tests.fuzz.drawn import drawn, in_order
from tests.fuzz.readers import READERS
from tests.fuzz.trial import CORPUS, MOST_SECONDS, Bad, Bench, Reader, command

BY_NAME = {reader.name: reader for reader in READERS}
KEPT = sorted(path.relative_to(CORPUS).as_posix() for path in CORPUS.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def benches(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Bench]:
    """The reader of a name, made once."""
    folder = tmp_path_factory.mktemp("fuzz")
    return functools.cache(lambda name: Bench(BY_NAME[name], folder / name))


each_reader = pytest.mark.parametrize("name", BY_NAME)


def put(bench: Bench, raw: bytes) -> None:
    """The input ends as it must; where it does not, the message stores it into the corpus."""
    bad = bench.trial(raw)
    assert bad is None, f"{bad.kind} {bad.place}\n{bad.said}\nto keep this input: {bench.kept(raw)}"


@pytest.mark.slow
@each_reader
def test_every_value_of_another_kind_ends_typed(benches: Callable[[str], Bench], name: str) -> None:
    """Of each value and key that a file of ours has; every header that tar knows."""
    bench = benches(name)
    for raw in in_order(bench, bench.reader.edits):
        put(bench, raw)


@pytest.mark.slow
@each_reader
def test_drawn_damage_ends_typed(benches: Callable[[str], Bench], name: str) -> None:
    """Values, lines, bytes and headers, several at once, with sums that are right or wrong."""
    bench = benches(name)

    @settings(
        max_examples=bench.reader.drawn,
        suppress_health_check=list(HealthCheck),
        phases=set(settings().phases) - {Phase.explain},
    )
    @given(st.data())
    def each(data: st.DataObject) -> None:
        put(bench, drawn(bench, lambda below: data.draw(st.integers(0, below - 1))))

    each()


@pytest.mark.long
@each_reader
def test_much_drawn_damage_ends_typed(benches: Callable[[str], Bench], name: str) -> None:
    """Hundreds of times as many."""
    bench = benches(name)
    for raw in in_order(bench, 20_000):
        put(bench, raw)


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_what_once_ended_badly_ends_typed(benches: Callable[[str], Bench], name: str) -> None:
    """The corpus: inputs that failed, and kinds of attack that are known."""
    put(benches(name.partition("/")[0]), (CORPUS / name).read_bytes())


def test_the_corpus_is_small_and_each_of_it_has_a_reader() -> None:
    """It is read with every run."""
    assert {name.partition("/")[0] for name in KEPT} <= set(BY_NAME)
    assert sum((CORPUS / name).stat().st_size for name in KEPT) < 250_000


# -- the trial itself --------------------------------------------------------------------------------------------------
def ended(folder: Path, read: Callable[[Path, Path], object], raw: bytes = b"bad") -> Bad | None:
    """What the trial of such a reader says of an input."""

    def only_bad(place: Path, path: Path) -> None:
        if path.read_bytes() != b"good":
            read(place, path)

    found = Bench(Reader("made-up", "a", lambda _: {"a": b"good"}, only_bad), folder / "x").trial(raw)
    assert found is None or found.kind
    return found


def typed(_place: Path, _path: Path) -> None:
    """An error of ours."""
    raise InputError("wrong")


def untyped(_place: Path, _path: Path) -> None:
    """An error of Python's."""
    raise KeyError("wrong")


def large(_place: Path, _path: Path) -> None:
    """300 MiB."""
    assert bytearray(300 << 20).find(b"\1") < 0
    bytearray(b"\1") * (300 << 20)


def slow(_place: Path, _path: Path) -> None:
    """More than two seconds of work."""
    began = time.process_time()
    while time.process_time() - began < MOST_SECONDS + 0.1:
        sum(range(100_000))


def writes(_place: Path, path: Path) -> None:
    """Beside the folder."""
    (path.parents[2] / "y").write_bytes(b"")


def runs(_place: Path, _path: Path) -> None:
    """A program."""
    subprocess.run(["true"], check=True)


def connects(_place: Path, _path: Path) -> None:
    """To somewhere."""
    with socket.socket() as there:
        there.connect_ex(("127.0.0.1", 9))


def tells(_place: Path, path: Path) -> None:
    """A defect, as the command line tells it."""
    command("explain", path.read_text())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("read", "kind"),
    [
        (untyped, "KeyError"),
        (large, "memory"),
        (slow, "slow"),
        (writes, "touched"),
        (runs, "touched"),
        (connects, "touched"),
    ],
)
def test_a_bad_outcome_is_noticed(read: Callable[[Path, Path], object], kind: str, tmp_path: Path) -> None:
    """Each kind of it."""
    found = ended(tmp_path, read)
    assert found is not None
    assert found.kind == kind


def test_a_typed_outcome_is_none(tmp_path: Path) -> None:
    """Of a function, and of a command."""
    assert ended(tmp_path, typed) is None
    assert ended(tmp_path / "z", tells) is None


def test_a_defect_of_a_command_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line catches everything, and calls it one."""

    def broken(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr("migrate.cli.explain.say_lines", broken)
    found = ended(tmp_path, lambda _place, _path: command("explain", "E-DEFECT"))
    assert found is not None
    assert found.kind == "untyped"
