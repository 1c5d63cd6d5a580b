"""OPS: the nodes' systemd units and boots, and what a run may do on their hosts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Final

from migrate.checks.phase import Phase, phase_of
from migrate.checks.registry import ALWAYS, UNTIL_FINALIZED, Blind, Hit, Result, check
from migrate.checks.sight import controller_units, host_rights, inventory, of_node, units
from migrate.model.broker_modes import Mode, position_of
from migrate.model.detect import CLEANUP_PROVEN
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.launch import ACCESS, FAULT, RELOAD, STOP_ADVICE, STOP_SECONDS, TOO_SOON, Unit, kept_from, unfit
from migrate.model.outcome import Unknown
from migrate.model.rights import HostRights
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile
from migrate.model.world import World

Units = dict[NodeId, Unit]
HAND: Final[dict[str, str]] = {  # states that `systemctl enable` does not repair, or repairs so that nobody can undo it
    "linked": "install the unit file in /etc/systemd/system instead of linking it, then enable it",
    "linked-runtime": "install the unit file in /etc/systemd/system: this link is gone after a boot; then enable it",
    "masked": "`systemctl unmask` it, then enable it",
    "masked-runtime": "`systemctl unmask --runtime` it, then enable it",
    "transient": "write a unit file: a transient unit is gone after a boot",
    "static": "give the unit file an [Install] section with WantedBy=multi-user.target, daemon-reload, then enable it",
}

MANAGED: Final = (  # in a comment
    r"^[ \t]*[#!].*(\b{0}[- ]managed\b|\b(managed|generated|maintained|deployed|rendered)\b.{{,20}}\bby\b.{{,10}}\b{0})"
)
HOLD: Final[Mapping[str, str]] = {
    "Ansible": "take its plays for Kafka out of every schedule, with their handlers",
    "Puppet": "on each host: `puppet agent --disable`",
    "Chef": "on each host: stop chef-client, with its timer or its entry in cron",
    "Salt": "on each host: `salt-call schedule.disable`; apply no highstate",
}


@check(
    "B-OPS-06",
    "a node would be killed before its shutdown has ended",
    f"A run waits {STOP_SECONDS:.0f} s for a stop and never kills. A broker that systemd kills recovers its "
    "logs, and its partitions are without a leader for longer. A unit that is refused after other controllers "
    "were stopped leaves a quorum without a leader. systemd's own limit for a stop is 90 s.",
    f"On each host named: {STOP_ADVICE}.",
    "systemd.service(5); migrate.model.launch.STOP_SECONDS",
).sees(units, blocks_from=Stage.PREPARE, when=ALWAYS, proof=True)
def stops_in_time(seen: Units, world: World) -> Result:
    yield from _unfit(seen, TOO_SOON)


def _unfit(seen: Units, code: str) -> Iterator[Hit]:
    for node, unit in seen.items():
        for found, problem, advice in unfit(unit):
            if found == code:
                message = f"{unit.name}: {problem}"
                yield Hit(f"node {int(node)} on {unit.host}", message, fix=f"on {unit.host}: {advice}")


@check(
    RELOAD,
    "a node's unit has changed on disk since systemd read it",
    "The next `daemon-reload`, whoever gives it, changes how the node is started: in the middle of a roll that would "
    "be intended by nobody.",
    "Look at the change, then `systemctl daemon-reload`, and restart a broker by yourself.",
    "systemctl show: NeedDaemonReload",
).sees(units, blocks_from=Stage.PREPARE, when=ALWAYS, proof=True)
def unit_is_loaded(seen: Units, world: World) -> Result:
    yield from _unfit(seen, RELOAD)
    for node, unit in seen.items():
        if isinstance(unit.reload_due, Unknown):
            yield Blind(f"the unit of node {int(node)}", unit.reload_due.reason)


@check(
    FAULT,
    "a run cannot stop and start a node's unit as it is",
    "A run stops and starts nodes by their units and believes what systemd says of them. With a unit that "
    "is masked, starts with another file, refuses to be stopped by hand, or has KillMode=none, KillSignal=SIGKILL, "
    "RemainAfterExit=yes, Type=oneshot, SendSIGKILL=no with a short TimeoutStopSec, ExecStart=su or runuser, or "
    "kafka-server-stop.sh as its stop beside other nodes of its host (a node's `service`, too), a stop is refused, "
    "kills the process, takes other nodes down, or is reported as complete while the process still runs.",
    "On each host named, change what the finding says (`systemctl edit UNIT`), then `systemctl daemon-reload`.",
    "systemd.unit(5), systemd.service(5), systemd.kill(5); KIP-979 for kafka-server-stop.sh --node-id",
).sees(units, blocks_from=Stage.PREPARE, when=ALWAYS, proof=True)
def unit_obeys(seen: Units, world: World) -> Result:
    yield from _unfit(seen, FAULT)


@check(
    ACCESS,
    "the user of a node's unit cannot read or write what it needs",
    "kafka-storage format and the node itself run as that user. The run would stop in the middle, at the format of a "
    "controller or at the start of a node. What counts is owner, group and mode of the node's file, of a folder above "
    "it, of the metadata directory and of Kafka's programs, whether the user has a Java, and what the unit hides "
    "from its node or lets it only read (ProtectSystem, ProtectHome, PrivateTmp and others of systemd.exec(5)).",
    "On each host named, do what the finding says.",
    "tried on the host as the unit's user: migrate.hosts.host_program, `facts`; units: seen on systemd 252",
).sees(units, blocks_from=Stage.PREPARE, when=ALWAYS, proof=True)
def user_has_access(seen: Units, world: World) -> Result:
    yield from _unfit(seen, ACCESS)
    for node, unit in seen.items():
        disks = of_node(world.disks, node)
        if not unit.view or node not in {broker.id for broker in world.inventory.brokers}:
            paths: tuple[str, ...] = ()  # of a controller's directory `access` tells
        elif isinstance(disks, Unknown):
            yield Blind(f"whether {unit.name} sees the log directories of its host", disks.reason)
            paths = ()
        else:
            paths = tuple(entry.path for entry in disks.directories)
        for path in paths:
            if by := kept_from(unit.view, path):
                yield Hit(f"node {int(node)} on {unit.host}", f"{unit.name} does not see {path} of the host: {by}")
        if isinstance(unit.access, Unknown):
            yield Blind(f"what the user of node {int(node)} may read and write", unit.access.reason)


@check(
    "W-OPS-10",
    "nodes of one host run as different users",
    "A controller's new file gets owner, group and mode of the broker's file on its host. Another user may not be able "
    "to read it, and kafka-storage format is refused in the middle of a run.",
    "Run the controller's unit as the broker's user; or let both users read the file by one group.",
    "systemd.exec(5): User",
).sees(units, when=ALWAYS)
def one_user_on_a_host(seen: Units, world: World) -> Result:
    """As far as systemd says who they run as."""
    for host in dict.fromkeys(unit.host for unit in seen.values()):
        users = {unit.name: unit.user for unit in seen.values() if unit.host == host and unit.user}
        if len({*users.values()}) > 1:
            yield Hit(host, ", ".join(f"{name} runs as {user}" for name, user in users.items()))


@check(
    "W-OPS-11",
    "systemd starts a broker again over a disk that died",
    "In migration mode a broker halts with the first disk that dies under it. Started again without that disk, under a "
    "KRaft controller, it recreates the replicas that were there on its other disks, those without another replica "
    "empty; when the disk is back it does not start on both copies.",
    "On each host named, until the brokers are in KRaft mode: `systemctl edit UNIT`, `[Service]` and "
    "`RestartPreventExitStatus=1`, then `systemctl daemon-reload`. RequiresMountsFor= with the log directories keeps a "
    "boot from doing the same over a disk that is not mounted.",
    "systemd.service(5); ReplicaManager.handleLogDirFailure; seen on systemd 252 with Kafka 3.9.2",
).sees(units, when=ALWAYS)
def stays_down_over_a_dead_disk(seen: Units, world: World) -> Result:
    for broker in world.inventory.brokers:
        unit = seen.get(broker.id)
        if unit is not None and unit.restarts_halted and position_of(world, broker.id).now is not Mode.KRAFT:
            path = f"/etc/systemd/system/{unit.name}.d"
            text = "[Service]\\nRestartPreventExitStatus=1\\n"
            words = f'mkdir -p {path} && printf "{text}" > {path}/disk.conf && systemctl daemon-reload'
            fix = f"on {unit.host}: sudo sh -c {shlex.quote(words)}"
            yield Hit(f"broker {broker.id} on {unit.host}", f"{unit.name} is started again after exit code 1", fix=fix)


@check(
    "W-OPS-07",
    "a node's unit does not start at boot",
    "After a power cut the node stays down. Brokers of a finalized cluster cannot start without its controllers. The "
    "report of a run says PROVEN only where every controller and every broker starts at boot. A new unit is not "
    "enabled.",
    "On each host named: `systemctl enable -- UNIT`; of a broker that you keep from starting by itself over a missing "
    "disk, once the migration is over.",
    "systemctl(1): is-enabled; states as systemd 252 gives them",
).sees(units, when=ALWAYS)
def starts_at_boot(seen: Units, world: World) -> Result:
    """Controllers until the migration is over are a blocker's business."""
    over = phase_of(world) is Phase.FINALIZED
    yield from _boots({node: unit for node, unit in seen.items() if over or not _is_controllers(node, unit, world)})


