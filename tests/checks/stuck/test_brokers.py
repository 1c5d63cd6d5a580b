"""A broker that has not registered is explained by what can be seen of it, and by nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from migrate.checks.stuck import explain
from migrate.checks.stuck.seen import level_of
from migrate.model.findings import Clues
from migrate.model.ids import DirectoryId, NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import Directory, MetaProperties, NoFile, Stopped
from migrate.model.world import World
from migrate.steps import configuration
from tests.checks.stuck.worlds_that_wait import (
    BROKER,
    CONTROLLER,
    REFUSED,
    cause,
    codes,
    due,
    file,
    only,
    silent,
    started_with,
    state,
    unregistered,
    why_unknown,
)
from tests.testing import worlds
from tests.testing.clusters import uuid
from tests.testing.worlds import with_directory, with_values

VOTERS = "3000@c3000:9090,3001@c3001:9090,3002@c3002:9090"
WRONG = VOTERS.replace("c3000:9090", "c3000:9999")  # 3000 leads


def meta(node: int, **changes: object) -> Callable[[Directory], Directory]:
    """A log directory whose meta.properties is another."""

    def bend(entry: Directory) -> Directory:
        assert isinstance(entry.meta, MetaProperties)
        return replace(entry, meta=replace(entry.meta, **changes))  # type: ignore[arg-type]

    return bend


def without_ids(world: World, node: int) -> World:
    """No log directory of that broker has a directory.id."""
    for index in range(3):
        world = with_directory(world, node, index, meta(node, directory_id=None))
    return world


def cloned(world: World) -> World:
    """A disk of broker 1 carries an id that broker 0 has registered."""
    (first, *_) = sorted(worlds.kraft(world).brokers[NodeId(0)].log_dirs)
    return with_directory(world, 1, 0, meta(1, directory_id=first))


MISSING = unregistered(1)
FAULTS: list[tuple[str, World, str]] = [
    ("S-STUCK-31", state(MISSING, 1, Stopped(1)), "does not run (its process on "),
    ("S-STUCK-32", started_with(MISSING, 1, "f" * 64), "started with another file"),
    ("S-STUCK-32", without_ids(started_with(MISSING, 1, None), 1), "was not started with the flag"),
    (
        "S-STUCK-33",
        with_values(MISSING, 1, controller__quorum__voters=WRONG),
        "its file gives the active controller 3000 as c3000:9999, and it listens on c3000:9090",
    ),
    ("S-STUCK-33", with_values(MISSING, 1, controller__quorum__voters=None), "controller.quorum.voters is missing"),
    (
        "S-STUCK-33",
        with_values(MISSING, 1, controller__quorum__voters="3001@c3001:9090"),
        "controller 3000 is missing in controller.quorum.voters",
    ),
    ("S-STUCK-34", with_values(MISSING, 1, controller__listener__names=None), "controller.listener.names is missing"),
    (
        "S-STUCK-34",
        with_values(MISSING, 1, listener__security__protocol__map="INTERNAL:PLAINTEXT,CLIENT:PLAINTEXT,CTL:SSL"),
        "its file has SSL for CTL, the controllers use PLAINTEXT",
    ),
    ("S-STUCK-35", silent(MISSING, 3000), "the active controller 3000 does not answer at c3000:9090"),
    (
        "S-STUCK-36",
        with_values(MISSING, 1, inter__broker__protocol__version="3.6"),
        "version is 3.6 in its file (metadata.version 14), the controllers have metadata.version 21",
    ),
    (
        "S-STUCK-36",
        with_values(MISSING, 1, inter__broker__protocol__version="2.8"),
        "(metadata.version unknown), the controllers have metadata.version 21",
    ),
    (
        "S-STUCK-37",
        with_directory(MISSING, 1, 0, meta(1, cluster_id="another-cluster-in-here")),
        "its log directories belong to cluster another-cluster-in-here, the controllers to ",
    ),
    (
        "S-STUCK-38",
        with_values(MISSING, 3001, inter__broker__listener__name="REPLICATION"),
        "controller 3001 calls brokers on REPLICATION, and it listens on CLIENT, INTERNAL",
    ),
    ("S-STUCK-39", cloned(MISSING), "broker 0 has registered directory.id"),
    ("S-STUCK-41", with_values(MISSING, 1, process__roles="broker"), "its file has process.roles"),
]


@pytest.mark.parametrize(("code", "world", "text"), FAULTS, ids=[f"{code} {text[:30]}" for code, _, text in FAULTS])
def test_each_fault_is_the_cause_and_the_only_one(code: str, world: World, text: str) -> None:
    """Named with the broker, what it is waited for, who owns it and what to do."""
    found = only(world)
    assert found.code == code
    assert text in cause(found)
    assert found.nodes == (1,)
    assert found.waits_for == "broker 1 to register"
    assert "broker 1" in found.owner or "/conf/b1.properties" in found.owner
    assert found.next_step
    assert "wakes the driver" in found.by_itself or code == "S-STUCK-37"
    assert found.driver == "WAIT_FOR_BROKERS"


@pytest.mark.parametrize(("code", "world", "text"), FAULTS, ids=[f"{code} {text[:30]}" for code, _, text in FAULTS])
def test_the_same_fault_on_a_registered_broker_holds_nothing(code: str, world: World, text: str) -> None:
    """Whoever has registered is not waited for, whatever its file says now."""
    brokers = {**worlds.kraft(world).brokers, NodeId(1): worlds.kraft(due()).brokers[NodeId(1)]}
    assert codes(worlds.with_kraft(world, brokers=brokers)) == ["S-STUCK-69"]


def test_a_broker_in_order_that_is_missing_is_not_guessed_about() -> None:
    """Everything that can be seen is right: it says so, and where to look."""
    found = only(MISSING)
    assert found.code == "S-STUCK-40"
    assert "its process runs with a file of migration mode" in why_unknown(found)
    assert "super.users" in found.next_step


@pytest.mark.parametrize(
    ("world", "reason"),
    [
        (file(MISSING, 1, Unknown("permission denied")), "its file: permission denied"),
        (file(MISSING, 1, NoFile("/conf/b1.properties")), "its file /conf/b1.properties does not exist"),
        (state(MISSING, 1, Unknown("/proc cannot be read")), "its process: /proc cannot be read"),
        (replace(MISSING, disks=Unknown("no hands there")), "its disks: no hands there"),
        (replace(MISSING, services=Unknown("no supervisor")), "its process: no supervisor"),
        (replace(MISSING, configs=Unknown("not asked for")), "its file: not asked for"),
    ],
)
def test_what_cannot_be_seen_is_why_it_cannot_be_told(world: World, reason: str) -> None:
    """Unknown is never a fault, and never its absence."""
    found = only(world)
    assert found.code == "S-STUCK-40"
    assert reason in why_unknown(found)


def test_several_faults_of_one_broker_are_all_told() -> None:
    """Mending the first would only show the next."""
    world = with_values(
        state(MISSING, 1, Stopped()), 1, controller__quorum__voters=WRONG, inter__broker__protocol__version="3.8"
    )
    assert codes(world) == ["S-STUCK-31", "S-STUCK-33", "S-STUCK-36"]


def test_each_missing_broker_has_its_own_cause() -> None:
    """One is stopped, one calls a wrong port."""
    world = with_values(state(unregistered(1, 2), 2, Stopped()), 1, controller__quorum__voters=WRONG)
    assert [(entry.code, entry.nodes) for entry in explain(world)] == [("S-STUCK-31", (2,)), ("S-STUCK-33", (1,))]


def test_brokers_that_were_not_rolled_yet_are_told_together() -> None:
    """At stage controllers that is what comes next, not a fault; one that is down besides is told by itself."""
    found = only(worlds.world_at(Stage.CONTROLLERS))
    assert (found.code, found.nodes) == ("S-STUCK-30", (0, 1, 2))
    assert found.waits_for == "brokers 0, 1, 2 to register (none has registered yet)"
    assert "plan PLAYBOOK --stage migration-mode" in found.next_step
    half = only(worlds.world_at(Stage.MIGRATION_MODE))
    assert (half.waits_for, half.nodes) == ("broker 2 to register", (2,))
    down = state(worlds.world_at(Stage.CONTROLLERS), 1, Stopped())
    assert [(entry.code, entry.nodes) for entry in explain(down)] == [("S-STUCK-30", (0, 1, 2)), ("S-STUCK-31", (1,))]


def test_the_entry_of_the_active_controller_decides_over_the_voters() -> None:
    """A wrong follower is no cause, and is told where no cause is found; without a known leader every entry counts."""
    follower = with_values(MISSING, 1, controller__quorum__voters=VOTERS.replace("c3001:9090", "c3001:1"))
    found = only(follower)
    assert found.code == "S-STUCK-40"
    assert any("c3001:1" in line and "the inventory gives" in line for line in found.evidence)
    unled = worlds.with_live(follower, quorum=Unknown("no controller leads"))
    assert "S-STUCK-33" in codes(unled)
    right = worlds.with_live(MISSING, quorum=Unknown("no controller leads"))
    assert "S-STUCK-33" not in codes(right)


def test_another_name_of_the_same_controller_is_no_fault() -> None:
    """By what answers there: a controller, something else, or nobody - and nobody asked is said."""
    world = with_values(MISSING, 1, controller__quorum__voters=WRONG)
    assert codes(world, Clues({"c3000:9999": CONTROLLER})) == ["S-STUCK-40"]
    for answer, text in (
        (REFUSED, "nobody answers at c3000:9999: E-KAFKA-01 no connection"),
        (BROKER, "something else than a controller answers at c3000:9999"),
    ):
        found = only(world, Clues({"c3000:9999": answer}))
        assert found.code == "S-STUCK-33"
        assert any(text in line for line in found.evidence)
    assert any("was not asked" in line for line in only(world).evidence)


def test_what_the_disks_say_counts_only_where_the_hash_is_not_known() -> None:
    """A process that is known to have this file is only just starting, whatever its directories lack."""
    assert codes(without_ids(MISSING, 1)) == ["S-STUCK-40"]
    assert codes(started_with(MISSING, 1, None)) == ["S-STUCK-40"]
    one = with_directory(started_with(MISSING, 1, None), 1, 0, meta(1, directory_id=None))
    assert codes(one) == ["S-STUCK-40"]


def test_a_listener_is_there_if_file_or_znode_has_it() -> None:
    """The listener's name decides, not its order or its case."""
    world = with_values(MISSING, 1, listeners="internal://b1:9092", advertised__listeners=None)
    assert codes(world) == ["S-STUCK-40"]


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("3.9", 21),
        ("3.9-IV0", 21),
        (" 3.9.2 ", 21),
        ("3.7", 19),
        ("3.7-IV2", 17),
        ("3.6.1", 14),
        ("2.8", None),
        ("", None),
        ("x", None),
    ],
)
def test_a_protocol_version_is_read_as_kafka_reads_it(version: str, level: int | None) -> None:
    """Short names are the last of their line; a patch number counts for nothing."""
    assert level_of(version) == level


