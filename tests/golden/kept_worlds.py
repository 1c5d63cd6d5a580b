"""The worlds whose answers are kept: every stage, half-done rolls, and what is broken or cannot be seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from migrate.model.difference import Difference, DifferenceClass, DiffReport
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import MigrationZnode
from migrate.model.world import Need, World
from tests.cli.test_status import half_final
from tests.run.test_rollback import at, go_back
from tests.steps.looks import broken_disk, whole
from tests.testing import worlds
from tests.testing.simulated import KillAt, Killed
from tests.testing.simulated_back import TwoWay

ALL = frozenset(Need) - {Need.SPARK_LEDGER}
REASON = "no session with zk1:2181 within 10 s"


def taken(entry: str) -> World:
    """A cluster in memory that was migrated that far, with the copies of its files."""
    with TemporaryDirectory() as folder:
        return at(entry, Path(folder)).observe(ALL, {})


class KillAfter(KillAt):
    """Crash points that kill behind an effect on the cluster."""

    def __init__(self, cluster: TwoWay, effect: str) -> None:
        super().__init__()
        self.cluster, self.effect, self.before = cluster, effect, len(cluster.done)

    def reach(self, _label: str) -> None:
        """Die where it was done since."""
        if self.effect in self.cluster.done[self.before :]:
            raise Killed


def half_back(entry: str, effect: str) -> World:
    """The same, with its rollback killed behind that effect."""
    with TemporaryDirectory() as folder:
        cluster = at(entry, Path(folder))
        try:
            go_back(cluster, Path(folder) / "back", KillAfter(cluster, effect))
        except Killed:
            return cluster.observe(ALL, {})
    raise AssertionError(f"the rollback never does {effect!r}")


def broker_down(entry: str) -> World:
    """Broker 1 was killed."""
    with TemporaryDirectory() as folder:
        cluster = at(entry, Path(folder))
    cluster.kill(1)
    for _ in range(3):  # its session ends
        cluster.observe(ALL, {})
    return cluster.observe(ALL, {})


DIFFERENT = Difference("topic-config", "t0", "retention.ms", DifferenceClass.DIFFERS, "1", "2")
EXCUSED = Difference("topic", "t1", "f", DifferenceClass.EXPECTED, "a", "b", rule="KRAFT-DEFAULT")


def moving(world: World) -> World:
    """A comparison that found a difference of what stands on neither side when it is looked at again."""
    counts = {"topic": {"EQUAL": 6, "EXPECTED": 1}, "topic-config": {"DIFFERS": 1}}
    return replace(world, diff=DiffReport(500, 0, counts, (DIFFERENT, EXCUSED), ("a blind spot",)))


def differing(world: World) -> World:
    """The same, and it stands there: no rule excuses it, and dual write had passed it."""
    world = worlds.with_entity(world, "topic-config", "t0", "retention.ms", "1")
    rows = worlds.zk(world).entities
    world = worlds.with_zk(
        world,
        entities=replace(rows, where=[*rows.where[:-1], "/config/topics/t0"]),
        mzxids={**worlds.zk(world).mzxids, "/config/topics/t0": 7},
    )
    held = worlds.kraft(world).entities
    columns = {"kind": "topic-config", "key": "t0", "name": "retention.ms", "value": "2", "where": "offset 412"}
    held = replace(held, **{name: [*getattr(held, name), value] for name, value in columns.items()})
    return moving(worlds.with_kraft(world, entities=held))


def unseen_disks(world: World) -> World:
    """The disks of broker 2 cannot be looked at."""
    assert not isinstance(world.disks, Unknown)
    return replace(world, disks={**world.disks, NodeId(2): Unknown("ssh to b2: no route to host")})


WORLDS: dict[str, Callable[[], World]] = {
    "01-zookeeper-mode": lambda: whole(Stage.ASSESS),
    "02-prepared": lambda: whole(Stage.PREPARE),
    "03-controllers-up": lambda: whole(Stage.CONTROLLERS),
    "04-half-to-migration-mode": lambda: whole(Stage.MIGRATION_MODE),
    "05-copied": lambda: taken("hybrid"),
    "06-hybrid": lambda: whole(Stage.HYBRID),
    "07-half-to-kraft-mode": lambda: taken("half of the second roll"),
    "08-kraft-mode": lambda: taken("all brokers KRaft"),
    "09-soaked": lambda: whole(Stage.SOAK),
    "10-half-finalized": lambda: half_final(whole(Stage.SOAK)),
    "11-finalized": lambda: whole(Stage.FINALIZE),
    "12-cleaned-up": lambda: whole(Stage.CLEANUP),
    "13-half-back-to-migration-mode": lambda: half_back("half of the second roll", "stop 1"),
    "14-controllers-stopped": lambda: half_back("hybrid", "stop 3000"),
    "15-half-back-to-zookeeper-mode": lambda: half_back("hybrid", "write 1 zookeeper"),
    "16-nearly-back": lambda: half_back("hybrid", "aside 3001 /data/c3001"),
    "20-dead-disk-in-zookeeper-mode": lambda: broken_disk(2)(whole(Stage.ASSESS)),
    "21-dead-disk-in-hybrid": lambda: broken_disk(0)(taken("hybrid")),
    "22-dead-disk-in-kraft-mode": lambda: broken_disk(1)(whole(Stage.KRAFT_MODE)),
    "23-broker-and-its-disk-down": lambda: broken_disk(1)(broker_down("hybrid")),
    "23-broker-down": lambda: broker_down("hybrid"),
    "24-zookeeper-down": lambda: replace(taken("hybrid"), zookeeper=Unknown(REASON)),
    "25-zookeeper-down-before-all": lambda: replace(whole(Stage.ASSESS), zookeeper=Unknown(REASON)),
    "26-no-controller-answers": lambda: replace(whole(Stage.COPY), kraft=Unknown("no controller answers")),
    "27-unseen-disks": lambda: unseen_disks(taken("half of the second roll")),
    "28-stuck-copy": lambda: worlds.with_zk(taken("hybrid"), migration=MigrationZnode(-1, -1, -1, -1, 3)),
    "29-different": lambda: differing(taken("hybrid")),
    "30-unsettled": lambda: moving(taken("hybrid")),
}
WITH_PLANS_AS_JSON = tuple(name for name in WORLDS if name < "20")  # of the others the text says what differs
BUNDLED = ("01-zookeeper-mode", "07-half-to-kraft-mode", "29-different")
