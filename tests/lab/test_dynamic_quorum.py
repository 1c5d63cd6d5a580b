"""A dynamic quorum (KIP-853) on real processes: there, back, and there again; and each of its own faults.

What the tool prints as the remedy of a fault is typed as it stands there.  Each commit runs one fault, a controller
whose disk is lost before the copy; the rest is `long`.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from migrate.hosts.properties import edit, parse
from migrate.lab import host
from migrate.lab.cluster import Lab
from migrate.lab.load import client_properties
from migrate.lab.topology import LabController
from migrate.model.broker_modes import FLAG
from migrate.model.config_keys import BOOTSTRAP, VOTERS
from tests.lab.commands import STOP, kraft_migrate, to_its_end
from tests.testing.tiers import parts

pytestmark = pytest.mark.kafka
SECONDS: Final = 120.0
SHORT_LOG: Final = {
    "metadata.log.segment.min.bytes": "1024",
    "metadata.log.segment.bytes": "20480",
    "metadata.max.retention.bytes": "20480",
    "metadata.log.max.record.bytes.between.snapshots": "4096",
}
TOOLS: Final = {
    "kafka-metadata-quorum.sh": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-features.sh": "org.apache.kafka.tools.FeatureCommand",
}


@dataclass(frozen=True)
class Person:
    """Looks at a lab with the tool, and types what it prints."""

    lab: Lab

    # -- looking -------------------------------------------------------------------------------------------------
    def found(self, *codes: str) -> list[Any]:
        """What `assess` finds that blocks, of the quorum or with these codes."""
        ended = kraft_migrate("assess", str(self.lab.playbook_path), "--output", "json")
        entries = json.loads(ended.stdout)["findings"]
        wanted = codes or ("B-QRM-",)
        return [entry for entry in entries if entry["code"].startswith(wanted)]

    def until_found(self, *codes: str, about: str = "") -> Any:
        """The first of them, as soon as there is one."""
        deadline = time.monotonic() + SECONDS
        while not (hits := [hit for hit in self.found(*codes) if about in hit["about"]]):
            assert time.monotonic() < deadline
        return hits[0]

    def until_well(self) -> None:
        """Nothing blocks any more."""
        deadline = time.monotonic() + SECONDS
        while hits := self.found():
            assert time.monotonic() < deadline, hits

    def status(self) -> Any:
        """All of it."""
        ended = kraft_migrate("status", str(self.lab.playbook_path), "--output", "json")
        assert ended.returncode in (0, 3), ended.stderr
        return json.loads(ended.stdout)

    def followers(self) -> list[LabController]:
        """All but the active one."""
        leader = self.status()["quorum"]["leader"]
        return [node for node in self.lab.topology.controllers if node.id != leader]

    # -- doing ---------------------------------------------------------------------------------------------------
    def types(self, text: str) -> None:
        """Each command in backquotes, in order, with Kafka's tools on the PATH and the lab's units behind systemctl."""
        commands = [word for word in re.findall("`([^`]*)`", text) if " " in word]
        assert commands, text
        tools = self.lab.topology.folder("tools")
        tools.mkdir(exist_ok=True)
        java = self.lab.supervisor.spec(self.lab.topology.controllers[0].name).argv[0]
        start = (
            '[ "$1 $2" = "systemctl start" ] && set -- systemctl start --no-block -- "$3"'  # as the stand-in knows it
        )
        programs = {"sudo": f'[ "$1" = -u ] && shift 2\n{start}\nexec "$@"'}
        for name, main in TOOLS.items():
            programs[name] = f'exec {shlex.join([java, "-cp", ":".join(self.lab.topology.classpath()), main])} "$@"'
        for name, script in programs.items():
            (tools / name).write_text(f"#!/bin/sh\n{script}\n")
            (tools / name).chmod(0o755)
        (tools / "admin.properties").write_text(client_properties(self.lab.inventory.controller_access))
        environment = {"PATH": f"{tools}:{self.lab.topology.folder(host.FOLDER, host.BIN)}:/usr/bin:/bin"}
        for command in commands:
            ended = subprocess.run(
                ["sh", "-c", command],
                cwd=tools,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=SECONDS,
            )
            assert ended.returncode == 0, (command, ended.stdout, ended.stderr)

    def restart(self, node: LabController) -> None:
        """With its file as it is."""
        self.lab.supervisor.stop(node.name, STOP)
        self.lab.supervisor.start(node.name)

    def loses_disk(self, node: LabController) -> None:
        """Its process ends, and an empty folder is all that is left."""
        self.lab.supervisor.stop(node.name, STOP)
        shutil.rmtree(node.metadata_directory)
        Path(node.metadata_directory).mkdir()

    def mends_disk(self, node: LabController) -> None:
        """What `status` says of it, then what `assess` says of its vote."""
        old = identity(node)
        (trouble,) = [row for row in self.status()["disks"] if row["broker"] == node.id]
        sentence = next(words for words in trouble["do"] if "with a new disk" in words)
        assert "--no-initial-controllers" in trouble["command"]
        self.types(sentence)
        hit = self.until_found("B-QRM-05", about=f"controller {node.id}")
        assert hit["fix"].index("remove-controller") < hit["fix"].index("add-controller")
        self.types(hit["fix"])
        self.until_well()
        assert identity(node) != old

    def edits(self, node: LabController, values: dict[str, str], *removed: str) -> bytes:
        """Its file, and what it was."""
        path = self.lab.topology.config(node.name)
        before = path.read_bytes()
        path.write_bytes(edit(before, values, removed))
        return before


def identity(node: LabController) -> str:
    """The directory id on its disk, "" for none."""
    path = Path(node.metadata_directory, "meta.properties")
    return parse(path.read_bytes()).get("directory.id", "") if path.exists() else ""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A lab's folder; what runs in it is stopped at the end."""
    try:
        yield tmp_path / "lab"
    finally:
        kraft_migrate("lab", "down", "--dir", str(tmp_path / "lab"))