def test_an_unset_protocol_version_is_no_cause() -> None:
    """It is the newest of the software then, which nothing here names."""
    assert codes(with_values(MISSING, 1, inter__broker__protocol__version=None)) == ["S-STUCK-40"]


def test_the_file_that_the_first_roll_writes_has_no_fault() -> None:
    """Our own file is never called a cause."""
    known = worlds.inventory()
    for broker in known.brokers:
        raw = configuration.migration_mode(worlds.BROKER_FILE.format(id=broker.id).encode(), known)
        written = worlds.config_file(broker.id, broker.config, raw)
        world = started_with(file(unregistered(int(broker.id)), broker.id, written), broker.id, written.sha256)
        assert codes(world) == ["S-STUCK-40"]


def test_a_directory_of_its_own_is_no_clone() -> None:
    """The id is only another broker's if that one registered it."""
    world = with_directory(MISSING, 1, 0, meta(1, directory_id=DirectoryId(uuid(4711))))
    assert codes(world) == ["S-STUCK-40"]


def test_log_lines_are_more_evidence_and_change_no_answer() -> None:
    """The answer is the same with and without them."""
    clues = Clues(logs={NodeId(1): ("Connection to node 3000 could not be established",), NodeId(2): ("other",)})
    with_lines, without = only(MISSING, clues), only(MISSING)
    assert replace(with_lines, evidence=()) == replace(without, evidence=())
    assert with_lines.evidence == ("log of node 1: Connection to node 3000 could not be established",)
    leading = only(MISSING, Clues(logs={NodeId(3000): ("Still waiting",), NodeId(3001): ("a follower's",)}))
    assert leading.evidence == ("log of node 3000: Still waiting",)
    assert only(MISSING, Clues(logs={NodeId(1): Unknown("no log")})) == without
