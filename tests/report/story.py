"""A made-up but realistic plan, journal and load: three brokers with three directories, one kill, one planted wait."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Final

from migrate.model.findings import Finding, Severity
from migrate.model.history import Event, LoadSummary
from migrate.model.plan import Plan, PlannedStep, PlanSummary
from migrate.model.secrets import without_digits
from migrate.model.stage import Stage
from migrate.model.step import NO_ZNODE, Action
from migrate.report.run_values import Claim, Extra, Holds

START: Final = 1_772_398_800.0  # 2026-03-01 21:00:00 UTC
BROKERS: Final = (1, 2, 3)
CONTROLLERS: Final = (3001, 3002, 3003)
REPLICAS: Final = 36  # of each directory
APPEARS: Final[dict[str, Any]] = {"before": NO_ZNODE, "after": "no copy yet"}
DIGEST: Final = "4f0c1d2e" * 8

WARNING: Final = Finding(
    code="W-DIR-07",
    severity=Severity.WARNING,
    about="broker 2: /var/lib/kafka/disk2",
    message="2 replica folders would be renamed -stray: their topic ids are not in the metadata",
    evidence="audit.events-3, audit.events-7 (1.2 GiB)",
    fix="delete them, or accept them by name",
    blocks_from=99,
)
BLOCKER: Final = Finding(
    code="B-ZKN-05",
    severity=Severity.BLOCKER,
    about="/brokers/topics/orders",
    message="partition 4 is assigned to broker 7, which is not alive",
    evidence="assignment [1, 7, 3]; live brokers 1, 2, 3",
    fix="reassign the partition to live brokers",
    blocks_from=int(Stage.MIGRATION_MODE),
)
INFO: Final = Finding("I-VER-01", Severity.INFO, "broker 1", "runs Kafka 3.9.2", blocks_from=99)
BLIND: Final = tuple(
    Finding(code, Severity.BLIND_SPOT, "KRaft metadata", "not checked", "no controller runs yet", blocks_from=7)
    for code in ("B-MIG-02", "B-QRM-01")
)


def step(stage: Stage, name: str, title: str, *actions: Action, **more: Any) -> PlannedStep:
    """A planned step `stage/name`."""
    values: dict[str, Any] = {
        "kind": name.split("/", maxsplit=1)[0],
        "params": {},
        "binds": {},
        "expects": {},
        "proof": "",
    }
    values |= {"undo": "", **more}
    return PlannedStep(id=f"{stage.label}/{name}", stage=stage, title=title, actions=actions, **values)


def _roll(stage: Stage, broker: int) -> PlannedStep:
    path = "/etc/kafka/server.properties"
    kraft = stage is Stage.KRAFT_MODE
    lines = (
        (f"-broker.id={broker}", f"+node.id={broker}", "+process.roles=broker")
        if kraft
        else (
            "+zookeeper.metadata.migration.enable=true",
            "+controller.quorum.voters=3001@c1:9093,3002@c2:9093,3003@c3:9093",
            " ssl.keystore.password=(sensitive 3f9a12cd)",
        )
    )
    return step(
        stage,
        f"{'roll-to-kraft' if kraft else 'roll-to-migration-mode'}/{broker}",
        f"broker {broker} restarts {'as a KRaft broker' if kraft else 'in migration mode'}",
        Action("~", f"broker {broker}", f"edit {path}", (f"--- {path}", f"+++ {path}", "@@ -1,3 +1,5 @@", *lines)),
        Action(">", f"broker {broker}", "restart: stop, write the file, start"),
        params={"broker": str(broker)},
        binds={f"config:{broker}": DIGEST},
        expects={f"mode:{broker}": "kraft" if kraft else "migration"},
        undo="write the file's copy back and restart",
        proof="a registration of its new incarnation, its directories equal to those on disk, ISR full",
    )


def planned_steps() -> Iterator[PlannedStep]:
    """Every stage."""
    yield step(Stage.DISCOVER, "discover", "find the stage of the cluster")
    yield step(Stage.PREPARE, "back-up-zookeeper", "keep the ZooKeeper tree", Action("+", "here", "write a backup"))
    yield step(
        Stage.CONTROLLERS,
        "format-controllers",
        "the controllers get their storage formatted",
        *(Action("+", f"controller {node}", "kafka-storage format (/var/lib/kafka-meta)") for node in CONTROLLERS),
        undo="stop them and set their directories aside",
    )
    yield step(
        Stage.CONTROLLERS,
        "start-controllers",
        "the controllers start and wait for the brokers",
        *(Action(">", f"controller {node}", "start with the migration flag") for node in CONTROLLERS),
        Action("+", "ZooKeeper", "the controllers create /migration, waiting", znode="/migration", **APPEARS),
        undo="stop them, delete /migration",
        proof="state PRE_MIGRATION at the active controller",
    )
    yield from (_roll(Stage.MIGRATION_MODE, broker) for broker in BROKERS)
    yield step(Stage.COPY, "copy", "the metadata is copied")
    yield step(Stage.HYBRID, "hybrid", "ZooKeeper and KRaft are compared")
    yield from (_roll(Stage.KRAFT_MODE, broker) for broker in BROKERS)
    yield step(Stage.SOAK, "soak", "both are written, and compared again")
    for position in (1, 2, 3):
        yield step(
            Stage.FINALIZE,
            f"finalize-controller/{position}",
            f"controller restart {position} of 3 without the flag",
            Action("!", "a controller", f"restart number {position} of 3, the active one last"),
            undo="none",
        )
    lock: dict[str, Any] = {"znode": "/kraft-migrate/lock", "before": "this run as its holder", "after": NO_ZNODE}
    release = Action("-", "ZooKeeper", "delete the run's own lock", **lock)
    yield step(Stage.CLEANUP, "release-zookeeper", "the lock in ZooKeeper is given back", release)


def disks() -> Iterator[dict[str, str]]:
    """One row a directory."""
    for broker in BROKERS:
        for disk in (1, 2, 3):
            path = f"/var/lib/kafka/disk{disk}"
            row = {"broker": str(broker), "path": path, "health": "healthy", "meta": "V0"}
            yield {**row, "directory.id": directory_id(broker, disk), "replicas": str(REPLICAS)}


def directory_id(broker: int, disk: int) -> str:
    """A plausible id."""
    return f"Rz{broker}k{disk}QmTQvWb0uYl3XhN7w"


def plan(**changes: Any) -> Plan:
    """The whole way, ready with a warning."""
    summary = PlanSummary(
        detected="assess (no /migration, /controller is broker 2's, 3 of 3 brokers in ZooKeeper mode)",
        inventory={"topics": 24, "partitions": 118, "replicas": 324, "topic-config": 31, "acl": 12, "scram": 4},
        disks=tuple(disks()),
        availability=("scratch: one replica; unavailable while its broker restarts (accepted patterns: scratch.*)",),
        blind_spots=("live answers: broker 3 did not answer within 5 s",),
        rollback=(
            {"stage": "migration-mode", "procedure": "roll the brokers back to ZooKeeper mode", "rolls": "1"},
            {"stage": "finalize", "procedure": "none: there is no rollback", "rolls": "-", "controller_gap": "-"},
        ),
    )
    values: dict[str, Any] = {
        "cluster": "payments-eu1",
        "cluster_id": "Zx3vQ0wSTJmD9hK5b1cYgA",
        "change": "CHG0045812",
        "tool_version": "0.1.0",
        "created": START - 600,
        "target": Stage.CLEANUP,
        "playbook": "playbooks/payments-eu1.yaml",
        "playbook_sha256": DIGEST,
        "inventory": "inventory.yaml",
        "steps": tuple(planned_steps()),
        "findings": (INFO, WARNING, *BLIND),
        "summary": summary,
    }
    return Plan(**{**values, **changes})


@dataclasses.dataclass(slots=True)
class Pen:
    """Writes events; `now` moves by hand."""

    now: float = START
    events: list[Event] = dataclasses.field(default_factory=list)

    def write(self, name: str, after: float = 0.0, **data: Any) -> None:
        """One event, `after` seconds later."""
        self.now += after
        self.events.append(Event(len(self.events), self.now, name, data))

    def effect(self, name: str, step_id: str, node: str, took: float = 0.5, detail: str = "") -> None:
        """An effect and its end."""
        self.write("effect", 0.1, step=step_id, effect=name, node=node, detail=detail)
        self.write("effected", took, step=step_id, effect=name, node=node, detail=detail)

    def conclude(self, planned: PlannedStep, outcome: str = "Verified", **more: Any) -> None:
        """The step's end."""
        data = {"evidence": ["seen at offset 812"], "reason": "", **more}
        self.write("conclude", 0.8, step=planned.id, stage=planned.stage.label, outcome=outcome, **data)

    def ledger(self, planned: PlannedStep, offset: int, verified: dict[int, int]) -> None:
        """A ledger: `verified` replicas of each directory of a broker, the rest MIGRATING."""
        cells = []
        for broker in BROKERS:
            for disk in (1, 2, 3):
                done = verified.get(broker, 0)
                states = {"MIGRATING": REPLICAS - done, "VERIFIED": done}
                kept = {state: count for state, count in states.items() if count}
                path = f"/var/lib/kafka/disk{disk}"
                cells.append({"broker": broker, "directory": directory_id(broker, disk), "path": path, "states": kept})
        self.write("ledger", 0.2, step=planned.id, offset=offset, engine="spark", cells=cells)

    def diff(self, planned: PlannedStep, offset: int, unexcused: int = 0) -> None:
        """A comparison."""
        counts = {
            "topic": {"EQUAL": 72},
            "partition": {"EQUAL": 826, "DIFFERS": unexcused} if unexcused else {"EQUAL": 826},
            "topic-config": {"EQUAL": 31},
            "broker-config": {"EQUAL": 9, "EXPECTED": 1},
            "acl": {"EQUAL": 60},
            "scram": {"EQUAL": 16},
            "feature": {"ONLY_KRAFT": 0, "EXPECTED": 2},
        }
        expected = {"the metadata version stands in KRaft alone": 2, "a dynamic sasl.jaas.config is not copied": 1}
        data: dict[str, Any] = {"counts": counts, "unexcused": unexcused, "expected": expected, "lag": 1}
        spots = ["delegation tokens: no master key was given"]
        self.write("diff", 0.4, step=planned.id, offset=offset, blind_spots=spots, **data)


