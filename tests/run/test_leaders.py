"""Preferred leaders behind a roll: asked for once, in batches, proven by the store, held while clients suffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from migrate.errors import AccessRefused, AnswerTimeout, LeadersNotRestored
from migrate.model.inventory import Playbook
from migrate.model.outcome import NotYet, Readiness, Ready, Unknown
from migrate.model.stage import Stage
from migrate.model.views import ControllerZnode
from migrate.model.world import Need, World
from migrate.plan.build import build
from migrate.protocol.messages import Code
from migrate.run import journal as journals
from migrate.run.leaders import STILL_SECONDS, LeaderRestorer
from tests.run.gated import Gated
from tests.run.test_engine import PLANNED_ON
from tests.run.test_rollback import at, rollback_plan
from tests.testing import worlds
from tests.testing.killing import Everywhere, Walk, carry_out, memory_folder, walk_all_kills
from tests.testing.simulated import FakeClock, SimulatedCluster
from tests.testing.worlds import kraft, world_at, zk

ASKS: Playbook = replace(worlds.playbook(), restore_leaders=True, elections_per_request=1)
AWAY = {("t0", 0): 1, ("t0", 1): 2, ("t1", 0): 2, ("t1", 2): 0, ("t0", 2): 1}


@dataclass(slots=True)
class Cluster:
    """A store with leaders away, and whoever is asked to elect; `answers` are codes, or an error, of the next asks."""

    led: dict[tuple[str, int], int] = field(default_factory=lambda: dict(AWAY))
    answers: list[int | Exception] = field(default_factory=list)
    asked: list[tuple[str, tuple[tuple[str, int], ...]]] = field(default_factory=list)
    unseen: int = 0  # looks that see nothing
    deaf: bool = False  # says that it elected, and does not
    clock: FakeClock = field(default_factory=FakeClock)

    def observe(self, _needs: frozenset[Need], _facts: Mapping[str, str]) -> World:
        """Whole, but for its leaders."""
        world = world_at(Stage.KRAFT_MODE)
        if self.unseen:
            self.unseen -= 1
            return replace(world, kraft=Unknown("no controller answers"), zookeeper=Unknown("no answer"))
        table = kraft(world).partitions
        rows = zip(table.topic, table.partition, table.leader, strict=True)
        led = replace(table, leader=[self.led.get((topic, number), leader) for topic, number, leader in rows])
        everyone = zk(world_at(Stage.ASSESS))
        view = replace(everyone, partitions=replace(everyone.partitions, leader=led.leader))
        return replace(world, kraft=replace(kraft(world), partitions=led), zookeeper=view)

    def by_quorum(self, partitions: Mapping[str, Sequence[int]]) -> dict[tuple[str, int], int]:
        """The controller's answers."""
        return self._elect("quorum", partitions)

    def by_broker(self, broker: int, partitions: Mapping[str, Sequence[int]]) -> dict[tuple[str, int], int]:
        """The broker's."""
        return self._elect(f"broker {broker}", partitions)

    def _elect(self, who: str, partitions: Mapping[str, Sequence[int]]) -> dict[tuple[str, int], int]:
        keys = tuple((topic, number) for topic, numbers in partitions.items() for number in numbers)
        self.asked.append((who, keys))
        said = self.answers.pop(0) if self.answers else 0
        if isinstance(said, Exception):
            raise said
        if said == 0 and not self.deaf:
            for key in keys:
                self.led.pop(key, None)
        return dict.fromkeys(keys, said)

    def restorer(self, **changes: object) -> LeaderRestorer:
        """Of this cluster."""
        return LeaderRestorer(self, self, self.clock, lambda: None, **changes)  # type: ignore[arg-type]


def test_leaders_come_back_in_batches_and_each_is_asked_for_once() -> None:
    """Five are away, two a request."""
    cluster = Cluster()
    told: list[str] = []
    said = cluster.restorer(tell=told.append).restore(2, zookeeper=False)
    assert [len(keys) for _, keys in cluster.asked] == [2, 2, 1]
    asked = [key for _, keys in cluster.asked for key in keys]
    assert sorted(asked) == sorted(AWAY)
    assert {who for who, _ in cluster.asked} == {"quorum"}
    assert said == "5 partitions in 3 requests; 6 of 6 partitions are led by their first replica"
    assert told[0] == "request 1: 2 partitions of 5, t0-0 first"


