"""Names of replica folders, as Kafka forms and reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.hosts.folders import ReplicaFolder, decode_folder, decode_partition_metadata

UNIQUE = "0123456789abcdef0123456789abcdef"
TOPIC_ID = "b1X1a2lVTUuEZKTmypRKzw"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("t-0", ReplicaFolder("t", 0, "current")),
        ("a.b.c_d-6", ReplicaFolder("a.b.c_d", 6, "current")),
        ("with-dash-12", ReplicaFolder("with-dash", 12, "current")),
        ("t--1", ReplicaFolder("t-", 1, "current")),
        ("a-delete-0", ReplicaFolder("a-delete", 0, "current")),
        ("x.future-3", ReplicaFolder("x.future", 3, "current")),
        (f"t-0.{UNIQUE}-delete", ReplicaFolder("t", 0, "deleted")),
        (f"t-0.{UNIQUE}-future", ReplicaFolder("t", 0, "future")),
        (f"t-0.{UNIQUE}-stray", ReplicaFolder("t", 0, "stray")),
        (f"a.b-c-11.{UNIQUE}-future", ReplicaFolder("a.b-c", 11, "future")),
        ("__cluster_metadata-0", ReplicaFolder("__cluster_metadata", 0, "current")),
        (f"{'n' * 249}-2147483647", ReplicaFolder("n" * 249, 2147483647, "current")),
    ],
)
def test_each_form_of_name_is_read(name: str, expected: ReplicaFolder) -> None:
    """Current, future, deleted and stray; topics may hold dots, dashes and the marks themselves."""
    assert decode_folder(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        *("lost+found", "snapshots", "t", "-0", "t-", "t-x", "t-1-delete", "t-delete", ".-0", "..-1", "t-2147483648"),
        *("t-0.x-y-moved", "../x-0", "ä-0", "t-٣", "", "a b-0", "t-0\n"),
        *(f"t-0.{UNIQUE}", f"t-x.{UNIQUE}-future", f"{'n' * 250}-0"),
    ],
)
def test_other_names_are_no_replicas(name: str) -> None:
    """Names on which Kafka stops at the start, or that no topic may have."""
    assert decode_folder(name) is None


@given(
    topic=st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True).filter(lambda name: name not in (".", "..")),
    partition=st.integers(0, 2**31 - 1),
    unique=st.from_regex(r"[0-9a-f]{32}", fullmatch=True),
)
def test_every_topic_that_kafka_allows_is_read_back(topic: str, partition: int, unique: str) -> None:
    """Whatever the name: the folder gives the topic, the partition and the kind."""
    assert decode_folder(f"{topic}-{partition}") == ReplicaFolder(topic, partition, "current")
    for mark, kind in (("delete", "deleted"), ("future", "future"), ("stray", "stray")):
        assert decode_folder(f"{topic}-{partition}.{unique}-{mark}") == ReplicaFolder(topic, partition, kind)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (f"version: 0\ntopic_id: {TOPIC_ID}".encode(), TOPIC_ID),
        (f"version: 0\ntopic_id: {TOPIC_ID}\n".encode(), TOPIC_ID),
        (f"version:  0\r\ntopic_id:  {TOPIC_ID}\r\n".encode(), TOPIC_ID),
        (b"", "?"),
        (b"\0" * 43, "?"),
        (b"version: 0\n", "?"),
        (f"version: 1\ntopic_id: {TOPIC_ID}".encode(), "?"),
        (f"version: 0\ntopic_id: {TOPIC_ID[:-1]}".encode(), "?"),
        (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "?"),
        (b"version: 0\ntopic_id: \xff\xff", "?"),
    ],
)
def test_partition_metadata_gives_the_topic_id_or_is_doubted(raw: bytes, expected: str) -> None:
    """Torn, of another version or with the zero id: "?", which is neither an id nor *none*."""
    assert decode_partition_metadata(raw) == expected