def journal(*, until: str = "", kill: bool = True) -> list[Event]:
    """The journal of the whole run, or of its beginning: up to the step `until`, which is begun and not concluded."""
    pen, of = Pen(), plan()
    header: dict[str, Any] = {
        "plan": of.fingerprint,
        "tool": "0.1.0",
        "cluster": of.cluster,
        "cluster_id": of.cluster_id,
    }
    pen.write("run", **header, change=of.change, host="ops-1")
    pen.write("session", 0.1, pid=4711, host="ops-1", resumed=False)
    stage, verified = "", dict.fromkeys(BROKERS, 0)
    for planned in of.steps:
        if planned.stage.label != stage:
            stage = planned.stage.label
            pen.write("stage", 0.1, stage=stage)
        pen.write("intend", 0.2, step=planned.id, stage=stage, title=planned.title)
        if planned.id == until:
            return pen.events
        if kill and planned.id == "kraft-mode/roll-to-kraft/2":
            _killed(pen, planned)
        _work(pen, planned)
        _prove(pen, planned, verified)
        pen.conclude(planned)
    pen.write("end", 0.1, target="cleanup")
    return pen.events


def _killed(pen: Pen, planned: PlannedStep) -> None:
    node = planned.params["broker"]
    pen.write("effect", 0.3, step=planned.id, effect="stop", node=node, detail="")
    pen.write("session", 14.0, pid=4802, host="ops-1", resumed=True)
    pen.write("intend", 0.4, step=planned.id, stage=planned.stage.label, title=planned.title)


