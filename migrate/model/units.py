"""What systemd says of a node's unit, as far as a migration depends on it: how long a stop may take, and the boot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from migrate.model.outcome import Unknown

STOP_SECONDS: Final = 330.0  # how long a stop is waited for: Kafka itself gives up a controlled shutdown after 300
ENABLED_BY_RUNS: Final = "units-enabled-by-runs"  # a fact: ids of nodes whose units a run of this cluster enabled


@dataclass(frozen=True, slots=True)
class Unit:
    """One node's unit on its host.

    `patience` is after how many seconds of a stop systemd kills the process; None: never.  `starts_at_boot` is decided
    from `word`, which is what `systemctl is-enabled` says, and from what the boot's target pulls in.  `faults` say why
    a run cannot stop and start it as it is (`migrate.hosts.unit_look`), `user` who it runs as, "" where not known,
    `access` what keeps that user from its files and tools (`migrate.hosts.unit_look`).
    """

    host: str
    name: str
    patience: float | Unknown | None
    word: str
    starts_at_boot: bool | Unknown
    reload_due: bool | Unknown = False  # changed on disk since systemd read it
    faults: tuple[str, ...] = ()
    user: str = ""
    restarts_halted: bool = False  # systemd starts it again when it has halted with exit code 1
    access: tuple[tuple[str, str], ...] | Unknown = ()  # what its user may not do, and what to do about it

    @property
    def may_be_enabled(self) -> bool:
        """Does `systemctl enable` make it start at boot, and `disable` take back that and no more?

        Disabling a linked unit removes the unit itself; a masked, static or generated one cannot be enabled (seen on
        systemd 252).
        """
        return self.word in ("disabled", "enabled-runtime")


STOP_ADVICE: Final = (
    f"give the unit TimeoutStopSec={STOP_SECONDS:.0f} or more (a drop-in will do), then `systemctl daemon-reload`"
)


def too_soon(patience: float | Unknown | None) -> str:
    """Why a unit that waits for so many seconds must not be stopped by a run; "" where it may be."""
    if isinstance(patience, Unknown):
        return f"after how long systemd kills it is not known ({patience.reason})"
    if patience is None or patience >= STOP_SECONDS:
        return ""
    return f"systemd kills it {patience:.0f} s after a stop, and a controlled shutdown may take longer"


TOO_SOON: Final = "B-OPS-06"
RELOAD: Final = "B-CFG-29"
FAULT: Final = "B-OPS-09"
ACCESS: Final = "B-OPS-12"
OF_UNITS: Final = frozenset({TOO_SOON, RELOAD, FAULT, ACCESS})  # reasons against a stop: none against a start


def unfit(unit: Unit) -> tuple[tuple[str, str, str], ...]:
    """Why a run must not stop and start it, each as code, what is wrong, what to do: the one decision.

    `assess`, `plan`, `doctor --hosts`, a run before its first effect, and the gates of stages ask this.
    """
    found = [(TOO_SOON, problem, STOP_ADVICE)] if (problem := too_soon(unit.patience)) else []
    if unit.reload_due is True:
        what = "it has changed on disk since systemd read it: what runs is not what is written"
        found.append((RELOAD, what, "look at the change, then `systemctl daemon-reload`, and restart the node"))
    advice = f"change it (`systemctl edit {unit.name}`), then `systemctl daemon-reload`"
    found += [(FAULT, fault, advice) for fault in unit.faults]
    barred = () if isinstance(unit.access, Unknown) else unit.access
    return (*found, *((ACCESS, what, to_do) for what, to_do in barred))
