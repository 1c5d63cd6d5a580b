"""What to do about a broken directory: the old disk or a new one, and the right file at that stage."""

from __future__ import annotations

import errno
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.hosts.collected import no_room, not_mounted
from migrate.hosts.meta_properties import decode, decode_folder
from migrate.model.columns import ReplicaColumns
from migrate.model.config_keys import QuorumKind
from migrate.model.disk_remedies import DiskTrouble, Remedy, cluster_of, disk_troubles, remedy_of, told_otherwise
from migrate.model.disk_trouble import NO_REPLICA
from migrate.model.facts import pure_ledger
from migrate.model.ids import LOST, MIGRATING, UNASSIGNED, DirectoryId, NodeId
from migrate.model.ledger import Ledger, LedgerRow, ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import (
    NOT_THERE,
    BrokerDisks,
    Directory,
    LogDirAnswer,
    MetaBroken,
    MetaMissing,
    MetaProperties,
    Stopped,
)
from migrate.model.world import World
from tests.model.test_rescue import DEAD, healthy, killed, named
from tests.steps.looks import registration
from tests.testing import worlds
from tests.testing.clusters import CLUSTER_ID, directory_id, uuid
from tests.testing.sick_disks import MODES, PATH, emptied, formatted, gone, replaced, torn, with_process

Bend = Callable[[Directory], Directory]


def told(world: World, bend: Bend) -> DiskTrouble:
    """Of broker 1's second directory, bent."""
    (one,) = disk_troubles(worlds.with_directory(world, 1, 1, bend))
    return one


def disks_of(world: World) -> BrokerDisks:
    """Broker 1's."""
    assert not isinstance(world.disks, Unknown)
    found = world.disks[NodeId(1)]
    assert not isinstance(found, Unknown)
    return found


def moved(trouble: DiskTrouble, to: Path) -> str:
    """The command for another folder."""
    return trouble.command.replace(PATH, str(to))


@pytest.mark.parametrize("bend", [gone, emptied, torn, formatted, replaced])
@pytest.mark.parametrize("stage", MODES)
def test_the_command_stands_in_the_words_as_it_is(stage: Stage, bend: Bend) -> None:
    """What is printed for a person is what JSON has; and it is one that a shell understands."""
    for one in disk_troubles(worlds.with_directory(worlds.world_at(stage), 1, 1, bend)):
        said = " ".join(one.do)
        assert (f"`{one.command}`" in said) is bool(one.command)
        assert "broker 1" in said
        if one.command:
            assert shlex.split(one.command)


def test_every_broken_disk_has_a_way_with_the_old_and_one_with_a_new_disk() -> None:
    """In this order: with the old one nothing is lost."""
    for stage in MODES:
        for bend in (gone, emptied):
            one = told(worlds.world_at(stage), bend)
            assert "the old disk" in one.do[0]
            assert "new disk" in one.do[1]
            assert "those without another replica are lost" in one.do[1]


def test_kafka_storage_format_is_named_behind_the_point_of_no_return_alone() -> None:
    """Before it, a version 1 file would bar ZooKeeper mode; an id may begin with a dash, so it stands behind =."""
    found = {stage: told(worlds.world_at(stage), gone) for stage in MODES}
    format_it = f"kafka-storage format --cluster-id={CLUSTER_ID} --ignore-formatted -c /conf/b1.properties"
    assert found[Stage.CLEANUP].command == format_it
    assert "KAFKA-20762" not in found[Stage.CLEANUP].do[1]
    for stage in (Stage.ASSESS, Stage.HYBRID):
        assert found[stage].command == ""
        assert "leave /data/b1/d1 empty" in found[stage].do[1]
    for stage in (Stage.ASSESS, Stage.HYBRID, Stage.SOAK):
        assert "do not run kafka-storage format" in found[stage].do[1]
        assert "KAFKA-20762" in found[stage].do[1]