def _is_controllers(node: NodeId, unit: Unit, world: World) -> bool:
    """Of a node that is no unit nothing can be seen, and nothing be enabled: W-OPS-16 says what to compare."""
    return node in {entry.id for entry in world.inventory.controllers} and not unit.is_own


def _boots(seen: Units) -> Result:
    """By `is-enabled`, and by what default.target pulls in."""
    for node, unit in seen.items():
        about = f"node {int(node)} on {unit.host}"
        if isinstance(unit.starts_at_boot, Unknown):
            yield Blind(f"whether {about} starts at boot", f"{unit.name}: {unit.starts_at_boot.reason}")
        elif not unit.starts_at_boot:
            fix = HAND.get(unit.word, f"on {unit.host}: systemctl enable -- {shlex.quote(unit.name)}")
            yield Hit(about, f"{unit.name} is {unit.word}: a boot of the host does not start it", fix=fix)


@check(
    "B-OPS-17",
    "a controller's unit does not start at boot",
    "After a power cut the quorum stays down. Once the metadata leads, no broker can work without it, and brokers of a "
    "finalized cluster cannot even start. No run enables a unit. A new unit is not enabled.",
    "On each host named, before the first plan: `systemctl enable -- UNIT`, with "
    "`ConditionPathExists=METADATA_DIRECTORY/meta.properties` in the unit: a boot before a run has formatted the "
    "controller then leaves it alone. Without it systemd starts it again and again, and runs wait until it stops that.",
    "systemctl(1): is-enabled; states as systemd 252 gives them",
).sees(controller_units, blocks_from=Stage.PREPARE, when=UNTIL_FINALIZED)
def controllers_start_at_boot(seen: Units, world: World) -> Result:
    yield from _boots({node: unit for node, unit in seen.items() if _is_controllers(node, unit, world)})


