"""Made-up clusters in ZooKeeper's files: topics as Kafka writes them, and topics with whatever is odd about them."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

from hypothesis import strategies as st

from tests.zookeeper.offline.written import EPOCH, Kept, Txn, create, delete, multi, set_data

TOPICS = "/brokers/topics"
NAMES = ("a", "b.c", "d-1", "__consumer_offsets")


def packed_json(value: object) -> bytes:
    """As Jackson writes it."""
    return json.dumps(value, separators=(",", ":")).encode()


def topic_id(number: int) -> str:
    """A topic's id."""
    return base64.urlsafe_b64encode(bytes([number]) * 16)[:22].decode()


def topic_data(number: int, replicas: list[list[int]], **changes: object) -> bytes:
    """A topic's znode."""
    fields: dict[str, object] = {
        "removing_replicas": {},
        "partitions": {str(partition): ids for partition, ids in enumerate(replicas)},
        "topic_id": topic_id(number),
        "adding_replicas": {},
        "version": 3,
    }
    return packed_json({key: value for key, value in {**fields, **changes}.items() if value is not None})


def state_data(leader: int, epoch: int, isr: list[int], **changes: object) -> bytes:
    """A partition's state."""
    fields = {"controller_epoch": 3, "leader": leader, "version": 1, "leader_epoch": epoch, "isr": isr}
    return packed_json({**fields, **changes})


def topic_znodes(name: str, number: int, replicas: list[list[int]], zxid: int = 2) -> dict[str, Kept]:
    """The znodes of one topic at rest, in the order of a snapshot."""
    base = f"{TOPICS}/{name}"
    found = {base: Kept(topic_data(number, replicas), zxid), f"{base}/partitions": Kept(None, zxid)}
    for partition, ids in enumerate(replicas):
        found[f"{base}/partitions/{partition}"] = Kept(None, zxid + 1)
        isr = ids[: 1 + partition % 2] or [1]
        found[f"{base}/partitions/{partition}/state"] = Kept(state_data(isr[0], partition, isr), zxid + 2)
    return found


def others() -> dict[str, Kept]:
    """What every cluster has."""
    return {
        "/cluster": Kept(None),
        "/cluster/id": Kept(b'{"version":"1","id":"REh233dFSJKhrlnVHSnalQ"}'),
        "/brokers": Kept(None),
        "/brokers/ids": Kept(None),
        "/brokers/ids/1": Kept(b"{}", owner=7),
        TOPICS: Kept(None, cversion=3),
    }


lists = st.lists(st.lists(st.integers(0, 4), unique=True, min_size=1, max_size=3), min_size=1, max_size=4)

# what is done to one znode's data: each is read, or refused, by the reference
STATE_CHANGES = (
    lambda raw: raw.replace(b":", b": "),
    lambda raw: raw.replace(b'"version":1,', b'"version":1,"leader_recovery_state":1,'),
    lambda raw: raw.replace(b'"leader":', b'"leader":0'),
    lambda raw: raw.replace(b"[", b"[1,1,"),
    lambda raw: raw.replace(b'"leader_epoch":', b'"leader_epoch":12345678901'),
    lambda raw: raw[:-1],
    lambda raw: raw + b" ",
    lambda _: b"",
    lambda raw: raw.replace(b"controller_epoch", b"controller_epocH"),
    lambda raw: raw.replace(b'"leader":', b'"leader":-'),
)
TOPIC_CHANGES = (
    lambda raw: raw.replace(b'"version":3', b'"version":2'),
    lambda raw: raw.replace(b'"adding_replicas":{}', b'"adding_replicas":{"0":[4]}'),
    lambda raw: raw.replace(b'"0":', b'"1":', 1),
    lambda raw: raw.replace(b'"0":[', b'"0":[9,9,', 1),
    lambda raw: raw.replace(b'"topic_id":"', b'"topic_id":"x'),
    lambda raw: raw.replace(b'","adding', b'","version":3,"adding'),
    lambda raw: raw.replace(b",", b", "),
    lambda raw: raw[:-2],
    lambda raw: raw.replace(b'"0":[', b'"7":[1],"0":[', 1),
    lambda _: b'{"version":3,"partitions":{}}',
)
NAMES_OF_EXTRAS = ("more", "partitions/9", "partitions/00", "partitions/0/state/below", "partitions/x")


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Kept]:
    """The znodes of a cluster; some topics have something odd."""
    found = others()
    for number, name in enumerate(draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4)), 1):
        znodes = topic_znodes(name, number, draw(lists), zxid=10 * number)
        match draw(st.sampled_from(["plain"] * 5 + ["state", "topic", "owner", "gone", "extra", "order", "acl"])):
            case "state":
                path = draw(st.sampled_from([path for path in znodes if path.endswith("/state")]))
                change = draw(st.sampled_from(STATE_CHANGES))
                znodes[path] = replace(znodes[path], data=change(znodes[path].data or b""))
            case "topic":
                path = f"{TOPICS}/{name}"
                change = draw(st.sampled_from(TOPIC_CHANGES))
                znodes[path] = replace(znodes[path], data=change(znodes[path].data or b""))
            case "owner":
                path = draw(st.sampled_from(sorted(znodes)))
                znodes[path] = replace(znodes[path], owner=draw(st.sampled_from([7, -(1 << 63)])))
            case "gone":
                del znodes[draw(st.sampled_from([path for path in znodes if path.endswith("/state")]))]
            case "extra":
                znodes[f"{TOPICS}/{name}/{draw(st.sampled_from(NAMES_OF_EXTRAS))}"] = Kept(b"?", 99)
            case "order":
                states = list(znodes.items())
                pairs = [states[at : at + 2] for at in range(2, len(states), 2)]
                znodes = dict([*states[:2], *(entry for pair in reversed(pairs) for entry in pair)])
            case "acl":
                znodes = {path: replace(kept, acl=5) for path, kept in znodes.items()}
        found |= znodes
    return found | {"/config": Kept(None), "/config/topics": Kept(None)}


@st.composite
def changes(draw: st.DrawFn) -> list[Txn]:
    """What happens after a snapshot: mostly states that move, and now and then anything else."""
    found: list[Txn] = []
    for version in range(draw(st.integers(0, 6))):
        name = draw(st.sampled_from(NAMES))
        base = f"{TOPICS}/{name}"
        partition = f"{base}/partitions/{draw(st.integers(0, 3))}"
        moved = state_data(draw(st.integers(-1, 4)), 50 + version, draw(st.lists(st.integers(0, 4), unique=True)))
        odd = draw(st.sampled_from(STATE_CHANGES))(moved)
        found.append(
            draw(
                st.sampled_from(
                    [
                        set_data(f"{partition}/state", moved, version),
                        set_data(f"{partition}/state", moved, version),
                        multi(set_data(f"{partition}/state", moved, version), set_data(f"{base}/partitions", b"x")),
                        set_data(f"{partition}/state", odd, version),
                        set_data(base, topic_data(9, [[1, 2], [2, 3]]), version),
                        set_data(partition, b"x", version),
                        delete(f"{partition}/state"),
                        create(f"{partition}/state", moved),
                        create(f"{partition}/more", b""),
                        delete(base),
                        create(base, topic_data(8, [[3]])),
                        create("/config/topics/a", b"{}"),
                    ]
                )
            )
        )
    return found


FIRST = EPOCH + 200  # the first transaction behind such a snapshot
