"""Hosts of an Ansible inventory, matched to the brokers that ZooKeeper knows (pure): what fits is filled in.

The JSON is what `ansible-inventory --list` prints: groups and variables are resolved by Ansible, templates in values
are not.  Only the variables that are named here are looked at, and no other value is ever shown.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from migrate.errors import AnsibleInventoryUnusable
from migrate.model.inventory import UNIT
from migrate.model.strict_json import Each, NotStrictJson, mapping, unlike
from migrate.playbook.fields import HOST
from migrate.playbook.inventory import gap

LISTED: Final = {"_meta": {"hostvars": Each(dict)}}
GROUP: Final = {"hosts?": [str], "children?": [str]}
NOT_LISTED: Final = "it is not what ansible-inventory --list prints"
OURS: Final = "kraft_migrate_"  # a variable of that name decides alone
IDS: Final = (f"{OURS}broker_id", "broker_id", "kafka_broker_id", "node_id", "kafka_node_id")
CONFIGS: Final = (
    f"{OURS}config",
    "kafka_config_file",
    "kafka_config_path",
    "kafka_broker_config_file",
    "kafka_server_properties",
)
UNITS: Final = (
    f"{OURS}unit",
    "kafka_unit",
    "kafka_unit_name",
    "kafka_service",
    "kafka_service_name",
    "kafka_broker_service_name",
)
HOMES: Final = (f"{OURS}kafka_home", "kafka_home")
OF_SSH: Final = ("ansible_user", "ansible_port")  # a person puts them into the ssh configuration
NAMED_ONLY: Final = ("ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_ssh_private_key_file")
SSH: Final = ("ssh", "smart", "paramiko", "paramiko_ssh", "ansible.builtin.ssh")
ABSOLUTE: Final = re.compile(r"/[^\n\t]{0,4095}")
NUMBER: Final = re.compile(r"[0-9]{1,10}")
SHOWN: Final = 30  # hosts in one line


@dataclass(frozen=True, slots=True)
class AnsibleHost:
    """A host by its name in the inventory, with its variables."""

    name: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a broker is, by Ansible: each a value or a gap; `said` is how it was found."""

    host: str
    config: str
    unit: str
    said: str = ""


@dataclass(frozen=True, slots=True)
class Matched:
    """A place for each broker, and what a person must know of the match."""

    places: Mapping[int, Place] = field(default_factory=dict)
    kafka_home: str = ""
    notes: tuple[str, ...] = ()


def read_hosts(raw: bytes, where: str, group: str | None = None) -> list[AnsibleHost]:
    """The hosts in the JSON of `ansible-inventory --list`, or those of one group and its children.

    Raises:
        AnsibleInventoryUnusable: it is something else, has no host, or has no such group.
    """
    try:
        listed = mapping(raw, LISTED)
    except NotStrictJson as error:
        raise AnsibleInventoryUnusable(f"{NOT_LISTED}: {error}", where=where) from error
    groups = {name: entry for name, entry in listed.items() if name != "_meta"}
    for name, entry in groups.items():
        if problem := unlike(entry, GROUP, f"group {_line(name)}"):
            raise AnsibleInventoryUnusable(f"{NOT_LISTED}: {problem}", where=where)
    if group is not None and group not in groups:
        why = f"its groups: {_list(groups)}"
        raise AnsibleInventoryUnusable(f"it has no group {_line(group)}", where=where, why=why)
    values = listed["_meta"]["hostvars"]
    names = set(_members(groups, group)) if group is not None else {*values, *_members(groups, *groups)}
    if not names:
        raise AnsibleInventoryUnusable("there is no host in it", where=where)
    return [AnsibleHost(name, values.get(name, {})) for name in sorted(names)]


def match_hosts(hosts: Sequence[AnsibleHost], brokers: Mapping[int, Iterable[str]]) -> Matched:
    """Match them to brokers, each with the hosts that it advertises: by the variable of its id, else by name.

    What contradicts itself, or fits more than once, is no match: it is named, and left as a gap.
    """
    advertised = {number: {_plain(name) for name in names} for number, names in brokers.items()}
    by_id, by_name = defaultdict[int, list[AnsibleHost]](list), defaultdict[int, list[AnsibleHost]](list)
    notes, nobody = [], []
    for host in hosts:
        ids = _ids(host)
        named = sorted(number for number, names in advertised.items() if names & _names(host))
        told = f"{_line(host.name)} ({', '.join(f'{name}: {number}' for name, number in ids.items())})"
        match sorted(set(ids.values())), named:
            case [], []:
                nobody.append(host.name)
            case [], [number]:
                by_name[number].append(host)
            case [], _:
                notes.append(f"{_line(host.name)} is advertised by brokers {named}, and has no variable with an id")
            case [number], _ if number not in advertised:
                notes.append(f"{told} matches no broker: ZooKeeper knows no such id")
            case [number], _ if not named or number in named:
                by_id[number].append(host)
            case [_], _:
                notes.append(f"{told} contradicts ZooKeeper: its name is advertised by {named}")
            case _:
                notes.append(f"{told} contradicts itself")
    if nobody:
        notes.append(f"hosts that match no broker: {_list(nobody)}")
    places = {}
    for number, names in advertised.items():
        found = by_id[number] or by_name[number]
        places[number] = _place(number, found, "by name" if by_name[number] == found else _by_id(found, names))
        if len(found) != 1:
            notes.append(f"broker {number} has {_several(found)}")
        elif by_id[number] and by_name[number]:
            notes.append(f"not used, for broker {number} has a host by its id: {_list(_called(by_name[number]))}")
    one_each = [found[0] for number in advertised if len(found := by_id[number] or by_name[number]) == 1]
    return Matched(places, _home(one_each), tuple(notes))