def test_before_finalize_a_new_disk_gets_a_version_0_file(tmp_path: Path) -> None:
    """The command, run by a shell, writes what our reader takes for that broker's and Kafka adds an id to."""
    one = told(worlds.world_at(Stage.SOAK), gone)
    subprocess.run(["sh", "-c", moved(one, tmp_path)], check=True)
    assert decode((tmp_path / "meta.properties").read_bytes()) == MetaProperties(0, CLUSTER_ID, 1, None)


def test_a_torn_file_is_written_anew_with_the_id_that_only_it_can_have_had(tmp_path: Path) -> None:
    """The replicas are there; the metadata knows their directory by the id, which one registration proves."""
    world = worlds.world_at(Stage.SOAK)
    disks = disks_of(world)
    one = told(world, torn)
    disk = tmp_path / "d1"
    disk.mkdir()
    (disk / "meta.properties").write_text("")
    subprocess.run(["sh", "-c", moved(one, disk)], check=True)
    meta = decode((disk / "meta.properties").read_bytes())
    assert isinstance(meta, MetaProperties)
    assert (meta.version, meta.node_id, meta.directory_id) == (0, 1, disks.directories[1].id)
    assert sorted(path.name for path in disk.iterdir()) == ["meta.properties", "meta.properties.broken"]
    assert [path.name for path in tmp_path.iterdir()] == ["d1"]  # the broker's user need not be able to write there


def test_a_folder_in_the_place_of_the_file_goes_out_of_the_log_directory(tmp_path: Path) -> None:
    """Kafka starts on no folder that it cannot name."""
    one = told(
        worlds.world_at(Stage.SOAK), lambda entry: replace(entry, meta=MetaBroken("cannot be read: not a regular file"))
    )
    (tmp_path / "d1" / "meta.properties").mkdir(parents=True)
    subprocess.run(["sh", "-c", moved(one, tmp_path / "d1")], check=True)
    assert [path.name for path in (tmp_path / "d1").iterdir()] == ["meta.properties"]
    assert (tmp_path / "d1.meta.properties.broken").is_dir()


def test_the_metadata_proves_the_id_of_each_of_two_torn_files() -> None:
    """It names one directory for all replicas that lie there, also where the broker was started without it since."""
    world = worlds.world_at(Stage.SOAK)
    disks = disks_of(world)
    world = worlds.with_directory(worlds.with_directory(world, 1, 2, torn), 1, 1, torn)
    rest = registration(1, log_dirs=frozenset({disks.directories[0].id}))(world)
    for bent in (world, rest):
        assert [f"directory.id={entry.id}" in one.command for entry, one in _pairs(bent, disks)] == [True, True]


def _pairs(world: World, disks: BrokerDisks) -> list[tuple[Directory, DiskTrouble]]:
    """The two torn directories as they were, and what is said of them."""
    return list(zip(disks.directories[1:], disk_troubles(world), strict=True))


def test_an_id_that_is_not_proven_is_left_to_the_broker() -> None:
    """Before the metadata names directories, with two torn files: which id was whose is not guessed."""
    world = worlds.with_directory(worlds.world_at(Stage.HYBRID), 1, 2, torn)
    for one in disk_troubles(worlds.with_directory(world, 1, 1, torn)):
        assert "directory.id" not in one.command
    before = told(worlds.world_at(Stage.ASSESS), torn)
    assert "directory.id" not in before.command
    empty = worlds.with_directory(
        worlds.world_at(Stage.SOAK), 1, 1, lambda entry: replace(entry, replicas=ReplicaColumns())
    )
    (one,) = disk_troubles(registration(1, log_dirs=frozenset())(worlds.with_directory(empty, 1, 1, torn)))
    assert "directory.id" not in one.command
    assert "`directories rescue`" in one.do[0]


def test_in_migration_mode_the_registration_proves_the_id() -> None:
    """The only one of the broker's that lies on none of its disks."""
    world = worlds.world_at(Stage.HYBRID)
    disks = disks_of(world)
    assert f"directory.id={disks.directories[1].id}" in told(world, torn).command


