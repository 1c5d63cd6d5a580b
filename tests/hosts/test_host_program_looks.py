"""Looks that one held command of the host program answers: each as a command of its own would have answered it."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate.hosts import host_program
from migrate.hosts.runner import Completed, HeldCommand, LookSessions
from tests.hosts.test_host_program import KAFKA, Field, field, needs_root

__all__ = ["field"]
pytestmark = needs_root
SECONDS = 60.0


@pytest.fixture
def looks(field: Field) -> Iterator[LookSessions]:
    """Questions to the installed program."""
    found = LookSessions(lambda words: held(field, *words))
    yield found
    found.close()


def held(field: Field, *words: str) -> HeldCommand:
    """A held command of the installed program."""
    return HeldCommand([str(field.installed.program), *words], "here", field.installed.environment)


def asked(looks: LookSessions, *words: str) -> Completed:
    """The session's answer."""
    found = looks.ask([words], "here", SECONDS)
    assert found is not None
    return found[0]


@pytest.mark.slow
def test_every_question_gets_the_answer_of_a_command(field: Field, looks: LookSessions) -> None:
    """Exit code, output and errors; what is wrong with one harms none behind it."""
    (field.owned / "d0").mkdir()
    os.chown(field.owned / "d0", KAFKA, KAFKA)
    config = str(field.config)
    questions = [
        ("status", "1", config),
        ("read", "1", config),
        ("read", "1", str(field.root / "nothing")),
        ("names", "2", str(field.owned)),
        ("places", "2", str(field.owned), str(field.etc)),
        ("facts", "1"),
        ("unit-show", "kafka.service"),
        ("unit-show", "sshd.service"),
        ("unit-is-enabled", "kafka.service"),
        ("process", "kafka.service", "7"),
        ("try-lock", "1", f"{config}.kafka"),
        ("sockets", "udp"),
        ("status", "99", config),
        ("read", "1"),
        ("read", "1", "/etc/\u00e9\U0001f642"),
    ]
    answers = [field.installed.run(*words) for words in questions]
    assert [asked(looks, *words) for words in questions] == answers
    assert looks.ask(questions, "here", SECONDS) == answers
    collected = json.loads(asked(looks, "collect", "2", str(field.owned / "d0")).output)
    assert str(field.owned / "d0") in json.dumps(collected)
    assert asked(looks, "clock").code == asked(looks, "sockets", "tcp").code == 0


@pytest.mark.slow
def test_one_that_became_another_user_leaves_root_to_the_next(field: Field, looks: LookSessions) -> None:
    """What only root reads is read behind a look as Kafka's user, and a look as that user never reads it."""
    only_root = field.etc / "server.properties.kraft-migrate-backup"
    only_root.write_bytes(b"x" * 300_000)
    only_root.chmod(0o600)
    asked(looks, "names", "2", str(field.owned))
    assert asked(looks, "read", "1", str(only_root)).output == b"x" * 300_000
    assert asked(looks, "read", "1", str(field.root / "secret")).code == host_program.FAILED


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("write", "1", "/etc/passwd", "0" * 64),
        ("keep", "1", "/x/meta.properties", "/x/meta.properties.kraft-migrate-backup", "0" * 64),
        ("unit-stop", "kafka.service"),
        ("remove", "1", "/x"),
        ("lock", "1", "/x"),
        ("format", "3000", "x" * 22, "3.9"),
        ("archive", "3000"),
        ("about",),
        ("looks",),
        ("nothing",),
        (),
    ],
)
def test_it_answers_nothing_that_changes_a_host(field: Field, looks: LookSessions, words: tuple[str, ...]) -> None:
    """Each change is a command of its own, which sudo's log names; the session is there for the next look."""
    done = asked(looks, *words)
    assert (done.code, done.output) == (host_program.NOT_UNDERSTOOD, b"")
    assert "no verb that changes nothing" in done.says
    assert field.installed.given == []
    assert asked(looks, "status", "1", str(field.config)).code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "question", [b"\n", b"[]\n", b"[[1], []]\n", b"[[[]]]\n", b"x\n", b"[" * 100_000 + b"\n", b"\xff\n"]
)
def test_a_question_that_is_none_is_refused(field: Field, question: bytes) -> None:
    """In the same form as an answer."""
    session = held(field, "looks")
    session.send(question)
    kind, length = session.line(time.monotonic() + SECONDS).split()
    assert kind == b"e"
    session.piece(int(length), time.monotonic() + SECONDS)
    assert session.line(time.monotonic() + SECONDS) == b"x %d\n" % host_program.NOT_UNDERSTOOD
    assert session.end().code == 0


@pytest.mark.slow
def test_an_installation_that_becomes_unsound_answers_nothing_more(field: Field, looks: LookSessions) -> None:
    """It is looked at for every question."""
    assert asked(looks, "status", "1", str(field.config)).code == 0
    (field.installed.folder / "host.json").chmod(0o666)
    assert asked(looks, "status", "1", str(field.config)).code == host_program.NOT_SOUND


@pytest.mark.slow
def test_it_ends_with_its_input_and_when_nothing_is_asked(field: Field) -> None:
    """No process of root's is left on a host that nobody looks at."""
    session = held(field, "looks")
    assert session.end().code == 0
    program: Path = field.installed.program
    program.write_bytes(program.read_bytes().replace(b"IDLE = 120", b"IDLE = 1"))
    session = held(field, "looks")
    with pytest.raises(EOFError):
        session.line(time.monotonic() + SECONDS)
    assert session.end().code == -signal.SIGALRM