@check(
    "I-OPS-08",
    "it is unknown whether the nodes start at boot",
    "People work these hosts (executor `manual`). After a power cut a node whose unit is not enabled stays down, and "
    "the report of a run says that this was not checked.",
    "On each host: `systemctl is-enabled -- UNIT` must say `enabled`; if not, `systemctl enable -- UNIT`. Controllers "
    "before the first plan, brokers at the latest after the migration is finalized.",
    "systemctl(1): is-enabled",
).sees(inventory, when=ALWAYS)
def nobody_sees_the_boot(seen: Inventory, world: World) -> Result:
    if seen.executor == "manual":
        units = ", ".join(f"{node.unit or 'its unit'} of node {int(node.id)} on {node.host}" for node in seen.nodes)
        yield Hit("the nodes' hosts", f"whether a boot starts them is not seen: {units}")


@check(
    "I-OPS-13",
    "what to hold until the migration is over: configuration management",
    "A run changes the nodes' files and restarts the nodes. What else writes these files or restarts these units "
    "(Ansible, Puppet, Chef, Salt) must not do so in the meantime: the run then stops with exit code 6, or a node "
    "starts with a file of another stage.",
    "Before the first change stop what does: "
    + "; ".join(f"{tool}: {fix}" for tool, fix in HOLD.items())
    + ". Start it again once its templates have what the run wrote.",
    "docs/support.md",
).sees(inventory, when=ALWAYS)
def held_management(seen: Inventory, world: World) -> Result:
    """By the comments that tools put at the head of a file; without one, nobody knows which tool there is."""
    if CLEANUP_PROVEN in world.facts:
        return
    files = {} if isinstance(world.configs, Unknown) else world.configs
    named: dict[str, list[str]] = {tool: [] for tool in HOLD}
    for node in seen.nodes:
        file = files.get(node.id)
        text = file.raw.decode("latin-1") if isinstance(file, ConfigFile) else ""
        for tool in HOLD:
            if re.search(MANAGED.format(tool), text, re.IGNORECASE | re.MULTILINE):
                named[tool].append(f"node {int(node.id)} on {node.host}")
    for tool, nodes in named.items():
        if nodes:
            yield Hit(tool, f"a comment says that it manages the file of {', '.join(nodes)}", fix=HOLD[tool])
    if not any(named.values()):
        hosts = ", ".join(dict.fromkeys(node.host for node in seen.nodes))
        yield Hit("the nodes' hosts", f"no comment in a file that was read names a tool; ask who manages {hosts}")


