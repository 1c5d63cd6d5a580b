"""Checks: a World in, findings out.  Pure; one file an area, one function a code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from migrate.checks import (  # noqa: F401 - importing an area registers its checks
    availability,
    config,
    config_sources,
    directories,
    kerberos,
    logins,
    migration,
    next_release,
    oauth,
    parity,
    processes,
    quorum,
    releases,
    replicas,
    security,
    stored_values,
    units,
    zookeeper,
    zookeeper_access,
    zookeeper_use,
)
from migrate.checks.phase import phase_of
from migrate.checks.registry import CHECKS, NEVER, run_all
from migrate.checks.sight import remembering
from migrate.model.columns import unswept
from migrate.model.findings import CodeDoc, Finding, Severity, blocks, one_per_kind
from migrate.model.stage import Stage
from migrate.model.world import World

__all__ = ["CODES", "COMES_AND_GOES", "NEVER", "asked", "blocking", "lasting", "run", "told"]

CODES: Final[Mapping[str, CodeDoc]] = {code: CHECKS[code].doc for code in sorted(CHECKS)}
# What a topic that is being created or deleted at that moment looks like as well: only what lasts is a fault.
COMES_AND_GOES: Final = frozenset({"B-ZKN-04", "B-ZKN-06", "B-DIR-06", "B-DIR-07", "B-DIR-08", "B-DIR-13", "B-DIR-21"})
ORDER: Final = (Severity.BLOCKER, Severity.BLIND_SPOT, Severity.WARNING, Severity.INFO)


def run(world: World, *, target: Stage) -> tuple[Finding, ...]:
    """Every finding; those that block `target` first, then by severity and code.

    `target` is the stage that shall begin: a finding blocks it when `blocks_from` is not above its number.
    """
    with remembering(), unswept():
        return ordered(run_all(world), target)


def ordered(findings: Iterable[Finding], target: Stage) -> tuple[Finding, ...]:
    """Those that block the target first, then by severity and code."""
    return tuple(
        sorted(findings, key=lambda entry: (not blocks(entry, target), ORDER.index(entry.severity), entry.code))
    )


def told(world: World, *, target: Stage) -> tuple[Finding, ...]:
    """The same for a reader: those that differ in their node alone are one finding with the list of nodes."""
    return one_per_kind(run(world, target=target), processes.down_behind(world))


def lasting(findings: Iterable[Finding], later: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings of a look without those of COMES_AND_GOES that a later look (`run`) saw to be gone."""
    seen = list(later)
    still = {(entry.code, entry.about) for entry in seen}
    unseen = {entry.code for entry in seen if entry.severity is Severity.BLIND_SPOT}
    many = {entry.code for entry in seen if entry.about.endswith(" more")}  # not all of them have a line
    return tuple(
        entry
        for entry in findings
        if entry.severity is not Severity.BLOCKER
        or entry.code not in COMES_AND_GOES
        or entry.code in unseen | many
        or any((entry.code, about) in still for about in entry.objects or (entry.about,))
    )


def asked(world: World) -> tuple[str, ...]:
    """The codes of all checks that belong to the world's phase and to such a cluster, made or not."""
    phase = phase_of(world)
    return tuple(code for code in sorted(CHECKS) if phase in CHECKS[code].when and CHECKS[code].applies(world))
