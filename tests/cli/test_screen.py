"""What people read fits their terminal, without a torn word, and is coloured only where it may be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from migrate.cli.screen import ProgressLine
from migrate.report.lines import COMMAND
from tests.cli.commands import inventory_in, kraft_migrate, process
from tests.cli.terminals import ANSI, on_terminal, shown

PLAYBOOKS = Path(__file__).parents[2] / "playbooks"
COMMANDS: tuple[tuple[object, ...], ...] = (
    (),
    ("help",),
    ("help", "lab", "demo"),
    ("plan", "--help"),
    ("explain",),
    ("explain", "B-ZKN-01", "E-JAVA-01", "S-STUCK-33"),
    ("explain", "B-NOPE-1"),
    ("playbook", "show", PLAYBOOKS / "production-example.yaml"),
    ("playbook", "lint", "no-such-file-in-this-folder-at-all-with-a-long-name.yaml", "and-one-more.yaml"),
    ("assess", "--zookeeper", "127.0.0.1:1"),
    ("doctor",),
    ("aply",),
)


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The colours of whoever runs the tests are not ours."""
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.mark.slow
@pytest.mark.parametrize("columns", [72, 80, 120])
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(map(str, words))[-40:] or "(none)")
def test_no_line_is_wider_than_the_terminal_and_no_word_is_torn(
    words: tuple[object, ...], columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside commands and paths, which are copied: of a line that is too wide, everything but its last word fits."""
    monkeypatch.setenv("COLUMNS", str(columns))  # click asks the terminal of the process
    said = ANSI.sub("", shown("terminal", *words, columns=columns).text)
    whole = ANSI.sub("", shown("file", *words).text)
    for line in said.splitlines():
        short = line.rpartition(" ")[0] if line.strip().count(" ") or "/" in line else line
        assert len(line) <= columns or COMMAND.match(line) or len(short) <= columns, line
    torn = set(said.split()) - set(whole.split())
    assert {word for word in torn if not word.isdecimal()} == set(), "doctor measures anew"


@pytest.mark.slow
def test_a_terminal_is_coloured_and_a_pipe_is_not() -> None:
    """The code of an error is red; in a pipe there is no escape sequence."""
    assert "\x1b[31m\x1b[1mE-CODE-01" in shown("terminal", "explain", "B-NOPE-1").text
    for words in COMMANDS:
        assert "\x1b" not in shown("file", *words).text


def test_no_color_leaves_a_terminal_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """As no-color.org says."""
    assert "\x1b[1m" in shown("terminal", "explain", "B-ZKN-01").text
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in shown("terminal", "explain", "B-ZKN-01").text


def test_json_is_never_folded_or_coloured() -> None:
    """On a terminal as in a pipe."""
    words = ("explain", "B-ZKN-01", "-o", "json")
    text = shown("terminal", *words, columns=72).text
    assert "\x1b" not in text
    assert len(text.splitlines()) == len(shown("file", *words).text.splitlines())


@pytest.mark.parametrize(
    ("word", "meant"), [("aply", "apply"), ("stauts", "status"), ("rolback", "rollback"), ("asess", "assess")]
)
def test_a_mistyped_command_is_answered_with_the_one_that_is_meant(word: str, meant: str) -> None:
    """At the top level as below it."""
    answer = kraft_migrate(word)
    assert answer.code == 64
    assert f"did you mean `kraft-migrate {meant}`" in answer.err


def test_help_is_a_command_too() -> None:
    """Of a command, of a group, of one of its commands, and of what is none."""
    for words in (("plan",), ("lab",), ("lab", "demo"), ()):
        assert kraft_migrate("help", *words).out.split() == kraft_migrate(*words, "--help").out.split()
    assert kraft_migrate("help", "aply").code == 64
    assert kraft_migrate("help", "plan", "x").code == 64


# -- the line of progress --------------------------------------------------------------------------------------------
SLOWLY = """
import sys, threading
from migrate.cli.screen import ProgressLine, say
ProgressLine.FIRST, ProgressLine.EVERY = (float(word) for word in sys.argv[1:3])
drawn = threading.Event()
def what():
    drawn.set()
    return "reading ZooKeeper, 1,200 znodes read"
with ProgressLine.showing(what), ProgressLine.showing(lambda: "never"):
    drawn.wait(float(sys.argv[3]))
    threading.Event().wait(0.1)
    say("a line of the answer")
say("the end")
"""


@pytest.mark.slow
def test_what_takes_long_has_one_line_that_whatever_is_printed_replaces() -> None:
    """With the seconds since it began; nested work shows no second one, and nothing of it is left."""
    said = on_terminal("0", "60", "5", code=SLOWLY)
    assert said == ("\r  0 s  reading ZooKeeper, 1,200 znodes read\x1b[K\r\x1b[Ka line of the answer\r\nthe end\r\n")


@pytest.mark.slow
def test_what_is_quick_has_none_and_neither_has_a_file() -> None:
    """A second may pass without a word; what is not a terminal gets no control sequence."""
    assert on_terminal("60", "60", "0", code=SLOWLY) == "a line of the answer\r\nthe end\r\n"
    ended = process("0", "0.01", "0.2", code=SLOWLY)
    assert (ended.out, ended.err) == ("a line of the answer\nthe end\n", "")


@pytest.mark.slow
def test_a_look_shows_what_it_looks_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each part by name, with its count and total where they are known, and how much of ZooKeeper was read."""
    monkeypatch.setattr(ProgressLine, "FIRST", 0.01)
    monkeypatch.setattr(ProgressLine, "EVERY", 0.01)
    said = shown("terminal", "status", "--inventory", inventory_in(tmp_path)).text
    assert re.search(r"\r +0 s  [^\r]*reading ZooKeeper", said)
    assert "\x1b" not in shown("file", "status", "--inventory", inventory_in(tmp_path)).text
