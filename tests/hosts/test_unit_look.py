"""A unit is looked at once, by one function, with all that could stop a run at it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from migrate.errors import HostUnreachable
from migrate.hosts.remote_files import RemoteFiles
from migrate.hosts.runner import Completed
from migrate.hosts.systemd import Service, SystemdServices
from migrate.hosts.unit_look import unit_of
from migrate.model.outcome import Unknown
from migrate.model.units import Unit, unfit
from tests.hosts.test_unit_access import FINE
from tests.testing import worlds

SHOWN = "LoadState=loaded\nActiveState=active\nTimeoutStopUSec=10min\nNeedDaemonReload=no\nUser=kafka\n"
NODE = replace(worlds.inventory().controllers[0], unit="kafka.service")


class Answers:
    """A host program that says what it is told to say."""

    host = NODE.host

    def __init__(self, shown: str, facts: str = json.dumps(FINE)) -> None:
        self.answers = {"unit-show": shown, "unit-is-enabled": "enabled", "boot-units": "", "facts": facts}

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 1) -> Completed:
        """One of them, or a refusal where there is none."""
        answer = self.answers[words[0]]
        return Completed(0, answer.encode(), "") if answer else Completed(65, b"", "it is no node of this host")


def seen(runner: Answers) -> Unit | Unknown:
    """What is known of the unit."""
    service = Service(NODE.id, NODE.unit, NODE.config, runner, RemoteFiles({NODE.id: runner}))
    services = SystemdServices({NODE.id: service}, None)  # type: ignore[arg-type]
    return unit_of(services, runner, worlds.inventory(), NODE)


def test_a_unit_without_fault_is_fit() -> None:
    """And who it runs as is known."""
    found = seen(Answers(SHOWN))
    assert isinstance(found, Unit)
    assert (found.user, unfit(found)) == ("kafka", ())


@pytest.mark.parametrize(
    ("shown", "code", "says"),
    [
        ("LoadState=not-found\nActiveState=inactive\n", "B-OPS-09", "not-found"),
        ("LoadState=masked\nActiveState=inactive\n", "B-OPS-09", "masked"),
        (SHOWN + "TimeoutStopUSec=1min 30s\nSendSIGKILL=yes\n", "B-OPS-06", "kills it 90 s after"),
        (SHOWN + "TimeoutStopUSec=5min\n", "B-OPS-06", "kills it 300 s after"),
        (SHOWN.replace("TimeoutStopUSec", "Other"), "B-OPS-06", "not known"),
        (SHOWN + "NeedDaemonReload=yes\n", "B-CFG-29", "changed on disk"),
        (SHOWN + "KillMode=none\n", "B-OPS-09", "KillMode=none"),
    ],
)
def test_a_unit_that_cannot_be_used_is_told_beforehand(shown: str, code: str, says: str) -> None:
    """Not in the night: with its code, for `assess`, `plan`, doctor, the run and its gates."""
    found = seen(Answers(shown))
    assert isinstance(found, Unit)
    ((told, what, advice),) = unfit(found)
    assert told == code
    assert says in what
    assert advice


def test_what_its_user_may_not_do_is_told_and_an_answer_that_is_none_is_unknown() -> None:
    """Never read as fine."""
    barred = seen(Answers(SHOWN, json.dumps({**FINE, "java": ""})))
    assert isinstance(barred, Unit)
    assert [code for code, _, _ in unfit(barred)] == ["B-OPS-12"]
    for facts in ("", "what", "[]", "{}"):
        found = seen(Answers(SHOWN, facts))
        assert isinstance(found, Unit)
        assert isinstance(found.access, Unknown)


def test_a_host_that_does_not_answer_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its error."""

    def silent(*_words: object, **_more: object) -> Completed:
        raise HostUnreachable("no connection", where=NODE.host)

    runner = Answers(SHOWN)
    monkeypatch.setattr(runner, "run", silent)
    found = seen(runner)
    assert isinstance(found, Unknown)
    assert "E-HOST-22" in found.reason
