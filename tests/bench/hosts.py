"""Twenty hosts over SSH at once against one of them: configuration files and log directories, connections opened anew.

Here `size` counts replica folders of a host.  All hosts are names of one machine.  Real ones have processors of their
own, so in the first race the collector's answer of each host was made before and comes after LOOK seconds; in the
second this machine runs all twenty collectors itself.  The server's side of each connection is this machine's in both.
Between it and us is a wire on which each part takes DELAY seconds, as to another site.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from migrate.hosts import collect_disks
from migrate.model.inventory import Inventory
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks
from migrate.observe.sources import Sources
from tests.bench.races import Race, Work
from tests.testing.clusters import CLUSTER_ID
from tests.testing.host_program import HOST, broker, installed
from tests.testing.ssh_server import SshServer
from tests.testing.tcp_link import link_to
from tests.testing.worlds import inventory, playbook

HOSTS: Final = 20
DIRECTORIES: Final = 2
DELAY: Final = 0.02
LOOK: Final = 0.2  # what a collector's run takes here on a quiet machine, with its interpreter's start
CONFIG: Final = "ssh_config"


def name_of(number: int) -> str:
    """A host's."""
    return f"kafka-{number}"


def keep_answers(folder: Path) -> None:
    """Run the collector for each host, and let the host program's look give these answers."""
    for number in range(1, HOSTS + 1):
        places = [str(folder / name_of(number) / f"d{index}") for index in range(DIRECTORIES)]
        words = [sys.executable, collect_disks.__file__, "--probe", "--node", str(number), *places]
        (folder / f"{number}.json").write_bytes(subprocess.run(words, capture_output=True, check=True).stdout)
    kept = f'sleep {LOOK}; exec cat "{folder}/$2.json"'
    front(folder).write_text(f'#!/bin/sh\nif [ "$1" = collect ]; then {kept}; fi\nexec "{folder}/program/host" "$@"\n')


def front(folder: Path) -> Path:
    """What the hosts' sessions call: the host program, or what gives a kept answer in its place."""
    return folder / "front"


@contextmanager
def the_hosts(folder: Path, size: int) -> Iterator[None]:
    """Their files, a server that answers for all, and the wire."""
    for number in range(1, HOSTS + 1):
        home = folder / name_of(number)
        places = [home / f"d{index}" for index in range(DIRECTORIES)]
        for place in places:
            place.mkdir(parents=True)
            (place / "meta.properties").write_text(f"version=0\nbroker.id={number}\ncluster.id={CLUSTER_ID}\n")
        for replica in range(size):
            inside = places[replica % DIRECTORIES] / f"topic-{replica}"
            inside.mkdir()
            (inside / f"{0:020d}.log").write_bytes(b"x" * 100)
        text = f"broker.id={number}\nlog.dirs={','.join(map(str, places))}\n"
        (home / "server.properties").write_text(text)
    installed(folder / "program", [replace(node, host=HOST) for node in of_hosts(folder, HOSTS).brokers])
    front(folder).write_text(f'#!/bin/sh\nexec "{folder}/program/host" "$@"\n')
    front(folder).chmod(0o755)
    server = SshServer(folder / "ssh", tuple(name_of(number) for number in range(1, HOSTS + 1)))
    with link_to(server.port) as wire:
        wire.slow(0, DELAY)
        text = server.config.read_text().replace(f"Port {server.port}", f"Port {wire.port}")
        (folder / CONFIG).write_text(text)
        server.start()
        try:
            yield
        finally:
            server.stop()


@contextmanager
def with_own_processors(folder: Path, size: int) -> Iterator[None]:
    """The same, their collectors' work done before."""
    with the_hosts(folder, size):
        keep_answers(folder)
        yield


def of_hosts(folder: Path, count: int) -> Inventory:
    """The first `count` of them."""
    nodes = [
        replace(broker(number, folder / name_of(number) / "server.properties"), host=name_of(number), address="")
        for number in range(1, count + 1)
    ]
    options = {
        "kafka_home": "/opt/kafka",
        "ssh_config": str(folder / CONFIG),
        "sudo": "no",
        "host_program": str(front(folder)),
    }
    return replace(
        inventory(), brokers=tuple(nodes), controllers=(), executor="ssh", executor_options=options, runs=str(folder)
    )


def looking_at(count: int) -> Callable[[Path, int], AbstractContextManager[Work]]:
    """A side of the race: so many hosts."""

    @contextmanager
    def side(folder: Path, _size: int) -> Iterator[Work]:
        sources = Sources(of_hosts(folder, count), playbook(), None)
        try:
            yield Work(lambda: sources.disks(sources.configs()), lambda found: told(list(found.values()), count))
        finally:
            sources.close()

    return side


def told(found: list[BrokerDisks | Unknown], count: int) -> str:
    """What every host's directories hold, which is the same for all."""
    assert len(found) == count
    answers = set()
    for disks in found:
        assert isinstance(disks, BrokerDisks), disks
        assert not disks.unproven
        rows = sorted(list(zip(entry.replicas.topic, entry.replicas.size, strict=True)) for entry in disks.directories)
        answers.add(hashlib.sha256(repr([sorted(row) for row in rows]).encode()).hexdigest())
    (answer,) = answers
    return answer


SIDES: Final = {"ours": looking_at(HOSTS), "peer": looking_at(1)}
RACES: Final = (
    Race(
        "twenty hosts over SSH",
        500,
        promise=3.0,
        at_most=True,
        around=with_own_processors,
        sides=SIDES,
        once="hosts are what grows in it: one, and twenty",
        note="the peer is one host; hosts' own processors are stood in for",
    ),
    Race(
        "twenty hosts over SSH, one machine",
        500,
        promise=20.0,
        at_most=True,
        around=the_hosts,
        sides=SIDES,
        once="hosts are what grows in it: one, and twenty",
        note="the peer is one host; this machine does the work of all twenty",
    ),
)
