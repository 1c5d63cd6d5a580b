"""On a real cluster with a dead disk: its replicas' lag can be accepted by name, the disk cannot."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from migrate.lab.cluster import Lab
from migrate.model.outcome import NotYet, Ready, Refused
from migrate.model.views import LiveView, MetadataAnswer, PartitionHealth
from migrate.model.world import Need, World
from migrate.observe.sources import Sources
from migrate.observe.world import ClusterObserver
from migrate.playbook.load import load_playbook
from migrate.steps import gates
from tests.lab.commands import kraft_migrate

HEAD = "apiVersion: kraft-migrate/v1\nkind: AcceptedDifferences\nmetadata: {name: known}\nspec:\n  accept:\n"


def entry(sick: PartitionHealth, broker: int, expires: str) -> str:
    """An acceptance of that broker's replica."""
    return (
        f"    - rule: W-HLT-03\n      selector: {{kind: partition, name: {sick.topic}-{sick.partition}, "
        f'field: "{broker}"}}\n      reason: a dead disk\n      ticket: CHG1\n      expires: "{expires}"\n'
    )


def playbook_with(lab: Lab, lines: str) -> Path:
    """The lab's playbook, with a file of acceptances."""
    text = lab.playbook_path.read_text()
    assert text.count("- name: hybrid") == 1
    accepted = lab.playbook_path.with_name("accepted.yaml")
    accepted.write_text(HEAD + lines)
    found = lab.playbook_path.with_name("accepting.yaml")
    found.write_text(text.replace("- name: hybrid", "- name: hybrid\n      diff: {accept: accepted.yaml}"))
    for file in (accepted, found):
        file.chmod(0o600)
    return found


def seen(lab: Lab, playbook: Path) -> World:
    """As a health sample before a restart sees it, and files besides."""
    observer = ClusterObserver(Sources(lab.inventory, load_playbook(playbook), None))
    try:
        needs = (Need.LIVE, Need.ZOOKEEPER, Need.KRAFT, Need.SERVICES, Need.CONFIGS)
        return observer.observe(frozenset(needs), {})
    finally:
        observer.close()


def sick_partitions(world: World) -> list[PartitionHealth]:
    """What some broker calls not whole."""
    assert isinstance(world.live, LiveView)
    answers = [answer for answer in world.live.metadata.values() if isinstance(answer, MetadataAnswer)]
    return list(dict.fromkeys(one for answer in answers for one in answer.unhealthy))


def settled(lab: Lab, broker: int) -> list[PartitionHealth]:
    """The same, once all ISRs have lost that broker alone, and no look sees anything else."""
    before: list[PartitionHealth] = []
    same, deadline = 0, time.monotonic() + 120
    while same < 3:
        now = sick_partitions(seen(lab, lab.playbook_path))
        out = now and all(one.leader < 0 or broker in set(one.replicas) - set(one.isr) for one in now)
        same, before = same + 1 if out and set(now) == set(before) else 0, now
        assert time.monotonic() < deadline, before
    return before


def named_replicas_are_accepted_and_the_disk_is_not(lab: Lab, broker: int) -> None:
    """By gates on a real look and by `assess`: with all of them named, with one left out, expired, on the last one."""
    sick = settled(lab, broker)
    shared = [one for one in sick if one.leader >= 0]
    assert shared, sick
    tomorrow = (datetime.now(UTC) + timedelta(days=2)).date().isoformat()
    every = [entry(one, broker, tomorrow) for one in shared]
    world = seen(lab, playbook_with(lab, "".join(every)))
    lost = [one for one in sick if one.leader < 0]  # of one replica, on the dead disk: never excused
    assert isinstance(gates.replicas_full(world), NotYet if lost else Ready)
    assert isinstance(gates.replicas_full(without(world, lost)), Ready)
    codes = assessed(lab, playbook_with(lab, "".join(every)))
    assert {"W-HLT-05", "B-DIR-17", "B-HLT-07"} <= codes
    alone = next(one.leader for one in shared if one.isr == (one.leader,))  # of two replicas one is left
    assert isinstance(refused := gates.stop_is_accepted(world, alone), Refused)
    assert "the only replica" in refused.reason
    assert ("W-HLT-03" in codes) is bool(lost)
    for lines in ("".join(every[1:]), "".join([*every[1:], entry(shared[0], broker, "2026-01-01")])):
        assert isinstance(gates.replicas_full(without(seen(lab, playbook_with(lab, lines)), lost)), NotYet)


def without(world: World, lost: list[PartitionHealth]) -> World:
    """As if these partitions were not there."""
    assert isinstance(world.live, LiveView)
    left = {
        node: replace(answer, unhealthy=tuple(one for one in answer.unhealthy if one not in lost))
        if isinstance(answer, MetadataAnswer)
        else answer
        for node, answer in world.live.metadata.items()
    }
    return replace(world, live=replace(world.live, metadata=left))


def assessed(lab: Lab, playbook: Path) -> set[str]:
    """The codes of `assess`, with those that stand behind another finding as their cause."""
    ended = kraft_migrate("assess", str(playbook), "-o", "json")
    findings = json.loads(ended.stdout)["findings"]
    return {one.split()[0] for finding in findings for one in (finding["code"], *finding["behind"])}