def test_an_id_that_another_disk_has_is_not_given_twice() -> None:
    """A broker refuses to start on two directories of one id."""
    world = worlds.world_at(Stage.SOAK)
    disks = disks_of(world)
    its = disks.directories[1]
    twice = worlds.with_directory(world, 1, 2, lambda entry: replace(entry, meta=its.meta))
    assert "directory.id" not in told(twice, torn).command


@pytest.mark.parametrize("stage", [Stage.ASSESS, Stage.HYBRID])
def test_a_version_1_file_is_written_again_as_version_0(stage: Stage, tmp_path: Path) -> None:
    """With broker.id instead of node.id, and the same ids."""

    def identified(entry: Directory) -> Directory:
        assert isinstance(entry.meta, MetaProperties)
        return replace(entry, meta=replace(entry.meta, version=1, directory_id=entry.id or DirectoryId(uuid(98))))

    world = worlds.world_at(stage)
    one = told(world, identified)
    subprocess.run(["sh", "-c", moved(one, tmp_path)], check=True)
    meta = decode((tmp_path / "meta.properties").read_bytes())
    assert isinstance(meta, MetaProperties)
    assert (meta.version, meta.cluster_id, meta.node_id) == (0, CLUSTER_ID, 1)
    assert meta.directory_id is not None
    assert "then broker 1 runs, and reads it at its next start only" in one.do[0]
    assert "then start broker 1" in told(with_process(world, 1, Stopped(1)), identified).do[0]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "make room on it"),
        (errno.EROFS, "why it became read-only"),
        (errno.EROFS, "stop broker 1, then unmount it, check it (fsck, xfs_repair) and mount it again"),
        (errno.EACCES, "is it mounted?"),
    ],
)
def test_a_disk_that_is_full_or_read_only_is_not_to_be_pulled(code: int, words: str) -> None:
    """It is the same disk afterwards."""

    def bent(entry: Directory) -> Directory:
        return replace(entry, problem=f"cannot be written: {os.strerror(code)}")

    one = told(worlds.world_at(Stage.SOAK), bent)
    assert words in one.do[0]
    assert "with a new disk" in one.do[1]


def test_a_file_system_that_the_broker_has_given_up_is_unmounted_under_it() -> None:
    """It has closed its files there; where it has not, an unmount is refused as busy."""

    def bent(entry: Directory) -> Directory:
        return replace(entry, problem=f"cannot be written: {os.strerror(errno.EROFS)}")

    world = worlds.world_at(Stage.SOAK)
    said = (LogDirAnswer(PATH, 56, 0, ()),)
    offline = worlds.with_live(world, log_dirs={**worlds.live(world).log_dirs, NodeId(1): said})
    assert "after an I/O error unmount it" in told(offline, bent).do[0]
    assert "restart broker 1" in told(offline, bent).do[0]
    assert "after an I/O error unmount it" in told(with_process(world, 1, Stopped(1)), bent).do[0]


def test_a_process_is_started_or_restarted_by_what_it_does() -> None:
    """Unseen, both are said."""
    world = worlds.world_at(Stage.SOAK)
    assert "restart broker 1" in told(world, gone).do[0]
    down = told(with_process(world, 1, Stopped(1)), gone).do[0]
    assert "start broker 1" in down
    assert "restart" not in down
    assert "or restart it where it runs" in told(replace(world, services=Unknown("no")), gone).do[0]


def test_a_disk_that_is_whole_again_needs_its_broker_restarted() -> None:
    """And nothing else."""
    world = worlds.world_at(Stage.SOAK)
    said = (LogDirAnswer(PATH, 56, 0, ()),)
    bent = worlds.with_live(world, log_dirs={**worlds.live(world).log_dirs, NodeId(1): said})
    (one,) = disk_troubles(bent)
    assert one.do == ("restart broker 1",)
    assert one.command == ""