def test_where_nothing_is_away_nobody_is_asked() -> None:
    """Not even once."""
    cluster = Cluster(led={})
    assert cluster.restorer().restore(2, zookeeper=False).startswith("0 partitions in 0 requests")
    assert cluster.asked == []


def test_in_zookeeper_mode_the_broker_that_owns_the_controller_znode_is_asked() -> None:
    """No other one would elect."""
    cluster = Cluster()
    owner = zk(world_at(Stage.ASSESS)).controller
    assert isinstance(owner, ControllerZnode)
    cluster.restorer().restore(500, zookeeper=True)
    assert [who for who, _ in cluster.asked] == [f"broker {int(owner.id)}"]


def test_nothing_is_asked_while_clients_suffer_or_nobody_can_be_seen() -> None:
    """It waits for both, and continues."""
    cluster = Cluster(unseen=3)
    spent: list[Readiness] = [NotYet("the budget", "clients", "", str(number)) for number in range(4)]

    def clients() -> Readiness:
        assert not cluster.asked or not spent
        return spent.pop() if spent else Ready()

    cluster.restorer(clients=clients).restore(500, zookeeper=False)
    assert spent == []
    assert len(cluster.asked) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cluster", "clients", "says"),
    [
        (Cluster(unseen=10**6), Ready(), "no controller answers"),
        (Cluster(), NotYet("the budget to recover", "clients", ""), "the budget to recover"),
        (Cluster(), Unknown("the probe wrote nothing"), "the probe wrote nothing"),
        (Cluster(deaf=True), Ready(), "5 partitions are led by another replica than their first (1 of broker 1"),
    ],
    ids=["unseen", "budget", "probe", "deaf"],
)
def test_what_does_not_move_for_a_minute_ends_it_by_name(cluster: Cluster, clients: Readiness, says: str) -> None:
    """Success of a request is no proof."""
    began = cluster.clock.time
    with pytest.raises(LeadersNotRestored) as caught:
        cluster.restorer(clients=lambda: clients).restore(500, zookeeper=False)
    if "another replica" in says:
        assert "partitions are led by another replica than their first" in caught.value.what
    else:
        assert says in caught.value.what
    assert cluster.clock.time - began >= STILL_SECONDS
    assert len(cluster.asked) <= 3


@pytest.mark.parametrize(
    "answer",
    [
        AnswerTimeout("no answer"),
        int(Code.NOT_CONTROLLER),
        int(Code.REQUEST_TIMED_OUT),
        int(Code.PREFERRED_LEADER_NOT_AVAILABLE),
    ],
)
def test_an_answer_that_leaves_it_open_is_decided_by_the_next_look(answer: int | Exception) -> None:
    """It is asked again only because it is seen to be away still."""
    cluster = Cluster(answers=[answer])
    cluster.restorer().restore(500, zookeeper=False)
    assert [keys for _, keys in cluster.asked] == [cluster.asked[0][1]] * 2


def test_an_answer_that_was_lost_behind_its_effect_is_not_repeated() -> None:
    """The store says that it was done."""
    cluster = Cluster()

    class Lost(Cluster):
        def by_quorum(self, partitions: Mapping[str, Sequence[int]]) -> dict[tuple[str, int], int]:
            cluster.by_quorum(partitions)
            raise AnswerTimeout("the answer was lost")

    LeaderRestorer(cluster, Lost(), cluster.clock, lambda: None).restore(500, zookeeper=False)
    assert len(cluster.asked) == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [(int(Code.CLUSTER_AUTHORIZATION_FAILED), LeadersNotRestored), (AccessRefused("ALTER is missing"), AccessRefused)],
)
def test_an_answer_that_no_repetition_mends_ends_it(answer: int | Exception, error: type[Exception]) -> None:
    """At the first one."""
    cluster = Cluster(answers=[answer])
    with pytest.raises(error):
        cluster.restorer().restore(500, zookeeper=False)
    assert len(cluster.asked) == 1


def test_the_lock_is_asked_before_each_request() -> None:
    """A run that lost it asks for nothing."""
    cluster = Cluster()

    def lost() -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        LeaderRestorer(cluster, cluster, cluster.clock, lost).restore(2, zookeeper=False)
    assert cluster.asked == []


