"""A metadata log served by fake controllers: what Kafka's leader does, and the faults that real ones show rarely.

`FakeQuorum` holds the log; each node answers by it as a leader or follower would (KafkaRaftClient).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from migrate.model.ids import METADATA_TOPIC, NodeId, TopicId
from migrate.model.inventory import Access, ControllerNode, Inventory
from migrate.protocol.loader import Struct, Values
from migrate.protocol.records import TOPIC
from tests.kafka.fake_node import FakeNode, Said, Script
from tests.testing.encoding import build, encode_control, encode_record

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


def uuid(number: int) -> str:
    """A UUID with that number in it."""
    return str(TopicId.from_bytes((1000 + number).to_bytes(16, "big")))


def topic(number: int) -> tuple[Struct, int, Values]:
    """A TopicRecord."""
    return (TOPIC, 0, {"name": f"t{number}", "topicId": uuid(number)})


@dataclass
class Stored:
    """One batch of the log."""

    base: int
    last: int
    epoch: int
    raw: bytes


@dataclass
class FakeQuorum:
    """The log, who leads, and what is committed."""

    leader: int = 3000
    epoch: int = 1
    high_watermark: int = 0
    batches: list[Stored] = field(default_factory=list)
    snapshot: tuple[int, int, bytes] | None = None  # end offset, epoch, bytes
    snapshot_answers: list[Said] = field(default_factory=list)  # said once each, before the truth
    fetch_answers: list[Said] = field(default_factory=list)
    part_bytes: int = 1 << 20
    nodes: dict[int, FakeNode] = field(default_factory=dict)

    # -- the log -------------------------------------------------------------------------------------------------
    @property
    def end(self) -> int:
        """The log's end offset (exclusive)."""
        if self.batches:
            return self.batches[-1].last + 1
        return self.snapshot[0] if self.snapshot else 0

    def append(self, *records: tuple[Struct, int, Values], commit: bool = True) -> None:
        """One batch of the leader's epoch."""
        values = [(None, encode_record(*record)) for record in records]
        raw = build(self.end, self.epoch, values)
        self.batches.append(Stored(self.end, self.end + len(records) - 1, self.epoch, raw))
        if commit:
            self.high_watermark = self.end

    def compact(self, *records: tuple[Struct, int, Values]) -> None:
        """A snapshot of all that is committed takes the log's place."""
        head = build(0, self.epoch, [encode_control("SNAPSHOT_HEADER", {"version": 0})], control=True)
        body = build(1, self.epoch, [(None, encode_record(*record)) for record in records])
        foot = build(1 + len(records), self.epoch, [encode_control("SNAPSHOT_FOOTER", {"version": 0})], control=True)
        self.snapshot = (self.high_watermark, self.epoch, head + body + foot)
        self.batches = [batch for batch in self.batches if batch.base >= self.high_watermark]

    # -- answers -------------------------------------------------------------------------------------------------
    def fetch(self, node: int, body: Values) -> Said:
        """A Fetch answer of that node."""
        if self.fetch_answers:
            return self.fetch_answers.pop(0)
        asked = body["topics"][0]["partitions"][0]
        assert asked["logStartOffset"] == -1
        assert body.get("replicaState", {}).get("replicaId", -1) == -1
        if body.get("clusterId") not in (None, CLUSTER_ID):
            return {"errorCode": 104, "responses": []}
        if error := self._refusal(node, asked["currentLeaderEpoch"]):
            return self._partition({"errorCode": error, "currentLeader": self._current_leader()})
        offset = asked["fetchOffset"]
        start = self.snapshot[0] if self.snapshot else 0
        if self.snapshot and offset < start:
            return self._partition({"snapshotId": {"endOffset": start, "epoch": self.snapshot[1]}})
        if offset > self.end or (offset and not self._same_history(offset, asked["lastFetchedEpoch"])):
            return self._partition({"divergingEpoch": {"epoch": self.epoch, "endOffset": 0}})
        raw = b"".join(batch.raw for batch in self.batches if batch.last >= offset)
        return self._partition({"records": raw})

    def fetch_snapshot(self, node: int, body: Values) -> Said:
        """A FetchSnapshot answer of that node."""
        if self.snapshot_answers:
            return self.snapshot_answers.pop(0)
        asked = body["topics"][0]["partitions"][0]
        assert body["replicaId"] == -1
        assert body["topics"][0]["name"] == METADATA_TOPIC
        error = self._refusal(node, asked["currentLeaderEpoch"])
        known = self.snapshot and asked["snapshotId"] == {"endOffset": self.snapshot[0], "epoch": self.snapshot[1]}
        if not error and not known:
            return {"errorCode": -1, "topics": []}  # Kafka's own bug, instead of 98
        whole = self.snapshot[2] if self.snapshot else b""
        position = asked["position"]
        partition = {
            "index": 0,
            "errorCode": error,
            "snapshotId": asked["snapshotId"],
            "size": len(whole),
            "position": position,
            "unalignedRecords": b"" if error else whole[position : position + self.part_bytes],
        } | ({"currentLeader": self._current_leader()} if error else {})
        return {"errorCode": 0, "topics": [{"name": METADATA_TOPIC, "partitions": [partition]}]}

    def _refusal(self, node: int, epoch: int) -> int:
        if epoch < self.epoch:
            return 74
        if epoch > self.epoch:
            return 75
        return 0 if node == self.leader else 6

    def _same_history(self, offset: int, epoch: int) -> bool:
        before = [batch for batch in self.batches if batch.base < offset]
        known = before[-1].epoch if before else self.snapshot[1] if self.snapshot else 0
        return known == epoch

    def _current_leader(self) -> Values:
        return {"leaderId": self.leader, "leaderEpoch": self.epoch}

    def _partition(self, more: dict[str, Any]) -> Values:
        entry = {
            "partitionIndex": 0,
            "errorCode": 0,
            "highWatermark": self.high_watermark,
            "abortedTransactions": None,
            "records": b"",
        } | more
        topics = [{"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": [entry]}]
        return {"errorCode": 0, "responses": topics}

    # -- nodes ---------------------------------------------------------------------------------------------------
    def scripts(self, node: int) -> dict[str, Script]:
        """What that node answers."""
        return {
            "Fetch": lambda _version, body: self.fetch(node, body),
            "FetchSnapshot": lambda _version, body: self.fetch_snapshot(node, body),
        }

    def inventory(self, expect: str | None = CLUSTER_ID) -> Inventory:
        """The inventory of its controllers."""
        controllers = tuple(
            ControllerNode(NodeId(id_), "h", node.address, "", "") for id_, node in sorted(self.nodes.items())
        )
        return Inventory(
            "fake", "", "", (), controllers, "CTL", Access(), Access(), None, "none", expect_cluster_id=expect
        )

    def asked(self, name: str) -> list[tuple[int, Values]]:
        """(node, body) of the requests with that name, node by node."""
        return [(id_, body) for id_, node in self.nodes.items() for kind, _, body in node.seen if kind == name]


@contextmanager
def running(count: int = 3) -> Iterator[FakeQuorum]:
    """Controllers 3000, 3001, ..."""
    quorum = FakeQuorum()
    with ExitStack() as stack:
        for id_ in range(3000, 3000 + count):
            quorum.nodes[id_] = stack.enter_context(FakeNode(quorum.scripts(id_)))
        yield quorum
