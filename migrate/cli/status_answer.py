"""What `status` answers, as values: its text is made from it."""

from __future__ import annotations

from typing import final

from typing_extensions import TypedDict

from migrate.model.afterwards import Afterwards
from migrate.model.disk_remedies import DiskTrouble
from migrate.report.status_text import RollbackAnswer, WaitingRow


@final
class NotSeen(TypedDict):
    """In place of a part that could not be seen: why."""

    unknown: str


class Process(TypedDict):
    """A node: `file` is the mode of its configuration, `registered` a broker's mode, or `-`."""

    node: int
    state: str
    pid: int | None
    file: str
    registered: str


@final
class Quorum(TypedDict):
    """The controllers; `voters` is id -> end of its log."""

    leader: int
    epoch: int
    high_watermark: int
    voters: dict[str, int]


@final
class LedgerCounts(TypedDict):
    """Replicas by broker and state; `copied`: is the metadata in KRaft?"""

    offset: int
    copied: bool
    brokers: dict[str, dict[str, int]]


class ZookeeperUse(TypedDict):
    """Who still uses ZooKeeper: `used`, `unknown`, `unused` or `stopped`, and by what that is known."""

    use: str
    servers: list[str]
    users: list[str]
    unseen: list[str]


class BrokerProtocol(TypedDict):
    """inter.broker.protocol.version as the running broker says it; null where it does not, `unknown` says why."""

    broker: int
    version: str | None
    wanted: str
    unknown: str | None


class NewDirectory(TypedDict):
    """A log directory of a DirectoryPlaybook: `in use`, `in the file, not registered`, `not yet` or `unknown`."""

    broker: str
    path: str
    state: str
    why: str


class Run(TypedDict):
    """The newest run, not carried out whole yet.

    `alive`: a process works on it.  `told` is where it stands, `doing` the lines of its board, `next` its command, or
    "".
    """

    plan: str
    back: bool
    alive: bool
    told: str
    doing: list[str]
    next: str


@final
class RunLeft(Run):
    """The same, with the stages of its steps left, and the brokers that it has yet to take through the first roll."""

    stages: list[str]
    nodes: list[int]


@final
class UnreadableRun(TypedDict):
    """Why the newest run's journal proves nothing."""

    unreadable: str


@final
class Moves(TypedDict):
    """Partitions that another tool is reassigning: no broker is restarted meanwhile."""

    partitions: list[str]
    what: str
    owner: str
    next: str


class Parts(TypedDict, total=False):
    """What is not in every answer.

    There is `unknown`, why the stage is unknown, or there are `stage`, `half_done` (a stage, or null) and `how`.
    `next` is the command that comes next, without the program's name.  `zookeeper` is there where its use was looked
    at, `protocols` and `new_directories` where the playbook is about them, `rollback` where it migrates,
    `run` where one is not carried out whole yet, `moves` where partitions are being reassigned, `down` where brokers
    are: what to type to start them.
    """

    unknown: str
    stage: str
    half_done: str | None
    how: str
    afterwards: Afterwards
    next: str
    zookeeper: ZookeeperUse
    protocols: list[BrokerProtocol]
    new_directories: list[NewDirectory]
    rollback: RollbackAnswer
    run: Run | UnreadableRun
    moves: Moves
    down: str


class StatusAnswer(Parts):
    """What `status` answers; `time` is in seconds since the epoch, `disks_unseen` says why, by node."""

    cluster: str
    inventory: str
    time: float
    processes: list[Process]
    contradictions: list[str]
    quorum: Quorum | NotSeen
    ledger: LedgerCounts | NotSeen
    unhealthy_partitions: int | None
    waiting: list[WaitingRow]
    disks: list[DiskTrouble]
    disks_unseen: dict[str, str]
    leaderless: list[str]