TO_CONFIRM: Final = (
    f"what stops the process sends TERM to Kafka itself and waits {STOP_SECONDS:.0f} s before killing; the process "
    "outlives the login session (KillUserProcesses=no) and has its limits (nofile); whether it is started again after "
    "it ended, and at boot"
)


@check(
    "W-OPS-16",
    "nodes are no systemd units: what their supervisor does is not seen",
    "systemd tells how long it lets a stop take, and whether it starts a node again and at boot. Of other supervisors "
    "a run knows what the inventory says (`service`). A process that is killed in its shutdown recovers its logs; a "
    "broker in migration mode that is started again over a dead disk recreates its replicas elsewhere; a node that no "
    "boot starts stays down.",
    "On each host named, compare what the finding says with the supervisor's configuration. The report of a run does "
    "not say PROVEN where a start at boot is not seen.",
    "docs/hosts.md",
).sees(inventory, when=ALWAYS)
def unseen_supervisors(seen: Inventory, world: World) -> Result:
    for node in seen.nodes:
        if own := node.service:
            said = f"by the inventory a stop may take {own.timeout:.0f} s before it is killed"
            fix = f"on {node.host}, confirm: {TO_CONFIRM}"
            yield Hit(f"node {int(node.id)} on {node.host}", f"{shlex.join(own.stop)}: {said}", fix=fix)


@check(
    "W-OPS-05",
    "a command that a run needs is not allowed on its host",
    "A run is refused before its first effect (E-HOST-27) where a host refuses a command that a run gives; taken away "
    "later, it stops at that step, perhaps with some brokers rolled and the others not.",
    "`kraft-migrate doctor --hosts --inventory FILE` asks every host, `--host-setup HOST` prints the script that "
    "installs the host program on one; then plan again.",
    "migrate.hosts.about: each host's program says its release, its configuration and what it refuses",
).sees(host_rights, when=ALWAYS)
def refused_commands(seen: dict[NodeId, HostRights], world: World) -> Result:
    for node, rights in seen.items():
        for entry in rights.refused:
            yield Hit(f"node {int(node)} on {rights.host}", entry.what, fix=entry.advice)
