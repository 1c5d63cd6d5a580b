"""The reader takes plain YAML as it stands, refuses the rest with its place, and never fails in another way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import DocumentUnreadable, InputError, YamlRefused
from migrate.model.written import Quoted
from migrate.playbook.document import (
    MAX_BYTES,
    MAX_DEPTH,
    parse_document,
    read_document,
)
from tests.playbook.corpus import INVENTORY, NO_YAML, SPEC, Bad

FILE = Path("x.yaml")
TRICKS = (
    "&a ",
    "*a",
    "!!binary ",
    "<<: ",
    "---\n",
    "...\n",
    "%YAML 9.9\n",
    "? ",
    ": ",
    "- ",
    "{",
    "}",
    "[",
    "]",
    "|\n",
    ">-\n",
    '"\\U0010FFFF"',
    '"\\UFFFFFFFF"',
    "\ufeff",
    "\x85",
    "\u2028",
    "\t",
    "\r",
    "'",
    '"',
    "9" * 400,
    "null",
    "~",
    "\x00",
)


def values(text: str) -> object:
    """The plain data of a document."""
    return parse_document(text.encode(), FILE).data


def outcome(raw: bytes) -> str:
    """Where the document is, or where it was refused."""
    try:
        return str(parse_document(raw, FILE).path)
    except InputError as error:
        return error.where


@pytest.mark.parametrize("bad", NO_YAML, ids=lambda bad: bad.name)
def test_what_strict_yaml_forbids_is_refused_with_its_place(bad: Bad) -> None:
    """Typed, placed, and with a next step."""
    with pytest.raises(bad.error) as caught:
        parse_document(bad.raw, FILE)
    assert caught.value.where.startswith(f"x.yaml:{bad.at}" if bad.at else "x.yaml")
    assert bad.says in caught.value.what
    assert caught.value.next_step


def test_scalars_stay_text() -> None:
    """Nothing is a boolean, an octal number, an hour or null before the schema asks."""
    assert values("{a: no, b: 0755, c: 22:22, d: ~, e: 1e3, f: 2026-12-01, g: , on: off}") == {
        "a": "no",
        "b": "0755",
        "c": "22:22",
        "d": "~",
        "e": "1e3",
        "f": "2026-12-01",
        "g": "",
        "on": "off",
    }


def test_quoted_text_is_known_as_such() -> None:
    """A number field can refuse it."""
    found = values("{a: '1', b: \"1\", c: 1}\n")
    assert isinstance(found, dict)
    assert [isinstance(value, Quoted) for value in found.values()] == [True, True, False]


@pytest.mark.parametrize("change", [lambda t: t.replace("\n", "\r\n"), lambda t: "\ufeff" + t, lambda t: t + "...\n"])
def test_line_ends_a_byte_order_mark_and_an_end_marker_change_nothing(change: object) -> None:
    """Files come from every editor."""
    assert callable(change)
    assert values(change(INVENTORY)) == values(INVENTORY)


def test_depth_and_size_are_taken_up_to_their_bounds() -> None:
    """The last that fits, and the first that does not."""
    values("[" * MAX_DEPTH + "x" + "]" * MAX_DEPTH)
    with pytest.raises(YamlRefused):
        values("[" * (MAX_DEPTH + 1) + "x" + "]" * (MAX_DEPTH + 1))
    head = "a: 1\n#"
    values(head + "x" * (MAX_BYTES - len(head)))
    with pytest.raises(DocumentUnreadable):
        values(head + "x" * (MAX_BYTES - len(head) + 1))


def test_positions_lead_to_keys_and_items() -> None:
    """The place where an editor should jump; a path that ends early gives the last place that exists."""
    document = parse_document(INVENTORY.encode(), FILE)
    assert document.where(("spec", "brokers", "nodes", 1, "rack")) == "x.yaml:11:81"
    assert document.where(("spec", "brokers", "nodes", 1)) == "x.yaml:11:9"
    assert document.where(("spec", "brokers", "nodes", 9, "id")) == "x.yaml:9:5"


def test_a_file_that_cannot_be_read_is_a_typed_error(tmp_path: Path) -> None:
    """Missing, and a folder."""
    for path in (tmp_path / "missing.yaml", tmp_path):
        with pytest.raises(DocumentUnreadable) as caught:
            read_document(path)
        assert caught.value.where == str(path)


def test_a_file_is_never_read_beyond_the_cap(tmp_path: Path) -> None:
    """A sparse terabyte is refused as quickly as 257 KiB."""
    path = tmp_path / "huge.yaml"
    path.touch()
    os.truncate(path, 2**40)
    with pytest.raises(DocumentUnreadable):
        read_document(path)


@pytest.mark.slow
@given(st.binary(max_size=400))
def test_any_bytes_are_a_document_or_a_typed_error(raw: bytes) -> None:
    """No RecursionError, no ValueError, no UnicodeError."""
    assert outcome(raw).startswith("x.yaml")


@pytest.mark.slow
@given(st.data())
def test_any_mutation_of_a_real_file_is_a_document_or_a_typed_error(data: st.DataObject) -> None:
    """Pieces cut out, doubled, and tricks put in, at any place."""
    text = data.draw(st.sampled_from((INVENTORY, SPEC)))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 40)))
        piece = data.draw(st.sampled_from((*TRICKS, "", text[start:end] * 2)))
        text = text[:start] + piece + text[end:]
    assert outcome(text.encode("utf-8", "surrogatepass")).startswith("x.yaml")
