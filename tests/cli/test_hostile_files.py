"""Whatever text a file, a host or a cluster holds: each command shows it spelled out, and it forges no line.

One hostile text stands in each place for a text in turn.  A command may refuse such a file by name; what it prints
must be harmless all the same, on a terminal and in a file.
"""

from __future__ import annotations

import copy
import gzip
import hashlib
import json
import re
import shutil
import typing
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate.cli.planning import save_plan
from migrate.cli.unlock import as_text
from migrate.model import plain_tar
from migrate.model.codec import NotDecodable, decode, encode
from migrate.model.history import Event
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.world import World
from migrate.observe.bundle import PARTS, write_bundle
from migrate.plan.build import build
from migrate.playbook.load import load_inventory, load_playbook
from migrate.run import journal as journals
from migrate.run.journal import Journal
from tests.cli.commands import playbook_in
from tests.cli.terminals import ANSI, shown
from tests.playbook.test_load_fleet import written
from tests.run.test_engine import PLANNED_ON, run
from tests.steps.looks import whole
from tests.testing import worlds
from tests.testing.kept import sources_of
from tests.testing.simulated import SimulatedCluster

FORGED = "ok     forged: all of it holds"
HOSTILE = f"\x07\x1b]0;x\x07\r\n{FORGED}\n\u202e\u2066\u200b\x9b\u2028{FORGED}"
LONE = f"\ud800{HOSTILE}"
KINDS = ("file", "terminal")
HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run, with a backup that has a secret in it."""
    folder = tmp_path_factory.mktemp("run")
    file = playbook_in(folder, "assess", "prepare")
    playbook, inventory = load_playbook(file), load_inventory(folder / "inventory.yaml")
    cluster = SimulatedCluster.in_zookeeper_mode()
    world = replace(cluster.observe(PLANNED_ON, {}), playbook=playbook)
    made = build(world, playbook, target=Stage.PREPARE, only=False, created=1.0)
    made = replace(made, inventory=inventory.path)
    path = save_plan(inventory, made).parent
    run(cluster, made, path)
    (path / "backup").mkdir(exist_ok=True)
    (path / "backup" / "zookeeper.jsonl.gz").write_bytes(b"hunter2")
    return path


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No second look is waited for."""
    monkeypatch.setattr("migrate.cli.assessing.SECONDS_BETWEEN", 0.0)


def harmless(kind: str, *words: object) -> int:
    """Run the command; nothing that it prints acts, and no line is another's.  Its exit code."""
    ended = shown(kind, *words)
    # colours, cursor movements, and the line that says what is waited for are ours: a slow host sees that one, too
    text = ANSI.sub("", re.sub(r"\r(?=[^\r\n]*\x1b\[K)", "", ended.text)) if kind == "terminal" else ended.text
    acting = sorted({char for char in text if unicodedata.category(char) in HIDDEN} - {"\n"})
    assert acting == [], (words, acting, text)
    assert not [line for line in text.split("\n") if line.startswith(FORGED)], (words, text)
    assert "E-DEFECT" not in text, text
    assert "Traceback" not in text, text
    return ended.code


