"""A broker's file after both rolls: what no key of the migration needs is as its owner wrote it, to the byte."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from javaproperties import parse as elements
from javaproperties.reading import KeyValue

from migrate.hosts.properties import parse
from migrate.model.ids import NodeId
from migrate.steps import configuration
from tests.testing.worlds import BROKER_FILE, inventory

ENDS = st.sampled_from(["\n", "\r\n"])
WORDS = st.text("abcXYZ019./:;,=#! _-@\xe9", min_size=1, max_size=20)
SPACES = st.text(" \t", max_size=3)
SEPARATORS = st.sampled_from(["=", ":", " ", " = ", "\t:\t", "= "])


@st.composite
def _lines(draw: st.DrawFn, end: str) -> str:
    """A comment, an empty line, or a key of the owner's own, on one line or on two."""
    match draw(st.sampled_from(["comment", "empty", "key", "continued"])):
        case "comment":
            return draw(SPACES) + draw(st.sampled_from("#!")) + draw(WORDS) + end
        case "empty":
            return draw(SPACES) + end
        case kind:
            value = f"{draw(WORDS)}\\{end}{draw(SPACES)}x{draw(WORDS)}" if kind == "continued" else draw(WORDS)
            key = f"own.key.{draw(st.integers(0, 10**9))}"
            return draw(SPACES) + key + draw(SEPARATORS) + value + end


@st.composite
def _files(draw: st.DrawFn) -> bytes:
    """The keys that Kafka needs in any order, with the owner's separators, between the owner's own lines."""
    end = draw(ENDS)
    needed = BROKER_FILE.format(id=0).splitlines()
    text = []
    for line in draw(st.permutations(needed)):
        text += draw(st.lists(_lines(end), max_size=2))
        key, _, value = line.partition("=")
        text.append(f"{draw(SPACES)}{key}{draw(SEPARATORS)}{value}{end}" if value else line + end)
    return "".join([*text, *draw(st.lists(_lines(end), max_size=2))]).encode("latin-1")


def _foreign(raw: bytes, ours: set[str]) -> list[str]:
    """The file's text, element by element, without the lines of those keys."""
    return [one.source for one in elements(raw) if not (isinstance(one, KeyValue) and one.key in ours)]


@given(_files())
def test_a_rewritten_file_differs_in_nothing_but_the_keys_that_change(raw: bytes) -> None:
    """Comments, order, line ends, continuation lines and blanks stay; no colon of a value gets a backslash."""
    known = inventory()
    broker = next(node for node in known.brokers if node.id == NodeId(0))
    rolled = configuration.migration_mode(raw, known)
    for before, after in ((raw, rolled), (rolled, configuration.kraft_mode(rolled, known, broker))):
        old, new = parse(before), parse(after)
        changed = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
        assert changed
        assert all(not key.startswith("own.") for key in changed)
        assert _foreign(after, changed) == _foreign(before, changed)
        assert (b"\r\n" in after) == (b"\r\n" in before)
        assert after.count(b"\r") == after.count(b"\r\n")
        assert after.count(b"\n") == after.count(b"\r\n") or b"\r" not in after
        assert after.count(b"\\:") == before.count(b"\\:")
