"""Directories that brokers shall get: what is seen of them on a host, and whose they are already."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.hosts.disks import CollectorDisks, Told
from migrate.hosts.disks import inspect_new_directories as look
from migrate.hosts.properties import parse
from migrate.hosts.runner import Completed, Holder
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.new_directories import NewDirectory, against_format, unproven
from migrate.model.outcome import Unknown
from migrate.model.views import ConfigFile, MetaMissing, MetaProperties, NoFile
from tests.testing import worlds
from tests.testing.clusters import CLUSTER_ID
from tests.testing.host_program import broker, controller, here, installed
from tests.testing.this_host import disks_here

ONE, TWO = NodeId(0), NodeId(1)
Wanted = dict[NodeId, tuple[str, ...]]


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """Two brokers with a disk each, and one more disk."""
    for name in ("a", "b", "new"):
        (tmp_path / name).mkdir()
    return tmp_path


def inventory(folder: Path, *, apart: bool = False) -> Inventory:
    """Two brokers on one host, or on two; the controllers elsewhere."""
    known = worlds.inventory()
    brokers = tuple(replace(node, host="two" if apart and node.id == TWO else "one") for node in known.brokers[:2])
    controller = replace(known.controllers[0], host="one", metadata_directory=str(folder / "c"))
    return replace(known, brokers=brokers, controllers=(controller,))


def configs(folder: Path) -> dict[NodeId, ConfigFile | NoFile | Unknown]:
    """Broker 0 has a, broker 1 has b."""
    found: dict[NodeId, ConfigFile | NoFile | Unknown] = {}
    for node, name in ((ONE, "a"), (TWO, "b")):
        raw = f"log.dirs={folder / name}\n".encode()
        found[node] = ConfigFile(node, str(folder / f"{node}.properties"), raw, "", parse(raw))
    return found


def one(folder: Path, *paths: str, known: Inventory | None = None) -> tuple[NewDirectory, ...]:
    """What is seen of directories for broker 0."""
    wanted: Wanted = {ONE: tuple(str(folder / path) for path in paths)}
    found = look(disks_here(), known or inventory(folder), configs(folder), wanted)[ONE]
    assert not isinstance(found, Unknown)
    return found


def against(entry: NewDirectory) -> str:
    """What speaks against it."""
    return "; ".join(against_format(entry, ONE, CLUSTER_ID))


def test_an_empty_directory_is_fit(host: Path) -> None:
    """Healthy, with its mount, and nothing in it."""
    (entry,) = one(host, "new")
    assert entry.directory.healthy
    assert entry.directory.mount
    assert entry.names == ()
    assert isinstance(entry.directory.meta, MetaMissing)
    assert against(entry) == ""


def test_one_that_is_not_there_is_never_made(host: Path) -> None:
    """A mount that is missing must not become a folder of the root file system."""
    (entry,) = one(host, "gone")
    assert against(entry) == "it does not exist"
    assert not (host / "gone").exists()


def test_a_file_is_no_directory(host: Path) -> None:
    """As its name."""
    (host / "file").touch()
    assert against(one(host, "file")[0]) == "it is no folder"


@pytest.mark.parametrize(
    ("path", "whose"),
    [("b", "/b of node 1"), ("a/below", "/a of node 0"), ("link", "/b of node 1"), (".", "/a of node 0")],
)
def test_a_directory_that_is_in_use_is_told_by_where_it_leads(host: Path, path: str, whose: str) -> None:
    """Another broker's, its own, below one, above one, and by a link."""
    (host / "a" / "below").mkdir()
    (host / "link").symlink_to(host / "b")
    assert f"it is, contains or is in {host}{whose}" in against(one(host, path)[0])


def test_the_same_path_on_another_host_is_another_directory(host: Path) -> None:
    """/disk2 of every broker."""
    known = inventory(host, apart=True)
    assert against(one(host, "b", known=known)[0]) == ""


def test_two_brokers_that_want_one_directory_are_told(host: Path) -> None:
    """A list for every broker, on a host with two of them."""
    wanted: Wanted = dict.fromkeys((ONE, TWO), (str(host / "new"),))
    found = look(disks_here(), inventory(host), configs(host), wanted)
    for node, other in ((ONE, 1), (TWO, 0)):
        entries = found[node]
        assert not isinstance(entries, Unknown)
        assert entries[0].taken == (f"{host / 'new'} of node {other}",)


def test_the_controllers_directory_counts(host: Path) -> None:
    """A broker may share a host with one."""
    (host / "c").mkdir()
    assert "of node 3000" in against(one(host, "c")[0])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("orders-0", "it holds replicas: orders-0"),
        ("__cluster_metadata-0", "it holds a metadata log"),
        ("photos", "it is not empty: photos"),
        (".hidden", "it is not empty: .hidden"),
    ],
)
def test_what_lies_in_it_is_named(host: Path, name: str, says: str) -> None:
    """Never formatted over."""
    (host / "new" / name).mkdir()
    assert says in against(one(host, "new")[0])


@pytest.mark.parametrize(
    "name", ["lost+found", "bootstrap.checkpoint", "meta.properties.kraft-migrate-set-aside-20260101T000000"]
)
def test_what_a_file_system_or_an_earlier_run_left_is_harmless(host: Path, name: str) -> None:
    """There, back, and there again."""
    (host / "new" / name).touch()
    assert against(one(host, "new")[0]) == ""


