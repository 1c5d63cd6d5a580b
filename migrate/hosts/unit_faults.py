"""What of a unit keeps a run from stopping and starting its node, by what `systemctl show` says of it (pure).

`Restart=always` is none of it: systemd starts nothing again that `systemctl stop` has stopped.  What it does with a
broker that halts is `restarts_halted`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from migrate.hosts.systemd import seconds
from migrate.model.outcome import Unknown
from migrate.model.units import STOP_SECONDS

ARGV: Final = re.compile(r"argv\[\]=(.*?) ; ignore_errors=")
FILE: Final = re.compile(r"(?<![\w.$}/-])(/[^\s\"';:,=]+\.properties)\b")
HALTED: Final = "1"  # Exit.halt(1) of a broker whose disk died
KILLED: Final = ("9", "SIGKILL")


def faults_of(properties: Mapping[str, str], config: str, neighbours: Sequence[int]) -> Iterator[str]:
    """Each fault in words; `neighbours` are the other nodes of its host.

    A property that systemd was not asked for, or does not know, is no fault.
    """
    for name, verb in (("RefuseManualStop", "stop"), ("RefuseManualStart", "start")):
        if properties.get(name) == "yes":
            yield f"{name}=yes: systemd refuses to {verb} it"
    if properties.get("RemainAfterExit") == "yes":
        yield "RemainAfterExit=yes: systemd calls it active after its process has ended"
    if properties.get("Type") == "oneshot":
        yield "Type=oneshot: systemd knows no process of it that lives on"
    if properties.get("KillMode") == "none":
        yield "KillMode=none: systemd calls it stopped while its process lives on"
    if properties.get("KillSignal") in KILLED:
        yield "KillSignal=SIGKILL: a stop kills the process before it has ended its shutdown"
    if properties.get("SendSIGKILL") == "no" and _gives_up(properties.get("TimeoutStopUSec", "")):
        yield "SendSIGKILL=no with a short TimeoutStopSec: systemd calls it stopped while its process lives on"
    yield from _starts_another_file(properties, config)
    yield from _stops_others(properties, neighbours)


def _gives_up(limit: str) -> bool:
    """Would systemd end its wait for a stop before a run does?"""
    try:
        found = seconds(limit)
    except (ValueError, KeyError):
        return True
    return found is not None and found < STOP_SECONDS


def _starts_another_file(properties: Mapping[str, str], config: str) -> Iterator[str]:
    """Only where its words name files, and this is none of them: variables and scripts are not followed."""
    words = " ".join(ARGV.findall(properties.get("ExecStart", "")))
    files = [found for found in FILE.findall(words) if "log4j" not in os.path.basename(found)]  # noqa: PTH119
    if files and os.path.normpath(config) not in map(os.path.normpath, files):
        yield f"its ExecStart names {', '.join(dict.fromkeys(files))}, the inventory says {config}"


def _stops_others(properties: Mapping[str, str], neighbours: Sequence[int]) -> Iterator[str]:
    """Kafka's script signals every process of Kafka's on the host, but with an option of KIP-979."""
    for words in ARGV.findall(properties.get("ExecStop", "")):
        if "kafka-server-stop" in words and "--node-id" not in words and "--process-role" not in words and neighbours:
            others = ", ".join(map(str, neighbours))
            yield f"its ExecStop is kafka-server-stop.sh, which ends node {others} of this host, too"


def restarts_halted(properties: Mapping[str, str]) -> bool:
    """Does systemd start it again after exit code 1, with which Kafka halts?"""
    again = properties.get("Restart") in ("always", "on-failure")
    return again and HALTED not in properties.get("RestartPreventExitStatus", "").split()


def reload_due(properties: Mapping[str, str]) -> bool | Unknown:
    """Has it changed on disk since systemd read it?"""
    said = properties.get("NeedDaemonReload")
    return Unknown("systemd did not say whether the unit changed on disk") if said is None else said == "yes"


def user_of(properties: Mapping[str, str]) -> str:
    """Who its process runs as."""
    return properties.get("User") or "root"
