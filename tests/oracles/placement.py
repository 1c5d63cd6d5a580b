"""KIP-858's table "where a replica is, and where the metadata says it is", and Kafka's rules for new placements (pure).

`act` is what a KRaft broker of Kafka 3.9 does about one of its replicas; where the KIP says otherwise, the row says so.
`cut_short` tells when the broker's first look at the metadata ends in the middle: it is started without one of its
disks while the metadata still calls it the leader of a replica that may lie there (after a crash, until the controllers
have fenced it: broker.session.timeout.ms, 9 s by default).  What that look left out is no longer held back.
`new_placement` is the controller's rule (`ClusterControlManager.defaultDir`), `online` its test of a directory
(`DirectoryId.isOnline`).  Source of the table as it was built: `Partition.createLogInAssignedDirectoryId`,
`LogManager.getOrCreateLog` and `recoverAbandonedFutureLogs`, `ReplicaManager.getOrCreatePartition`,
`applyLocalLeadersDelta` (lets NotLeaderOrFollowerException through: the whole delta ends) and
`applyLocalFollowersDelta` (catches it), `TopicDelta.localChanges` (names a directory only where the record did).
None of it is a promise of ours: what we promise is the ledger's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from migrate.model.ids import LOST, MIGRATING, UNASSIGNED

NOT_YET = frozenset({str(MIGRATING), str(UNASSIGNED)})


class Act(StrEnum):
    """What the broker does about a replica."""

    NOTHING = "nothing"
    REPORT = "reports the directory it lies in"
    CREATE_THERE = "creates it where the metadata says"
    CREATE_ANYWHERE = "creates it in a directory of its choice and reports that"
    MOVE_ON = "goes on with the move"
    PROMOTE = "makes the future copy the current one"  # the KIP: once it has caught up; 3.9 does not ask at a start
    HOLD_BACK = "creates nothing: the directory may be one that is offline"
    USE_UNTOLD = "uses it where it lies, and reports nothing"
    CREATE_UNTOLD = "creates it in a directory of its choice with the partition's next change, and reports nothing"


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """One replica of a broker that is starting or follows the metadata; directories by their ids, "" for none.

    `current` and `future` are the online directories that hold such a copy.  `online` are all of the broker's online
    directories; `some_offline`: at least one more is configured that is not.
    """

    in_metadata: str
    current: str
    future: str
    online: Collection[str]
    some_offline: bool = False


def act(found: Whereabouts, *, cut_short: bool = False) -> Act:
    """The row of the table (first match wins).

    `cut_short`: the broker's first look at the metadata ended before this replica.  Which ones it got to before is not
    to be foretold (the order is that of a hash map); none of them is reported, either.
    """
    named = found.in_metadata
    if named in found.online and named == found.future:
        return Act.PROMOTE
    if found.current:
        if found.current != named:
            return Act.USE_UNTOLD if cut_short else Act.REPORT
        return Act.MOVE_ON if found.future else Act.NOTHING
    if cut_short:
        return Act.CREATE_UNTOLD
    if named in found.online:
        return Act.CREATE_THERE
    if named == str(UNASSIGNED) or not found.some_offline:
        return Act.CREATE_ANYWHERE
    return Act.HOLD_BACK  # MIGRATING too: such a replica may well lie in the directory that is offline


def withheld(found: Whereabouts) -> bool:
    """Does the first look leave that replica alone?  One that lies elsewhere is reported, and opened later."""
    return found.some_offline and found.in_metadata != str(UNASSIGNED) and found.in_metadata not in found.online


def cut_short(replicas: Iterable[tuple[Whereabouts, bool]]) -> bool:
    """Does that look end in the middle?  With each replica: does the metadata call the broker its leader?"""
    return any(leads and withheld(found) for found, leads in replicas)


def new_placement(registered: Collection[str] | None, *, directories_known: bool = True) -> str:
    """The directory that the controller writes for a new replica on that broker.

    `registered` are the broker's registered directories, None for a broker that is not registered;
    `directories_known` is metadata.version >= 3.7-IV2.
    """
    if not directories_known:
        return str(MIGRATING)
    if registered is None:
        return str(UNASSIGNED)
    if not registered:
        return str(MIGRATING)
    return next(iter(registered)) if len(registered) == 1 else str(UNASSIGNED)


def online(directory: str, registered: Collection[str]) -> bool:
    """May a replica in that directory lead, as the controller sees it?

    MIGRATING and UNASSIGNED may, whatever became of the disk: that is the hole which the ledger guards.  A broker
    without registered directories has no offline ones (KAFKA-16162).
    """
    if directory in NOT_YET:
        return True
    return directory != str(LOST) and (not registered or directory in registered)
