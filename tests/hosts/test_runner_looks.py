"""Held commands for looks: one that is gone is replaced or done without, and no answer is taken from half of one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from migrate.errors import HostAnswerTooLong, HostCommandRefused, HostUnreachable
from migrate.hosts.runner import Completed, HeldCommand, LocalRunner, LookSessions, ProgramHolder
from migrate.model import limits
from tests.testing.host_program import broker, installed

SECONDS = 30.0
ANSWER = r"printf 'o 2\nok'; printf 'e 3\nbad'; printf 'x 7\n'; "
WHOLE = Completed(7, b"ok", "bad")


class Held:
    """Starts shell scripts, the next one each time, and counts them."""

    def __init__(self, *scripts: str) -> None:
        self.scripts = list(scripts)
        self.started: list[HeldCommand] = []

    def __call__(self, words: Sequence[str]) -> HeldCommand:
        """Start it."""
        assert tuple(words) == ("looks",)
        self.started.append(LocalRunner().hold(("sh", "-c", self.scripts.pop(0))))
        return self.started[-1]


def ask(looks: LookSessions, seconds: float = SECONDS) -> Completed | None:
    """Some look."""
    found = looks.ask([("clock",)], "h1", seconds)
    return None if found is None else found[0]


def test_one_session_answers_in_turn() -> None:
    """Output, errors and exit code, as of a command."""
    held = Held(f"while read line; do {ANSWER} done")
    looks = LookSessions(held)
    assert [ask(looks) for _ in range(3)] == [WHOLE] * 3
    assert len(held.started) == 1
    looks.close()


def test_several_questions_are_one_line_and_half_of_their_answers_is_none() -> None:
    """One round trip for all; the caller asks each by a command of its own where not every one is answered."""
    whole = f'read line; test "$line" = \'[["clock"], ["facts", "1"]]\' && {{ {ANSWER} {ANSWER} }}'
    held = Held(f"{whole}; read line; {ANSWER}", f"read line; {ANSWER}")
    looks = LookSessions(held)
    assert looks.ask([("clock",), ("facts", "1")], "h1", SECONDS) == [WHOLE] * 2
    assert looks.ask([("clock",), ("clock",)], "h1", SECONDS) is None
    looks.close()


def test_one_that_ended_meanwhile_is_replaced() -> None:
    """It was silent for long, or its connection broke: the question was not answered, and is asked anew."""
    held = Held(f"read line; {ANSWER}", f"while read line; do {ANSWER} done")
    looks = LookSessions(held)
    assert [ask(looks) for _ in range(3)] == [WHOLE] * 3
    assert len(held.started) == 2
    looks.close()


@pytest.mark.parametrize("broken", ["printf 'o 5\\nok'", "printf 'o 2\\nok'", "printf 'o 2'", "echo Welcome; cat"])
def test_half_an_answer_is_none(broken: str) -> None:
    """The caller asks by a command of its own."""
    looks = LookSessions(Held(f"read line; {ANSWER} read line; {broken}", f"read line; {broken}"))
    assert ask(looks) == WHOLE
    assert ask(looks) is None
    looks.close()


def test_where_the_first_one_answers_nothing_none_is_tried_again() -> None:
    """A host program of an earlier release has not the verb."""
    held = Held("echo no verb >&2; exit 64")
    looks = LookSessions(held)
    assert [ask(looks) for _ in range(3)] == [None] * 3
    looks.close()


def test_without_a_connection_the_look_says_so_at_once() -> None:
    """Another attempt would wait as long again; a program that is not there is told by a command of its own."""

    def raising(error: Exception) -> Callable[[Sequence[str]], HeldCommand]:
        def hold(_words: Sequence[str]) -> HeldCommand:
            raise error

        return hold

    with pytest.raises(HostUnreachable):
        ask(LookSessions(raising(HostUnreachable("no connection"))))
    assert ask(LookSessions(raising(HostCommandRefused("not there")))) is None


@pytest.mark.slow
def test_what_takes_too_long_or_answers_too_much_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next look has a session of its own."""
    held = Held("read line; exec sleep 600", "read line; printf 'o 9\\n'; exec cat", f"read line; {ANSWER}")
    looks = LookSessions(held)
    with pytest.raises(TimeoutError):
        ask(looks, 0.2)
    monkeypatch.setattr(limits, "most", lambda _what: 8)
    with pytest.raises(HostAnswerTooLong, match="more than 8 bytes"):
        ask(looks)
    assert ask(looks) == WHOLE
    looks.close()


def test_two_at_once_have_a_session_each(tmp_path: Path) -> None:
    """A look that takes long holds up no other at the same host."""
    go = tmp_path / "go"
    held = Held(f"read line; while ! [ -e {go} ]; do sleep 0.05; done; {ANSWER}", f"while read line; do {ANSWER} done")
    looks = LookSessions(held)
    found: list[Completed | None] = []
    slow = threading.Thread(target=lambda: found.append(ask(looks)))
    slow.start()
    while not held.started:
        threading.Event().wait(0.01)
    assert ask(looks) == WHOLE
    assert found == []
    go.touch()
    slow.join()
    assert (found, len(held.started)) == ([WHOLE], 2)
    looks.close()


class Counting(LocalRunner):
    """Which commands were started."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = SECONDS) -> Completed:
        """Counted."""
        self.ran.append(words[1])
        return super().run(words, stdin=stdin, seconds=seconds)

    def hold(self, words: Sequence[str]) -> HeldCommand:
        """Counted."""
        self.ran.append(words[1])
        return super().hold(words)


@pytest.mark.slow
def test_a_hosts_looks_are_one_command_and_each_change_is_its_own(tmp_path: Path) -> None:
    """With the real program; a session that was ended between two looks begins again."""
    config = tmp_path / "server.properties"
    config.write_text("broker.id=1\n")
    runner = Counting()
    program = ProgramHolder(runner, installed(tmp_path / "program", [broker(1, config)]))
    read = ("read", "1", str(config))
    assert [program.run(read).output for _ in range(3)] == [b"broker.id=1\n"] * 3
    assert program.run(("remove", "1", f"{config}.kraft-migrate-backup")).code != 0
    program.close()
    assert program.run(read).output == b"broker.id=1\n"
    assert runner.ran == ["looks", "remove", "looks"]
    program.close()
