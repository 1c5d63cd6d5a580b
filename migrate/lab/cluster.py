"""One lab: created, started, observed, stopped.  Its processes outlive this one and are adopted by the next call.

Only the lab starts and stops ZooKeeper; brokers and controllers are the migration's to restart, through the host
program, for which the same processes are systemd units.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Self

from migrate.errors import LabMissing, LabRefused, PortTaken, ProcessNotStopped
from migrate.hosts.files import replace_file
from migrate.hosts.properties import parse
from migrate.java.find import Java, find_java
from migrate.java.jars import KafkaJars, Progress, kafka_jars, silent
from migrate.lab import host, kdc, ready, secured, ssh_access
from migrate.lab import topology as topologies
from migrate.lab.configure import (
    LOG_FILES,
    broker_file,
    clients_inventory,
    inventory_of,
    make_secrets,
    process_specs,
    write_inventory,
    zookeeper_file,
)
from migrate.lab.from_bundle import playbook_text
from migrate.lab.seed import Seeded, seed_cluster, seeded
from migrate.lab.seed_data import Seed, keep_seed, seed_of
from migrate.lab.status import LabStatus, observe_lab
from migrate.lab.supervisor import Supervisor, write_spec
from migrate.lab.topology import (
    DEFAULT_SHAPE,
    ISSUER,
    KDC,
    SSH,
    ZOOKEEPER,
    Shape,
    Topology,
)
from migrate.model.config_keys import QuorumKind
from migrate.model.inventory import Inventory
from migrate.model.views import Stopped
from migrate.playbook.load import shipped

STOP_SECONDS: Final = 60.0
PLAYBOOK: Final = "lab-demo.yaml"
FOLDERS: Final = ("conf", "data", "logs", "processes", "runs", "secrets")
ENVIRONMENT: Final = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab's handle; all of its state is on disk."""

    topology: Topology
    supervisor: Supervisor

    # -- making and finding --------------------------------------------------------------------------------------
    @classmethod
    def create(
        cls,
        directory: Path,
        shape: Shape = DEFAULT_SHAPE,
        kafka_home: str | None = None,
        progress: Progress = silent,
        seed: Seed | None = None,
    ) -> Self:
        """The lab in that folder: made if the folder is empty or new, opened (and completed) if it holds one.

        `seed` is what a new one will hold, where it is made from a bundle.

        Raises:
            LabFolderNotOurs: the folder holds something else.
            NoJava, JavaVersionUnsupported, KafkaHomeUnusable, JarsUnavailable, JarSumWrong: nothing to run it with.
        """
        try:
            topology = topologies.load_topology(directory)
        except LabMissing:
            topologies.claim(directory)
            directory.mkdir(parents=True, exist_ok=True)
            topology = topologies.plan_topology(directory, shape)
            if seed is not None:
                keep_seed(topology, seed)
            topologies.save_topology(topology)  # first of all: a run killed from here on leaves a folder that is ours
        lab = cls(topology, Supervisor(topology.processes))
        lab._lay_out(kafka_home, progress)
        return lab

    @classmethod
    def open(cls, directory: Path) -> Self:
        """The lab that is in that folder.

        Raises:
            LabMissing, LabFolderNotOurs: there is none, or it is not readable.
        """
        topology = topologies.load_topology(directory)
        return cls(topology, Supervisor(topology.processes))

    def __post_init__(self) -> None:
        """Have this process ask the lab's KDC, if it has one."""
        if self.topology.kdc_port:
            kdc.use(self.topology)

    def require(
        self, executor: str, *, secured: bool, mechanism: str = "PLAIN", quorum: QuorumKind | None = None
    ) -> None:
        """Refuse a lab that was made with another executor or quorum, or in clear where a secured one is wanted.

        Raises:
            LabRefused: it is another kind of lab.
        """
        self._made_with("--executor", self.inventory.executor, executor)
        if secured and not self.topology.secured:
            raise LabRefused(
                "this lab was made without --secured",
                where=self.topology.directory,
                next_step="make another in an empty folder",
            )
        if secured:
            self._made_with("--mechanism", self.topology.mechanism, mechanism)
        if quorum is not None:
            self._made_with("--quorum", self.topology.quorum, quorum)

    def _made_with(self, option: str, has: str, wanted: str) -> None:
        if has != wanted:
            raise LabRefused(
                f"this lab was made with {option} {has}",
                where=self.topology.directory,
                next_step=f"say {option} {has}, or make another lab in an empty folder",
            )

    @property
    def inventory_path(self) -> Path:
        return self.topology.inventory

    @property
    def playbook_path(self) -> Path:
        """DIR/playbook.yaml: the demo's, which the user may change."""
        return self.topology.folder("playbook.yaml")

    @property
    def inventory(self) -> Inventory:
        return inventory_of(self.topology)

    @property
    def clients_inventory(self) -> Inventory:
        return clients_inventory(self.topology)

    # -- up and down ---------------------------------------------------------------------------------------------
    def up(self, progress: Progress = silent) -> None:
        """Start what does not run, adopt what does, wait until the cluster is whole.

        What is to run is what the configuration files ask for: ZooKeeper while one of them names it, controllers once
        they are formatted.

        Raises:
            PortTaken: something else listens on a port of a process that has to start.
            LabNotReady: a process died or did not become ready.
        """
        self._require_ports()
        if self.topology.kdc_port:
            self._start([KDC], progress)
            self._await("starting the KDC", lambda: ready.port_answers(self.topology.kdc_port), [KDC])
        if self.needs_zookeeper():
            self._start([ZOOKEEPER], progress)
            self._await(
                "starting ZooKeeper", lambda: ready.zookeeper_answers(self.topology.zookeeper_port), [ZOOKEEPER]
            )
        if self.topology.issuer_port:
            self._start([ISSUER], progress)
            self._await("starting the issuer", lambda: ready.port_answers(self.topology.issuer_port), [ISSUER])
        if self.topology.ssh_port:
            self._start([SSH], progress)
            self._await("starting the SSH server", lambda: ready.port_answers(self.topology.ssh_port), [SSH])
        controllers = self._formatted_controllers()
        self._start(controllers, progress)
        brokers = [broker.name for broker in self.topology.brokers]
        self._start(brokers, progress)
        for controller in self.topology.controllers:
            if controller.name in controllers:
                port = controller.port
                self._await(f"starting {controller.name}", partial(ready.port_answers, port), [controller.name])
        self._await("waiting for the brokers", lambda: ready.brokers_agree(self.topology), brokers)
        progress(f"cluster is up: {len(brokers)} brokers, every partition whole")

    def seed(self, progress: Progress = silent) -> Seeded:
        """Fill the cluster with topics, configurations, quotas, users, ACLs, records; what is there is left as it is.

        Raises:
            SeedRefused: the cluster refused a part of it.
        """
        return seed_cluster(self.topology, progress)

    def seeded(self) -> Seeded | None:
        """What a finished seed created; None without one."""
        return seeded(self.topology)

    def status(self) -> LabStatus:
        return observe_lab(self.topology, self.supervisor)

    def down(self, progress: Progress = silent) -> None:
        """Stop everything: brokers, then controllers, then ZooKeeper.  Nothing is deleted."""
        self.stop_nodes(progress)
        self._stop([[ZOOKEEPER, SSH, ISSUER, KDC]], progress)

    def stop_nodes(self, progress: Progress = silent) -> None:
        """Stop the brokers, all at once, then the controllers; whatever else runs stays.

        A process that still runs a minute after SIGTERM is killed: only the lab does that, and only here.
        """
        brokers = [broker.name for broker in self.topology.brokers]
        self._stop([brokers, [controller.name for controller in self.topology.controllers]], progress)

    def _stop(self, groups: Sequence[list[str]], progress: Progress) -> None:
        for group in groups:
            running = [name for name in group if name in self._described() and not self._stopped(name)]
            if running:
                progress(f"stopping {', '.join(running)}")
                with ThreadPoolExecutor(len(running)) as pool:
                    list(pool.map(self._stop_or_kill, running))

    def stop_zookeeper(self, progress: Progress = silent) -> None:
        """Stop ZooKeeper alone: what an operator does after the migration."""
        progress("stopping zookeeper")
        self.supervisor.stop(ZOOKEEPER, STOP_SECONDS)

    # -- what the files ask for ----------------------------------------------------------------------------------
    def needs_zookeeper(self) -> bool:
        """Does the configuration of a broker, or of a formatted controller, name ZooKeeper?"""
        names = [broker.name for broker in self.topology.brokers] + self._formatted_controllers()
        return any("zookeeper.connect" in self._values(name) for name in names)

    def _formatted_controllers(self) -> list[str]:
        return [
            controller.name
            for controller in self.topology.controllers
            if Path(controller.metadata_directory, "meta.properties").exists()
            and self.topology.config(controller.name).exists()
        ]

    def _values(self, name: str) -> dict[str, str]:
        path = self.topology.config(name)
        return parse(path.read_bytes(), str(path))

    # -- laying out ----------------------------------------------------------------------------------------------
    def _lay_out(self, kafka_home: str | None, progress: Progress) -> None:
        """Write missing files.  Existing ones may have been changed by a migration, and stay."""
        for name in FOLDERS:
            self.topology.folder(name).mkdir(mode=0o700, exist_ok=True)
        if kafka_home is not None or not self._is_described():
            self._describe_processes(kafka_home, progress)
        passwords = make_secrets(self.topology)
        if self.topology.secured:
            secured.make_stores(self.topology, passwords)
        if self.topology.kdc_port:
            kdc.lay_out(self.topology, (secured.ADMIN, secured.AT_ZOOKEEPER))
        wanted = {**LOG_FILES, **self._node_files(passwords)}
        for broker in self.topology.brokers:
            for directory in broker.log_dirs:
                Path(directory).mkdir(parents=True, exist_ok=True)
        for name, text in wanted.items():
            path = self.topology.folder("conf", name)
            if not path.exists():
                replace_file(str(path), text.encode())
        if not self.inventory_path.exists():
            write_inventory(self.inventory)
        if not self.playbook_path.exists():
            self._write_playbook()

    def _write_playbook(self) -> None:
        text = shipped(PLAYBOOK).read_text(encoding="utf-8")
        if self.topology.bundled:
            text = playbook_text(text, self.topology, seed_of(self.topology))
        replace_file(str(self.playbook_path), text.encode())

    def _node_files(self, passwords: dict[str, str]) -> dict[str, str]:
        brokers = self.topology.brokers
        found = {f"{node.name}.properties": broker_file(self.topology, node, passwords) for node in brokers}
        if self.topology.secured:
            found |= secured.added_files(self.topology, passwords) | secured.jaas_files(self.topology, passwords)
        if self.topology.issuer_port:
            found |= {f"{ISSUER}.json": secured.issuer_file(self.topology, passwords)}
        return {"zookeeper.properties": zookeeper_file(self.topology), **found}

    def _is_described(self) -> bool:
        """Is there a description of every process, and are its Java and its jars still there?"""
        specs = self.supervisor.specs()
        names = {
            ZOOKEEPER,
            *([SSH] if self.topology.ssh_port else []),
            *([ISSUER] if self.topology.issuer_port else []),
            *([KDC] if self.topology.kdc_port else []),
            *(b.name for b in self.topology.brokers),
            *(c.name for c in self.topology.controllers),
        }
        if not names <= set(specs) or not self.topology.jars.exists():
            return False
        needed = [specs[ZOOKEEPER].argv[0], *self.topology.classpath()]
        return all(Path(path).exists() for path in needed)

    def _describe_processes(self, kafka_home: str | None, progress: Progress) -> None:
        host.install(self.topology, self.inventory)  # before the jars are fetched, which takes a minute
        if self.topology.ssh_port:
            ssh_access.require()
        if self.topology.kdc_port:
            kdc.require()
        java = find_java()
        self.describe(java, kafka_jars(kafka_home, progress, java=java))

    def describe(self, java: Java, jars: KafkaJars) -> None:
        """Write how each process is started, with these jars."""
        listing = "".join(f"{path}\n" for path in jars.classpath)
        replace_file(str(self.topology.jars), listing.encode())
        for spec in process_specs(self.topology, java, jars, ENVIRONMENT):
            write_spec(self.topology.processes, spec)
        if self.topology.issuer_port:
            write_spec(self.topology.processes, secured.issuer_spec(self.topology))
        if self.topology.kdc_port:
            write_spec(self.topology.processes, kdc.spec(self.topology))
        if self.topology.ssh_port:
            ssh_access.lay_out(self.topology)
            write_spec(self.topology.processes, ssh_access.server_spec(self.topology))
        host.lay_programs(self.topology, self.supervisor.specs())

    # -- processes -----------------------------------------------------------------------------------------------
    def _described(self) -> set[str]:
        return set(self.supervisor.specs())

    def _stopped(self, name: str) -> bool:
        return isinstance(self.supervisor.state(name), Stopped)

    def _require_ports(self) -> None:
        for port, name in self.topology.ports().items():
            if self._stopped(name) and not topologies.is_free(port):
                raise PortTaken(
                    f"port {port} is taken",
                    where=f"{topologies.HOST}:{port}",
                    why=f"{name} of this lab is to listen there",
                )

    def _start(self, names: Sequence[str], progress: Progress) -> None:
        stopped = [name for name in names if self._stopped(name)]
        for name in stopped:
            self.supervisor.start(name)
        if stopped:
            progress(f"starting {', '.join(stopped)}")
        if adopted := [name for name in names if name not in stopped]:
            progress(f"running already: {', '.join(adopted)}")

    def _await(self, what: str, reached: Callable[[], str], names: list[str]) -> None:
        ready.wait_until(what, reached, self.supervisor, names)

    def _stop_or_kill(self, name: str) -> None:
        try:
            self.supervisor.stop(name, STOP_SECONDS)
        except ProcessNotStopped:
            self.supervisor.kill(name)
