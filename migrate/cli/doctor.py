"""`doctor`: what this host has, what is missing, what to do about it."""

from __future__ import annotations

import getpass
import os
import pathlib
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Final

import click
from typing_extensions import TypedDict

from migrate.cli.answers import give_answer
from migrate.cli.doctor_items import Health, Item
from migrate.cli.errors import EXIT_ERROR, EXIT_OK
from migrate.cli.lab import DEFAULT_DIRECTORY, kafka_home_option
from migrate.cli.options import FILE, load_target, output_option
from migrate.cli.screen import ProgressLine, say, say_page, say_text
from migrate.errors import MigrateError, UsageWrong
from migrate.model.inventory import Inventory, SecretFile
from migrate.model.launch import Unit, unfit
from migrate.model.outcome import Unknown
from migrate.model.trusted import cache_directory
from migrate.model.words import duration, plural
from migrate.report.wording import hanging

LAB_MEMORY_MB: Final = 2500  # seven processes, Spark's driver and we
LAB_DISK_MB: Final = 2000
CACHE_DISK_MB: Final = 300
PORTS: Final = 10
CLUSTER: Final = ("ZooKeeper", "brokers", "controllers")


class DoctorAnswer(TypedDict):
    """What `doctor` answers; `not_asked` are the parts of the cluster that were not looked at."""

    ready: bool
    not_asked: list[str]
    items: list[Item]


@click.command()
@kafka_home_option
@click.option("--inventory", "-i", type=FILE, help="An inventory to check as well.")
@click.option("--hosts", is_flag=True, help="Ask the hosts of --inventory whether a run can work on them.")
@click.option(
    "--host-setup", metavar="HOST", help="Print the script that root runs on that host of --inventory, and end."
)
@click.option("--undo", is_flag=True, help="With --host-setup: print the script that takes it away again.")
@click.option("--rights", is_flag=True, help="Which rights the identities of --inventory lack.")
@output_option
def doctor(
    kafka_home: str | None,
    inventory: pathlib.Path | None,
    hosts: bool,
    host_setup: str | None,
    undo: bool,
    rights: bool,
    output: str,
) -> int:
    """Check this host's prerequisites.  Nothing is changed.

    The cluster of --inventory is asked with --rights alone, and its hosts with --hosts.

    Exit code 0: nothing is missing; 1: something is.
    """
    if undo and host_setup is None:
        raise UsageWrong("--undo is for --host-setup HOST")
    if host_setup is not None:
        return _print_host_setup(inventory, host_setup, undo=undo)
    items: list[Item] = []
    with ProgressLine.showing(lambda: f"{items[-1].name}: {items[-1].health.value}" if items else ""):
        items += examine(kafka_home, pathlib.Path(DEFAULT_DIRECTORY))
        if inventory is not None:
            items.append(_told("inventory", lambda: _inventory(inventory)))
            items.append(_told("zookeeper rate", lambda: _rate(inventory)))
            items.append(_told("credentials", lambda: _credentials(inventory)))
        if hosts:
            items += _host_items(inventory)
        if rights:
            items += _right_items(inventory)
    missing = [item for item in items if item.health is Health.MISSING]
    unasked = list(CLUSTER) if inventory is not None and not rights else []
    if output == "json":
        give_answer(DoctorAnswer(ready=not missing, not_asked=unasked, items=items))
    else:
        say_text("\n".join(hanging(line, " " * 9) for line in _lines(items)))
        say(
            f"missing: {', '.join(dict.fromkeys(item.name for item in missing))}"
            if missing
            else "all prerequisites are met"
        )
        if unasked:
            say(f"not asked: {', '.join(unasked)}; --rights asks them, and `kraft-migrate assess` reads them")
    return EXIT_ERROR if missing else EXIT_OK


def _target(path: pathlib.Path | None) -> Inventory:
    if path is None:
        raise UsageWrong(
            "--hosts, --host-setup and --rights need --inventory FILE", next_step="add it: the hosts are named there"
        )
    return load_target(None, path)[0]


def _print_host_setup(path: pathlib.Path | None, host: str, *, undo: bool) -> int:
    """Print the script that root runs on a host, or its reverse.

    Raises:
        UsageWrong: the inventory's executor works no hosts, or has no node there.
        SshMissing, HostDenied: ssh does not say who logs in there.
    """
    from migrate.hosts import host_setup
    from migrate.hosts.executors import LOCAL, SSH
    from migrate.hosts.ssh import SshConnections

    inventory = _target(path)
    if inventory.executor not in (LOCAL, SSH):
        raise UsageWrong(
            f"executor {inventory.executor} works no hosts",
            next_step=f"--host-setup is for executors {LOCAL} and {SSH}",
        )
    if undo:
        say_page(host_setup.undo(inventory, host), end="")
        return EXIT_OK
    node = host_setup.nodes_of(inventory, host)[0]  # before ssh is asked; all of a host are worked in the same way
    options, local = inventory.options_of(node), inventory.executor_of(node) == LOCAL
    account = getpass.getuser() if local else SshConnections(options.get("ssh_config")).account(host)
    say_page(host_setup.set_up(inventory, host, account, sudo=options.get("sudo", "yes") == "yes"), end="")
    return EXIT_OK