@pytest.fixture(scope="module")
def before_copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """A lab whose controllers wait for brokers: every fault leaves it as it was."""
    folder = tmp_path_factory.mktemp("dynamic") / "lab"
    try:
        demo(folder, "--until", "controllers", "--keep")
        person = Person(Lab.open(folder))
        assert person.found() == []
        yield person
    finally:
        kraft_migrate("lab", "down", "--dir", str(folder))


def demo(folder: Path, *words: str) -> None:
    """`lab demo --quorum dynamic`, proven."""
    ended = to_its_end(folder, "lab", "demo", "--dir", str(folder), "--quorum", "dynamic", "--no-load", *words)
    assert ended.returncode == 0, ended.stderr[-3000:]


# -- faults before the copy ------------------------------------------------------------------------------------------
def disk_lost(person: Person) -> None:
    """Formatted without voters it follows without a vote, under a new directory id, and gets one."""
    node = person.followers()[-1]
    person.loses_disk(node)
    person.mends_disk(node)


def active_disk_lost(person: Person) -> None:
    """The same of the active one."""
    (leader,) = {node.id for node in person.lab.topology.controllers} - {node.id for node in person.followers()}
    node = next(node for node in person.lab.topology.controllers if node.id == leader)
    person.loses_disk(node)
    person.mends_disk(node)


def other_directory_id(person: Person) -> None:
    """The first command again, with a list that names another id: in silence it is an observer beside its dead vote."""
    node = person.followers()[0]
    spec = person.lab.supervisor.spec(node.name)
    cluster = parse(Path(node.metadata_directory, "meta.properties").read_bytes())["cluster.id"]
    person.loses_disk(node)
    ids = {one.id: f"AAAAAAAAQAAAAAAAAAAA{index}A" for index, one in enumerate(person.lab.topology.controllers)}
    voters = ",".join(f"{one.id}@127.0.0.1:{one.port}:{ids[one.id]}" for one in person.lab.topology.controllers)
    words = ["--cluster-id", cluster, "-c", spec.config, "--release-version", "3.9", "--initial-controllers", voters]
    subprocess.run([*spec.format_argv, *words], check=True, capture_output=True, env=spec.environment)
    person.lab.supervisor.start(node.name)
    hit = person.until_found("B-QRM-05", about=f"controller {node.id}")
    assert "runs as an observer" in hit["message"] or "its metadata directory has" in hit["message"]
    person.types(hit["fix"])


