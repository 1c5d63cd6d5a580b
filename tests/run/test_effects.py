"""Each effect asks the lock, is written down before and after, and is never done over something else."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate.errors import (
    DirectoryInUse,
    DirectoryLost,
    HostCommandUnknown,
    LockLost,
    NotSetAside,
    PlanIsStale,
    ProcessNotStopped,
)
from migrate.hosts import meta_properties
from migrate.hosts.leftovers import ASIDE_SUFFIX, BACKUP_SUFFIX
from migrate.model.history import Event
from migrate.model.ids import NodeId
from migrate.model.launch import STOP_SECONDS
from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import StateBehind
from migrate.model.views import MetaProperties, Running, ServiceState, Stopped
from migrate.run import journal as journals
from migrate.run.effects import STATES_AT_ONCE, Hands, JournaledEffects
from migrate.run.journal import Journal, notes, read
from tests.testing.simulated import FakeClock, KillAt, Killed

NODE, PATH = NodeId(1), "/conf/b1.properties"
KEPT = "/conf/b1.kept.properties"  # a copy of it lies beside it already
OLD, NEW = b"broker.id=1\nssl.key.password=hush\n", b"broker.id=1\nssl.key.password=other\nnum.io.threads=9\n"


class _Log:
    """Files, services, ZooKeeper, lock and drive, all of which write into one list."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.files: dict[str, bytes] = {PATH: OLD, KEPT: OLD, KEPT + BACKUP_SUFFIX: OLD}
        self.lost_after = 99
        self.fails = ""
        self.states: list[ServiceState] = []  # what the next looks at a process see; then that it is stopped

    def _say(self, text: str) -> None:
        self.said.append(text)
        if text == self.fails:
            raise OSError(text)

    def still_ours(self) -> None:
        self.lost_after -= 1
        if self.lost_after < 0:
            raise LockLost("the lock is gone")
        self._say("lock")

    def release_zookeeper(self) -> None:
        self._say("release zookeeper")

    def release(self) -> None:
        self._say("release")

    def read(self, node: NodeId, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self.files[path]

    def exists(self, node: NodeId, path: str) -> bool:
        return path in self.files

    def names(self, node: NodeId, path: str) -> list[str]:
        inside = (file.removeprefix(f"{path}/") for file in self.files if file.startswith(f"{path}/"))
        return sorted({name.partition("/")[0] for name in inside})

    def write(self, node: NodeId, path: str, content: bytes) -> None:
        self._say(f"write {int(node)} {path}")
        self.files[path] = content

    def rename(self, node: NodeId, old: str, new: str) -> None:
        self._say(f"rename {int(node)} {old} {new}")
        self.files[new] = self.files.pop(old)

    def remove(self, node: NodeId, path: str) -> None:
        self._say(f"remove {int(node)} {path}")
        del self.files[path]

    def set(self, path: str, data: bytes, version: int) -> None:
        self._say(f"set {path} {data!r} {version}")

    def delete(self, path: str, version: int) -> None:
        self._say(f"delete {path} {version}")

    def raise_versions(self, least: dict[str, int], owner: int | None) -> None:
        self._say(f"raise {least} {owner}")

    def make_directory(self, node: NodeId, path: str) -> None:
        self._say(f"make {int(node)} {path}")

    def stop(self, node: NodeId, timeout: float) -> None:
        self._say(f"stop {int(node)} {timeout:g}")

    def start(self, node: NodeId) -> None:
        self._say(f"start {int(node)}")

    def state(self, node: NodeId) -> ServiceState:
        return self.states.pop(0) if self.states else Stopped()

    def format_storage(
        self, node: NodeId, cluster_id: str, release_version: str, *, ignore_formatted: bool = False, voters: str = ""
    ) -> str:
        self._say(f"format {int(node)} {cluster_id} {release_version}{' what is bare' * ignore_formatted}{voters}")
        return ""

    def backup(self, destination: str) -> dict[str, str]:
        self._say("backup")
        Path(destination).write_bytes(b"tree")
        return {"sha256": "0" * 64, "znodes": "7"}

    def drive(self, broker: NodeId) -> str:
        self._say(f"drive {int(broker)}")
        return "6 replicas in 1 requests, 0 retried"


class Rig:
    """Effects on such hands, with a real journal."""

    def __init__(self, folder: Path, kill: KillAt | None = None) -> None:
        self.log, self.folder = _Log(), folder
        hands: Any = self.log
        crash: Any = kill or KillAt()
        self.journal = Journal.begin(folder / "journal.jsonl", 0.0, {"plan": "x"})
        self.sick: dict[str, str] = {}  # directories that store nothing
        self.told: list[tuple[str, int]] = []  # the event, and how many lines were on disk by then
        self.effects = JournaledEffects(
            Hands(
                hands,
                hands,
                lambda: hands,
                self.log.drive,
                self._tell,
                not_storing=self._not_storing,
            ),
            self.journal,
            hands,
            FakeClock(),
            folder,
            crash,
        )
        self.effects.step = "migration-mode/1"

    def _not_storing(self, node: NodeId, paths: Sequence[str]) -> dict[str, str]:
        self.log.said.append(f"store {int(node)} {' '.join(paths)}")
        return {path: self.sick[path] for path in paths if path in self.sick}

    def _tell(self, event: Event) -> None:
        self.told.append((event.name, len(self.events())))

    def events(self) -> list[tuple[str, Any]]:
        """Events that are on disk, but for the first line."""
        return [(event.name, dict(event.data)) for event in read(self.journal.path).events[1:]]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """One, closed at the end."""
    found = Rig(tmp_path)
    yield found
    found.journal.close()


Act = Callable[[JournaledEffects], None]
STATE = StateBehind("/brokers/topics/t/partitions/0/state", 8, 9)
EFFECTS: dict[str, tuple[Act, str]] = {
    "write-config": (lambda e: e.write_config(NODE, KEPT, NEW, hashlib.sha256(OLD).hexdigest()), f"write 1 {KEPT}"),
    "backup-file": (lambda e: e.backup_files(NODE, [PATH]), f"write 1 {PATH}{BACKUP_SUFFIX}"),
    "backup-zookeeper": (lambda e: e.backup_zookeeper(), "backup"),
    "make-directory": (lambda e: e.make_directory(NODE, "/meta/1"), "make 1 /meta/1"),
    "format": (lambda e: e.format_storage([NODE], "C" * 22, "3.9"), f"format 1 {'C' * 22} 3.9"),
    "format-directories": (
        lambda e: e.format_directories(NODE, "C" * 22, "3.9-IV0"),
        f"format 1 {'C' * 22} 3.9-IV0 what is bare",
    ),
    "stop": (lambda e: e.stop(NODE), f"stop 1 {STOP_SECONDS:g}"),
    "start": (lambda e: e.start(NODE), "start 1"),
    "assign-directories": (lambda e: e.assign_directories(NODE), "drive 1"),
    "release-lock": (lambda e: e.release_zookeeper_lock(), "release zookeeper"),
    "set-aside": (lambda e: e.set_aside(NODE, PATH), f"rename 1 {PATH} {PATH}{ASIDE_SUFFIX}-19700112T134640"),
    "remove-copy": (lambda e: e.remove_copy(NODE, KEPT + BACKUP_SUFFIX), f"remove 1 {KEPT}{BACKUP_SUFFIX}"),
    "set-znode": (lambda e: e.set_znode("/controller_epoch", b"9", 4), "set /controller_epoch b'9' 4"),
    "delete-znode": (lambda e: e.delete_znode("/migration", 7), "delete /migration 7"),
    "raise-versions": (lambda e: e.raise_versions([STATE], 4, ()), f"raise {{{STATE.path!r}: 9}} 4"),
}
each = pytest.mark.parametrize(
    ("name", "act", "does"), [(name, *entry) for name, entry in EFFECTS.items()], ids=EFFECTS
)


@each
def test_an_effect_asks_the_lock_and_stands_in_the_journal_before_and_after(
    name: str, act: Act, does: str, rig: Rig
) -> None:
    """Lock, intent, lock again, act, done: in that order, each with the step that it is part of."""
    act(rig.effects)
    held_down = [f"stop 1 {STOP_SECONDS:g}"] if name in ("set-aside", "format-directories") else []
    assert rig.log.said == ["lock", "lock", *held_down, does]
    first, second = rig.events()[:2]
    assert (first[0], second[0]) == ("effect", "effected")
    assert first[1] == second[1]
    assert first[1]["effect"] == name
    assert first[1]["step"] == "migration-mode/1"


@each
def test_without_the_lock_nothing_happens_and_nothing_is_written(name: str, act: Act, does: str, rig: Rig) -> None:
    """There is no safe way to go on."""
    rig.log.lost_after = 0
    with pytest.raises(LockLost):
        act(rig.effects)
    assert rig.log.said == []
    assert rig.events() == []


@each
def test_a_lock_lost_while_the_intent_was_written_lets_nothing_happen(name: str, act: Act, does: str, rig: Rig) -> None:
    """A process may sleep there for as long as somebody paused it: the intent stands, the act does not follow."""
    rig.log.lost_after = 1
    with pytest.raises(LockLost):
        act(rig.effects)
    assert rig.log.said == ["lock"]
    assert [event for event, _ in rig.events()] == ["effect"]


@each
def test_who_watches_is_told_before_and_after(name: str, act: Act, does: str, rig: Rig) -> None:
    """A stop may take minutes: what is in progress is said as soon as it is on disk, and before it is done."""
    rig.log.fails = does
    with pytest.raises((OSError, NotSetAside)):
        act(rig.effects)
    assert rig.told == [("effect", 1)]
    rig.log.fails = ""
    act(rig.effects)
    assert rig.told == [("effect", 1), ("effect", 2), ("effected", 3)]


@each
def test_an_effect_that_fails_is_never_written_down_as_done(name: str, act: Act, does: str, rig: Rig) -> None:
    """The next run looks what became of it."""
    rig.log.fails = does
    with pytest.raises((OSError, NotSetAside), match=does.split(maxsplit=1)[0]):
        act(rig.effects)
    assert [event for event, _ in rig.events()] == ["effect"]


def test_a_connection_that_breaks_says_what_was_under_way(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host alone does not tell which process is in doubt."""

    def broken(*_: object) -> None:
        raise HostCommandUnknown("the connection broke", where="h1")

    monkeypatch.setattr(rig.log, "stop", broken)
    with pytest.raises(HostCommandUnknown) as caught:
        rig.effects.stop(NODE)
    assert caught.value.why == "migration-mode/1 was at `stop` of node 1: it may have happened, or not"


def test_a_connection_that_knows_more_is_not_talked_over(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says of the doubt is nearer to the host."""

    def broken(*_: object) -> None:
        raise HostCommandUnknown("the connection broke", where="h1", why="the host restarts")

    monkeypatch.setattr(rig.log, "stop", broken)
    with pytest.raises(HostCommandUnknown) as caught:
        rig.effects.stop(NODE)
    assert caught.value.why == "the host restarts"


@each
@pytest.mark.parametrize("point", [1, 2])
def test_a_kill_leaves_the_intent_whether_or_not_it_was_done(
    name: str, act: Act, does: str, point: int, tmp_path: Path
) -> None:
    """Before the act, and after it and before it was written down."""
    rig = Rig(tmp_path, KillAt(point))
    with pytest.raises(Killed):
        act(rig.effects)
    rig.journal.close()
    assert [event for event, _ in rig.events()] == ["effect"]
    assert (does in rig.log.said) is (point == 2)


# -- files -----------------------------------------------------------------------------
def test_a_files_change_is_journalled_without_its_secrets(rig: Rig) -> None:
    """As a diff: what was, what is.  Sessions of a run would give other digits to the same value, so none are kept."""
    EFFECTS["write-config"][0](rig.effects)
    assert rig.log.files[KEPT] == NEW
    name, data = rig.events()[2]
    assert (name, data["node"], data["path"]) == ("diff-file", 1, KEPT)
    assert "+num.io.threads=9" in data["lines"]
    assert "+broker.id=1" not in data["lines"], "it was there before"
    assert {"-ssl.key.password=(sensitive)", "+ssl.key.password=(sensitive)"} < set(data["lines"])
    raw = rig.journal.path.read_text()
    assert "hush" not in raw
    assert "other" not in raw.replace("another", "")


@pytest.mark.parametrize(
    ("lies", "expected"),
    [(OLD, "0" * 64), (OLD, None), (None, hashlib.sha256(OLD).hexdigest()), (NEW, hashlib.sha256(OLD).hexdigest())],
    ids=["other", "something", "nothing", "changed"],
)
def test_a_file_that_changed_since_it_was_looked_at_is_not_written(
    lies: bytes | None, expected: str | None, rig: Rig
) -> None:
    """The look and the write are two moments."""
    rig.log.files = {} if lies is None else {PATH: lies}
    with pytest.raises(PlanIsStale) as caught:
        rig.effects.write_config(NODE, PATH, NEW, expected)
    assert caught.value.where == PATH
    assert rig.log.said == []
    assert rig.events() == []


def test_a_new_file_is_written_where_nothing_lies(rig: Rig) -> None:
    """And shown whole."""
    rig.log.files = {}
    rig.effects.write_config(NODE, PATH, NEW, None)
    assert rig.log.files == {PATH: NEW}
    assert "+broker.id=1" in rig.events()[2][1]["lines"]


def test_a_backup_lies_beside_the_file_and_with_us_and_is_named_with_its_sum(rig: Rig) -> None:
    """Ours for nobody else to read: there are passwords in it."""
    rig.effects.backup_files(NODE, [PATH])
    assert rig.log.files[PATH + BACKUP_SUFFIX] == OLD
    kept = rig.folder / "backup" / "1" / "conf_b1.properties"
    assert kept.read_bytes() == OLD
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    said = notes(rig.journal.events)[f"backup:1:{PATH}"]
    assert hashlib.sha256(OLD).hexdigest() in said
    assert PATH + BACKUP_SUFFIX in said


def test_an_older_backup_on_the_host_is_never_overwritten(rig: Rig) -> None:
    """It may be all that is left of the first state."""
    rig.effects.backup_files(NODE, [PATH])
    rig.effects.backup_files(NODE, [PATH])
    assert set(rig.log.files) == {PATH, PATH + BACKUP_SUFFIX, KEPT, KEPT + BACKUP_SUFFIX}
    rig.log.files[PATH] = NEW
    rig.effects.backup_files(NODE, [PATH])
    assert rig.log.files[PATH + BACKUP_SUFFIX] == OLD
    beside = f"{PATH}{BACKUP_SUFFIX}-{hashlib.sha256(NEW).hexdigest()[:8]}"
    assert rig.log.files[beside] == NEW
    assert beside in notes(rig.journal.events)[f"backup:1:{PATH}"]
    assert len([said for said in rig.log.said if said.startswith("write")]) == 2


def test_an_older_backup_in_the_runs_folder_is_never_overwritten(rig: Rig) -> None:
    """Neither by a later one of that file, nor by another file whose path has the same name there."""
    alike = "/conf_b1.properties"
    rig.log.files[alike] = KEPT.encode()
    rig.effects.backup_files(NODE, [PATH, alike])
    rig.log.files[PATH] = NEW
    rig.effects.backup_files(NODE, [PATH])
    kept = rig.folder / "backup" / "1"
    assert (kept / "conf_b1.properties").read_bytes() == OLD
    assert {file.read_bytes() for file in kept.iterdir()} == {OLD, NEW, KEPT.encode()}


def test_all_files_of_a_node_are_one_effect_each_with_its_own_sum(rig: Rig) -> None:
    """One that is not there is left out; one whose copy is there already is kept in the run's folder alone."""
    rig.effects.backup_files(NODE, [PATH, KEPT, "/data/b1/d0/meta.properties"])
    assert [said for said in rig.log.said if said.startswith("write")] == [f"write 1 {PATH}{BACKUP_SUFFIX}"]
    effect, effected, *told = rig.events()
    assert (effect[1]["detail"], effected[0]) == (f"{PATH}, {KEPT}", "effected")
    assert [data["key"] for _, data in told] == [f"backup:1:{PATH}", f"backup:1:{KEPT}"]
    assert len(list((rig.folder / "backup" / "1").iterdir())) == 2


def test_what_is_not_there_needs_no_backup(rig: Rig) -> None:
    """A directory without meta.properties."""
    rig.effects.backup_files(NODE, ["/data/b1/d0/meta.properties"])
    assert rig.events() == []


def test_the_trees_backup_is_named_with_what_it_holds(rig: Rig) -> None:
    """Sum and number of znodes."""
    rig.effects.backup_zookeeper()
    assert (rig.folder / "backup" / "zookeeper.jsonl.gz").read_bytes() == b"tree"
    assert stat.S_IMODE((rig.folder / "backup").stat().st_mode) == 0o700
    rig.effects.backup_zookeeper("before-finalize")
    assert (rig.folder / "backup" / "before-finalize.jsonl.gz").exists()
    said = notes(rig.journal.events)["backup:zookeeper"]
    assert said == f"zookeeper.jsonl.gz: sha256 {'0' * 64}, znodes 7"


def test_a_step_can_be_killed_between_its_effects(tmp_path: Path) -> None:
    """As a test of such a kill asks for."""
    rig = Rig(tmp_path, KillAt(1))
    with pytest.raises(Killed):
        rig.effects.crash_point("between")
    rig.journal.close()


def test_what_drive_sent_is_noted(rig: Rig) -> None:
    """For the report."""
    rig.effects.assign_directories(NODE)
    assert notes(rig.journal.events) == {"assigned:1": "6 replicas in 1 requests, 0 retried"}


def test_what_the_journals_times_tell_is_noted(rig: Rig) -> None:
    """How long the cluster had no controller, here no time at all."""
    rig.effects.step = "rollback/stop-controllers"
    rig.effects.stop(NODE)
    rig.effects.delete_znode("/controller", 7)
    rig.effects.note_measures()
    found = notes(rig.journal.events)
    assert found
    assert found == journals.measures(rig.journal.events)


def test_what_kafka_said_of_a_format_is_noted_in_one_line(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end, where it said much: that is where an error would be."""
    said = "Formatting /data/d1\n" + "x" * 10_000 + " \n the end"
    monkeypatch.setattr(rig.log, "format_storage", lambda *_, **__: said)
    rig.effects.format_directories(NODE, "C" * 22, "3.9-IV0")
    noted = notes(rig.journal.events)["formatted:1"]
    assert noted.endswith("x the end")
    assert 1_000 < len(noted) < 5_000


def test_what_is_set_aside_gets_a_name_that_nothing_has(rig: Rig) -> None:
    """Twice in one second, and never over something; what is not there needs none."""
    for raw in (OLD, NEW, b"third"):
        rig.log.files[PATH] = raw
        rig.effects.set_aside(NODE, PATH)
    rig.effects.set_aside(NODE, PATH)
    aside = f"{PATH}{ASIDE_SUFFIX}-19700112T134640"
    assert [rig.log.files[name] for name in (aside, f"{aside}-1", f"{aside}-2")] == [OLD, NEW, b"third"]
    assert notes(rig.journal.events)[f"aside:1:{PATH}"] == f"{aside}-2"
    assert PATH not in rig.log.files


@pytest.mark.parametrize("looks", [[Running(7, 1.0, None)], [Stopped(), Running(7, 1.0, None)], [Unknown("/proc")]])
def test_nothing_is_taken_from_under_a_process_that_lives_again(rig: Rig, looks: list[ServiceState]) -> None:
    """Its owner may start a crashed one between the look and the act: seen at the last moment, under the lock."""
    acts: tuple[Act, ...] = (lambda e: e.set_aside(NODE, PATH), lambda e: e.delete_znode("/migration", 7, (NODE,)))
    for act in acts:
        rig.log.states = list(looks)
        with pytest.raises(ProcessNotStopped, match="runs again or cannot be seen"):
            act(rig.effects)
    assert not [said for said in rig.log.said if said.startswith(("rename", "delete"))]


def test_of_many_states_the_owner_goes_with_the_last(rig: Rig) -> None:
    """Killed in between, some are still behind, so that the rest is planned again with it; each is told and raised."""
    states = [StateBehind(f"/s{number}", number, number + 1) for number in range(2 * STATES_AT_ONCE + 1)]
    rig.effects.raise_versions(states, 4, (NODE,))
    raised = [said for said in rig.log.said if said.startswith("raise")]
    assert [said.rsplit(" ", 1)[1] for said in raised] == ["None", "None", "4"]
    assert [said.count("/s") for said in raised] == [STATES_AT_ONCE, STATES_AT_ONCE, 1]
    told = [data["detail"] for name, data in rig.events() if name == "effect"]
    assert "; ".join(told) == "; ".join(
        [*(f"/s{number} {number} -> {number + 1}" for number in range(len(states))), "delete /controller version 4"]
    )
    assert rig.log.said.count(f"stop 1 {STOP_SECONDS:g}") == 3, "held down before each"


def test_states_that_fill_one_request_are_the_last(rig: Rig) -> None:
    """The owner is never left for a request that does not come; without one none is deleted."""
    states = [StateBehind(f"/s{number}", 1, 2) for number in range(STATES_AT_ONCE)]
    rig.effects.raise_versions(states, 0, ())
    rig.effects.raise_versions(states, None, ())
    raised = [said for said in rig.log.said if said.startswith("raise")]
    assert [said.rsplit(" ", 1)[1] for said in raised] == ["0", "None"]
    assert ["delete" in data["detail"] for name, data in rig.events() if name == "effect"] == [True, False]


def test_a_service_without_a_process_is_stopped_before_its_files_go(rig: Rig) -> None:
    """A unit that crashed would be started again by its owner, over an empty directory."""
    rig.effects.set_aside(NODE, PATH)
    assert rig.log.said.index(f"stop 1 {STOP_SECONDS:g}") < len(rig.log.said) - 1
    assert rig.log.said[-1].startswith("rename 1")


def test_what_cannot_be_renamed_says_why(rig: Rig) -> None:
    """A right that is missing, for one."""
    rig.log.fails = f"rename 1 {PATH} {PATH}{ASIDE_SUFFIX}-19700112T134640"
    with pytest.raises(NotSetAside, match="not renamed") as caught:
        rig.effects.set_aside(NODE, PATH)
    assert "permissions" in caught.value.next_step


def test_only_copies_are_ever_removed(rig: Rig) -> None:
    """A node's own file stays, whatever a step asks; what is gone already needs nothing."""
    for path in (KEPT, PATH, PATH + BACKUP_SUFFIX):
        rig.effects.remove_copy(NODE, path)
    assert rig.log.said == []
    assert {KEPT, PATH} <= set(rig.log.files)


def test_metadata_moves_into_a_folder_of_its_directory_while_its_controller_is_held_down(rig: Rig) -> None:
    """A crash point before each rename; where nothing is left to move nothing is done."""
    for name in ("meta.properties", "__cluster_metadata-0"):
        rig.log.files[f"/meta/{name}"] = OLD
    rig.log.files["/meta"] = b""
    rig.effects.set_metadata_aside(NODE, "/meta/")
    new = "/meta/kraft-migrate-aside-19700112T134640"
    moved = [f"rename 1 /meta/{name} {new}/{name}" for name in ("__cluster_metadata-0", "meta.properties")]
    assert rig.log.said == ["lock", "lock", f"stop 1 {STOP_SECONDS:g}", f"make 1 {new}", *moved]
    assert notes(rig.journal.events) == {"aside:1:/meta": new}
    rig.effects.set_metadata_aside(NODE, "/meta")
    assert rig.log.said[-1] == moved[-1]


def test_metadata_that_cannot_be_moved_says_why(rig: Rig) -> None:
    """And the journal does not say that it was."""
    rig.log.files |= {"/meta": b"", "/meta/meta.properties": OLD}
    rig.log.fails = "make 1 /meta/kraft-migrate-aside-19700112T134640"
    with pytest.raises(NotSetAside, match="not moved"):
        rig.effects.set_metadata_aside(NODE, "/meta")
    assert [event for event, _ in rig.events()] == ["effect"]


def test_a_file_that_is_overwritten_is_kept_beside_it(rig: Rig) -> None:
    """Whatever wrote it: a rollback needs every file that there was."""
    rig.effects.write_config(NODE, PATH, NEW, hashlib.sha256(OLD).hexdigest())
    rig.effects.write_config(NODE, PATH, OLD, hashlib.sha256(NEW).hexdigest())
    assert rig.log.files[PATH + BACKUP_SUFFIX] == OLD
    assert rig.log.files[f"{PATH}{BACKUP_SUFFIX}-{hashlib.sha256(NEW).hexdigest()[:8]}"] == NEW


# -- the last look before a directory goes --------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["orders-0", "orders-0.0123456789abcdef0123456789abcdef-delete"])
def test_a_directory_in_which_a_replica_is_does_not_go(rig: Rig, name: str) -> None:
    """It may have come since the step's own look; one that is being deleted is one, too."""
    rig.log.files |= {"/data/d1/meta.properties": OLD, f"/data/d1/{name}/0.log": b""}
    with pytest.raises(DirectoryInUse, match=name) as caught:
        rig.effects.require_empty(NODE, "/data/d1")
    assert caught.value.where == "/data/d1"


def test_a_directory_without_replicas_goes(rig: Rig) -> None:
    """Kafka's own files in it are none."""
    rig.log.files |= {"/data/d1/meta.properties": OLD, "/data/d1/recovery-point-offset-checkpoint": b""}
    rig.effects.require_empty(NODE, "/data/d1")


# -- the last look before a start -----------------------------------------------------------------------------------
DISKS = ("/data/d0", "/data/d1")


def metas(rig: Rig) -> dict[str, MetaProperties]:
    """Two disks with a meta.properties each."""
    found = {}
    for number, path in enumerate(DISKS):
        text = f"version=0\nbroker.id=1\ncluster.id=c\ndirectory.id=AAAAAAAAAAAAAAAAAAAd{number}A\n".encode()
        rig.log.files[f"{path}/meta.properties"] = text
        meta = meta_properties.decode(text)
        assert isinstance(meta, MetaProperties)
        found[path] = meta
    return found


def test_disks_that_say_and_store_what_they_did_are_started_on(rig: Rig) -> None:
    """Each is asked to store a block, whatever it stored before."""
    rig.effects.require_same(NODE, metas(rig))
    assert rig.log.said[-1] == "store 1 /data/d0 /data/d1"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"version=1\nnode.id=1\ncluster.id=c\ndirectory.id=AAAAAAAAAAAAAAAAAAAd9A\n", "another than before the stop"),
        (b"", "another than before the stop"),
    ],
)
def test_a_stopped_broker_is_not_started_on_another_disk(rig: Rig, text: bytes | None, why: str) -> None:
    """Gone, replaced, torn: the disk is named, and that its broker stays as it is."""
    expected = metas(rig)
    del rig.log.files["/data/d1/meta.properties"]
    if text is not None:
        rig.log.files["/data/d1/meta.properties"] = text
    with pytest.raises(DirectoryLost) as raised:
        rig.effects.require_same(NODE, expected)
    assert why in str(raised.value)
    assert "/data/d1" in str(raised.value)
    assert "broker 1 remains stopped" in str(raised.value.why)