# -- in runs ---------------------------------------------------------------------------------------------------------
def moving() -> SimulatedCluster:
    """In ZooKeeper mode; restarts move leaders."""
    cluster = SimulatedCluster.in_zookeeper_mode()
    cluster.leaders_move = True
    return cluster


def test_behind_each_roll_every_leader_is_back_where_the_playbook_asks(tmp_path: Path) -> None:
    """Behind the copy and behind the second roll, before the soak; the plan shows both."""
    run = Gated(tmp_path, ASKS, cluster=moving())
    steps = [step.id for step in run.planned().steps]
    assert steps.index("copy/preferred-leaders") == steps.index("copy/copy") + 1
    assert steps[steps.index("kraft-mode/preferred-leaders") - 1].startswith("kraft-mode/")
    assert steps[steps.index("kraft-mode/preferred-leaders") + 1].startswith("soak/")
    planned = next(step for step in run.planned().steps if step.id == "copy/preferred-leaders")
    assert "ElectLeaders PREFERRED to the active controller, at most 1 partition a request" in planned.actions[0].what
    run.session()
    assert run.cluster.led == {}
    elected = [entry for entry in run.cluster.done if entry.startswith("elect")]
    assert elected == ["elect 1 by quorum"] * 4
    for step in ("copy/preferred-leaders", "kraft-mode/preferred-leaders"):
        (end,) = [e for e in run.named("conclude") if e.data["step"] == step]
        assert end.data["outcome"] == "Verified"
        assert "6 of 6 partitions are led by their first replica (metadata offset" in end.data["evidence"][0]


def test_without_the_key_leaders_stay_where_restarts_put_them(tmp_path: Path) -> None:
    """Nobody is asked, nothing is planned."""
    run = Gated(tmp_path, worlds.playbook(), cluster=moving())
    assert not [step.id for step in run.planned().steps if "preferred" in step.id]
    run.session()
    assert run.cluster.led


def test_where_nothing_moved_the_step_is_done_already(tmp_path: Path) -> None:
    """And says so, without a request."""
    run = Gated(tmp_path, ASKS)
    run.session()
    (end,) = [e for e in run.named("conclude") if e.data["step"] == "copy/preferred-leaders"]
    assert end.data["evidence"] == ["6 of 6 partitions are led by their first replica (metadata offset 500)"] or (
        "6 of 6" in end.data["evidence"][0]
    )
    assert not [entry for entry in run.cluster.done if entry.startswith("elect")]


@pytest.mark.slow
def test_killed_anywhere_near_the_elections_the_same_command_ends_the_same() -> None:
    """What was elected is not asked for again: kills at every point, to the copy's end."""
    cluster = moving()
    plan = build(cluster.observe(PLANNED_ON, {}), ASKS, target=Stage.COPY, only=False, created=1.0)
    with memory_folder() as folder:
        walk = walk_all_kills(moving, plan, folder, most=60)
    assert walk.recoveries == 60
    assert [entry for entry in walk.done if entry.startswith("elect")]


def test_at_the_end_of_the_rollback_zookeepers_controller_is_asked(tmp_path: Path) -> None:
    """Behind the last roll, before the controllers are set aside."""
    cluster = at("hybrid", tmp_path / "forward")
    cluster.leaders_move = True
    plan = rollback_plan(cluster, playbook=ASKS)
    steps = [step.id for step in plan.steps]
    (place,) = [index for index, step in enumerate(steps) if step == "migration-mode/preferred-leaders"]
    assert steps[place - 1].startswith("migration-mode/")
    assert steps[-1].endswith("prove-zookeeper-mode")
    carry_out(cluster, plan, tmp_path / "journal.jsonl", Everywhere(Walk(plan, [], {}), cluster, ()))
    assert cluster.led == {}
    events = journals.read(tmp_path / "journal.jsonl").events
    (end,) = [e for e in events if e.name == "conclude" and e.data["step"] == "migration-mode/preferred-leaders"]
    assert "ZooKeeper at zxid" in end.data["evidence"][0]
    assert any(entry.startswith("elect") and "by broker" in entry for entry in cluster.done)
