"""The faults of the soak: each strikes a lab that lives, stands for some seconds, and is mended by the same object.

Mending is what a person would do: start what was killed (once its old session has ended, and not where the tool itself
has stopped it meanwhile), put the disk back and restart its broker, let go what was paused, make room again.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from migrate.errors import MigrateError, ProcessNotStopped
from migrate.lab import ready
from migrate.lab.cluster import Lab
from migrate.lab.supervisor import Supervisor
from migrate.lab.topology import ZOOKEEPER
from migrate.model.views import Running, Stopped
from migrate.run import journal as journals
from migrate.zookeeper import layout
from migrate.zookeeper.client import connect
from tests.lab import faults
from tests.lab.commands import kraft_migrate
from tests.long.soak.draw import Strike

SECONDS: Final = 90.0
POLL: Final = 0.5
SETTLED: Final = 5.0  # a process that lives so long after its start has not died of its start
STARTS: Final = 4
never: Final = threading.Event()


@dataclass
class Scene:
    """Where a fault strikes: the lab, the running tool and how it was called, the plan's folder, the step's node."""

    lab: Lab
    tool: subprocess.Popen[str]
    words: tuple[str, ...]
    plan: Path
    ballast: Path
    environment: Mapping[str, str]


@dataclass
class Fault:
    """One fault, once."""

    drawn: Strike
    told: str = ""  # what was done, "" before
    against: list[str] = field(default_factory=list)
    _mend: Callable[[], None] | None = None

    @property
    def standing(self) -> bool:
        """Is there something left to mend?"""
        return self._mend is not None

    def strike(self, scene: Scene) -> None:
        """Do it."""
        self.told, self._mend = _STRIKES[self.drawn.fault](self, scene)

    def mend(self) -> None:
        """Take it back; once, whoever asks first."""
        mend, self._mend = self._mend, None
        if mend is not None:
            mend()


Struck = tuple[str, Callable[[], None] | None]


# -- the tool --------------------------------------------------------------------------------------------------------
def _tool_killed(_fault: Fault, scene: Scene) -> Struck:
    scene.tool.kill()
    return "SIGKILL to the tool", None


def _tool_interrupted(_fault: Fault, scene: Scene) -> Struck:
    scene.tool.send_signal(signal.SIGINT)
    return "SIGINT to the tool", None


def _tool_paused(_fault: Fault, scene: Scene) -> Struck:
    scene.tool.send_signal(signal.SIGSTOP)
    return "SIGSTOP to the tool", lambda: scene.tool.send_signal(signal.SIGCONT)


def _second_apply(fault: Fault, scene: Scene) -> Struck:
    """The same words again: refused with 7 while the first one lives."""
    ended = subprocess.run(
        [*scene.words], env=dict(scene.environment), capture_output=True, text=True, check=False, timeout=600
    )
    if ended.returncode != 7 and scene.tool.poll() is None:
        fault.against.append(f"a second apply ended with {ended.returncode}, not 7: {ended.stderr[-300:]}")
    return f"a second apply, which ended with {ended.returncode}", None


def _run_folder_full(_fault: Fault, scene: Scene) -> Struck:
    """The file system that holds journal, plans and reports has no free byte."""
    with scene.ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    return "the disk of the runs is full", lambda: scene.ballast.unlink(missing_ok=True)


# -- the cluster -----------------------------------------------------------------------------------------------------
def _broker_killed(fault: Fault, scene: Scene) -> Struck:
    return _kill(scene, f"broker-{fault.drawn.broker}")


def _controller_killed(_fault: Fault, scene: Scene) -> Struck:
    name = active(scene.lab)
    return _kill(scene, name) if name else ("no controller is known: nobody was struck", None)


def _controller_paused(_fault: Fault, scene: Scene) -> Struck:
    name = active(scene.lab)
    return _pause(scene, name) if name else ("no controller is known: nobody was struck", None)


def _zookeeper_killed(_fault: Fault, scene: Scene) -> Struck:
    return _kill(scene, ZOOKEEPER)


def _zookeeper_paused(_fault: Fault, scene: Scene) -> Struck:
    return _pause(scene, ZOOKEEPER)


def _kill(scene: Scene, name: str) -> Struck:
    if not isinstance(scene.lab.supervisor.state(name), Running):
        return f"{name} does not run just then: nobody was struck", None
    scene.lab.supervisor.kill(name)
    return f"SIGKILL to {name}", lambda: start_again(scene.lab, name, scene.plan)


def _pause(scene: Scene, name: str) -> Struck:
    state = scene.lab.supervisor.state(name)
    if not isinstance(state, Running):
        return f"{name} does not run just then: nobody was struck", None
    os.kill(state.pid, signal.SIGSTOP)

    def go_on() -> None:
        if scene.lab.supervisor.state(name) == state:
            os.kill(state.pid, signal.SIGCONT)

    return f"SIGSTOP to {name}", go_on


def _link_cut(fault: Fault, scene: Scene) -> Struck:
    broker = fault.drawn.broker
    faults.break_link(scene.lab, broker)
    return f"broker {broker} cut off the controllers", lambda: faults.repair_link(scene.lab, broker)


def _disk_gone(fault: Fault, scene: Scene) -> Struck:
    broker, disk = fault.drawn.broker, fault.drawn.disk
    folder = faults.break_disk(scene.lab, broker, disk, faults.DiskFault.GONE)

    def put_back() -> None:
        name = f"broker-{broker}"
        faults.repair_disk(scene.lab, broker, disk)
        if isinstance(scene.lab.supervisor.state(name), Running):  # it takes a directory back only when it starts
            try:
                scene.lab.supervisor.stop(name, SECONDS)
            except ProcessNotStopped:
                scene.lab.supervisor.kill(name)
        start_again(scene.lab, name, scene.plan)

    return f"disk {folder.name} of broker {broker} gone", put_back


_STRIKES: Final[Mapping[str, Callable[[Fault, Scene], Struck]]] = {
    "tool-killed": _tool_killed,
    "tool-paused": _tool_paused,
    "tool-interrupted": _tool_interrupted,
    "second-apply": _second_apply,
    "run-folder-full": _run_folder_full,
    "broker-killed": _broker_killed,
    "active-controller-killed": _controller_killed,
    "active-controller-paused": _controller_paused,
    "zookeeper-killed": _zookeeper_killed,
    "zookeeper-paused": _zookeeper_paused,
    "link-cut": _link_cut,
    "disk-gone": _disk_gone,
}
# these stand until the tool has ended, or for long: their mending restarts a broker, which may be the tool's to restart
PATIENT: Final = frozenset({"disk-gone"})


# -- looking and mending ---------------------------------------------------------------------------------------------
def active(lab: Lab) -> str:
    """The process that is the controller now: the quorum's leader, else who holds /controller; "" if none is known."""
    ended = kraft_migrate("status", "--inventory", str(lab.inventory_path), "--output", "json")
    with contextlib.suppress(ValueError, KeyError, TypeError):
        leader = int(json.loads(ended.stdout)["quorum"].get("leader", -1))
        if leader >= 0:
            return f"controller-{leader}"
    with contextlib.suppress(MigrateError, ValueError, KeyError, TypeError), connect(lab.inventory.zookeeper) as client:
        owner = int(json.loads(getattr(client.data([layout.CONTROLLER])[0], "data", b"") or b"{}")["brokerid"])
        return f"broker-{owner}" if owner < 3000 else f"controller-{owner}"
    return ""


