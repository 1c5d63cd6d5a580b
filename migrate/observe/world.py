"""Gathers a World: the parts that were asked for, side by side, each typed or Unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeVar

from migrate.model.facts import pure_ledger
from migrate.model.ids import NodeId
from migrate.model.launch import Listening
from migrate.model.ledger import Ledger
from migrate.model.outcome import Unknown
from migrate.model.rights import HostRights
from migrate.model.rollback_readiness import Growing, MetadataLogs
from migrate.model.views import KraftView, LiveView, NoFile, Running, ServiceState
from migrate.model.world import BROKER, NOT_ASKED, Need, World
from migrate.observe import analysis
from migrate.observe.sources import Configs, Sources

T = TypeVar("T")
Part = TypeVar("Part")
HostsRights = Mapping[NodeId, HostRights | Unknown]
Ports = Mapping[NodeId, tuple[Listening, ...] | Unknown]
LEDGERS: Final = frozenset({Need.LEDGER, Need.SPARK_LEDGER})
SLOW: Final = frozenset({Need.DIFF, Need.SPARK_LEDGER})
PARTS_AT_ONCE: Final = 12  # no part waits for another's thread
PROOF_SAMPLES: Final = 20  # a broker that believes in KRaft names a random one: N^-20 is the chance of a false pass
FROM_FILES: Final = frozenset(
    {Need.DISKS, Need.BACKUPS, Need.NEW_DIRECTORIES, Need.LISTENERS, Need.STORES}
)  # they are named in the files
FROM_SERVICES: Final = frozenset({Need.METADATA_LOGS, Need.LAUNCHES})  # of running or stopped processes
FOR_STATES: Final = frozenset({Need.ZOOKEEPER, Need.METADATA_LOGS})
FOR_COPY: Final = frozenset({Need.ZOOKEEPER, Need.KRAFT})
FOR_LEDGER: Final = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DISKS})


class ClusterObserver:
    """Implements `migrate.model.ports.Observer` on real sources."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._pool = ThreadPoolExecutor(max_workers=PARTS_AT_ONCE, thread_name_prefix="look")

    def observe(self, needs: frozenset[Need], facts: Mapping[str, str]) -> World:
        """One observation.  Never raises for what cannot be seen: that part is Unknown."""
        wanted = needs | (FOR_LEDGER if needs & LEDGERS else frozenset())
        wanted = wanted | (FOR_STATES if Need.STATES_BEHIND in wanted else frozenset())
        wanted = wanted | (FOR_COPY if Need.COPY in wanted else frozenset())
        wanted = wanted | ({Need.CONFIGS} if wanted & FROM_FILES else frozenset())
        wanted = wanted | ({Need.SERVICES} if wanted & FROM_SERVICES else frozenset())
        zookeeper = self._start(Need.ZOOKEEPER in wanted, self.sources.zookeeper, "reading ZooKeeper")
        processes = self._start(Need.SERVICES in wanted, self.sources.service_states)
        units = self._start(Need.UNITS in wanted, self.sources.units)
        rights: Future[HostsRights | Unknown] | None = self._start(Need.HOST_RIGHTS in wanted, self.sources.host_rights)
        left = self._start(Need.LEFTOVERS in wanted, self.sources.leftovers)
        ports: Future[Ports | Unknown] | None = self._start(Need.PORTS in wanted, self.sources.ports)
        configs: Configs | Unknown = self.sources.configs() if Need.CONFIGS in wanted else NOT_ASKED
        kraft = self._start(Need.KRAFT in wanted, lambda: self._kraft(configs), "reading the metadata")
        late = bool(needs & SLOW)  # these take seconds: who answers and which ISRs are full is asked after them
        look = self._for_a_proof if Need.CONTROLLER_NAMES in wanted else self.sources.live
        asked = bool(wanted & {Need.LIVE, Need.CONTROLLER_NAMES})
        live = self._start(asked and not late, look, "asking brokers and controllers")
        disks = self._start(Need.DISKS in wanted, lambda: _asked(configs, self.sources.disks))
        backups = self._start(Need.BACKUPS in wanted, lambda: _asked(configs, self.sources.backups))
        stores = self._start(Need.STORES in wanted, lambda: _asked(configs, self.sources.stores))
        heard = self._start(
            Need.LISTENERS in wanted, lambda: _asked(configs, partial(self.sources.listeners, broker=facts.get(BROKER)))
        )
        services = _result(processes)
        launches = self._start(Need.LAUNCHES in wanted, lambda: _asked(services, self.sources.launches))
        world = World(
            inventory=self.sources.inventory,
            playbook=self.sources.playbook,
            zookeeper=_result(zookeeper),
            kraft=_result(kraft),
            live=_result(live),
            disks=_result(disks),
            configs=configs,
            services=services,
            backups=_result(backups),
            new_directories=_asked(configs, self.sources.new_directories)
            if Need.NEW_DIRECTORIES in wanted
            else NOT_ASKED,
            metadata_logs=self._metadata_logs(services, rehearse=Need.REHEARSAL in wanted)
            if Need.METADATA_LOGS in wanted
            else NOT_ASKED,
            rehearsal=self.sources.rehearsal() if Need.REHEARSAL in wanted else NOT_ASKED,
            protocols=self.sources.protocols() if Need.PROTOCOLS in wanted else NOT_ASKED,
            applied=self.sources.applied() if Need.APPLIED in wanted else NOT_ASKED,
            ensemble=self.sources.ensemble() if Need.ENSEMBLE in wanted else NOT_ASKED,
            launches=_result(launches),
            ports=_result(ports),
            host_rights=_result(rights),
            units=_result(units),
            leftovers=_result(left),
            listeners=_result(heard),
            stores=_result(stores),
            today=datetime.now(UTC).date().isoformat(),
            facts=facts,
        )
        if Need.STATES_BEHIND in wanted:
            found = self.sources.states_behind(world.metadata_logs, world.zookeeper)
            world = replace(world, states_behind=found)
        if Need.COPY in wanted:
            world = replace(world, copy=self.sources.copy_check(world.zookeeper, world.kraft))
        if Need.SESSIONS in wanted:
            world = replace(world, zookeeper=self.sources.with_sessions(world.zookeeper))
        world = self._analyse(world, needs)
        return replace(world, live=look()) if late and asked else world

    def _for_a_proof(self) -> LiveView | Unknown:
        return self.sources.live(controller_samples=PROOF_SAMPLES)

    def _metadata_logs(
        self, services: Mapping[NodeId, ServiceState] | Unknown, *, rehearse: bool
    ) -> MetadataLogs | Unknown:
        """A log that is still written says nothing of its end.

        With `rehearse` it is read all the same, by what will read it later, to see that this can be done.
        """
        if isinstance(services, Unknown):
            self.sources.forget_metadata_logs()
            return services
        running = []
        for node in self.sources.inventory.controllers:
            match services.get(node.id, Unknown("not looked at")):
                case Unknown() as unseen:
                    self.sources.forget_metadata_logs()
                    return Unknown(f"the process of controller {int(node.id)} cannot be seen ({unseen.reason})")
                case Running():
                    running.append(node.id)
        if not running:
            return self.sources.metadata_logs()
        self.sources.forget_metadata_logs()
        growing = f"controllers {list(map(int, running))} run: their logs still grow"
        if not rehearse:
            return Growing(growing)
        read = self.sources.metadata_logs(growing=running)
        return read if isinstance(read, Unknown) else Growing(growing, rehearsed=True)

    def _kraft(self, configs: Configs | Unknown) -> KraftView | Unknown:
        """Controllers without a file were never started: no connection is tried then."""
        if not isinstance(configs, Unknown):
            files = [configs.get(node.id) for node in self.sources.inventory.controllers]
            if files and all(isinstance(file, NoFile) for file in files):
                return Unknown("no controller has a configuration file yet")
        return self.sources.kraft()

    def _analyse(self, world: World, needs: frozenset[Need]) -> World:
        known: Ledger | Unknown | None = None
        if Need.DIFF in needs:
            both = Need.SPARK_LEDGER in needs and analysis.fit_side_by_side(self.sources, world)
            beside = self._start(both, partial(analysis.spark_ledger, self.sources, world))
            world = analysis.with_diff(self.sources, world)
            known = None if beside is None else beside.result()  # the answer, where the rows are the same afterwards
        if Need.SPARK_LEDGER in needs:
            with self.sources.work.part(_ledger_words(world)):
                return replace(world, ledger=analysis.spark_ledger(self.sources, world, known))
        if Need.LEDGER in needs:
            return replace(world, ledger=pure_ledger(world))
        return world

    def _start(self, wanted: bool, look: Callable[[], T], name: str = "") -> Future[T] | None:
        def named() -> T:
            with self.sources.work.part(name):
                return look()

        return self._pool.submit(named if name else look) if wanted else None

    def close(self) -> None:
        self._pool.shutdown()
        self.sources.close()


def _asked(of: Part | Unknown, look: Callable[[Part], T | Unknown]) -> T | Unknown:
    """What is looked for with another part in hand; where that one is Unknown, so is this."""
    return of if isinstance(of, Unknown) else look(of)


def _ledger_words(world: World) -> str:
    if isinstance(world.kraft, Unknown):
        return "computing the ledger on Spark"
    return f"computing the ledger of {world.kraft.partitions.replica_count():,} replicas on Spark"


def _result(future: Future[T] | Future[T | Unknown] | None) -> T | Unknown:
    return NOT_ASKED if future is None else future.result()