def voters_missing(person: Person) -> None:
    """One voter, as `--standalone` leaves it: the others are named, each with its command."""
    for node in person.followers():
        leader = next(
            one for one in person.lab.topology.controllers if one.id not in {n.id for n in person.followers()}
        )
        words = f"--controller-id {node.id} --controller-directory-id {identity(node)}"
        person.types(
            f"`kafka-metadata-quorum.sh --bootstrap-controller 127.0.0.1:{leader.port} remove-controller {words}`"
        )
    for node in [*person.followers()]:
        hit = person.until_found("B-QRM-05", about=f"controller {node.id}")
        assert "add-controller" in hit["fix"]
        person.types(hit["fix"])


def without_flag(person: Person) -> None:
    """Elected after the copy it would finalize, and nothing of Kafka's waits for it: the first roll is not begun."""
    node = person.followers()[0]
    before = person.edits(node, {}, FLAG)
    person.restart(node)
    hit = person.until_found("B-QRM-03", about=f"controller {node.id}")
    planned = kraft_migrate("plan", str(person.lab.playbook_path), "--stage", "migration-mode")
    assert planned.returncode == 3, planned.stdout[-2000:]
    assert hit["fix"].startswith(f"Put {FLAG}=true into that file")
    person.edits(node, {FLAG: "true"})
    assert parse(person.lab.topology.config(node.name).read_bytes()) == parse(before)
    person.restart(node)


def inventory_says_static(person: Person) -> None:
    """The remedy is the inventory, for neither kind can be made the other."""
    path = person.lab.inventory_path
    text = path.read_text()
    assert "quorum: dynamic" in text
    path.write_text(re.sub(r"\n *quorum: dynamic", "", text))
    hit = person.until_found("B-QRM-02", about="the quorum")
    assert "it is dynamic" in hit["message"]
    assert hit["fix"].startswith("Make the inventory's `quorum` the kind that runs")
    path.write_text(text)


def file_of_other_kind(person: Person) -> None:
    """It stays a voter, and whoever reads its file is misled; both keys are worse."""
    node = person.followers()[0]
    values = parse(person.lab.topology.config(node.name).read_bytes())
    voters = ",".join(f"{one.id}@127.0.0.1:{one.port}" for one in person.lab.topology.controllers)
    for removed in ((BOOTSTRAP,), ()):
        before = person.edits(node, {VOTERS: voters}, *removed)
        person.restart(node)
        hit = person.until_found("B-QRM-02", about=f"node {node.id}")
        assert "Give each file the key of that kind alone" in hit["fix"]
        person.edits(node, {BOOTSTRAP: values[BOOTSTRAP]}, VOTERS)
        assert removed or person.lab.topology.config(node.name).read_bytes() == before
        person.restart(node)
        person.until_well()


def list_too_short(person: Person) -> None:
    """A node finds the active controller by that list alone, also when the one it names is gone."""
    node = person.followers()[0]
    values = parse(person.lab.topology.config(node.name).read_bytes())
    person.edits(node, {BOOTSTRAP: values[BOOTSTRAP].partition(",")[0]})
    hit = person.until_found("B-QRM-01", about=f"node {node.id}")
    assert f"the inventory gives {values[BOOTSTRAP]}" in hit["message"]
    person.edits(node, {BOOTSTRAP: values[BOOTSTRAP]})


FAULTS: Final[dict[str, Callable[[Person], None]]] = {
    found.__name__.replace("_", "-"): found
    for found in (
        disk_lost,
        active_disk_lost,
        other_directory_id,
        voters_missing,
        without_flag,
        inventory_says_static,
        file_of_other_kind,
        list_too_short,
    )
}