def stopped_by_tool(plan: Path, node: int | None) -> bool:
    """Is the last thing that this run did to that node a stop?  Then starting it is the run's own business."""
    path = plan.parent / "journal.jsonl"
    if node is None or not path.exists():
        return False
    last = ""
    for event in journals.read(path).events:
        if event.name == "effect" and event.data["effect"] in ("stop", "start") and int(event.data["node"]) == node:
            last = str(event.data["effect"])
    return last == "stop"


def start_again(lab: Lab, name: str, plan: Path) -> None:
    """Start a process that was killed, as a person does: when its session is over, and again where it dies of that."""
    supervisor = lab.supervisor
    for _ in range(STARTS):
        if not isinstance(supervisor.state(name), Stopped) or stopped_by_tool(plan, supervisor.spec(name).node):
            return
        if name.startswith("broker-"):
            wait_for_session(lab, supervisor.spec(name).node)
        with contextlib.suppress(MigrateError):  # the tool was faster
            supervisor.start(name)
        if name == ZOOKEEPER:
            ready.wait_until(
                "ZooKeeper, started again",
                lambda: ready.zookeeper_answers(lab.topology.zookeeper_port),
                supervisor,
                [name],
            )
        if lives(supervisor, name):
            return


def lives(supervisor: Supervisor, name: str) -> bool:
    """Does it outlive its start?"""
    deadline = time.monotonic() + SETTLED
    while time.monotonic() < deadline:
        if isinstance(supervisor.state(name), Stopped):
            return False
        never.wait(POLL)
    return True


def wait_for_session(lab: Lab, node: int | None) -> None:
    """Until ZooKeeper has forgotten a killed broker's registration, where there is one; at most a minute and a half."""
    if not isinstance(lab.supervisor.state(ZOOKEEPER), Running):
        return
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(MigrateError), connect(lab.inventory.zookeeper) as client:
            ids = client.children([layout.BROKER_IDS])[0]
            if not isinstance(ids, tuple) or str(node) not in ids:
                return
        never.wait(POLL)