def _work(pen: Pen, planned: PlannedStep) -> None:
    if planned.kind == "back-up-zookeeper":
        pen.effect("backup-zookeeper", planned.id, "zookeeper", 1.2, "zookeeper.jsonl.gz")
        pen.write("note", 0.1, key="backup:zookeeper", value="zookeeper.jsonl.gz: znodes 412")
    elif planned.kind == "format-controllers":
        for node in CONTROLLERS:
            pen.effect("format", planned.id, str(node), 2.2, "release 3.9")
    elif planned.kind == "start-controllers":
        for node in CONTROLLERS:
            pen.effect("start", planned.id, str(node))
        pen.now += 5
    elif planned.kind.startswith("roll"):
        _restart(pen, planned, planned.params["broker"])
    elif planned.kind == "finalize-controller":
        _restart(pen, planned, str(CONTROLLERS[int(planned.id[-1]) - 1]))
    elif planned.kind == "soak":
        pen.now += 20


def _restart(pen: Pen, planned: PlannedStep, node: str) -> None:
    path = "/etc/kafka/server.properties"
    pen.effect("stop", planned.id, node, 2.4)
    pen.effect("write-config", planned.id, node, 0.1, path)
    lines = next(
        ([*map(without_digits, action.diff)] for action in planned.actions if action.diff),
        ["-zookeeper.connect=zk1:2181"],
    )
    pen.write("diff-file", step=planned.id, node=int(node), path=path, lines=lines)
    pen.effect("start", planned.id, node, 0.4)


