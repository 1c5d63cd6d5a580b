"""Lines for a terminal: folded, safe, with a tone beside them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.report.lines import WIDTH, Page, Tone, columns, fold, meanings, text

cells = st.text(alphabet="abc def-", max_size=150)
rows = st.lists(st.dictionaries(st.sampled_from(["broker", "path", "procedure"]), cells), max_size=5)


@pytest.mark.slow
@given(rows)
def test_a_table_fits_the_page_and_loses_no_word(table: list[dict[str, str]]) -> None:
    """Wide cells are folded, never cut."""
    page = Page()

    page.table(table)

    assert all(len(line.text) <= WIDTH for line in page.lines)
    shown = sorted("".join(line.text for line in page.lines).replace(" ", ""))
    names, found = columns(table)
    wanted = "".join([*names, *(cell for row in found for cell in row)]).replace(" ", "")
    assert not found or shown == sorted(wanted)


def test_a_table_has_a_column_for_every_key_that_some_row_has() -> None:
    """In the order in which they first appear; a row without it is left open there."""
    page = Page()

    page.table([{"broker": "1", "path": "/d"}, {"broker": "2", "meta_version": "V0"}])

    assert [line.text for line in page.lines] == [
        "  broker  path  meta version",
        "  1       /d",
        "  2             V0",
    ]
    assert [line.tone for line in page.lines] == [Tone.DIM, Tone.PLAIN, Tone.PLAIN]


def test_bytes_are_shown_as_sizes() -> None:
    """Only in columns that hold bytes, and only where they are numbers."""
    names, found = columns([{"bytes": "931979", "free": "?", "replicas": "41"}])

    assert names == ["bytes", "free", "replicas"]
    assert found == [["910.1 KiB", "?", "41"]]


def test_an_empty_table_is_nothing() -> None:
    """Not even its titles."""
    page = Page()

    page.table([])

    assert page.lines == []


@pytest.mark.slow
@given(st.text(max_size=400), st.integers(0, 20))
def test_a_paragraph_fits_the_page(words: str, indent: int) -> None:
    """Whatever its words are, they act on no terminal."""
    page = Page()

    page.wrap(words, indent=indent, hang=4)

    assert all(len(line.text) <= WIDTH for line in page.lines)
    assert "\x1b" not in text(page.lines)


@pytest.mark.parametrize("long", ["--confirm " + "a" * 300, "+" + "x" * 300])
def test_what_is_copied_is_never_folded(long: str) -> None:
    """A command or a diff with a line break in it is another one."""
    page = Page()

    page.add(long, indent=2)

    assert [line.text for line in page.lines] == ["  " + long]


def test_plain_text_ends_with_a_new_line_and_has_no_colour() -> None:
    """The tone is for the caller."""
    page = Page()
    page.heading("Znodes")
    page.add("x", Tone.BAD)

    assert text(page.lines) == "\nZnodes\nx\n"
    assert [line.tone for line in page.lines] == [Tone.PLAIN, Tone.TITLE, Tone.BAD]


LONG = "listener.security.protocol.map and inter.broker.listener.name have to name the same listeners on every broker"


@pytest.mark.parametrize("width", [72, 80, 120])
@pytest.mark.parametrize("head", ["next     ", "  where  ", "      - ", "", "E-ZK-02: ", "  12. "])
def test_a_long_line_is_folded_between_words_under_its_text(head: str, width: int) -> None:
    """No word is torn, none is lost, and the later pieces stand behind the label."""
    line = f"{head}{LONG} {LONG}"
    pieces = fold(line, width)
    assert " ".join(" ".join(pieces).split()) == " ".join(line.split())
    assert max(map(len, pieces)) <= width
    begins = {len(piece) - len(piece.lstrip()) for piece in pieces[1:]}
    assert begins == {len(head) if head.strip() and ":" not in head else len(head) - len(head.lstrip()) + 2}


def test_what_is_copied_stays_on_one_line() -> None:
    """Commands, paths and addresses; the terminal folds them without a line end."""
    command = "next     kraft-migrate apply " + "/runs/a/plan.json " * 9
    assert fold(command, 72) == [command]
    path = "/var/lib/" + "kafka/" * 30
    assert [piece.strip() for piece in fold(f"report: {path}", 72)] == ["report:", path]


def test_a_narrow_table_breaks_keys_at_their_dots() -> None:
    """Never inside a word of them."""
    page = Page(width=72)
    key = "inter.broker.listener.name"
    page.table([{"key": key, "first": "x " * 40, "second": "y " * 40}])
    cells = [line.text[2:].split("  ")[0].strip() for line in page.lines[1:]]
    assert "".join(cells) == key
    assert all(cell.endswith(".") or key.endswith(cell) for cell in cells if cell)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("stage    unknown: no answer", [("stage", Tone.TITLE), ("unknown", Tone.BAD)]),
        ("E-ZK-02: no session", [("E-ZK-02", Tone.BAD)]),
        ("READY WITH WARNINGS (1)", [("READY WITH WARNINGS", Tone.WARN)]),
        ("rollback NOT READY from hybrid", [("NOT READY", Tone.BAD)]),
        ("rollback READY WITH WORK", [("READY WITH WORK", Tone.WARN)]),
        ("NOT READ", [("NOT READ", Tone.BAD)]),
        ("NOT PROVEN, not PROVEN", [("NOT PROVEN", Tone.BAD), ("PROVEN", Tone.GOOD)]),
        ("UNREADY or READYING", []),
    ],
)
def test_words_have_a_meaning_of_their_own(line: str, found: list[tuple[str, Tone]]) -> None:
    """Whole words alone; what is painted says the same without colour."""
    parts = [*meanings(line)]
    assert "".join(part for part, _ in parts) == line
    assert [(part, tone) for part, tone in parts if tone is not Tone.PLAIN] == found
