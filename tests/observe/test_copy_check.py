"""What a real cluster's ZooKeeper held before the copy, against the metadata that its copy made."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from migrate.errors import HostUnreachable
from migrate.kraft.image import Image
from migrate.model.copied import CopyCheck, CopyEnd, KeptTree, NoLook
from migrate.model.difference import DifferenceClass
from migrate.model.ids import NodeId
from migrate.model.inventory import AcceptedDifference
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.stage import ZkMigrationState
from migrate.model.views import ControllerZnode, KraftView, MigrationZnode, ZookeeperView
from migrate.observe.copy_check import BeforeCopy, CopyQuestion, check_copy, driver_counts
from migrate.zookeeper.backup import FORMAT, BackupTree
from migrate.zookeeper.layout import Znode
from migrate.zookeeper.read import view_of
from tests.kraft.logs import STAGES, captured_log
from tests.testing.golden_trees import FOLDER, golden

DIGESTER = Digester(b"k" * 32)
SAID = (
    "[2026-11-23 10:00:00,000] INFO [KRaftMigrationDriver id=3000] Completed migration of metadata from ZooKeeper to "
    "KRaft. {total} records were generated in 833 ms across 2 batches. The average time spent waiting on a batch was "
    "99.00 ms. The record types were {{{types}}}. The current metadata offset is now 260 with an epoch of 1. Saw 3 "
    "brokers in the migrated metadata [0, 1, 2]. (org.apache.kafka.metadata.migration.KRaftMigrationDriver)"
)


@cache
def image() -> tuple[CopyEnd, KraftView]:
    """The metadata at the real copy's end, and as it was in hybrid."""
    reader = Image(DIGESTER, keep_copy=True)
    reader.apply_batches(captured_log()[: STAGES["hybrid-after-copy"][0]], below=None)
    assert reader.copy_end is not None
    return reader.copy_end, reader.view("", reader.offset + 1, "the captured log")


@cache
def before() -> ZookeeperView:
    """ZooKeeper while the controllers waited for the brokers."""
    return view_of(golden("controllers-up"), "zk", DIGESTER)


def after() -> ZookeeperView:
    """ZooKeeper behind the copy."""
    return view_of(golden("hybrid-after-copy"), "zk", DIGESTER)


@dataclass
class Log:
    """A controller's log; an error where it cannot be read."""

    lines: Sequence[str] | Exception = ()
    asked: list[int] = field(default_factory=list)

    def last_words(self, node: NodeId, _lines: int) -> Sequence[str]:
        """Its end."""
        self.asked.append(int(node))
        if isinstance(self.lines, Exception):
            raise self.lines
        return self.lines


def said(types: Mapping[str, int]) -> str:
    """The driver's line with these counts."""
    return SAID.format(total=sum(types.values()), types=", ".join(f"{name}={n}" for name, n in types.items()))


def question(seen: ZookeeperView | None = None, **changes: Any) -> CopyQuestion:
    """With the look of this process, the copy's end, and the controller's own words."""
    end, _ = image()
    log: Any = Log([said(end.records)])
    found = CopyQuestion(
        lambda: None, seen, end, lambda: golden("hybrid-after-copy"), DIGESTER, lambda: None, log, accepted=()
    )
    return replace(found, **changes)


def checked(asked: CopyQuestion, kraft: KraftView | None = None) -> CopyCheck:
    """The answer, which must be one."""
    found = check_copy(asked, after(), kraft or image()[1])
    assert isinstance(found, CopyCheck), found
    return found


def with_row(kind: str, key: str, name: str, value: str) -> ZookeeperView:
    """The look with one entity more than the copy has."""
    rows = before().entities
    more = type(rows)([*rows.kind], [*rows.key], [*rows.name], [*rows.value], [*rows.where])
    more.add(kind, key, name, value)
    return replace(before(), entities=more)