def _prove(pen: Pen, planned: PlannedStep, verified: dict[int, int]) -> None:
    offset = 600 + len(pen.events)
    if planned.stage is Stage.MIGRATION_MODE:
        pen.now += 4.5
        pen.ledger(planned, -1, verified)
    elif planned.stage is Stage.COPY:
        _wait(pen, planned, "/migration has no offset yet", "the active controller")
        pen.write("copy-check", 0.1, step=planned.id, **COPY_CHECK)
        pen.ledger(planned, offset, verified)
    elif planned.stage in (Stage.HYBRID, Stage.SOAK):
        pen.diff(planned, offset)
        pen.ledger(planned, offset, verified)
    elif planned.stage is Stage.KRAFT_MODE:
        broker = int(planned.params["broker"])
        _wait(pen, planned, f"rows of broker {broker} are MIGRATING", f"broker {broker}")
        verified[broker] = REPLICAS
        pen.ledger(planned, offset, verified)
    elif planned.stage is Stage.FINALIZE:
        pen.now += 3.0
        seen = {"word": "enabled", "starts": "yes", "why": ""}
        nodes = [{"node": node, "unit": f"kafka-{node}.service", **seen} for node in (*BROKERS, *CONTROLLERS)]
        pen.write("units", 0.1, step=planned.id, executor="ssh", nodes=nodes, unseen="")


COPY_CHECK: dict[str, Any] = {
    "zxid": 812,
    "source": "this run's last look before the copy, at zxid 812",
    "offset": 598,
    "at_end": True,
    "counts": {"partition": [137, 137], "topic": [23, 23], "topic-config": [12, 11]},
    "lost": 0,
    "samples": [],
    "known": {"W-ZKN-21": [["topic-config", "ghost", "retention.ms"]]},
    "records": {"TOPIC_RECORD": 23},
    "driver": {"TOPIC_RECORD": 23},
    "miscounted": [],
    "blind_spots": [],
}


def _wait(pen: Pen, planned: PlannedStep, what: str, owner: str) -> None:
    data: dict[str, Any] = {"step": planned.id, "what": what, "owner": owner, "next": "look at its log"}
    pen.write("waiting", 1.0, **data, progress="0")
    pen.write("waiting", 2.5, **data, progress="21")


def load(**changes: Any) -> LoadSummary:
    """A load that lost nothing."""
    values: dict[str, Any] = {
        "sent": 24_118,
        "acknowledged": 24_090,
        "read": 24_097,
        "missing": 0,
        "duplicated": 0,
        "gaps": ((START + 31.0, 2.6, "load-rf3-4"), (START + 80.0, 1.9, "load-rf3-1")),
        "leaderless": (
            (START + 30.5, 2.4, "scratch-0", "RF 1"),
            (START + 79.0, 0.7, "load-rf3-1", "restart of broker 2"),
        ),
        "short": ((START + 78.5, 6.2, "pair-2", "needs every replica; restart of broker 2"),),
        "judged": 812,
    }
    return LoadSummary(**{**values, **changes})


def extra() -> Extra:
    """What the demo would add."""
    stray = Claim("No folder ends in -stray.", Holds.YES, "9 directories looked at")
    return Extra(True, "last hash 9c41d2", claims=(stray,))
