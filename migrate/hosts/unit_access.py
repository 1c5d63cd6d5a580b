"""What keeps the user of a node's unit from its file, its metadata directory or Kafka's tools (pure).

The host program answers `facts`: it looks as that user.  See `migrate.hosts.host_program`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from migrate.model.inventory import BrokerNode, ControllerNode


def access_of(told: object, node: BrokerNode | ControllerNode) -> Iterator[tuple[str, str]]:
    """What is wrong, and what to do; TypeError where the answer is none.

    A broker is not asked for Kafka's tools: only a DirectoryPlaybook formats one, and it says so itself.
    """
    user, config = _text(told, "user"), _part(told, "config")
    if not _flag(config, "path_readable_by_user"):
        what = f"user {user} may not enter the folder of {node.config}, or one above it"
        yield what, f"give {user} or its group the right to enter each folder of {node.config} (`chmod g+x`)"
    elif _flag(config, "exists") and not _flag(config, "readable_by_user"):
        what = f"user {user} cannot read {node.config}"
        yield what, f"give {user} or its group the right to read it (`chgrp`, `chmod g+r`)"
    if isinstance(node, ControllerNode):
        yield from _of_controller(told, node, user)


def _of_controller(told: object, node: ControllerNode, user: str) -> Iterator[tuple[str, str]]:
    home, directory = node.metadata_directory, _part(told, "metadata_directory")
    if not _flag(directory, "exists") and not _flag(directory, "can_be_made"):
        what = f"{home} is not there, and neither this tool nor user {user} may make it"
        yield what, f"make it: install -d -o {user} -m 750 -- {home}"
    elif _flag(directory, "exists") and not _flag(directory, "writable_by_user"):
        yield f"user {user} cannot write into {home}", f"give it to that user: chown {user}: -- {home}"
    tools = _part(told, "kafka_home")
    tool = _text(tools, "storage_tool")
    if not _flag(tools, "exists"):
        yield f"{tool} is not there for user {user}", "correct kafka_home in the inventory, or install Kafka there"
    elif not _flag(tools, "executable_by_user"):
        yield f"user {user} cannot run {tool}", f"give {user} the right to run it (`chmod +x`)"
    if not _text(told, "java"):
        what = f"user {user} has no java: neither the unit's JAVA_HOME nor its PATH leads to one"
        yield what, "set Environment=JAVA_HOME=... in the unit, then `systemctl daemon-reload`"


def _part(told: object, name: str) -> Mapping[str, Any]:
    found = told.get(name) if isinstance(told, dict) else None
    if not isinstance(found, dict):
        message = f"the answer has no {name}"
        raise TypeError(message)
    return found


def _text(told: object, name: str) -> str:
    found = told.get(name) if isinstance(told, dict) else None
    if not isinstance(found, str):
        message = f"the answer has no {name}"
        raise TypeError(message)
    return found


def _flag(told: Mapping[str, Any], name: str) -> bool:
    found = told.get(name)
    if not isinstance(found, bool):
        message = f"the answer does not say {name}"
        raise TypeError(message)
    return found
