"""Every reader of files that people hand over, with a small file of its kind that the program itself made.

Each is asked through the command that a person's file goes through, or where that needs a cluster or a host, through
the function that the command calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from migrate.kraft.files import read_quorum_state
from migrate.model import plain_tar
from migrate.playbook.access import load_zookeeper_access
from migrate.playbook.load import load_accepted, load_fleet
from tests.fuzz.clusters import (
    ACCEPTED,
    DATA,
    FIRST,
    FLEET,
    backup_parts,
    document,
    read_backup,
    read_document,
    read_metadata,
    sealed_batch,
    shipped,
)
from tests.fuzz.damage import Parts, gzipped
from tests.fuzz.hosts import (
    COMMAND_LINE,
    FACTS,
    JAAS,
    PROPERTIES,
    TCP,
    UNIT,
    archive_members,
    archive_parts,
    collected,
    instruction,
    meta_parts,
    read_archive,
    read_collected,
    read_disks,
    read_facts,
    read_manual,
    read_meta,
    read_names,
    read_places,
    read_process,
    read_properties,
    read_system,
    read_unit,
    sealed_answer,
)
from tests.fuzz.parts import dumped, one
from tests.fuzz.runs import (
    RUN,
    bundle_members,
    bundle_parts,
    in_run,
    read_bundle,
    read_journal,
    read_plan,
    sealed_journal,
    sealed_plan,
    unsealed_journal,
)
from tests.fuzz.trial import Reader
from tests.kraft.logs import captured_log
from tests.playbook.test_access_file import ACCESS


def tar_of(members: Callable[[Parts], list[tuple[str, bytes]]]) -> Callable[[Parts], bytes]:
    """An archive as ours are."""
    return lambda parts: plain_tar.pack(dict(members(parts)))


SEALS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "journal.jsonl": sealed_journal,
    "plan.json": sealed_plan,
    "answer.json": sealed_answer,
    "log.bin": sealed_batch,
}
READERS: Final = tuple(
    replace(entry, sealed=SEALS)
    for entry in (
        Reader(
            "bundle",
            "b.bundle",
            bundle_parts,
            read_bundle,
            packed=tar_of(bundle_members),
            wrapped=gzipped,
            tar=bundle_members,
            edits=60,
            drawn=12,
        ),
        Reader("plan", f"{RUN}/plan.json", in_run("plan.json"), read_plan, edits=60),
        Reader("journal", f"{RUN}/journal.jsonl", unsealed_journal, read_journal, edits=40, drawn=15),
        Reader("backup", "tree.jsonl.gz", backup_parts, read_backup, wrapped=gzipped, edits=80),
        Reader("metadata-log", FIRST, one("log.bin", captured_log()[:6000]), read_metadata),
        Reader(
            "metadata-checkpoint",
            "d/bootstrap.checkpoint",
            one("log.bin", (DATA / "bootstrap.checkpoint").read_bytes()),
            read_metadata,
        ),
        Reader(
            "quorum-state",
            "quorum-state",
            one("q.json", (DATA / "quorum-state").read_bytes()),
            lambda _, path: read_quorum_state(path),
        ),
        Reader("meta-properties", "disk/meta.properties", meta_parts, read_meta),
        Reader("broker-properties", "b.properties", one("b.properties", PROPERTIES), read_properties),
        Reader("playbook", "playbook.yaml", shipped("production-example.yaml"), read_document, edits=60),
        Reader("playbook-small", "playbook.yaml", document("playbook.yaml"), read_document, edits=100),
        Reader("playbook-directories", "playbook.yaml", shipped("directories-example.yaml"), read_document, edits=60),
        Reader("inventory", "inventory.yaml", document("inventory.yaml"), read_document, edits=100),
        Reader("fleet", "fleet.yaml", one("fleet.yaml", FLEET), lambda _, path: load_fleet(path), edits=300),
        Reader(
            "access", "access.yaml", one("access.yaml", ACCESS.encode()), lambda _, path: load_zookeeper_access(path)
        ),
        Reader("accepted", "a.yaml", one("a.yaml", ACCEPTED), lambda _, path: load_accepted(path), edits=300),
        Reader("collector", "answer.json", collected, read_collected, edits=150),
        Reader("collector-remote", "answer.json", collected, read_disks, edits=150),
        Reader(
            "manual-instruction", "m/open/instruction.json", instruction("instruction.json"), read_manual, edits=100
        ),
        Reader("manual-closed", "m/open/closed.json", instruction("closed.json"), read_manual, edits=60),
        Reader("host-facts", "f.json", one("f.json", dumped(FACTS)), read_facts),
        Reader(
            "host-places",
            "p.json",
            one("p.json", dumped({"/a": {"real": "/a", "names": ["x"]}, "/b": {"real": "/c", "names": []}})),
            read_places,
        ),
        Reader(
            "host-archive", "a.tar", archive_parts, read_archive, packed=tar_of(archive_members), tar=archive_members
        ),
        Reader("unit", "u.properties", one("u.properties", UNIT), read_unit),
        Reader("process", "cmdline.bin", one("cmdline.bin", COMMAND_LINE), read_process),
        Reader("jaas", "j.conf", one("j.conf", JAAS), read_system),
        Reader("sockets", "tcp", one("tcp", TCP), read_system),
        Reader("given-up", "n.json", one("n.json", dumped([["a", "b", "c", "d"]])), read_names),
    )
)
