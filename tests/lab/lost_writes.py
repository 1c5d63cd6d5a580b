"""Changes that Kafka 3.9 loses in dual write, on a real cluster: the way a rollback meets them and goes on."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from migrate.kafka.connection import Connection
from migrate.lab import rollback_proofs, seed
from migrate.lab.cluster import Lab
from migrate.lab.configure import inner_access
from migrate.lab.proofs import SECONDS, quiet_clients
from migrate.lab.rollback_proofs import hash_broker_files
from migrate.lab.seed_data import SeedAcl, SeedQuota
from migrate.lab.topology import HOST
from migrate.model.difference import Difference, DifferenceClass
from migrate.model.history import LoadSummary
from migrate.model.views import Running
from migrate.protocol.messages import ALTER_CLIENT_QUOTAS
from migrate.run import journal as journals
from tests.lab.commands import kraft_migrate
from tests.lab.rollbacks import against, demo, judged

ONLY_ZK, ONLY_KRAFT = DifferenceClass.ONLY_ZK, DifferenceClass.ONLY_KRAFT
STOP: Final = 120.0
QUOTAS: Final = (
    SeedQuota((("client-id", "lost-app"),), {"producer_byte_rate": 1000001.0}),
    SeedQuota((("ip", "10.0.0.1"),), {"connection_creation_rate": 5.0}),
    SeedQuota((("user", "lost-user"), ("client-id", "lost-app")), {"consumer_byte_rate": 1000003.0}),
)
ACL: Final = SeedAcl("group", "lost/group", "literal", "User:lost-user", "*", "read", "allow")
ROWS: Final = (
    Difference("acl", "GROUP|LITERAL|lost%2Fgroup|User:lost-user|*|READ|ALLOW", "present", ONLY_KRAFT, None, "true"),
    Difference("client-quota", "client-id=lost-app", "producer_byte_rate", ONLY_ZK, "1000001.0", None),
    Difference("client-quota", "client-id=lost-app/user=lost-user", "consumer_byte_rate", ONLY_ZK, "1000003.0", None),
    Difference("client-quota", "ip=10.0.0.1", "connection_creation_rate", ONLY_ZK, "5.0", None),
)
REPAIRED: Final = (  # the backup of the refused run still has the quotas that the remedy took out of ZooKeeper
    "Everything that ZooKeeper held before the controllers stopped is there, unchanged. "
    "/config/clients/lost-app differs, /config/ips/10.0.0.1 differs, /config/users/lost-user/clients/lost-app differs"
)
NAMES: Final = tuple(f"{row.kind} {row.key} {row.field}" for row in ROWS)


def plant(lab: Lab) -> None:
    """Quotas made and deleted, and an ACL whose resource name contains `/`: Kafka accepts all of it."""
    port = lab.topology.brokers[0].internal_port
    seed.alter_quotas(lab.topology, QUOTAS, port)
    for quota in QUOTAS:  # one request each: a delta that fails takes with it whatever else is in it
        remove_quota(lab, quota)
    seed.create_acls(AdminClient(quiet_clients(lab.inventory)), (ACL,))


def remove_quota(lab: Lab, quota: SeedQuota) -> None:
    """As `kafka-configs --delete-config` does."""
    entity = [{"entityType": kind, "entityName": name} for kind, name in quota.entity]
    ops = [{"key": key, "value": 0.0, "remove": True} for key in quota.limits]
    body = {"entries": [{"entity": entity, "ops": ops}], "validateOnly": False}
    with Connection(f"{HOST}:{lab.topology.brokers[0].internal_port}", inner_access(lab.topology)) as connection:
        (answer,) = connection.call(ALTER_CLIENT_QUOTAS, body, seconds=SECONDS)["entries"]
    assert answer["errorCode"] == 0, answer


def remove_acl(lab: Lab) -> None:
    """As `kafka-acls --remove` does."""
    found = AclBindingFilter(
        ResourceType.GROUP,
        ACL.name,
        ResourcePatternType.LITERAL,
        ACL.principal,
        ACL.host,
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    admin = AdminClient(quiet_clients(lab.inventory))  # it must outlive its answers
    (answer,) = admin.delete_acls([found]).values()
    assert answer.result(SECONDS)


@dataclass(frozen=True)
class Refused:
    """What was said while the losses stood, and what became of the rollback when they were repaired."""

    planned: str
    applied: str
    running: tuple[str, ...]  # controllers, behind the refusal
    effects: tuple[str, ...]  # of the refused run
    ended: subprocess.CompletedProcess[str]
    against: tuple[str, ...]
    load: LoadSummary


def refused_and_repaired(directory: Path, stage: str) -> Refused:
    """To that stage, the losses, a rollback that is refused, the remedies as they are printed, the same rollback."""
    demo("assess", directory)
    lab = Lab.open(directory)
    before = hash_broker_files(lab)
    demo(stage, directory)
    rollback_proofs.make_objects(lab, stage)
    plant(lab)
    planned = kraft_migrate("rollback", "plan", str(lab.playbook_path), "--out", str(directory / "back.json"))
    fingerprint = json.loads((directory / "back.json").read_text())["fingerprint"]
    folder = Path(lab.inventory.runs) / fingerprint[:8]
    apply = ("rollback", "apply", str(folder / "plan.json"), "--confirm", fingerprint)
    applied = kraft_migrate(*apply)
    assert (planned.returncode, applied.returncode) == (3, 3), planned.stderr + applied.stderr
    names = [controller.name for controller in lab.topology.controllers]
    running = tuple(name for name in names if isinstance(lab.supervisor.state(name), Running))
    events = journals.read(folder / "journal.jsonl").events
    effects = tuple(event.data["effect"] for event in events if event.name == "effect")
    remove_acl(lab)
    leader = json.loads(kraft_migrate("status", str(lab.playbook_path), "--output", "json").stdout)["quorum"]["leader"]
    lab.supervisor.stop(f"controller-{leader}", STOP)
    lab.supervisor.start(f"controller-{leader}")
    ended = kraft_migrate(*apply)
    found = against(lab, stage, before, folder) if not ended.returncode else ()
    said = joined(planned.stdout), joined(applied.stderr)
    return Refused(*said, running, effects, ended, found, judged(lab))


def joined(text: str) -> str:
    """Without blanks: a terminal's lines are broken at hyphens, too."""
    return "".join(text.split())
