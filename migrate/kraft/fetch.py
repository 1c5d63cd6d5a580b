"""The live KRaft view: the metadata log read over the wire from the active controller, as an outsider.

No request of Kafka's admin API shows directories, registered log directories or broker epochs; Fetch and
FetchSnapshot on the controller listener do (KIP-595, KIP-630).  We ask with replicaId -1, so that no observer is left
behind.  The leader serves uncommitted records too: nothing at or above its high watermark is ever applied.

The leader is found by Fetch itself: every refusal names the current leader and its epoch.  That needs CLUSTER_ACTION
and no other right.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Final, NoReturn, Self

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_delay, wait_exponential

from migrate.errors import (
    AccessRefused,
    AnswerBroken,
    AnswerTimeout,
    ConnectionClosed,
    InputError,
    KafkaRefused,
    MetadataBehind,
    MetadataMoved,
    MigrateError,
    NoActiveController,
    OtherCluster,
    Retryable,
)
from migrate.kafka import connection as ask_node
from migrate.kafka.connection import DEFAULT_LIMITS, Connection, Limits
from migrate.kraft.image import Image
from migrate.model.copied import CopyEnd
from migrate.model.ids import METADATA_TOPIC
from migrate.model.inventory import Inventory
from migrate.model.secrets import Digester
from migrate.model.views import KraftView
from migrate.protocol.loader import Values
from migrate.protocol.messages import FETCH, FETCH_SNAPSHOT, Api, Code, error_name, metadata_fetch

LOG: Final = logging.getLogger("migrate.kraft")
OUTSIDER: Final = -1
PART_BYTES: Final = 8 * 2**20  # what Kafka's raft client puts into one answer at most
MAX_SNAPSHOT: Final = 2**30
LONG_POLL_MS: Final = 500
PATIENCE_SECONDS: Final = 3.0  # an election takes less, a dead quorum should not be waited for
_MOVED: Final = (Code.NOT_LEADER_OR_FOLLOWER, Code.FENCED_LEADER_EPOCH, Code.UNKNOWN_LEADER_EPOCH)
_ASK_AGAIN: Final = (
    Code.UNKNOWN_SERVER_ERROR,
    Code.LEADER_NOT_AVAILABLE,
    Code.BROKER_NOT_AVAILABLE,
    Code.REQUEST_TIMED_OUT,
    Code.SNAPSHOT_NOT_FOUND,
    Code.POSITION_OUT_OF_RANGE,
)


class MetadataReader:
    """Reads on from where it stopped, each time it is asked for a view; one thread at a time.

    It follows the leader, begins with a snapshot where the log no longer reaches back to 0, and begins anew where its
    log and the leader's part ways (controllers that were formatted again).
    """

    def __init__(
        self,
        inventory: Inventory,
        digester: Digester,
        *,
        limits: Limits = DEFAULT_LIMITS,
        patience: float = PATIENCE_SECONDS,
        pause: Callable[[float], None] | None = None,
        keep_copy: bool = False,
    ) -> None:
        self._inventory = inventory
        self._limits = limits
        self._patience = patience
        self._pause = pause or _pause
        self._image = Image(digester, keep_copy=keep_copy)
        self._cluster_id = inventory.expect_cluster_id
        self._connection: Connection | None = None
        self._order = list(inventory.controllers)
        self._epoch = 0
        self._high_watermark = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; what was read is kept, and the next view connects again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def reset(self) -> None:
        """Forget what was read: for controllers that were formatted again with the same cluster id."""
        self.close()
        self._image.reset()
        self._high_watermark = -1
        self._epoch = 0

    def view(self, min_offset: int | None = None) -> KraftView:
        """The image at the leader's high watermark, or at `min_offset` at least: that is waited for.

        Raises:
            NoActiveController: none can be connected to; told at once.
            ConnectionClosed, AnswerTimeout, MetadataMoved, MetadataBehind: not within the reader's
                patience; Retryable, and what was read so far is kept.
            AccessRefused: CLUSTER_ACTION on Cluster is missing (before the copy: no super user).
            OtherCluster: the controllers' cluster id is not the expected one.
            BatchError, DecodeError, ReplayError, SnapshotError: the response is not a metadata log.
        """
        self.follow(min_offset)
        assert self._cluster_id is not None
        assert self._connection is not None
        source = f"Fetch from controller {self._order[0].id} at {self._connection.address}"
        return self._image.view(self._cluster_id, self._high_watermark, source)

    @property
    def copy_end(self) -> CopyEnd | None:
        """The metadata at the end of Kafka's copy, where it is kept and the log that was read reaches back to it."""
        return self._image.copy_end

    def follow(self, min_offset: int | None = None) -> Image:
        """The image itself, at the leader's high watermark; it changes with the next call.  Raises what `view` does."""
        retrying = Retrying(
            # where no controller listens at all, waiting does not help: before they exist, that is normal
            retry=retry_if_exception(lambda it: isinstance(it, Retryable) and not isinstance(it, NoActiveController)),
            stop=stop_after_delay(self._patience),
            wait=wait_exponential(multiplier=0.02, max=0.5),
            sleep=self._pause,
            before_sleep=_tell,
            reraise=True,
        )
        retrying(self._advance, min_offset, time.monotonic() + self._patience)
        return self._image

    # -- advancing -----------------------------------------------------------------------------------------------
    def _advance(self, min_offset: int | None, deadline: float) -> None:
        connection = self._connected()
        try:
            if self._cluster_id is None:
                self._cluster_id = self._ask_cluster_id(connection)
            wait_ms = 0
            while True:
                before = self._image.next_offset
                high_watermark = self._fetch(connection, wait_ms)
                if self._image.next_offset >= high_watermark:
                    if min_offset is None or self._image.offset >= min_offset:
                        return
                    if time.monotonic() > deadline:
                        stands = f"the metadata is at offset {self._image.offset}, {min_offset} was waited for"
                        raise MetadataBehind(stands, where=connection.address)
                    wait_ms = LONG_POLL_MS
                    if self._image.next_offset == before:
                        self._pause(0.02)  # an uncommitted tail makes every answer come at once
        except (ConnectionClosed, AnswerTimeout):
            self._leave()
            raise
        except MigrateError as error:
            if not isinstance(error, Retryable):
                self.close()
            raise

    def _fetch(self, connection: Connection, wait_ms: int) -> int:
        image = self._image
        body = metadata_fetch(
            image.next_offset, most=PART_BYTES, epoch=self._epoch, last_epoch=image.fetched_epoch, wait_ms=wait_ms
        )
        answer = self._asked(connection, FETCH, {**body, "clusterId": self._cluster_id}, wait_ms)
        if answer.get("divergingEpoch", {}).get("epoch", -1) >= 0:
            LOG.info("the leader's metadata log is another than the one read so far: reading it again")
            self._forget()
            raise MetadataMoved("the log that was read is not the leader's", where=connection.address)
        snapshot = answer.get("snapshotId", {})
        if snapshot.get("endOffset", -1) >= 0:
            raw = self._snapshot(connection, snapshot)
            image.load_snapshot(raw, snapshot["endOffset"], snapshot["epoch"], f"the snapshot of {connection.address}")
            self._high_watermark = max(self._high_watermark, snapshot["endOffset"])
            behind: int = snapshot["endOffset"] + 1  # the log after it comes next
            return behind
        found: int = answer["highWatermark"]
        if found < 0:
            raise MetadataMoved("the new leader knows no high watermark yet", where=connection.address)
        self._high_watermark = max(self._high_watermark, found)
        began = image.next_offset
        try:
            image.apply_batches(
                answer["records"] or b"", below=self._high_watermark, where=f"Fetch from {connection.address}"
            )
        except InputError as error:
            self._forget()
            if began:
                raise MetadataMoved(f"the log does not continue from offset {began}: {error}") from error
            raise
        return found

    def _forget(self) -> None:
        self._image.reset()
        self._high_watermark = -1

    def _snapshot(self, connection: Connection, snapshot: Values) -> bytes:
        LOG.info("reading the metadata snapshot %s-%s", snapshot["endOffset"], snapshot["epoch"])
        identity = {"endOffset": snapshot["endOffset"], "epoch": snapshot["epoch"]}
        raw = bytearray()
        while True:
            partition = {
                "partition": 0,
                "currentLeaderEpoch": self._epoch,
                "snapshotId": identity,
                "position": len(raw),
            }
            topics = [{"name": METADATA_TOPIC, "partitions": [partition]}]
            body = {
                "clusterId": self._cluster_id,
                "replicaId": OUTSIDER,
                "maxBytes": PART_BYTES,
                "topics": topics,
            }
            answer = self._asked(connection, FETCH_SNAPSHOT, body, 0)
            part = answer["unalignedRecords"]
            if answer["position"] != len(raw) or not part or answer["size"] > MAX_SNAPSHOT:
                raise AnswerBroken(
                    f"a part of {len(part)} bytes at {answer['position']} of {answer['size']} came for {len(raw)}",
                    where=connection.address,
                )
            raw += part
            if len(raw) >= answer["size"]:
                return bytes(raw)

    # -- asking --------------------------------------------------------------------------------------------------
    def _asked(self, connection: Connection, api: Api, body: Values, wait_ms: int) -> Values:
        """The one partition of the answer, its error treated."""
        answer = connection.call(api, body, seconds=self._limits.answer_seconds + wait_ms / 1000)
        if answer["errorCode"] != Code.NONE:
            self._refused(connection, api, answer["errorCode"])
        # FetchSnapshot tells its topics under another name; Kafka forgets them for an unknown snapshot id
        topics = answer["topics"] if "topics" in answer else answer["responses"]
        partitions = [entry for topic in topics for entry in topic["partitions"]]
        if len(partitions) != 1:
            raise MetadataMoved(f"{api.name} answered {len(partitions)} partitions", where=connection.address)
        only: Values = partitions[0]
        if only["errorCode"] in _MOVED:
            self._follow(connection, only)
        if only["errorCode"] != Code.NONE:
            self._refused(connection, api, only["errorCode"])
        return only

    def _follow(self, connection: Connection, entry: Values) -> NoReturn:
        """Go to the leader that the refusal names."""
        leader = entry.get("currentLeader", {})
        self._epoch = max(leader.get("leaderEpoch", -1), 0)
        number = leader.get("leaderId", -1)
        named = next((node for node in self._order if node.id == number), None)
        if named is None:
            self._leave()
            if number >= 0 and self._epoch:  # an answer of FetchSnapshot that names nobody has zeros; epochs begin at 1
                raise MetadataMoved(
                    f"controller {number} leads, and is not in the inventory: add it to the inventory, or give the "
                    "lead to another (restart it)",
                    where=connection.address,
                )
            raise MetadataMoved(f"knows no leader: {error_name(entry['errorCode'])}", where=connection.address)
        if named is not self._order[0]:
            self.close()
            self._order.remove(named)
            self._order.insert(0, named)
        raise MetadataMoved(f"controller {named.id} leads in epoch {self._epoch}", where=connection.address)

    def _refused(self, connection: Connection, api: Api, code: int) -> NoReturn:
        if code == Code.INCONSISTENT_CLUSTER_ID:
            raise OtherCluster(f"the controllers' cluster is not {self._cluster_id}", where=connection.address)
        if code == Code.INVALID_REQUEST and self._image.next_offset:
            # seen on 3.9.2: the epoch that we read last is newer than the leader's, whose quorum was formatted again
            LOG.info(
                "the leader's epochs are older than the log read so far: a quorum formatted again, reading it again"
            )
            self._forget()
            self._epoch = 0
            raise MetadataMoved("the log that was read is of a quorum that is gone", where=connection.address)
        if code in _ASK_AGAIN:
            raise MetadataMoved(f"{api.name} was answered with {error_name(code)}", where=connection.address)
        connection.refuse(api, code)
        raise AssertionError(code)

    def _ask_cluster_id(self, connection: Connection) -> str:
        """By DescribeCluster: on the controller with ALTER, else on any broker, where no right is needed."""
        with contextlib.suppress(AccessRefused, KafkaRefused):
            return ask_node.cluster_id(connection, controller=True)
        for broker in self._inventory.brokers:
            with (
                contextlib.suppress(MigrateError),
                Connection(broker.address, self._inventory.access_of(broker), self._limits) as other,
            ):
                return ask_node.cluster_id(other, controller=False)
        raise AccessRefused(
            "no permitted request returns the cluster's id",
            where=connection.address,
            next_step="expect it in the inventory",
        )

    # -- connecting ----------------------------------------------------------------------------------------------
    def _connected(self) -> Connection:
        """The open connection, or one to the first controller that accepts one; raises the first refusal of all."""
        if self._connection is not None:
            return self._connection
        said: list[str] = []
        refused: MigrateError | None = None
        for node in tuple(self._order):
            try:
                self._connection = Connection(node.address, self._inventory.access_of(node), self._limits)
            except MigrateError as error:  # one with an expired certificate keeps nobody from the others
                said.append(f"{node.id}: {error.what}")
                refused = refused or (None if isinstance(error, Retryable) else error)
                self._leave()
                continue
            return self._connection
        self._forget()  # while nobody runs a quorum may be formatted again: who answers next is read from the beginning
        self._epoch = 0
        if refused is not None:
            raise refused
        raise NoActiveController("no controller can be reached", where=self._inventory.name, why="; ".join(said))

    def _leave(self) -> None:
        self.close()
        self._order.append(self._order.pop(0))


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def _tell(state: RetryCallState) -> None:
    if state.outcome is not None:
        LOG.debug("asked again (%s): %s", state.attempt_number, state.outcome.exception())