@pytest.mark.parametrize("fault", parts(FAULTS, each_commit=["disk-lost"]))
def test_before_the_copy_each_fault_is_named_and_what_is_printed_cures_it(before_copy: Person, fault: str) -> None:
    """Nothing blocks before it, and nothing after it."""
    FAULTS[fault](before_copy)
    before_copy.until_well()


# -- later stages ----------------------------------------------------------------------------------------------------
@pytest.mark.long
def test_a_migration_goes_back_from_hybrid_and_again_to_its_end_with_new_directory_ids(folder: Path) -> None:
    """Each claim of the demo is proven; an id that was used is never used again."""
    demo(folder, "--rollback-from", "hybrid")
    used: list[str] = []
    for path in (folder / "runs").glob("*/plan.json"):
        used += set(re.findall(r"3000@[0-9.:]+:([\w-]{22})", path.read_text("utf-8")))
    assert len(used) == len(set(used)) == 2


def carried_out(person: Person, stage: str, crash: str = "") -> subprocess.CompletedProcess[str]:
    """A plan of that stage, applied; `crash` names the point at which the run kills itself."""
    planned = kraft_migrate("plan", str(person.lab.playbook_path), "--stage", stage, "--output", "json")
    assert planned.returncode == 2, planned.stderr[-3000:] + planned.stdout[-3000:]
    fingerprint = json.loads(planned.stdout)["fingerprint"]
    path = Path(person.lab.inventory.runs) / fingerprint[:8] / "plan.json"
    confirmed = ("--confirm", fingerprint, "--confirm-cluster", person.lab.inventory.name)
    return kraft_migrate("apply", str(path), *(confirmed if stage == "cleanup" else ()), crash=crash)


@pytest.mark.long
def test_a_controller_whose_disk_is_lost_votes_again_in_every_stage(folder: Path) -> None:
    """Half of the first roll, dual write, half of the second roll, KRaft mode, finalized; then the way on is open."""
    demo(folder, "--until", "controllers", "--keep")
    person = Person(Lab.open(folder))
    for stage, point in (
        ("migration-mode", "before:stop:1"),
        ("hybrid", ""),
        ("kraft-mode", "before:stop:1"),
        ("soak", ""),
        ("finalize", ""),
    ):
        if point:
            killed = carried_out(person, stage, point)
            assert killed.returncode == -9, killed.stderr[-3000:]
            active_disk_lost(person)
        else:
            demo(folder, "--until", stage, "--keep")
            disk_lost(person)
    ended = carried_out(person, "cleanup")  # `lab demo` proves more, by a log that has its beginning
    assert ended.returncode == 0, ended.stderr[-3000:]


@pytest.mark.long
def test_on_a_secured_cluster_the_printed_commands_log_in(folder: Path) -> None:
    """A disk lost before the copy, and the active controller's in dual write; then the way on is open."""
    demo(folder, "--secured", "--until", "controllers", "--keep")
    person = Person(Lab.open(folder))
    disk_lost(person)
    demo(folder, "--secured", "--until", "hybrid", "--keep")
    active_disk_lost(person)
    ended = carried_out(person, "kraft-mode")
    assert ended.returncode == 0, ended.stderr[-3000:]


def level_without_effect(person: Person) -> None:
    """Set and taken back, kraft.version says nothing: the quorum is dynamic in every report, and equal is equal."""
    asked = ",".join(f"127.0.0.1:{node.port}" for node in person.lab.topology.controllers)
    for order, level in (("upgrade", 1), ("downgrade", 0)):
        person.types(f"`kafka-features.sh --bootstrap-controller {asked} {order} --feature kraft.version={level}`")
        assert person.found() == []
        compared = kraft_migrate("diff", str(person.lab.playbook_path))
        assert (compared.returncode, "downgrade" in compared.stdout) == (0, False), compared.stdout
        if order == "upgrade":
            hit = person.until_found("W-QRM-09")
            assert "the quorum is dynamic" in hit["message"]
            assert "Do not take it back" in hit["fix"]


def two_lost(person: Person) -> LabController:
    """The active one and a follower; the survivor, stopped too, as S-STUCK-10 wants it."""
    survivor, *_ = person.followers()
    for node in person.lab.topology.controllers:
        if node.id != survivor.id:
            person.loses_disk(node)
    return survivor