def test_a_real_copy_lost_nothing_of_what_zookeeper_held() -> None:
    """Every kind, to the last key; the controller counted the same records."""
    found = checked(question(before()))
    assert found.lost == ()
    assert found.known == ()
    assert found.miscounted == ()
    assert found.at_end
    assert found.counts["partition"] == (212, 212)
    assert found.counts["topic"] == (24, 24)
    assert {"topic-config", "broker-config", "client-quota", "scram", "acl"} <= set(found.counts)
    assert all(was == now for was, now in found.counts.values())
    assert not isinstance(found.driver, Unknown)
    assert sum(found.driver.values()) == sum(found.records.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "row",
    [
        ("acl", "Topic|LITERAL|gone|User:x|*|READ|ALLOW", "present", "true"),
        ("client-quota", "client-id=gone", "producer_byte_rate", "1000.0"),
        ("topic-config", "compacted_topic", "segment.bytes", "1"),
    ],
)
def test_what_the_copy_lacks_is_lost_by_name_and_may_be_accepted_by_name(row: tuple[str, str, str, str]) -> None:
    """A ticket of another row excuses nothing."""
    kind, key, name, _ = row
    asked = question(with_row(*row))
    (lost,) = checked(asked).lost
    assert (lost.kind, lost.key, lost.field) == (kind, key, name)
    accepted = AcceptedDifference("ONLY_ZK", kind, key, name, "deleted in the night", "T-1", "2999-01-01")
    found = checked(replace(asked, accepted=(accepted,)))
    assert found.lost == ()
    assert [(entry.cls, entry.rule) for entry in found.known] == [(DifferenceClass.ACCEPTED, "T-1")]
    assert checked(replace(asked, accepted=(replace(accepted, name="other"),))).lost
    assert checked(replace(asked, accepted=(replace(accepted, expires="2020-01-01"),))).lost


def test_what_was_made_again_in_hybrid_is_lost_no_more() -> None:
    """The copy's end stays what it was; the metadata of now has it."""
    row = ("client-quota", "client-id=gone", "producer_byte_rate", "1000.0")
    kraft = replace(image()[1], entities=with_row(*row).entities)
    assert checked(question(with_row(*row)), kraft).lost == ()


def test_an_orphaned_configuration_is_known_by_its_finding() -> None:
    """Told before, and not lost."""
    found = checked(question(with_row("topic-config", "ghost", "retention.ms", "1")))
    assert found.lost == ()
    assert [(entry.rule, entry.key) for entry in found.known] == [("W-ZKN-21", "ghost")]


def test_where_the_log_begins_behind_the_copy_the_state_of_now_is_asked() -> None:
    """And said to be that."""
    found = checked(question(before(), end=None))
    assert (found.at_end, found.records, found.lost) == (False, {}, ())


# -- the kept backup -------------------------------------------------------------------------------------------------
KEPT = KeptTree(
    str(FOLDER / "controllers-up.jsonl.gz"),
    hashlib.sha256((FOLDER / "controllers-up.jsonl.gz").read_bytes()).hexdigest(),
    "4f2a",
)


def live(czxid: int | None = None) -> BackupTree:
    """ZooKeeper now; /migration made by that transaction."""
    tree = golden("hybrid-after-copy")
    made = golden("controllers-up").znodes["/migration"]
    assert isinstance(made, Znode)
    return BackupTree("zk", {**tree.znodes, "/migration": made._replace(czxid=made.czxid if czxid is None else czxid)})


@pytest.mark.slow
def test_a_killed_run_goes_on_with_the_backup_that_it_kept() -> None:
    """The digests of secrets are created again, with this process's key."""
    found = checked(question(kept=lambda: KEPT, live=live))
    assert found.lost == ()
    assert found.source.endswith("of run 4f2a")
    assert found.counts["scram"][0] > 0


@pytest.mark.slow
def test_the_newer_look_is_taken() -> None:
    """By transaction."""
    asked = question(replace(before(), zxid_first=10**9), kept=lambda: KEPT, live=live)
    assert checked(asked).zxid == 10**9
    assert checked(replace(asked, seen=replace(before(), zxid_first=1))).source.endswith("of run 4f2a")


def test_a_backup_of_an_earlier_attempt_is_none() -> None:
    """/migration was created anew since: a rollback deletes it."""
    found = check_copy(question(kept=lambda: KEPT, live=lambda: live(1)), after(), image()[1])
    assert isinstance(found, NoLook)


def test_without_a_look_nothing_is_held_against_the_copy() -> None:
    """It is said, and no loss is claimed."""
    assert isinstance(check_copy(question(), after(), image()[1]), NoLook)


