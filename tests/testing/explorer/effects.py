"""What an engine's act does to the cluster, and which promise it breaks by itself.

An act answers the cluster after it and "" or the breach.  A breach that only a fault between the last look and the act
has made (`late`) is not held against the engine: what follows from it still is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.oracles.machine import Act, Flag, Metadata, Mode, Owner, Views, Znode
from tests.testing.explorer.cluster import (
    STALE,
    B,
    C,
    Cluster,
    Driver,
    G,
    leader,
    put,
    with_broker,
    with_common,
    with_controller,
)
from tests.testing.explorer.kafka import without_broker, without_controller

Done = tuple[Cluster, str]
FIRST_LOOKED_AT: Final = (Metadata.UNKNOWN, Metadata.PRE_MIGRATION)


def act(cluster: Cluster, what: Act, number: int, *, late: bool) -> Done:
    """The effect on the node of that index (-1: ZooKeeper)."""
    if what.subject == "zookeeper":
        return ZOOKEEPER[what](cluster, late)
    if what.subject == "broker":
        return BROKER[what](cluster, number, late)
    return CONTROLLER[what](cluster, number, late)


# -- brokers -------------------------------------------------------------------------------------------------------
def _stop(cluster: Cluster, number: int, late: bool) -> Done:
    node, common = cluster[0][number], cluster[2]
    if not node[B.PROCESS]:
        return cluster, ""  # it ended by itself: there is nothing to stop
    others = [entry for other, entry in enumerate(cluster[0]) if other != number]
    breach = ""
    if not all(entry[B.PROCESS] and entry[B.WHOLE] for entry in others):
        breach = "G8: a broker is stopped while another one is not whole"
    elif node[B.BELIEVES] and node[B.PROCESS] == Mode.MIGRATION and leader(cluster) is None:
        breach = "G8: SIGTERM to a broker that believes in a controller that is gone hangs for 300 s"
    elif common[G.META] == Metadata.POST_MIGRATION and node[B.PROCESS] == Mode.KRAFT:
        breach = "G3: a KRaft broker is taken back after the point of no return"
    elif node[B.PROCESS] == Mode.MIGRATION and node[B.FILE] == Mode.MIGRATION:
        unproven = any(entry[B.PROCESS] == Mode.KRAFT and not entry[B.DIRS] for entry in others)
        if unproven and leader(cluster) is not None and common[G.META] == Metadata.MIGRATION:
            breach = "G8: the next broker is stopped while a replica's directory is still unknown (no failover there)"
        elif leader(cluster) is not None and common[G.META] == Metadata.MIGRATION and common[G.VIEWS] == Views.DIFFER:
            breach = "G2: the second roll goes on over a difference between ZooKeeper and the metadata"
    return without_broker(cluster, number), "" if late else breach


def _write(to: Mode) -> Callable[[Cluster, int, bool], Done]:
    def write(cluster: Cluster, number: int, late: bool) -> Done:
        node = cluster[0][number]
        breach = "G7: a file that another hand changed is written over" if node[B.HAND] else ""
        return with_broker(cluster, number, (B.FILE, to), (B.HAND, 0)), breach

    return write


def _start(cluster: Cluster, number: int, late: bool) -> Done:
    node, common = cluster[0][number], cluster[2]
    if node[B.PROCESS]:
        return cluster, ""  # its owner was quicker: the supervisor starts no second one
    if node[B.CRASHED] == 1 and node[B.FILE] != Mode.KRAFT:
        breach = "G8: a broker is started into the session of its last process: NodeExists, it ends"
        return cluster, "" if late else breach
    breach = ""
    if node[B.FILE] == Mode.MIGRATION and common[G.ZNODE] in (STALE, Znode.NULL) and leader(cluster) is not None:
        breach = "G4: a broker is brought to a fresh quorum while /migration remembers an older copy"
    elif node[B.DISK] and node[B.FILE] != Mode.ZOOKEEPER:
        breach = "G8: a broker with a failed directory is started, in a mode that does not survive it"
    believes = int(node[B.FILE] == Mode.KRAFT or common[G.OWNER] == Owner.KRAFT)
    changes = ((B.PROCESS, node[B.FILE]), (B.CRASHED, 0), (B.BELIEVES, believes))
    return with_broker(cluster, number, *changes), "" if late else breach


def _assign(cluster: Cluster, number: int, late: bool) -> Done:
    """`MD/controller/ReplicationControlManager.handleAssignReplicasToDirs`: only proven ids are ever sent."""
    node = cluster[0][number]
    if leader(cluster) is None or cluster[2][G.DRIVER] != Driver.DUAL_WRITE:
        return cluster, ""  # NOT_CONTROLLER: nothing is changed, a later look decides again
    if node[B.DISK]:
        return cluster, "" if late else "G2: a directory is assigned that is not healthy"
    return with_broker(cluster, number, (B.DIRS, 1)), ""


# -- controllers ---------------------------------------------------------------------------------------------------
def _render(cluster: Cluster, number: int, late: bool) -> Done:
    return with_controller(cluster, number, (C.FILE, Flag.ON)), ""


def _format(cluster: Cluster, number: int, late: bool) -> Done:
    node = cluster[1][number]
    breach = ""
    if node[C.FORMATTED]:
        breach = "G5: a controller is formatted twice"
    elif cluster[2][G.ZNODE] in (STALE, Znode.COPIED, Znode.NULL):
        breach = "G4: a controller is formatted while /migration remembers a past"
    return with_controller(cluster, number, (C.FORMATTED, 1)), "" if late else breach


def _start_controller(cluster: Cluster, number: int, late: bool) -> Done:
    node, common = cluster[1][number], cluster[2]
    if node[C.PROCESS]:
        return cluster, ""
    breach = ""
    if not node[C.FORMATTED]:
        breach = "G5: a controller is started unformatted"
    elif node[C.FILE] == Flag.OFF:
        breach = _unproven(cluster)
    elif common[G.ZNODE] in (STALE, Znode.NULL) and common[G.META] in FIRST_LOOKED_AT:
        breach = "G4: a quorum is started over a /migration that remembers a past"
    after = with_controller(cluster, number, (C.PROCESS, node[C.FILE]), (C.CRASHED, 0))
    return after, "" if late else breach


def _unproven(cluster: Cluster) -> str:
    """What is missing for the point of no return; asked of the first controller that is started without the flag."""
    brokers, controllers, common = cluster
    if common[G.META] == Metadata.POST_MIGRATION:
        return ""  # it was crossed: going on is the only way
    if not common[G.FINALIZING]:
        return "G2: a controller is started without the flag that nobody asked to finalize"
    if any(entry[C.PROCESS] == Flag.OFF for entry in controllers):
        return ""
    if any(entry[B.PROCESS] != Mode.KRAFT for entry in brokers):
        return "G2: finalized while a broker is not in KRaft mode"
    if any(not entry[B.DIRS] or entry[B.DISK] for entry in brokers):
        return "G2: finalized while a replica's directory is not proven"
    if common[G.VIEWS] == Views.DIFFER:
        return "G2: finalized over a difference between ZooKeeper and the metadata"
    return ""


def _stop_controller(cluster: Cluster, number: int, late: bool) -> Done:
    node = cluster[1][number]
    if not node[C.PROCESS]:
        return with_controller(cluster, number, (C.CRASHED, 0)), ""  # its service is stopped: nobody starts it again
    breach = ""
    kraft = [entry for entry in cluster[0] if entry[B.PROCESS] == Mode.KRAFT]
    if kraft:  # controllers must go on serving: that is finalize, or an accident being undone
        down = [entry for other, entry in enumerate(cluster[1]) if other != number and not entry[C.PROCESS]]
        followers = [entry for other, entry in enumerate(cluster[1]) if other != number and entry[C.FILE] == Flag.ON]
        if down and node[C.PROCESS] == Flag.ON:
            breach = "G8: a controller is stopped while another one is down, and KRaft brokers need them"
        elif node[C.LEADS] and node[C.FILE] == Flag.ON and followers:
            breach = "G8: the active controller is restarted before the others"
    elif node[C.LEADS] and cluster[2][G.META] == Metadata.MIGRATION and cluster[2][G.VIEWS] == Views.DIFFER:
        breach = "G3: the controllers are stopped for a rollback over a difference between ZooKeeper and the metadata"
    after = without_controller(cluster, number)
    return after, "" if late else breach


def _flag(to: Flag) -> Callable[[Cluster, int, bool], Done]:
    def write(cluster: Cluster, number: int, late: bool) -> Done:
        after = with_controller(cluster, number, (C.FILE, to))
        off = any(entry[C.FILE] == Flag.OFF for entry in after[1])
        return with_common(after, (G.FINALIZING, int(off and (to == Flag.OFF or cluster[2][G.FINALIZING])))), ""

    return write


def _set_aside(cluster: Cluster, number: int, late: bool) -> Done:
    node, common = cluster[1][number], cluster[2]
    breach = ""
    if node[C.PROCESS]:
        breach = "G3: the metadata of a controller that runs is set aside"
    elif common[G.OWNER] == Owner.KRAFT:
        breach = "G3: metadata is set aside while /controller is KRaft's"
    after = with_controller(cluster, number, (C.FORMATTED, 0), (C.FILE, Flag.GONE), (C.CRASHED, 0))
    if any(entry[C.FORMATTED] for entry in after[1]):
        return after, "" if late else breach
    znode = STALE if common[G.ZNODE] == Znode.COPIED else common[G.ZNODE]
    fresh = put(
        after[2],
        (G.META, 0),
        (G.DRIVER, 0),
        (G.ZNODE, znode),
        (G.VIEWS, 0),
        (G.FINALIZING, 0),
        (G.EPOCH_LOW, 0),
        (G.VERSIONS_LOW, 0),
    )
    brokers = tuple(sorted(put(entry, (B.REG, 0), (B.DIRS, 0)) for entry in after[0]))
    return (brokers, after[1], fresh), "" if late else breach


# -- ZooKeeper -----------------------------------------------------------------------------------------------------
def _raise_epoch(cluster: Cluster, late: bool) -> Done:
    return with_common(cluster, (G.EPOCH_LOW, 0)), ""


def _raise_versions(cluster: Cluster, late: bool) -> Done:
    up = any(entry[C.PROCESS] for entry in cluster[1])
    breach = "G3: partition states are written while a controller runs" if up else ""
    return with_common(cluster, (G.VERSIONS_LOW, 0)), "" if late else breach


def _delete_controller(cluster: Cluster, late: bool) -> Done:
    common = cluster[2]
    breach = ""
    changes: list[tuple[int, int]] = [(G.OWNER, Owner.NOBODY)]
    if any(entry[C.PROCESS] for entry in cluster[1]):
        breach = "G3: /controller is deleted while a KRaft controller runs: it takes it again, with what was made since"
    elif common[G.EPOCH_LOW]:
        breach = "G3: ZooKeeper's controller gets a lower epoch than partition states carry (KAFKA-20488)"
    elif common[G.VERSIONS_LOW]:
        breach = "G8: ZooKeeper's controller gets states older than brokers know: they ignore it, ISRs do not fill"
    elif common[G.VIEWS] == Views.DIFFER and common[G.ZNODE] == Znode.COPIED:
        breach = "G3: /controller is deleted over a difference between ZooKeeper and the metadata"
    elif common[G.VIEWS] == Views.BEHIND:
        changes.append((G.LOST, 1))
    return with_common(cluster, *changes), "" if late else breach


def _delete_migration(cluster: Cluster, late: bool) -> Done:
    up = any(entry[C.PROCESS] for entry in cluster[1])
    breach = "G3: /migration is deleted while a controller runs" if up else ""
    return with_common(cluster, (G.ZNODE, Znode.ABSENT)), "" if late else breach


BROKER: Final = {
    Act.STOP: _stop,
    Act.TO_ZOOKEEPER: _write(Mode.ZOOKEEPER),
    Act.TO_MIGRATION: _write(Mode.MIGRATION),
    Act.TO_KRAFT: _write(Mode.KRAFT),
    Act.START: _start,
    Act.ASSIGN: _assign,
}
CONTROLLER: Final = {
    Act.RENDER: _render,
    Act.FORMAT: _format,
    Act.START_CONTROLLER: _start_controller,
    Act.STOP_CONTROLLER: _stop_controller,
    Act.FLAG_OFF: _flag(Flag.OFF),
    Act.FLAG_ON: _flag(Flag.ON),
    Act.SET_ASIDE: _set_aside,
}
ZOOKEEPER: Final = {
    Act.RAISE_EPOCH: _raise_epoch,
    Act.RAISE_VERSIONS: _raise_versions,
    Act.DELETE_CONTROLLER: _delete_controller,
    Act.DELETE_MIGRATION: _delete_migration,
}
