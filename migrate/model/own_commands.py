"""What an operator's commands for a node tell by their words: known mistakes, and what must be confirmed by hand."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from migrate.model.inventory import OwnCommands
from migrate.model.launch import STOP_SECONDS

CONTAINERS: Final = ("docker", "podman", "nerdctl", "docker-compose", "podman-compose")
TOOLS: Final = frozenset({*CONTAINERS, "supervisorctl", "sv", "kill", "pkill", "killall"})
BEFORE: Final = frozenset({"env", "nice", "runuser", "setpriv", "sudo", "timeout"})  # they run another program
TIMES: Final = ("-t", "--time", "--timeout")  # each tool knows the first


def tool_of(stop: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The name of the tool and its words, behind `runuser -u kafka --` and the like, too."""
    names = [os.path.basename(word) for word in stop]  # noqa: PTH119 - a path of another host
    at = next((at for at, name in enumerate(names) if name in TOOLS), 0) if names[0] in BEFORE else 0
    return names[at], stop[at + 1 :]


def find_command_faults(own: OwnCommands, neighbours: Sequence[int]) -> Iterator[str]:
    """Commands that kill, or that end other nodes too (pure): those of the usual tools, by their words."""
    tool, words = tool_of(own.stop)
    others = ", ".join(map(str, neighbours))
    if tool in CONTAINERS:
        limit = container_limit(words)
        if "kill" in words or "rm" in words:
            yield f"its stop command is {tool} kill or rm: the process is killed before it has ended its shutdown"
        elif limit is None or (limit < STOP_SECONDS and (limit >= 0 or tool == "podman")):  # 4.3 refuses -1
            said = "without -t and whole seconds: it kills after 10 s" if limit is None else f"with -t {limit}"
            yield f"its stop command is {tool} stop {said}. Give it -t {STOP_SECONDS:.0f} or more"
        if {"-a", "--all"} & {*words} or is_for_all(tool, words):
            yield "its stop command ends every container, or every service of the compose file. Name the node's in it"
    if tool == "sv" and any(word.startswith("force-") or word in ("kill", "k", "exit", "e") for word in words):
        yield "its stop command is an sv that kills, or ends the supervisor. Give it sv -w 330 stop SERVICE"
    if tool in ("kill", "pkill", "killall") and {"-9", "-KILL", "-SIGKILL"} & {*words}:
        yield "its stop command sends SIGKILL: the process is killed before it has ended its shutdown"
    if not neighbours:
        return
    limited = any(word.startswith(("--node-id", "--process-role")) for word in words)
    wide = "kafka-server-stop" in " ".join(own.stop) and not limited
    if wide or tool in ("pkill", "killall") or (tool == "supervisorctl" and "all" in words):
        yield f"its stop command ends node {others} of this host, too"


def is_for_all(tool: str, words: Sequence[str]) -> bool:
    """Is it `docker compose stop` or `down` without the name of a service?"""
    verb = next((at for at, word in enumerate(words) if word in ("stop", "down")), len(words))
    if not (tool.endswith("-compose") or "compose" in words[:verb]):
        return False
    behind = words[verb:]
    return not any(word[0:1] != "-" and before not in TIMES for before, word in pairwise(behind))


def container_limit(words: Sequence[str]) -> int | None:
    """The seconds behind `-t`, `--time` or `--timeout`; None where there are none, or no whole ones."""
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in TIMES:
            text = value if equals else next(iter(words[at + 1 :]), "")
        elif word.startswith("-t") and not word.startswith("--"):
            text = word[2:]
        else:
            continue
        try:
            return int(text)
        except ValueError:
            return None
    return None


NOTES: Final[Mapping[str, str]] = {
    "supervisorctl": "supervisord: stopwaitsecs=330 or more and stopsignal=TERM; autorestart=false, or unexpected with "
    "exitcodes that have 1; autostart=true, and supervisord itself starts at boot",
    "sv": "runit: sv waits 7 s and kills nothing (-w 330 waits longer); runsv starts a process again whenever it ends, "
    "over a dead disk, too: a `finish` script can `sv down` it; it starts at boot without a file `down`",
    "docker": "Docker: -t 330 of the stop command; the restart policy (`unless-stopped` starts it at boot, and "
    "again over a dead disk); folders of the file, of logs and of metadata are mounted at the same paths, which is "
    "seen only while it runs; kafka_home and Java are on the host, too",
    "": "your commands: who stops the process waits 330 s before killing; the process outlives the login session "
    "(KillUserProcesses=no) and has its limits (nofile); whether it is started again after it ended, and at boot",
}


def to_confirm(own: OwnCommands) -> str:
    """What nobody sees and the operator must know of the node's supervisor (pure)."""
    tool, _ = tool_of(own.stop)
    return NOTES["docker" if tool in CONTAINERS else tool if tool in NOTES else ""]