def begins_late(person: Person) -> None:
    """The heads of the controllers' logs are deleted: who votes stands in their checkpoints alone."""
    for node in person.lab.topology.controllers:
        person.edits(node, SHORT_LOG)
        person.restart(node)
    deadline = time.monotonic() + 4 * SECONDS
    folders = [Path(node.metadata_directory, "__cluster_metadata-0") for node in person.lab.topology.controllers]
    while not all(min(int(path.stem) for path in folder.glob("*.log")) for folder in folders):
        assert time.monotonic() < deadline
    person.until_well()


@pytest.mark.long
def test_with_two_of_three_controllers_lost_in_dual_write_every_broker_goes_back(folder: Path) -> None:
    """Stopped logs that begin late prove who votes; what only the lost two held is given up by name."""
    demo(folder, "--until", "hybrid", "--keep")
    person = Person(Lab.open(folder))
    begins_late(person)
    playbook = str(person.lab.playbook_path)
    for node in person.lab.topology.controllers:
        person.lab.supervisor.stop(node.name, STOP)
    whole = kraft_migrate("rollback", "plan", playbook)
    assert (whole.returncode, "discard" in whole.stdout) == (2, False), whole.stdout + whole.stderr
    for node in person.lab.topology.controllers:
        person.lab.supervisor.start(node.name)
    person.until_well()
    survivor = two_lost(person)
    (waits,) = [entry for entry in person.status()["waiting"] if entry["code"] == "S-STUCK-10"]
    assert f"stop every controller, then `kraft-migrate rollback plan {playbook} --discard" in waits["next"]
    person.lab.supervisor.stop(survivor.name, STOP)
    refused = kraft_migrate("rollback", "plan", playbook)
    assert refused.returncode != 2, refused.stdout
    assert "--discard-differences" in refused.stderr + refused.stdout
    planned = kraft_migrate("rollback", "plan", playbook, "--discard-differences", "--output", "json")
    assert planned.returncode == 2, planned.stderr[-3000:]
    fingerprint = json.loads(planned.stdout)["fingerprint"]
    path = Path(person.lab.inventory.runs) / fingerprint[:8] / "plan.json"
    applied = to_its_end(folder, "rollback", "apply", str(path), "--confirm", fingerprint)
    assert applied.returncode == 0, applied.stderr[-4000:]
    demo(folder)


@pytest.mark.long
def test_with_two_of_three_controllers_lost_and_brokers_in_kraft_mode_the_third_ones_log_is_left(folder: Path) -> None:
    """docs/support.md, word by word; then the migration goes to its end."""
    demo(folder, "--until", "kraft-mode", "--keep")
    person = Person(Lab.open(folder))
    level_without_effect(person)
    survivor = two_lost(person)
    (waits,) = [entry for entry in person.status()["waiting"] if entry["code"] == "S-STUCK-10"]
    assert "docs/support.md has what is left under `Two of three are lost`" in waits["next"]
    person.lab.supervisor.stop(survivor.name, STOP)
    page = Path("docs/support.md").read_text("utf-8").partition("**Two of three are lost.**")[2]
    first, *block = page.partition("```sh\n")[2].partition("```")[0].splitlines()
    for node in person.lab.topology.controllers:
        if node.id == survivor.id:
            continue
        places = {"LEFT": survivor.metadata_directory, "LOST": node.metadata_directory, "ID": str(node.id)}
        said = shell(first, places)
        voters = json.loads(said)["data"]["voters"]
        places["DIRECTORY"] = next(one["voterDirectoryId"] for one in voters if one["voterId"] == node.id)
        for line in block:
            shell(line, places)
    for node in person.lab.topology.controllers:
        person.lab.supervisor.start(node.name)
    person.until_well()
    demo(folder)


def shell(line: str, places: dict[str, str]) -> str:
    """A line of a page with each of these words replaced; what it prints."""
    command = re.sub(r"\b(LEFT|LOST|ID|DIRECTORY)\b", lambda found: places[found[0]], line)
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True, env={"PATH": path})
    return done.stdout