# -- every text of a tree --------------------------------------------------------------------------------------------
def places(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of all texts; entries of a list, and of a mapping with keys that are data, have one path."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from places(part, (*path, key))
    elif isinstance(value, list):
        for part in value:
            yield from places(part, (*path, "*"))


def bent(value: Any, path: tuple[str, ...], text: str) -> Any:
    """A copy with that text at that path, in the first entry of each list on the way."""
    if not path:
        return text
    head, *rest = path
    found = copy.copy(value)
    if head != "*":
        found[head] = bent(value[head], tuple(rest), text)
        return found
    at = next(index for index, part in enumerate(value) if tuple(rest) in set(places(part)))
    found[at] = bent(value[at], tuple(rest), text)
    return found


# -- what clusters and hosts say -------------------------------------------------------------------------------------
def told_world() -> World:
    """A cluster in the middle of a migration with something of every kind in it."""
    world = worlds.with_entity(whole(Stage.KRAFT_MODE), "topic-config", "t0", "retention.ms", "7")
    return worlds.with_directory(
        world, 1, 2, lambda entry: replace(entry, problem="input/output error", oddities=("a stray folder",))
    )


def worlds_with(text: str) -> Iterator[tuple[str, World]]:
    """That world with the text in each place of it in turn, as far as a view can hold it."""
    hints = typing.get_type_hints(World)
    world = told_world()
    for part in PARTS:
        tree = json.loads(json.dumps(encode(getattr(world, part))))
        for path in sorted({path for path in places(tree) if path[-1] != "$"}):
            try:
                changed = decode(hints[part], bent(tree, path, text), part)
            except (NotDecodable, ValueError):
                continue
            yield "/".join((part, *path)), replace(world, **{part: changed})
        if part != "inventory":
            yield f"{part} unknown", replace(world, **{part: Unknown(text)})  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["status", "assess"])