def test_another_disk_may_stay_or_go() -> None:
    """The operator knows which of the two is meant."""
    one = told(worlds.world_at(Stage.SOAK), replaced)
    assert one.do[0] == (
        "Stop broker 1 first, then put the old disk back and mount it, and start broker 1: it continues where it was"
    )
    assert one.do[1].startswith("with the new one, restart broker 1")


def test_a_running_broker_is_stopped_before_a_disk_comes_back_under_it() -> None:
    """It would leave a mark of a clean stop on a disk that it did not write."""
    world = worlds.world_at(Stage.SOAK)
    assert "Stop broker 1 first" in told(world, emptied).do[0]
    assert "restart" not in told(world, emptied).do[0]
    assert "Stop" not in told(with_process(world, 1, Stopped(0)), emptied).do[0]
    unseen = told(replace(world, services=Unknown("no")), emptied).do[0]
    assert "start broker 1, or restart it where it runs" in unseen
    assert "restart broker 1" in told(world, gone).do[0]  # offline: it writes nothing there


def test_the_cluster_id_is_taken_from_whoever_knows_it() -> None:
    """The metadata, ZooKeeper, the inventory; and nobody's is not invented."""
    world = worlds.world_at(Stage.SOAK)
    assert cluster_of(world) == CLUSTER_ID
    blind = replace(world, kraft=Unknown("no"), zookeeper=Unknown("no"))
    assert cluster_of(blind) == CLUSTER_ID
    nobody = replace(blind, inventory=replace(blind.inventory, expect_cluster_id=None))
    assert cluster_of(nobody) == "CLUSTER_ID"


def test_a_path_with_a_blank_is_quoted() -> None:
    """In each command."""

    def blank(entry: Directory) -> Directory:
        return replace(entry, path="/data/b 1", meta=MetaBroken("torn"))

    one = told(worlds.world_at(Stage.SOAK), blank)
    assert "'/data/b 1/meta.properties'" in one.command


def made_anew(world: World) -> World:
    """The replicas of broker 1's second directory lie in the third as well, and the broker registered without it."""
    disks = disks_of(world)
    rows = disks.directories[1].replicas
    twice = worlds.with_directory(world, 1, 2, lambda entry: replace(entry, replicas=rows))
    rest = frozenset(entry.id for entry in (disks.directories[0], disks.directories[2]))
    return registration(1, log_dirs=rest)(with_process(twice, 1, Stopped(1)))


