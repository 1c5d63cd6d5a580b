"""A principal of the secured lab with exactly the rights of the table, one of which is taken away at a time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Final

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from migrate.errors import AccessRefused, MigrateError
from migrate.kafka.connection import Connection
from migrate.kafka.controller import ActiveController
from migrate.kafka.live import describe_log_dirs, metadata
from migrate.kraft.fetch import MetadataReader
from migrate.lab import secured
from migrate.lab.cluster import Lab
from migrate.lab.seed import settings_for
from migrate.lab.topology import ZOOKEEPER
from migrate.model.ids import NodeId
from migrate.model.inventory import Access, Inventory
from migrate.model.secrets import Digester
from migrate.playbook.inventory import dump_inventory
from migrate.run import journal as journals
from tests.lab.commands import kraft_migrate, to_its_end
from tests.testing.certificates import secret
from tests.testing.clusters import uuid

TOOL: Final = "tool"
WORD: Final = "canary-of-the-tool"
CLUSTER: Final = (ResourceType.BROKER, "kafka-cluster")
TOPICS: Final = (ResourceType.TOPIC, "*")
Grant = tuple[tuple[ResourceType, str], str]
NEEDED: Final[tuple[Grant, ...]] = ((TOPICS, "DESCRIBE"), (CLUSTER, "DESCRIBE"), (CLUSTER, "CLUSTER_ACTION"))
SECONDS: Final = 40.0
PATIENT, BRIEF = "tool-playbook.yaml", "tool-brief.yaml"  # how long a wait without progress may be


def let_in(lab: Lab) -> None:
    """Before the lab's first start: each part knows the tool's user, and nobody gives it a right."""
    known = f' user_{TOOL}="{WORD}" '
    for broker in lab.topology.brokers:
        path = lab.topology.config(broker.name)
        text = path.read_text()
        key = "listener.name.client.plain.sasl.jaas.config="
        (line,) = [entry for entry in text.splitlines() if entry.startswith(key)]
        path.write_text(text.replace(line, line.replace(" required ", f" required{known}")))
    path = secured.added_path(lab.topology, secured.CONTROLLERS)
    path.write_text(path.read_text().replace(" user_broker=", f"{known}user_broker="))
    path = secured.jaas_path(lab.topology, ZOOKEEPER)
    path.write_text(path.read_text().replace(" required\n", f" required\n {known}\n"))


@dataclass(frozen=True)
class Limited:
    """The lab as the tool's user sees it: an inventory and a playbook of its own."""

    lab: Lab
    inventory: Inventory
    admin: AdminClient

    @classmethod
    def of(cls, lab: Lab) -> Limited:
        """Written beside the lab's own."""
        folder = Path(lab.topology.directory)
        word = secret(folder / "secrets", WORD, TOOL)

        def as_tool(access: Access) -> Access:
            return replace(access, username=TOOL, password=word)

        own = lab.inventory
        known = replace(
            own,
            path=str(folder / "tool.yaml"),
            broker_access=as_tool(own.broker_access),
            controller_access=as_tool(own.controller_access),
        )
        (folder / "tool.yaml").write_text(dump_inventory(known))
        text = lab.playbook_path.read_text().replace("inventory: inventory.yaml", "inventory: tool.yaml")
        (folder / PATIENT).write_text(text)
        (folder / BRIEF).write_text(text.replace("timeout: 3m", "timeout: 10s"))
        return cls(lab, known, AdminClient(settings_for(lab.topology)))

    def grant(self, *grants: Grant) -> None:
        """Exactly these, and nothing else."""
        mine = AclBindingFilter(
            ResourceType.ANY,
            None,  # type: ignore[arg-type] # any name: the stubs ask for a str, the class takes None
            ResourcePatternType.ANY,
            f"User:{TOOL}",
            None,  # type: ignore[arg-type] # any host
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        for future in self.admin.delete_acls([mine], request_timeout=30).values():
            future.result()
        bindings = [
            AclBinding(
                *resource,
                ResourcePatternType.LITERAL,
                f"User:{TOOL}",
                "*",
                getattr(AclOperation, operation),
                AclPermissionType.ALLOW,
            )
            for resource, operation in grants
        ]
        for future in self.admin.create_acls(bindings, request_timeout=30).values() if bindings else ():
            future.result()

    # -- requests ----------------------------------------------------------------------------------------------------
    def topics(self) -> int:
        """Partitions that a broker tells of."""
        with Connection(self.inventory.brokers[0].address, self.inventory.broker_access) as connection:
            return metadata(connection).partitions

    def log_dirs(self) -> int:
        """DescribeLogDirs."""
        with Connection(self.inventory.brokers[0].address, self.inventory.broker_access) as connection:
            return len(describe_log_dirs(connection))

    def quorum(self) -> int:
        """DescribeQuorum, of the leader."""
        return int(ActiveController(self.inventory).quorum().leader)

    def read_metadata(self) -> int:
        """Fetch."""
        with MetadataReader(self.inventory, Digester()) as reader:
            return reader.view().offset

    def assign(self) -> object:
        """AssignReplicasToDirs, for a replica that there is not: with the right it is answered, and changes nothing."""
        return ActiveController(self.inventory).assign(NodeId(0), -1, {uuid(4711): [(uuid(4712), 0)]})

    def elect(self) -> object:
        """ElectLeaders, of a topic that there is not."""
        return ActiveController(self.inventory).elect_leaders({"none-such": [0]})

    # -- commands ----------------------------------------------------------------------------------------------------
    def doctor(self) -> dict[str, list[str]]:
        """`doctor --rights`: health -> what was found, of Kafka's parts."""
        words = ("doctor", "--rights", "--inventory", self.inventory.path, "--output", "json")
        items = json.loads(kraft_migrate(*words).stdout)["items"]
        found: dict[str, list[str]] = {}
        for item in items:
            if item["name"].endswith("rights"):
                found.setdefault(item["health"], []).append(f"{item['name']}: {item['found']}")
        return found

    def planned(self, *words: str) -> CompletedProcess[str]:
        """`plan` or `rollback plan` with a playbook of ours, and what goes with it."""
        folder = Path(self.lab.topology.directory)
        named = [str(folder / word) if word in (BRIEF, PATIENT) else word for word in words]
        return kraft_migrate(*named, "--output", "json")

    def plan(self, *words: str) -> Path:
        """The same with all that it needs: where the plan is."""
        ended = self.planned(*words)
        assert ended.returncode == 2, ended.stdout[-2000:] + ended.stderr[-3000:]
        fingerprint = str(json.loads(ended.stdout)["fingerprint"])
        return Path(self.inventory.runs) / fingerprint[:8] / "plan.json"

    def apply(self, plan: Path, *verb: str) -> tuple[int, str]:
        """`apply`, or another verb: exit code, and all that was said."""
        fingerprint = json.loads(plan.read_text())["fingerprint"]
        directory = Path(self.lab.topology.directory)
        ended = to_its_end(directory, *(verb or ("apply",)), str(plan), "--confirm", fingerprint)
        return ended.returncode, ended.stdout + ended.stderr

    def effects(self, plan: Path) -> list[Any]:
        """What a run of that plan did."""
        path = plan.with_name("journal.jsonl")
        events = journals.read(path).events if path.exists() else ()
        return [event.data for event in events if event.name == "effect" and event.data["effect"] != "acquire-lock"]

    def processes(self) -> dict[str, object]:
        """Every process of the lab, with its start."""
        return {name: self.lab.supervisor.state(name) for name in self.lab.supervisor.specs()}


def becomes(question: Callable[[], object], wanted: Callable[[object], bool]) -> object:
    """ACLs reach each node a moment later: asked until the answer is the wanted one."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            found = question()
        except MigrateError as error:  # an answer here
            found = error
        if wanted(found):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.2)  # noqa: TID251 - nothing tells when a node has read an ACL


def refused(question: Callable[[], object], right: str) -> None:
    """It ends in the error that names that right, with no secret in it."""
    found = becomes(question, lambda answer: isinstance(answer, Exception) and right in told(answer))
    assert WORD not in told(found)


def told(answer: object) -> str:
    """An error with all that it says."""
    return f"{answer!s} {getattr(answer, 'why', '')}"


def allowed(question: Callable[[], object]) -> None:
    """It is answered, be it with an error about the thing itself."""
    becomes(question, lambda answer: not isinstance(answer, AccessRefused) and "AUTHORIZATION" not in told(answer))


def each_right_in_turn(limited: Limited) -> None:
    """Requests: exactly the table's rights are enough; each that is taken away is named."""
    everything = limited.inventory.zookeeper  # the brokers' identity there
    assert everything
    needs: dict[Grant, tuple[Callable[[], object], ...]] = {
        (CLUSTER, "DESCRIBE"): (limited.log_dirs, limited.quorum),
        (CLUSTER, "CLUSTER_ACTION"): (limited.read_metadata, limited.assign),
        (CLUSTER, "ALTER"): (limited.elect,),
    }
    grants = (*NEEDED, (CLUSTER, "ALTER"))
    limited.grant(*grants)
    for asked in (limited.log_dirs, limited.quorum, limited.read_metadata, limited.assign, limited.elect):
        allowed(asked)
    becomes(limited.topics, lambda answer: isinstance(answer, int) and answer > 0)
    for grant, requests in needs.items():
        taken = {grant, (CLUSTER, "ALTER")} if grant == (CLUSTER, "DESCRIBE") else {grant}  # ALTER implies DESCRIBE
        limited.grant(*(entry for entry in grants if entry not in taken))
        for asked in requests:
            refused(asked, f"it needs {grant[1]} on Cluster")
    limited.grant(*(entry for entry in grants if entry[0] != TOPICS))
    becomes(limited.topics, lambda answer: answer == 0)


def doctor_says(limited: Limited) -> None:
    """Nothing of exactly the table's rights; else what is missing."""
    limited.grant(*NEEDED)
    becomes(limited.read_metadata, lambda answer: isinstance(answer, int))
    becomes(limited.topics, lambda answer: isinstance(answer, int) and answer > 0)
    found = kafkas(limited.doctor())
    assert not found.get("missing"), found
    limited.grant((CLUSTER, "CREATE"), (TOPICS, "WRITE"))
    becomes(limited.log_dirs, lambda answer: isinstance(answer, AccessRefused))
    becomes(limited.quorum, lambda answer: isinstance(answer, MigrateError))
    found = kafkas(limited.doctor())
    assert any("broker rights" in text and "lacks DESCRIBE" in text for text in found["missing"]), found
    assert any("controller rights" in text and "DESCRIBE, CLUSTER_ACTION" in text for text in found["missing"]), found
    one_topic = ((ResourceType.TOPIC, "single-ledger"), "DESCRIBE")
    limited.grant((CLUSTER, "DESCRIBE"), (CLUSTER, "CLUSTER_ACTION"), one_topic)
    becomes(limited.topics, lambda answer: answer == 1)
    becomes(limited.log_dirs, lambda answer: isinstance(answer, int))
    found = kafkas(limited.doctor())
    assert any("may describe 1 of " in text for text in found["missing"]), found


def kafkas(found: dict[str, list[str]]) -> dict[str, list[str]]:
    """Without ZooKeeper's part: this user comes there as the brokers."""
    return {health: [text for text in texts if "zookeeper" not in text] for health, texts in found.items()}


def a_run_with_each_right_taken_away(limited: Limited) -> None:
    """The same plan: each time an error that names the right, nothing done; with all of them it is carried out."""
    limited.grant(*NEEDED)
    becomes(limited.read_metadata, lambda answer: isinstance(answer, int))
    becomes(limited.topics, lambda answer: isinstance(answer, int) and answer > 0)
    plan, before = limited.plan("plan", BRIEF, "--stage", "kraft-mode"), limited.processes()
    takes: dict[Grant, Callable[[], object]] = {
        (CLUSTER, "DESCRIBE"): limited.quorum,
        (CLUSTER, "CLUSTER_ACTION"): limited.read_metadata,
    }
    for grant, asked in takes.items():
        limited.grant(*(entry for entry in NEEDED if entry != grant))
        refused(asked, f"it needs {grant[1]} on Cluster")
        code, said = limited.apply(plan)
        assert code not in (0, 5), said[-2000:]
        assert f"it needs {grant[1]} on Cluster" in said, said[-3000:]
        assert limited.effects(plan) == []
        assert limited.processes() == before
    limited.grant(*(entry for entry in NEEDED if entry[0] != TOPICS))
    becomes(limited.topics, lambda answer: answer == 0)
    code, said = limited.apply(plan)
    assert code == 5, said[
        -2000:
    ]  # brokers leave such topics out, as those that they do not know yet: it is waited for
    assert "E-RUN-06" in said
    assert "see that the principal of broker_access may DESCRIBE every topic" in said, said[-3000:]
    assert limited.effects(plan) == []
    assert limited.processes() == before
    limited.grant(*NEEDED)
    becomes(limited.topics, lambda answer: isinstance(answer, int) and answer > 0)
    becomes(limited.read_metadata, lambda answer: isinstance(answer, int))
    code, said = limited.apply(limited.plan("plan", PATIENT, "--stage", "kraft-mode"))
    assert code == 0, said[-4000:]
    after = limited.processes()
    assert {name for name, state in after.items() if state != before[name]} == {"broker-0", "broker-1", "broker-2"}
