"""Folders planted under brokers in migration mode: a KRaft controller's full request does what was foretold.

Such a request goes out when the copy is done, and whenever another controller becomes the active one: here it is
killed.  `long`; that a KRaft broker's start does what was foretold is in `tests/observe/test_foretold_strays.py`.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from migrate.errors import MigrateError
from migrate.kafka.controller import ActiveController
from migrate.kraft.fetch import MetadataReader
from migrate.lab.cluster import Lab
from migrate.lab.ready import brokers_agree
from migrate.lab.topology import Shape
from migrate.model.ids import NodeId, TopicId
from migrate.model.loader import Fate, Foretold, Loading, foretell
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.views import KraftView
from tests.lab import faults
from tests.lab.sick_broker import STOP, SickBroker
from tests.lab.test_disk_failures import at_mode
from tests.testing.assigned import assigned_to
from tests.testing.kafka_loader import UNIQUE, Planted, became, metadata_of
from tests.testing.this_host import disks_here

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]

OTHER: Final = str(TopicId.from_bytes(bytes(range(16))))  # no topic's
REPLICA, WITHOUT_ID = 0, 1  # brokers: one with every case, one with a folder that ends the request
THROWN: Final = "does not have a topic ID"


def metadata(lab: Lab) -> KraftView:
    """The controllers'."""
    with MetadataReader(lab.inventory, Digester()) as reader:
        return reader.view()


def directories(lab: Lab, broker: int) -> list[Path]:
    """Its log directories."""
    return [Path(path) for path in lab.topology.brokers[broker].log_dirs]


def foretold(lab: Lab, broker: int, view: KraftView) -> Foretold:
    """By the readers and the rule that the product uses."""
    disks = disks_here().look(NodeId(broker), [str(path) for path in directories(lab, broker)], None)
    assert not isinstance(disks, Unknown)
    return foretell(disks, assigned_to(broker, view.partitions), Loading.FULL_REQUEST)


def replicas_in(paths: list[Path], view: KraftView, broker: int) -> list[tuple[int, str, str]]:
    """(directory, folder, topic id) of replicas that another broker has as well."""
    found = []
    rows = view.partitions
    for index, replicas in enumerate(rows.replicas):
        folder = f"{rows.topic[index]}-{rows.partition[index]}"
        if broker in replicas and len(replicas) > 1:
            found += [(at, folder, rows.topic_id[index]) for at, path in enumerate(paths) if (path / folder).is_dir()]
    return found


def plant(paths: list[Path], view: KraftView) -> list[Planted]:
    """Each case once, under a broker that is down."""
    (at, changed, _), (home, kept, topic_id), *_ = replicas_in(paths, view, REPLICA)
    (paths[at] / changed / "partition.metadata").write_text(metadata_of(OTHER))
    topic = kept.rpartition("-")[0]
    planted = [
        Planted(0, "gone-0", metadata_of(OTHER), 0),
        Planted(1, f"{topic}-977", metadata_of(topic_id)),
        Planted(0, f"{topic}-978.{UNIQUE}-future", metadata_of(topic_id)),
        Planted(1, f"gone-1.{UNIQUE}-delete", metadata_of(OTHER)),
        Planted(0, f"{topic}-979.{UNIQUE}-stray", metadata_of(topic_id)),
    ]
    for entry in planted:
        entry.make(paths[entry.directory])
    found = [*planted, Planted(at, changed, None), Planted(home, kept, None)]
    for entry in found[-2:]:
        (paths[entry.directory] / entry.folder / entry.mark).write_bytes(b"")
    return found


def serves(lab: Lab, broker: SickBroker) -> bool:
    """Has it started, and do the controllers know?"""
    if not broker.said(f"[KafkaServer id={broker.broker}] started"):
        return False
    return not metadata(lab).brokers[NodeId(broker.broker)].fenced


def another_controller(lab: Lab, sick: SickBroker) -> None:
    """Kill the active one, and wait for the next."""
    old = leader(lab)
    faults.break_process(lab, f"controller-{old}")
    sick.until("another controller", lambda: leader(lab) not in (old, None))
    faults.repair_process(lab, f"controller-{old}")


def leader(lab: Lab) -> int | None:
    """The active controller; None while there is none."""
    try:
        return int(ActiveController(lab.inventory).quorum().leader)
    except MigrateError:
        return None


def test_a_full_request_does_with_each_folder_what_was_foretold(tmp_path: Path) -> None:
    """None missed, none extra; and a folder without topic id ends it before anything is set aside."""
    lab = Lab.create(tmp_path / "lab", Shape(directories=2))
    sick, blocked = SickBroker(lab, REPLICA), SickBroker(lab, WITHOUT_ID)
    try:
        at_mode(lab, "migration")
        view = metadata(lab)
        for broker in (sick, blocked):
            lab.supervisor.stop(broker.name, STOP)
        folders = plant(directories(lab, REPLICA), view)
        ending = [Planted(0, "none-0", None), Planted(1, "gone-0", metadata_of(OTHER))]
        for entry in ending:
            entry.make(directories(lab, WITHOUT_ID)[entry.directory])
        told, refused = foretold(lab, REPLICA, view), foretold(lab, WITHOUT_ID, view)
        fates = {entry.path: entry.fate for entry in told.fates}
        assert (told.refuses, set(fates.values())) == ("", {Fate.STRAY, Fate.DELETED, Fate.SET_ASIDE})
        assert (len(told.strays), "none-0 has no topic id" in refused.refuses) == (4, True)
        for broker in (sick, blocked):
            lab.supervisor.start(broker.name)
        for broker in (sick, blocked):  # one that does not listen yet misses the request, and gets no second one
            sick.until("it serves", partial(serves, lab, broker))
        another_controller(lab, sick)
        sick.until("every stray is set aside", lambda: not wrong(lab, folders, fates))
        sick.until("the other one threw", lambda: blocked.said(THROWN))
        print(f"foretold and seen: {fates}; {refused.refuses}", file=sys.stderr)
        assert {became(entry, directories(lab, WITHOUT_ID)) for entry in ending} == {"loaded"}
        seen = {str(path) for path in directories(lab, REPLICA) for path in path.glob("*-stray")}
        assert len(seen) == 4 + 1  # those of now, and the one that was there
        sick.until("the partitions that are left are whole", lambda: not brokers_agree(lab.topology))
    finally:
        lab.down()


def wrong(lab: Lab, folders: list[Planted], fates: dict[str, Fate]) -> list[str]:
    """Folders of which something else became."""
    paths = directories(lab, REPLICA)
    found = []
    for entry in folders:
        expected, seen = fates.get(f"{paths[entry.directory]}/{entry.folder}", "loaded"), became(entry, paths)
        if seen != expected and not (expected is Fate.DELETED and seen == "gone"):  # a minute after the start
            found.append(f"{entry.folder}: {seen}, not {expected}")
    return found