def test_an_old_disk_whose_replicas_were_made_anew_keeps_its_copies(tmp_path: Path) -> None:
    """A broker in migration mode that was started without it has them twice, and starts no more; the shell sorts it."""
    (one,) = disk_troubles(made_anew(worlds.world_at(Stage.HYBRID)))
    assert one.path == PATH
    assert one.what == "its replicas are also in /data/b1/d2, and the broker did not register it"
    assert one.do[0].startswith("is it the disk that failed, and the others' copies are of since then?")
    assert one.do[1].startswith("is it an older disk? Take it out again")
    assert "Duplicate log directories" in one.effect
    old, other = tmp_path / "d1", tmp_path / "d2"
    for folder in (old / "t-0", old / "t-1", old / "u-10", other / "t-1", other / "u-10", other / "own-3"):
        folder.mkdir(parents=True)
        (folder / "0.log").write_text(str(folder))
    (old / "meta.properties").touch()
    command = one.command.replace("/data/b1", str(tmp_path))
    subprocess.run(["sh", "-c", command], check=True)
    left = {found.topic: found.kind for path in other.iterdir() if (found := decode_folder(path.name))}
    assert left == {"own": "current", "t": "stray", "u": "stray"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d1", "d2"]  # beside them may be another file system
    assert sorted(path.name for path in old.iterdir()) == ["meta.properties", "t-0", "t-1", "u-10"]
    assert (old / "t-1" / "0.log").read_text() == str(old / "t-1")


def test_a_torn_file_over_replicas_that_were_made_anew_needs_both() -> None:
    """The file written and the other copies aside, while the broker is down."""
    world = made_anew(worlds.world_at(Stage.HYBRID))
    (one,) = disk_troubles(worlds.with_directory(world, 1, 1, torn))
    assert one.do[0].startswith("Stop broker 1 first: ")
    assert 'printf "version=0' in one.command
    assert "-stray" in one.command
    assert subprocess.run(["sh", "-n", "-c", one.command], check=False).returncode == 0


def test_a_broker_in_migration_mode_that_runs_without_a_disk_is_looked_at_again_when_it_is_back() -> None:
    """Its replicas may have been created again, which is seen when the disk is."""
    one = told(worlds.world_at(Stage.HYBRID), gone)
    assert "look at `status` again before you start the broker" in one.do[0]
    assert "start broker" not in one.do[0].lower().replace("start the broker", "")
    down = told(with_process(worlds.world_at(Stage.HYBRID), 1, Stopped(1)), gone)
    assert "start broker 1" in down.do[0]


def test_a_kraft_broker_that_made_replicas_anew_is_looked_at_again_when_its_disk_is_back() -> None:
    """A start with both copies would be refused; the second look prints the command that sorts them."""
    world = worlds.world_at(Stage.SOAK)
    rows = disks_of(world).directories[1].replicas
    twice = worlds.with_directory(world, 1, 2, lambda entry: replace(entry, replicas=rows))
    one = told(twice, gone)
    assert one.do[0].startswith("Stop broker 1 first, then put the old disk back, mount it, and look at `status` again")
    assert "on other disks as well by now" in one.do[0]
    down = told(with_process(twice, 1, Stopped(0)), gone)
    assert down.do[0].startswith("Put the old disk back, mount it, and look at `status` again")


# -- on hosts whose brokers are units ------------------------------------------------------------------------------
def on_a_host(world: World) -> World:
    """Broker 1 is a unit of a host, Kafka where the inventory says."""
    brokers = tuple(
        replace(node, host="h1", unit="kafka@1.service") if node.id == 1 else node for node in world.inventory.brokers
    )
    options = {**world.inventory.executor_options, "kafka_home": "/opt/kafka"}
    return replace(world, inventory=replace(world.inventory, brokers=brokers, executor_options=options))


@pytest.mark.parametrize("bend", [gone, emptied, torn, replaced])
@pytest.mark.parametrize("stage", MODES)
def test_on_a_host_each_act_is_a_command_that_a_login_user_types(stage: Stage, bend: Bend) -> None:
    """What writes runs as the unit's user, whatever root would leave there; the process is worked by its unit."""
    world = on_a_host(worlds.world_at(stage))
    for one in disk_troubles(worlds.with_directory(world, 1, 1, bend)):
        said = " ".join(one.do)
        assert re.search(r"(re)?start broker 1 \(on h1: `sudo systemctl (re)?start kafka@1.service`\)", said)
        if one.command:
            words = shlex.split(one.command.replace("$(", "").replace(")", ""))
            assert words[:3] == [
                "sudo",
                "-u",
                "systemctl show -p User --value -- kafka@1.service | grep . || echo root",
            ]
            assert words[3:5] == ["sh", "-c"]
            assert f"on h1: `{one.command}`" in said


def test_the_unit_s_user_runs_the_command(tmp_path: Path) -> None:
    """The words in the shell's own quotes survive a second shell: with programs of these names that say so."""
    one = told(on_a_host(worlds.world_at(Stage.SOAK)), gone)
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in {"sudo": f'echo "$2" >{tmp_path}/user; shift 2; exec "$@"', "systemctl": "echo kafka"}.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    path = {"PATH": f"{tools}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", moved(one, tmp_path)], check=True, env=path)
    assert decode((tmp_path / "meta.properties").read_bytes()) == MetaProperties(0, CLUSTER_ID, 1, None)
    assert (tmp_path / "user").read_text() == "kafka\n"


def test_on_a_host_kafka_s_own_tool_is_named_by_its_path() -> None:
    """No login user has it on the PATH."""
    one = told(on_a_host(worlds.world_at(Stage.CLEANUP)), gone)
    assert "/opt/kafka/bin/kafka-storage.sh format" in one.command
    assert "lost+found" in one.do[1]
    assert "chown" in one.do[1]