def test_what_a_cluster_and_its_hosts_say_stays_text(
    asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each text of the world in turn, as a command sees it live."""
    playbook, seen = playbook_in(tmp_path), 0
    for number, (name, world) in enumerate(worlds_with(HOSTILE)):
        if name in ("disks unknown", "configs unknown", "services unknown"):
            continue  # sources answer these node by node
        monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(world))
        harmless(KINDS[number % 2], asked, playbook)
        seen += 1
    assert seen > 60


def bundles_with(text: str, folder: Path) -> Iterator[Path]:
    """A bundle with right sums, and that text in each place of it in turn."""
    for number, (_, world) in enumerate(worlds_with(text)):
        path = folder / f"{number}.bundle"
        write_bundle(str(path), world, 1_700_000_000)
        yield path


@pytest.mark.slow
@pytest.mark.parametrize("text", [HOSTILE, LONE], ids=["acting", "lone surrogate"])
def test_a_bundle_stays_text(text: str, tmp_path: Path) -> None:
    """`bundle show`, the commands that answer from it, and a fleet of them."""
    for number, path in enumerate(bundles_with(text, tmp_path)):
        kind = KINDS[number % 2]
        harmless(kind, "bundle", "show", path)
        asked = (("plan",), ("directories", "show"), ("directories", "verify"))[number % 3]
        harmless(kind, *asked, "--from-bundle", path)
    names = [f"{{name: c{number}, bundle: {number}.bundle}}" for number in range(0, 60, 3)]
    for kind in KINDS:
        harmless(kind, "fleet", "assess", written(tmp_path, *names))


@pytest.mark.slow
def test_a_bundles_own_words_stay_text(tmp_path: Path) -> None:
    """The manifest's texts: the tool's name, the cluster's, and names of parts."""
    write_bundle(str(tmp_path / "b"), told_world(), 1_700_000_000)
    members = plain_tar.unpack(
        gzip.decompress((tmp_path / "b").read_bytes()), {"manifest.json", *map("{}.json".format, PARTS)}
    )
    manifest = json.loads(members["manifest.json"])
    for path in sorted(set(places(manifest))):
        for text in (HOSTILE, LONE):
            changed = bent(manifest, path, text)
            if path[0] == "body":
                changed["sha256"] = hashlib.sha256(
                    json.dumps(changed["body"], sort_keys=True, separators=(",", ":")).encode()
                ).hexdigest()
            packed = plain_tar.pack({**members, "manifest.json": json.dumps(changed).encode()}, 1_700_000_000)
            (tmp_path / "c").write_bytes(gzip.compress(packed))
            for kind in KINDS:
                harmless(kind, "bundle", "show", tmp_path / "c")


# -- what a run leaves, and what persons hand over -------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("text", [HOSTILE, LONE], ids=["acting", "lone surrogate"])
def test_a_run_stays_text(text: str, ran: Path, tmp_path: Path) -> None:
    """Each text of its plan in turn: `report` and `apply`."""
    copied = tmp_path / "run"
    shutil.copytree(ran, copied)
    plan = json.loads((ran / "plan.json").read_text())
    for number, path in enumerate(sorted(set(places(plan)))):
        (copied / "plan.json").write_text(json.dumps(bent(plan, path, text)))
        asked = (("report", copied), ("apply", copied / "plan.json"))[number // 2 % 2]
        harmless(KINDS[number % 2], *asked)


@pytest.mark.slow
def test_a_journal_with_right_sums_stays_text(ran: Path, tmp_path: Path) -> None:
    """Each text of each kind of line in turn: `report`, and `status` of the run that is not ended."""
    events = journals.read(ran / "journal.jsonl").events
    folder = tmp_path / "run"
    shutil.copytree(ran, folder)
    every = sorted({(event.name, path) for event in events for path in places(plain(event))})
    for number, (name, path) in enumerate(every):
        (folder / "journal.jsonl").unlink()
        holders = (
            index for index, event in enumerate(events) if event.name == name and path in {*places(plain(event))}
        )
        at = next(holders)
        journal = Journal.begin(folder / "journal.jsonl", events[0].time, data_of(events, 0, at, path))
        for index, event in enumerate(events[1:], 1):
            journal.append(event.time, event.name, data_of(events, index, at, path))
        journal.close()
        harmless(KINDS[number % 2], "report", folder)


def plain(event: Event) -> dict[str, Any]:
    """The data of a line as JSON has it."""
    found: dict[str, Any] = json.loads(json.dumps(dict(event.data)))
    return found


def data_of(events: Sequence[Event], index: int, at: int, path: tuple[str, ...]) -> dict[str, Any]:
    """The data of that line, with the hostile text in line `at`."""
    return bent(plain(events[index]), path, HOSTILE) if index == at else plain(events[index])


def test_what_persons_wrote_stays_text(ran: Path, tmp_path: Path) -> None:
    """Lock files, a collector's file, a damaged instruction."""
    folder = tmp_path / "run"
    shutil.copytree(ran, folder)
    for kind in KINDS:
        for name in ("d0", "d1"):
            disk = tmp_path / name
            disk.mkdir(exist_ok=True)
            (disk / "meta.properties").write_bytes(f"version=0\nbroker.id=1\ncluster.id={HOSTILE}\n".encode())
        words = ("--mode", "zookeeper", "--cluster-id", "REh233dFSJKhrlnVHSnalQ", "--node-id", "1")
        harmless(kind, "directories", "inspect", tmp_path / "d0", tmp_path / "d1", *words)
        (tmp_path / "backup.gz").write_bytes(gzip.compress(f"{HOSTILE}\n".encode()))
        harmless(kind, "backup", "restore", tmp_path / "backup.gz", "--path", "/")
        (tmp_path / "p.yaml").write_bytes(f"apiVersion: '{HOSTILE}'\nkind: \"{HOSTILE}\"\n".encode())
        harmless(kind, "playbook", "lint", tmp_path / "p.yaml")
        harmless(kind, "explain", HOSTILE)


def test_whose_a_lock_is_stays_text() -> None:
    """`unlock`, of a znode that anybody can write and of a lock file."""
    znode: Any = {"path": "/kraft-migrate/lock", "held": True, "id": 1, "session": "0x1", "alive": "is dead"}
    znode |= dict.fromkeys(("owner", "host", "since", "plan", "pid"), HOSTILE) | {"session_seconds": 1.0}
    for owner, alive in ((HOSTILE, "is dead"), ("", "nobody")):
        lines = as_text({"znode": znode, "file": {"path": "f", "owner": owner, "alive": alive}}).split("\n")
        assert not [line for line in lines if line.startswith(FORGED)]