def test_one_that_is_formatted_for_this_broker_is_fit_another_ones_is_not(host: Path) -> None:
    """Killed behind the format, the next look finds it so."""
    text = "version=1\nnode.id={}\ncluster.id={}\ndirectory.id=Qh8dQ0mxx1q60eX09I-a5Q\n"
    meta = host / "new" / "meta.properties"
    meta.write_text(text.format(0, CLUSTER_ID))
    (entry,) = one(host, "new")
    assert isinstance(entry.directory.meta, MetaProperties)
    assert against(entry) == ""
    meta.write_text(text.format(5, CLUSTER_ID))
    assert against(one(host, "new")[0]) == f"its meta.properties is of cluster {CLUSTER_ID} and node 5"
    meta.write_text(text.format(0, "X" * 22))
    assert "of cluster XXXX" in against(one(host, "new")[0])
    meta.write_bytes(b"version=7\n")
    assert "cannot be trusted" in against(one(host, "new")[0])


def test_where_a_brokers_file_is_unknown_nothing_is_known_to_be_free(host: Path) -> None:
    """It could use the directory."""
    found = look(disks_here(), inventory(host), {**configs(host), TWO: Unknown("no")}, {ONE: (str(host / "new"),)})
    assert found[ONE] == Unknown("which directories broker 1 uses is unknown: no")


# -- directories of other hosts ----------------------------------------------------------------------------------
class Hosts:
    """A host that is this one, and its commands' words; `broken` is what it answers instead."""

    host = "kafka-1"

    def __init__(self, program: Holder, broken: Completed | None = None) -> None:
        self.asked: list[tuple[str, ...]] = []
        self._program = program
        self._broken = broken

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30) -> Completed:
        """As the host runs it."""
        self.asked.append(tuple(words))
        if self._broken is not None and words[0] == "places":
            return self._broken
        return self._program.run(words, stdin=stdin, seconds=seconds)


def hosts(folder: Path, broken: Completed | None = None) -> Hosts:
    """The host of every node."""
    known = worlds.inventory()
    nodes = [broker(int(node.id), folder / f"{node.id}.properties") for node in known.brokers]
    others = [controller(int(node.id), folder / f"{node.id}.properties", folder / "c") for node in known.controllers]
    return Hosts(here(installed(folder / "program", nodes, others)), broken)


def remote(runner: Hosts) -> CollectorDisks:
    """Every node on that host."""
    return CollectorDisks(dict.fromkeys((ONE, TWO, *(node.id for node in worlds.inventory().controllers)), runner))


@pytest.mark.slow
def test_a_host_of_its_own_says_the_same_as_this_one(host: Path) -> None:
    """Healthy, where it leads to, what lies in it, whose it is: by two verbs of its host program."""
    (host / "new" / "photos").mkdir()
    (host / "link").symlink_to(host / "b")
    paths = ("new", "link", "gone", "a/below")
    wanted: Wanted = {ONE: tuple(str(host / path) for path in paths)}
    runner = hosts(host)
    disks = remote(runner)
    entries = look(disks, inventory(host), configs(host), wanted)[ONE]
    assert not isinstance(entries, Unknown)
    assert [against(entry) for entry in entries] == [against(entry) for entry in one(host, *paths)]
    assert [entry.place for entry in entries] == [entry.place for entry in one(host, *paths)]
    assert entries[0].names == ("photos",)
    assert entries[0].directory.mount
    assert unproven(entries[0]) == "", "a block was stored there"
    assert {words[0] for words in runner.asked} == {"collect", "places"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Completed(1, b"", "kraft-migrate-host: -: Permission denied"), "Permission denied"),
        (Completed(0, b"what", ""), "no answer that can be read"),
        (Completed(0, b'{"/x": {"real": 7, "names": []}}', ""), "no answer that can be read"),
        (Completed(0, b'{"/x": {"real": "a", "names": []}}', ""), "no answer that can be read"),
        (Completed(0, b'{"/x": {"real": "/a"}}', ""), "no answer that can be read"),
        (Completed(0, b'{"/x": 7}', ""), "no answer that can be read"),
        (Completed(0, b"[" * 100_000, ""), "no answer that can be read"),
        (Completed(0, b"[]", ""), "no answer that can be read"),
        (Completed(0, b"{}", ""), "does not say where"),
    ],
)
def test_a_host_that_does_not_say_where_paths_lead_proves_nothing(host: Path, answer: Completed, says: str) -> None:
    """Unknown for every broker: a directory of another one could be the same."""
    disks = remote(hosts(host, answer))
    found = look(disks, inventory(host), configs(host), {ONE: (str(host / "new"),)})[ONE]
    assert isinstance(found, Unknown)
    assert says in found.reason


def test_what_cannot_be_listed_has_no_names_and_a_name_that_is_not_utf_8_is_kept(host: Path) -> None:
    """On a host of its own and here; links are resolved by both."""
    odd = os.fsdecode(b"\xff")
    (host / "new" / odd).mkdir()
    (host / "link").symlink_to(host / "new")
    wanted = ("/proc/self/nothing", str(host / "link"))
    told = remote(hosts(host)).told(ONE, wanted)
    assert not isinstance(told, Unknown)
    assert told[wanted[0]].names == ()
    assert told[wanted[1]] == Told(str(host / "new"), (odd,))
    assert disks_here().told(ONE, wanted) == {
        wanted[0]: Told(os.path.realpath(wanted[0])),
        wanted[1]: told[wanted[1]],
    }