@pytest.mark.parametrize("stage", [Stage.ASSESS, Stage.SOAK])
def test_a_disk_that_is_not_mounted_is_mounted_while_its_broker_is_down(stage: Stage) -> None:
    """The broker may have taken the folder under it for a new disk; the mount point is not always the directory."""

    def absent(entry: Directory) -> Directory:
        return replace(entry, problem=not_mounted("/data/b1", "/etc/fstab"))

    world = on_a_host(worlds.world_at(stage))
    one = told(world, absent)
    assert one.what == "is not mounted: nothing is at /data/b1 (/etc/fstab has a file system there)"
    taken = "took the folder under the mount point for a new disk" in one.effect
    assert taken is (stage is Stage.ASSESS)  # a KRaft broker does not start on it
    assert taken or "No `meta.properties` found" in one.effect
    assert one.do[1].startswith("with a new disk mounted at /data/b1")
    assert ("mountpoint -q /data/b1 && " in one.command) is (stage is Stage.SOAK)  # never into the folder under it
    assert "Stop broker 1 (on h1: `sudo systemctl stop kafka@1.service`) first" in one.do[0]
    assert "mount it (`sudo mount /data/b1`), and start broker 1" in one.do[0]
    down = told(with_process(world, 1, Stopped(0)), absent)
    assert "Stop broker" not in down.do[0]
    assert "took the folder" not in down.effect


def test_a_broker_s_retention_frees_nothing_in_a_directory_that_it_gave_up() -> None:
    """It would be waited for in vain."""

    def bent(entry: Directory) -> Directory:
        return replace(entry, problem=no_room(4096, 100))

    world = worlds.world_at(Stage.SOAK)
    assert "(retention, or more space" in told(world, bent).do[0]
    said = (LogDirAnswer(PATH, 56, 0, ()),)
    offline = worlds.with_live(world, log_dirs={**worlds.live(world).log_dirs, NodeId(1): said})
    assert "retention deletes nothing there before its start" in told(offline, bent).do[0]


def test_lost_found_is_removed_before_the_next_start() -> None:
    """A running broker does not look; fsck makes it again, and the next start ends there."""

    def strange(*names: str) -> Bend:
        return lambda entry: replace(entry, oddities=tuple(f"{NO_REPLICA}{name}" for name in names))

    world = on_a_host(worlds.world_at(Stage.SOAK))
    one = told(world, strange("lost+found"))
    assert one.what == "it holds what is no replica: lost+found"
    assert one.do == ("`sudo rm -df /data/b1/d1/lost+found`, before the next start of broker 1",)
    down = told(with_process(world, 1, Stopped(1)), strange("lost+found"))
    assert down.do[0].endswith("then start broker 1 (on h1: `sudo systemctl start kafka@1.service`)")
    assert "move them out" in told(world, strange("lost+found", "mine")).do[0]


# -- controllers ---------------------------------------------------------------------------------------------------
def with_metadata(world: World, bend: Bend) -> World:
    """Controller 3000's metadata directory, bent; it is a voter."""
    assert not isinstance(world.disks, Unknown)
    path = world.inventory.controllers[0].metadata_directory
    well = Directory(path, "", MetaProperties(1, CLUSTER_ID, 3000, None), ReplicaColumns(), holds_metadata_log=True)
    return replace(world, disks={**world.disks, NodeId(3000): BrokerDisks(NodeId(3000), (bend(well),))})


def test_a_controller_whose_metadata_disk_died_is_told_with_both_ways() -> None:
    """It halts, and what runs again and again in vain is no process that is only not seen."""
    (one,) = disk_troubles(with_metadata(worlds.world_at(Stage.SOAK), gone))
    assert (one.broker, one.mode) == (3000, "controller")
    assert "the controller halts with it" in one.effect
    assert "start controller 3000" in one.do[0]
    assert "kafka-storage format --cluster-id=" in one.command
    assert one.command.endswith(" --release-version 3.9-IV0")
    assert "only while most of the other controllers run" in one.do[1]


