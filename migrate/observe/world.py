"""Gathers a World: the parts that were asked for, side by side, each typed or Unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from migrate.model.facts import pure_ledger
from migrate.model.outcome import Unknown
from migrate.model.world import BROKER, Need, World
from migrate.observe import analysis
from migrate.observe.sources import Sources
from migrate.observe.views import VIEWS, View

SLOW: Final = frozenset({Need.DIFF, Need.SPARK_LEDGER})
PROOF_SAMPLES: Final = 20  # a broker that believes in KRaft names a random one: N^-20 is the chance of a false pass
FOR_LEDGER: Final = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DISKS})
MADE_OF: Final[Mapping[Need, frozenset[Need]]] = {
    Need.LEDGER: FOR_LEDGER,
    Need.SPARK_LEDGER: FOR_LEDGER,
    Need.CONTROLLER_NAMES: frozenset({Need.LIVE}),
}


class ClusterObserver:
    """Implements `migrate.model.ports.Observer` on real sources."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._pool = ThreadPoolExecutor(max_workers=len(VIEWS), thread_name_prefix="look")

    def observe(self, needs: frozenset[Need], facts: Mapping[str, str]) -> World:
        """One observation.  Never raises for what cannot be seen: that part is Unknown."""
        wanted = _with_what_they_need(needs)
        told: Mapping[Need, Mapping[str, Any]] = {
            Need.LIVE: {"controller_samples": PROOF_SAMPLES if Need.CONTROLLER_NAMES in wanted else 1},
            Need.LISTENERS: {"broker": facts.get(BROKER)},
            Need.METADATA_LOGS: {"rehearse": Need.REHEARSAL in wanted},
        }
        late = bool(needs & SLOW)  # these take seconds: who answers and which ISRs are full is asked after them
        looks: dict[Need, Future[Any]] = {}
        for view in VIEWS.values():
            if view.need in wanted and not (late and view.need is Need.LIVE):
                parts = [looks[need] for need in (*view.after, *view.beside) if need in looks]
                looks[view.need] = self._pool.submit(self._look, view, parts, told.get(view.need, {}))
        world = World(
            self.sources.inventory,
            self.sources.playbook,
            today=datetime.now(UTC).date().isoformat(),
            facts=facts,
            **{VIEWS[need].part: look.result() for need, look in looks.items()},
        )
        if Need.SESSIONS in wanted:
            world = replace(world, zookeeper=self.sources.with_sessions(world.zookeeper))
        world = self._analyse(world, needs)
        return replace(world, live=self.sources.live(**told[Need.LIVE])) if late and Need.LIVE in wanted else world

    def _look(self, view: View, parts: Sequence[Future[Any]], told: Mapping[str, Any]) -> Any:
        """What the view says, as soon as the parts are there that it is looked at with."""
        given = [part.result() for part in parts]
        unseen = next((part for part in given[: len(view.after)] if isinstance(part, Unknown)), None)
        if unseen is not None and not view.derived:
            return unseen
        with self.sources.work.part(view.work) if view.work else nullcontext():
            return getattr(self.sources, view.look)(*given, **told)

    def _analyse(self, world: World, needs: frozenset[Need]) -> World:
        if Need.DIFF in needs:
            world = analysis.with_diff(self.sources, world)
        if Need.SPARK_LEDGER in needs:
            with self.sources.work.part(_ledger_words(world)):
                return replace(world, ledger=analysis.spark_ledger(self.sources, world))
        return replace(world, ledger=pure_ledger(world)) if Need.LEDGER in needs else world

    def close(self) -> None:
        self._pool.shutdown()
        self.sources.close()


def _with_what_they_need(needs: frozenset[Need]) -> frozenset[Need]:
    wanted = needs.union(*(MADE_OF[need] for need in needs & MADE_OF.keys()))
    for view in reversed(VIEWS.values()):
        if view.need in wanted:
            wanted |= {*view.after}
    return wanted


def _ledger_words(world: World) -> str:
    if isinstance(world.kraft, Unknown):
        return "computing the ledger on Spark"
    return f"computing the ledger of {world.kraft.partitions.replica_count():,} replicas on Spark"
