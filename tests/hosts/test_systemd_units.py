"""What systemd says of units, as it was recorded: how long a stop may take, and what a boot starts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from migrate.hosts import commands
from migrate.hosts.remote_files import RemoteFiles
from migrate.hosts.runner import Completed
from migrate.hosts.systemd import Service, SystemdServices, parse_unit, patience
from migrate.model.ids import NodeId
from migrate.model.launch import STOP_SECONDS, Unit, too_soon
from migrate.model.outcome import Unknown

NODE, NAME = NodeId(3000), "kafka-controller.service"
PULLED_IN = f"""default.target
  multi-user.target
  dbus.service
  {NAME}
  ssh.service
  basic.target
"""
# systemd 252 (Debian 12): word and exit code of is-enabled, WantedBy, RequiredBy, listed below default.target
RECORDED = {
    "enabled": ("enabled", 0, "multi-user.target", "", True, True),
    "required": ("enabled", 0, "", "multi-user.target", True, True),
    "of a target that is not there": ("enabled", 0, "", "", False, None),
    "of a target that is not started": ("enabled", 0, "graphical.target", "", False, None),
    "linked into the target by hand, before daemon-reload": ("enabled", 0, "", "", False, None),
    "pulled in by a target of the operator": ("static", 0, "kafka.target", "", True, True),
    "static": ("static", 0, "", "", False, None),
    "part of a target that does not want it": ("static", 0, "", "", True, None),
    "with Also= alone": ("indirect", 0, "", "", False, None),
    "made by a generator": ("generated", 0, "multi-user.target", "", True, True),
    "disabled": ("disabled", 1, "", "", False, False),
    "until the next boot": ("enabled-runtime", 0, "multi-user.target", "", True, False),
    "linked": ("linked", 1, "", "", False, False),
    "linked until the next boot": ("linked-runtime", 1, "", "", False, False),
    "masked": ("masked", 1, "", "", False, False),
    "masked until the next boot": ("masked-runtime", 1, "", "", False, False),
    "transient": ("transient", 1, "", "", False, False),
    "another name of a unit": ("alias", 0, "multi-user.target", "", False, None),
    "a later version's word": ("well", 0, "multi-user.target", "", True, None),
}


class Answers:
    """A host that answers as it was recorded."""

    host = "kafka-1"

    def __init__(self, word: str, code: int, wanted: str, required: str, *, listed: bool, errors: str = "") -> None:
        self.shown = f"LoadState=loaded\nActiveState=active\nTimeoutStopUSec=6min\nWantedBy={wanted}\n"
        self.shown += f"RequiredBy={required}\n"
        self.answers = {
            commands.unit_is_enabled(NAME): Completed(code, f"{word}\n".encode() if word else b"", errors),
            commands.PULLED_IN_AT_BOOT: Completed(0, (PULLED_IN if listed else "default.target\n").encode(), ""),
        }

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 1) -> Completed:
        """One of them."""
        return self.answers.get(tuple(words), Completed(0, self.shown.encode(), ""))


def seen(runner: Answers) -> Unit:
    """The unit by that host."""
    service = Service(NODE, NAME, "/etc/x", runner, RemoteFiles({NODE: runner}))
    return SystemdServices({NODE: service}, None).unit(NODE)[0]  # type: ignore[arg-type]


@pytest.mark.parametrize("told", RECORDED.values(), ids=RECORDED)
def test_a_unit_starts_at_boot_only_where_word_and_links_say_so(
    told: tuple[str, int, str, str, bool, bool | None],
) -> None:
    """`enabled` is said of units that no target pulls in; what both do not prove is unknown, and never yes."""
    word, code, wanted, required, listed, starts = told
    unit = seen(Answers(word, code, wanted, required, listed=listed))
    assert (unit.host, unit.name, unit.word) == ("kafka-1", NAME, word)
    assert isinstance(unit.starts_at_boot, Unknown) if starts is None else unit.starts_at_boot is starts


def test_an_answer_that_is_none_is_unknown_with_the_reason() -> None:
    """A unit that is not there, and a list that was refused."""
    absent = Answers("", 1, "", "", listed=False, errors=f"Failed to get unit file state for {NAME}: No such file")
    found = seen(absent).starts_at_boot
    assert isinstance(found, Unknown)
    assert "No such file" in found.reason
    refused = Answers("enabled", 0, "multi-user.target", "", listed=True)
    refused.answers[commands.PULLED_IN_AT_BOOT] = Completed(1, b"", "sudo: a password is required")
    found = seen(refused).starts_at_boot
    assert isinstance(found, Unknown)
    assert "a password is required" in found.reason


@pytest.mark.parametrize(
    ("shown", "refused"),
    [
        ("TimeoutStopUSec=5min\n", "300 s"),  # what Kafka waits itself: its process needs some seconds more
        ("TimeoutStopUSec=5min 30s\n", ""),
        ("TimeoutStopUSec=1min 30s\n", "90 s"),
        ("TimeoutStopUSec=1min 30s\nSendSIGKILL=no\n", ""),
        ("TimeoutStopUSec=infinity\n", ""),
        ("", "not known"),
        ("TimeoutStopUSec=soon\n", "not known"),
    ],
)
def test_one_bar_decides_whether_a_unit_may_be_stopped(shown: str, refused: str) -> None:
    """The same for doctor, the finding, the gates and the stop itself; an answer that is none is no long wait."""
    found = too_soon(patience(parse_unit(f"LoadState=loaded\nActiveState=active\n{shown}".encode())))
    assert refused in found
    assert bool(found) is bool(refused)
    assert STOP_SECONDS == 330.0