def test_a_backup_that_was_changed_or_is_gone_is_unknown(tmp_path: Path) -> None:
    """Never nothing lost."""
    lines = [{"format": FORMAT, "connect": "zk"}, {"end": True, "znodes": 0}]
    other = tmp_path / "other.jsonl.gz"
    other.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    for kept in (replace(KEPT, path=str(other)), replace(KEPT, path=str(tmp_path / "gone")), replace(KEPT, sha256="0")):
        found = check_copy(question(kept=lambda kept=kept: kept, live=live), after(), image()[1])
        assert isinstance(found, Unknown)
        assert "from before the copy cannot be read" in found.reason


def test_what_another_run_concluded_counts_where_the_log_reaches_back_no_more() -> None:
    """A snapshot has taken the copy's records away; the journal has what was found."""
    known = {"W-ZKN-21": [["topic-config", "ghost", "retention.ms"]]}
    event = {"zxid": 7, "offset": 40, "counts": {"topic": [24, 24]}, "known": known}
    asked = question(kept=lambda: replace(KEPT, concluded=event), live=live, end=None)
    found = checked(asked)
    assert (found.zxid, found.offset, found.lost, found.counts) == (7, 40, (), {"topic": (24, 24)})
    assert isinstance(found.driver, Unknown)
    assert [(row.rule, row.kind, row.key, row.field) for row in found.known] == [
        ("W-ZKN-21", "topic-config", "ghost", "retention.ms")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("state", [ZkMigrationState.PRE_MIGRATION, ZkMigrationState.POST_MIGRATION])
def test_only_a_copied_cluster_is_asked(state: ZkMigrationState) -> None:
    """Before it there is nothing to hold."""
    kraft = replace(image()[1], migration_state=state)
    assert isinstance(check_copy(question(before()), after(), kraft), Unknown)
    uncommitted = replace(image()[1], high_watermark=Unknown("tail"))
    assert isinstance(check_copy(question(before()), after(), uncommitted), Unknown)
    assert isinstance(check_copy(question(before()), Unknown("x"), image()[1]), Unknown)
    assert isinstance(check_copy(question(before()), after(), Unknown("x")), Unknown)


# -- the looks of a process ------------------------------------------------------------------------------------------
def test_the_last_look_is_one_behind_which_no_controller_of_kraft_was_seen() -> None:
    """A look may begin before the takeover and end behind it: only the next one says that it did not."""
    views = [replace(before(), zxid_first=number) for number in range(5)]
    kept = BeforeCopy()
    kept.seen(replace(views[0], migration=after().migration, controller=ControllerZnode(0, -1, True, 0)))
    assert kept.view is None
    kept.seen(views[1])
    kept.seen(views[2])
    assert kept.view == views[1]
    kept.seen(after())
    kept.seen(views[3])
    kept.seen(views[4])
    assert kept.view == views[1]


# -- the controller's own words --------------------------------------------------------------------------------------
def test_the_last_count_of_the_log_is_read() -> None:
    """As Kafka 3.9.2 writes it, and as Apache's documentation spells it."""
    lines = [said({"TOPIC_RECORD": 1}), "noise", said({"TOPIC_RECORD": 23, "PARTITION_RECORD": 137}), "noise"]
    assert driver_counts(lines) == {"TOPIC_RECORD": 23, "PARTITION_RECORD": 137}
    assert driver_counts([line.replace("ZooKeeper", "Zookeeper") for line in lines]) is not None
    assert driver_counts(["noise"]) is None


def test_another_count_than_the_logs_is_a_contradiction() -> None:
    """The log of that controller that copied is asked."""
    end, _ = image()
    more: Any = Log([said({**end.records, "TOPIC_RECORD": 23})])
    assert checked(question(before(), services=more)).miscounted == ()  # other records stand in the transaction, too
    log: Any = Log([said({**end.records, "TOPIC_RECORD": 25})])
    found = checked(question(before(), services=log))
    assert found.miscounted == (f"TOPIC_RECORD: the controller counted 25, the log has {end.records['TOPIC_RECORD']}",)
    migration = after().migration
    assert isinstance(migration, MigrationZnode)
    assert log.asked == [migration.controller_id]


@pytest.mark.parametrize("lines", [[], ["noise"], HostUnreachable("no route", where="c1"), OSError("gone")])
def test_a_log_without_the_count_is_not_checked(lines: Any) -> None:
    """Said so; nothing is lost by it."""
    services: Any = Log(lines)
    found = checked(question(before(), services=services))
    assert isinstance(found.driver, Unknown)
    assert found.miscounted == ()