def _place(number: int, found: Sequence[AnsibleHost], how: str) -> Place:
    if len(found) != 1:
        why = f"Ansible has {_several(found)} for broker {number}"
        return Place(
            gap(f"its host; {why}"), gap(f"path of its server.properties on its host; {why}"), gap(f"its unit; {why}")
        )
    [host] = found
    unit = _value(host, UNITS, UNIT, "its systemd unit on its host, such as kafka.service", ".service")
    config = _value(host, CONFIGS, ABSOLUTE, "path of its server.properties on its host")
    return Place(_ssh_name(host), config, unit, "; ".join(filter(None, (_line(host.name), how, *_connection(host)))))


def _ssh_name(host: AnsibleHost) -> str:
    """The name or address that Ansible gives to ssh."""
    way = host.values.get("ansible_connection", "ssh")
    if way not in SSH:
        return gap(f"its host; Ansible reaches {_line(host.name)} by {_line(way)}, not by ssh")
    name = host.values.get("ansible_host", host.name)
    if isinstance(name, str) and HOST.fullmatch(name):
        return name
    return gap(f"its host; Ansible has {_line(name)}")


def _connection(host: AnsibleHost) -> Iterator[str]:
    """What a person has to tell ssh, for this tool takes a name and nothing else."""
    told = [f"{name} {_line(host.values[name])}" for name in OF_SSH if name in host.values]
    told += [name for name in NAMED_ONLY if host.values.get(name)]
    if told:
        yield f"put into your ssh configuration: {', '.join(told)}"


def _by_id(found: Sequence[AnsibleHost], names: set[str]) -> str:
    """How a match by id was made; one that no name confirms is told, for another cluster may have the same ids."""
    if len(found) != 1:
        return ""
    ids = _ids(found[0])
    doubtful = bool(names) and names.isdisjoint(_names(found[0]))
    return f"by {next(iter(ids))}" + (f" alone: ZooKeeper has {_list(sorted(names))}, check it" if doubtful else "")


def _home(found: Sequence[AnsibleHost]) -> str:
    """The one folder of Kafka on all hosts; a gap where they differ or do not say."""
    what = "where Kafka is on the hosts, with bin/kafka-storage.sh in it"
    homes = sorted({_value(host, HOMES, ABSOLUTE, what) for host in found})
    return homes[0] if len(homes) == 1 else gap(what)


def _value(host: AnsibleHost, names: Sequence[str], form: re.Pattern[str], what: str, suffix: str = "") -> str:
    """The value of the one of these variables that is set; a gap where none is, or where they are not the same."""
    told = _told(host, names)
    values = {str(value) if "." in str(value) else f"{value}{suffix}" for value in told.values()}  # as systemctl does
    if len(values) == 1 and all(isinstance(value, str) for value in told.values()):
        [value] = values
        if form.fullmatch(value) and not _is_template(value):
            return value
    seen = ", ".join(f"{name}: {_line(value)}" for name, value in told.items())
    return gap(f"{what}; Ansible has {seen}" if seen else what)


def _ids(host: AnsibleHost) -> dict[str, int]:
    """The ids that its variables give; a template gives none, for nobody has resolved it."""
    told = {name: str(value) for name, value in _told(host, IDS).items() if not isinstance(value, bool)}
    return {name: int(value) for name, value in told.items() if NUMBER.fullmatch(value)}


def _told(host: AnsibleHost, names: Sequence[str]) -> dict[str, Any]:
    """The variables that it has; one of ours alone, where there is one."""
    found = {name: host.values[name] for name in names if host.values.get(name) is not None}
    return {name: value for name, value in found.items() if name.startswith(OURS)} or found


def _names(host: AnsibleHost) -> set[str]:
    return {_plain(str(name)) for name in (host.name, host.values.get("ansible_host", host.name))}


def _plain(name: str) -> str:
    return name.strip("[]").rstrip(".").casefold()


def _members(groups: Mapping[str, Any], *wanted: str) -> Iterator[str]:
    """The hosts of these groups and of those below them."""
    seen, waiting = set[str](), list(wanted)
    while waiting:
        if (name := waiting.pop()) not in seen:
            seen.add(name)
            entry = groups.get(name, {})
            waiting += entry.get("children", [])
            yield from entry.get("hosts", [])


def _several(found: Sequence[AnsibleHost]) -> str:
    return f"more than one host: {_list(_called(found))}" if found else "no host"


def _called(found: Sequence[AnsibleHost]) -> list[str]:
    return [host.name for host in found]


def _list(names: Iterable[str]) -> str:
    first, more = [*map(_line, names)][:SHOWN], len([*names]) - SHOWN
    return ", ".join(first) + (f" and {more} more" if more > 0 else "")


def _is_template(value: str) -> bool:
    return "{{" in value or "{%" in value


def _line(value: object) -> str:
    """In one short line of ASCII, for a comment, a gap and a terminal."""
    text = str(value).encode("unicode_escape").decode()
    return text if len(text) <= 80 else text[:77] + "..."
