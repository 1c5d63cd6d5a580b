"""JSON that somebody handed over."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.model import strict_json
from migrate.model.strict_json import Each, NotStrictJson, loads, mapping, unlike

ROOT = Path(__file__).parents[2]

WHOLE = st.integers(-(2**63), 2**63)
FLOATS = st.floats(-(2.0**63), 2.0**63)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | WHOLE | FLOATS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.slow
@given(VALUES)
def test_what_we_write_is_read_as_it_was(value: Any) -> None:
    """In bytes and in text, escaped or not."""
    assert loads(json.dumps(value)) == value
    assert loads(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "no JSON"),
        (b"\xff", "no JSON"),
        (b"{} {}", "no JSON"),
        (b"NaN", "no number"),
        (b"[Infinity]", "no number"),
        (b"-Infinity", "no number"),
        (b"1e999", "out of range"),
        (b"1e308", "out of range"),
        (b"1" * 400, "400 digits"),
        (b"1" * 10_000, "10000 digits"),
        (b"-" + b"1" * 20, "21 digits"),
        (b"[1, -" + b"0123456789" * 2 + b"]", "no JSON"),
        (b"[1, -" + b"1234567890" * 2 + b"]", "21 digits"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b"[" * 100_000, "nested"),
        (b"[" * 200 + b"]" * 200, "nested"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, "nested"),
        (b'"\\ud800"', "surrogates"),
    ],
)
def test_each_doubt_is_one_error(raw: bytes, says: str) -> None:
    """A ValueError, so that no reader of a file forgets one."""
    with pytest.raises(NotStrictJson, match=says):
        loads(raw)


KEYS = st.sampled_from(["a", "b", '":', '"', "\\", '\\":', " :", "a "])
WRITTEN: st.SearchStrategy[str] = st.recursive(
    (KEYS | WHOLE | st.text()).map(json.dumps) | st.text("0123456789", max_size=25).map(json.dumps),
    lambda inner: (
        st.lists(
            st.tuples(KEYS.map(json.dumps), st.sampled_from([":", " :", ": ", "\n:\t"]), inner).map("".join), max_size=3
        ).map(lambda pairs: "{" + ",".join(pairs) + "}")
        | st.lists(inner, max_size=3).map(lambda items: "[" + " , ".join(items) + "]")
    ),
    max_leaves=12,
)


@pytest.mark.slow
@given(WRITTEN)
def test_a_key_that_appears_twice_is_seen_whatever_is_around_it(text: str) -> None:
    """Against a reader that looks at the pairs of each object."""
    twice = False

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal twice
        twice |= len(dict(found)) < len(found)
        return dict(found)

    plain = json.loads(text, object_pairs_hook=pairs)
    if not twice:
        assert loads(text) == plain
        return
    with pytest.raises(NotStrictJson, match="twice"):
        loads(text)


def test_depth_room_and_wide_characters_have_a_limit() -> None:
    """What is just allowed is read; a bomb of a few bytes an item is refused before it is parsed."""
    deep = strict_json.DEPTH
    assert loads("[" * deep + "]" * deep) is not None
    with pytest.raises(NotStrictJson, match="nested"):
        loads("[" * (deep + 1) + "]" * (deep + 1))
    assert loads("[1,2,3]", room=72 + 2 * 48) == [1, 2, 3]
    with pytest.raises(NotStrictJson, match="would take 720 bytes, and 700 are the limit"):
        loads("[{},{},{}]", room=700)
    with pytest.raises(NotStrictJson, match="not all ASCII"):
        loads(b'"' + "ü".encode() * strict_json.WIDE + b'"')


def test_a_mapping_is_an_object() -> None:
    """Nothing else has fields."""
    assert mapping('{"a": 1}') == {"a": 1}
    with pytest.raises(NotStrictJson, match="not list"):
        mapping("[]")


def test_a_lone_surrogate_is_taken_where_paths_are_told() -> None:
    """A file name of a host need not be UTF-8."""
    assert loads(b'"\\udc80"', surrogates=True) == "\udc80"


OTHERS: dict[str, str] = {
    "migrate/zookeeper/decode.py": "the quick look at a partition's state: whatever is odd goes to the strict reader",
}


def json_readers() -> set[str]:
    """Modules that call another JSON reader than the strict one, but for the lab's, which reads its own files."""
    found = set()
    for path in (ROOT / "migrate").rglob("*.py"):
        name = str(path.relative_to(ROOT))
        if name.startswith("migrate/lab/"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Attribute(value=ast.Name(id="json"), attr="loads" | "load" | "JSONDecoder"):
                    found.add(name)
                case ast.ImportFrom(module="json" | "msgspec.json"):
                    found.add(name)
                case _:
                    pass
    return found


@pytest.mark.slow
def test_json_is_read_by_the_strict_reader_alone() -> None:
    """The others have a reason here."""
    assert json_readers() == {"migrate/model/strict_json.py", *OTHERS}


KIND = {"a": int, "b?": float, "c": [{"d": str}], "e": Each([bool])}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, ""),
        ({"b": 1}, ""),
        ({"b": 1.5, "z": "free"}, ""),
        ({"a": "1"}, "it.a is no int"),
        ({"a": True}, "it.a is no int"),
        ({"a": 1.0}, "it.a is no int"),
        ({"b": "1"}, "it.b is no float"),
        ({"c": {}}, "it.c is no list"),
        ({"c": [{}]}, "it.c lacks d"),
        ({"c": [{"d": None}]}, "it.c.d is no str"),
        ({"c": ["d"]}, "it.c is no object"),
        ({"e": []}, "it.e is no object"),
        ({"e": {"x": [True, 1]}}, "it.e is no bool"),
    ],
)
def test_a_value_is_held_against_its_kind(change: dict[str, Any], says: str) -> None:
    """Missing keys, other types at any depth; a truth value is no number."""
    value = {"a": 1, "c": [{"d": ""}], "e": {"x": [True]}, **change}
    assert unlike(value, KIND) == says


def test_an_object_of_another_kind_is_refused() -> None:
    """By what is wrong with it."""
    assert mapping(b'{"a": 1}', {"a": int}) == {"a": 1}
    with pytest.raises(NotStrictJson, match="it lacks b"):
        mapping(b'{"a": 1}', {"b": int})