@pytest.mark.parametrize("said", QuorumKind)
def test_a_controller_of_a_dynamic_quorum_comes_back_without_a_vote(said: QuorumKind) -> None:
    """Formatted as the first time it would vote with an empty log; without a word of voters the tool refuses.

    By the quorum that runs, whatever the inventory says of it.
    """
    world = worlds.with_kraft(worlds.world_at(Stage.SOAK), kraft_version=1)
    world = replace(world, inventory=replace(world.inventory, quorum=said))
    (one,) = disk_troubles(with_metadata(world, gone))
    assert one.command.endswith(" --release-version 3.9-IV0 --no-initial-controllers")
    assert one.do[1].endswith("without a vote: then B-QRM-05 of `assess` has the commands that give it one")


def test_where_no_quorum_can_be_read_the_inventory_says_its_kind() -> None:
    """Its leader is gone, or the tool has no right to ask; the voters' list that was seen still says who had a disk."""
    world = replace(worlds.world_at(Stage.SOAK), kraft=Unknown("no controller leads"))
    static, dynamic = (replace(world, inventory=replace(world.inventory, quorum=kind)) for kind in QuorumKind)
    (one,) = disk_troubles(with_metadata(dynamic, gone))
    assert one.command.endswith(" --no-initial-controllers")
    (one,) = disk_troubles(with_metadata(static, gone))
    assert "--no-initial-controllers" not in one.command


def test_a_controllers_directory_that_was_not_made_yet_is_no_trouble() -> None:
    """Its file is rendered before any controller starts; a voter's directory was there."""
    world = with_metadata(worlds.world_at(Stage.SOAK), lambda entry: replace(entry, problem=NOT_THERE))
    assert [one.what for one in disk_troubles(world)] == [NOT_THERE]
    assert list(disk_troubles(worlds.with_live(world, quorum=Unknown("no controller answers")))) == []


def test_a_controller_that_is_no_voter_yet_may_be_empty() -> None:
    """Its file is written before it is formatted; a voter's disk was emptied, or is not mounted."""
    world = with_metadata(worlds.world_at(Stage.SOAK), lambda entry: replace(entry, meta=MetaMissing()))
    (one,) = disk_troubles(world)
    assert "is it the old disk that is missing?" in one.do[0]
    assert list(disk_troubles(worlds.with_live(world, quorum=Unknown("nobody leads")))) == []
    assert list(disk_troubles(with_metadata(worlds.world_at(Stage.SOAK), lambda entry: entry))) == []


def row(state: ReplicaState, *, on_disk: str = str(directory_id(0, 1)), named_id: str = "") -> LedgerRow:
    """A row of broker 0."""
    return LedgerRow("t", uuid(1), 0, 0, state, on_disk, named_id)


def rows_of(world: World) -> list[tuple[LedgerRow, Remedy]]:
    """What the ledger says of broker 0, with what to do."""
    ledger = pure_ledger(world)
    assert isinstance(ledger, Ledger)
    mends = [(entry, remedy_of(entry, world)) for entry in ledger.of(0)]
    return [(entry, mend) for entry, mend in mends if mend is not None]


def test_nothing_is_to_be_done_about_a_verified_row_and_something_about_every_other() -> None:
    """No state is left without words."""
    for state in ReplicaState:
        assert (remedy_of(row(state), healthy()) is None) is (state is ReplicaState.VERIFIED)
    assert rows_of(healthy()) == []


@pytest.mark.parametrize("value", [LOST, DirectoryId(uuid(77)), directory_id(0, 0), directory_id(1, 1)])
def test_a_wrong_value_is_recognised_under_a_full_isr_and_the_disks_id_is_to_be_sent(value: str) -> None:
    """LOST, random, the broker's own other directory, another broker's."""
    world = named(healthy(), 0, value)
    rows = worlds.kraft(world).partitions
    assert [sorted(isr) for isr in rows.isr] == [sorted(replicas) for replicas in rows.replicas]
    found = rows_of(world)
    assert found
    assert all(mend.send == entry.on_disk and "directories rescue" in mend.words for entry, mend in found)
    assert {entry.state for entry, _ in found} <= {ReplicaState.LOST, ReplicaState.MISMATCH}