def _host_items(path: pathlib.Path | None) -> Iterator[Item]:
    """One item per node where nothing is missing, one per reason where something is; nothing is changed."""
    from migrate.hosts.about import rights_of
    from migrate.hosts.executors import executor_of

    inventory = _target(path)
    with closing(executor_of(inventory)) as executor:
        rights = rights_of(inventory, executor.runners)
    unfit = unfit_nodes(inventory) if rights else {}
    for node in inventory.nodes:
        name, found = f"node {int(node.id)}", rights.get(node.id)
        if found is None:  # a lab's own processes, and hosts that people work
            yield Item(name, Health.GOOD, f"{node.host}: a run executes no commands there")
            continue
        bad = [(found.reason, "")] if isinstance(found, Unknown) else [(one.what, one.advice) for one in found.refused]
        bad = bad or unfit.get(int(node.id), [])  # a host whose program does not answer says no more
        if not bad:
            yield Item(name, Health.GOOD, f"{node.host}: its host program takes every command of a run")
        for what, to_do in bad:
            yield Item(name, Health.MISSING, f"{node.host}: {what}", to_do)


def _right_items(path: pathlib.Path | None) -> Iterator[Item]:
    """ZooKeeper's and Kafka's answers."""
    from migrate.cli.doctor_rights import rights_of
    from migrate.zookeeper.lock import LOCK_PATH

    return rights_of(_target(path), LOCK_PATH)


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


def _credentials(path: pathlib.Path) -> Item:
    """Password files, and stores that need none or one, read as a run reads them; no command is run for a secret."""
    from migrate.kafka.gssapi import ticket_seconds
    from migrate.kafka.secrets import read_secret
    from migrate.kafka.stores import authorities, identity

    found, _ = load_target(None, path)
    read, tickets = set(), {}
    logins = [found.zookeeper_login.kerberos, *(found.access_of(node).kerberos for node in found.nodes)]
    for login in filter(None, dict.fromkeys(logins)):
        tickets[login.principal] = f"a ticket of {login.principal} for {duration(ticket_seconds(login))}"
    for access in dict.fromkeys(map(found.access_of, found.nodes)):
        if isinstance(access.password, SecretFile):
            read_secret(access.password)
            read.add(access.password.path)
        for store, look in ((access.truststore, authorities), (access.keystore, identity)):
            if store is not None and isinstance(store.password, SecretFile | None):
                look(store)
                read.add(store.path)
    text = f"files for brokers and controllers: {plural(len(read), 'file')} read"
    return Item("credentials", Health.GOOD, ", ".join((text, *tickets.values())))


def _python() -> Item:
    return Item("python", Health.GOOD, f"{sys.version.split()[0]} at {sys.executable}")


def _packages() -> Iterator[Item]:
    """What every command needs, in one line, and what each extra brings; then a line for what is missing of them."""
    from migrate.model.requirements import EXTRAS, install_line, requirements

    for extra, purpose in {"": "every command", **EXTRAS}.items():
        name = f"extra {extra}" if extra else "packages"
        wanted = [one for one in requirements() if one.extra == extra]
        missing = [one for one in wanted if one.installed is None]
        there = [f"{one.package} {version}" for one in wanted if (version := one.installed) is not None]
        if there:
            yield Item(name, Health.GOOD, ", ".join(there))
        if missing:
            health = Health.OPTIONAL if extra else Health.MISSING
            what = f"not installed, and needed for {purpose}: {', '.join(one.package for one in missing)}"
            yield Item(name, health, what, install_line(missing))


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


def _ivy() -> Item:
    from migrate.java.jars import SETTINGS_VARIABLE, find_ivy

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
    item = _disk("cache", cache_directory(), CACHE_DISK_MB)
    advice = "set XDG_CACHE_HOME to a place with room" if item.to_do else ""
    return Item("cache", item.health, item.found, advice)


def _ports() -> Item:
    from migrate.lab.topology import free_ports

    ports = free_ports(PORTS)
    if len(ports) < PORTS:
        return Item("ports", Health.MISSING, f"{len(ports)} of {PORTS} free ports on the loopback", "end other servers")
    return Item("ports", Health.GOOD, f"{PORTS} free on the loopback, for example {ports[0]}")


def unfit_nodes(inventory: Inventory) -> dict[int, list[tuple[str, str]]]:
    """By node what would stop a run there and what to do, as `assess` and the run itself see it.

    The collector looks at each node's directories, and writes and removes six bytes there; nothing else is changed.
    """
    from migrate.observe.sources import Sources

    sources = Sources(inventory, Unknown("no playbook was given"), None)
    try:
        units, disks = sources.units(), sources.disks(sources.configs())
    finally:
        sources.close()
    found: dict[int, list[tuple[str, str]]] = {int(node.id): [] for node in inventory.nodes}
    for node, unit in {} if isinstance(units, Unknown) else units.items():
        told = [(unit.reason, "")] if isinstance(unit, Unknown) else [(what, to_do) for _, what, to_do in unfit(unit)]
        if isinstance(unit, Unit) and isinstance(unit.access, Unknown):
            told.append((unit.access.reason, ""))
        found[int(node)] += told
    for node, seen in disks.items():
        if isinstance(seen, Unknown):
            found[int(node)].append((seen.reason, ""))
    return found