@pytest.mark.parametrize("problem", ["cannot be written: Read-only file system", "cannot be looked at: no answer"])
def test_a_stopped_broker_is_not_started_on_a_disk_that_stores_nothing(rig: Rig, problem: str) -> None:
    """It still says who it is: read-only and full disks do."""
    expected = metas(rig)
    rig.sick[DISKS[1]] = problem
    with pytest.raises(DirectoryLost, match=problem):
        rig.effects.require_same(NODE, expected)


def test_storage_is_formatted_side_by_side_and_each_comes_to_its_end(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every intent is on disk before; the error is that of the node which failed, and nothing is said to be done."""
    nodes, met, ended = [NodeId(3000), NodeId(3001), NodeId(3002)], threading.Barrier(3), list[int]()

    def format_storage(node: NodeId, *_: object, **__: object) -> str:
        assert [data["node"] for name, data in rig.events() if name == "effect"] == ["3000", "3001", "3002"]
        met.wait(20)
        if node == 3000:
            raise HostCommandUnknown("no end", where="kafka-1")
        ended.append(int(node))
        return ""

    hands = replace(rig.effects._hands, at_once=20)
    monkeypatch.setattr(rig.effects, "_hands", hands)
    monkeypatch.setattr(rig.log, "format_storage", format_storage)
    with pytest.raises(HostCommandUnknown) as caught:
        rig.effects.format_storage(nodes, "C" * 22, "3.9")
    assert "`format` of node 3000" in caught.value.why
    assert sorted(ended) == [3001, 3002]
    assert "effected" not in [name for name, _ in rig.events()]