@pytest.mark.parametrize("value", [MIGRATING, UNASSIGNED])
def test_what_is_not_reported_yet_is_waited_for_or_assigned(value: str) -> None:
    """In KRaft mode it is odd after a second, in migration mode it is right."""
    found = rows_of(named(healthy(), 0, value))
    assert found
    assert all(mend.send == entry.on_disk and "reports it within a second" in mend.words for entry, mend in found)
    before = rows_of(worlds.world_at(Stage.HYBRID))
    assert before
    assert all("as it must be" in mend.words for _, mend in before)


def test_a_replica_of_a_dead_directory_leads_to_the_rescue() -> None:
    """It is on no healthy disk, and the broker says why."""
    found = rows_of(killed(named(healthy(), 0, MIGRATING), DEAD))
    (mend,) = {mend.words for entry, mend in found if entry.state is ReplicaState.NOT_ON_DISK}
    assert "directories rescue" in mend
    quiet = remedy_of(row(ReplicaState.NOT_ON_DISK, on_disk=""), healthy())
    assert quiet is not None
    assert "look again" in quiet.words


def test_nothing_is_to_be_sent_for_a_directory_that_is_not_registered() -> None:
    """Kafka would take the id, and the replica would leave the ISR."""
    for state in (ReplicaState.MISMATCH, ReplicaState.MIGRATING):
        mend = remedy_of(row(state, on_disk=uuid(99), named_id=uuid(98)), healthy())
        assert mend is not None
        assert mend.send == ""
        assert "not registered" in mend.words


# -- DescribeLogDirs -------------------------------------------------------------------------------------------------
def with_answer(world: World, *answers: LogDirAnswer) -> World:
    """Broker 0 says that."""
    return worlds.with_live(world, log_dirs={**worlds.live(world).log_dirs, NodeId(0): answers})


def said_by_broker_0() -> tuple[LogDirAnswer, ...]:
    """Its answer while all is well."""
    answer = worlds.live(healthy()).log_dirs[NodeId(0)]
    assert not isinstance(answer, Unknown)
    return answer


def test_a_broker_that_tells_what_lies_on_its_disks_is_not_mentioned() -> None:
    """None of three."""
    assert list(told_otherwise(healthy())) == []


def test_each_difference_between_answer_and_disk_is_told() -> None:
    """Offline, unknown to either side, another count, a broken disk not yet noticed."""
    first, second, third = said_by_broker_0()
    world = healthy()
    assert "offline to the broker (KAFKA_STORAGE_ERROR (56)) and healthy" in next(
        told_otherwise(with_answer(world, first, replace(second, error=56), third))
    )
    assert "does not know it" in next(told_otherwise(with_answer(world, first, third)))
    assert "the broker reports 99" in next(
        told_otherwise(with_answer(world, first, replace(second, replicas=99), third))
    )
    more = with_answer(world, first, second, third, LogDirAnswer("/data/b0/d9", 0, 0, ()))
    assert list(told_otherwise(more)) == ["/data/b0/d9 is a directory of broker 0, and not in its file"]
    broken = worlds.with_directory(world, 0, 1, lambda entry: replace(entry, problem="is no folder"))
    assert "has not noticed yet" in next(told_otherwise(broken))
    assert "is dead" in next(told_otherwise(killed(world, DEAD)))


def test_a_broker_that_does_not_answer_is_told() -> None:
    """Nothing is known of it then."""
    live = worlds.live(healthy())
    world = worlds.with_live(healthy(), log_dirs={**live.log_dirs, NodeId(2): Unknown("timed out")})
    assert list(told_otherwise(world)) == ["broker 2 does not report its log directories: timed out"]
