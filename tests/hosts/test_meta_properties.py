"""meta.properties: Kafka's rules, and distrust where Kafka forgets a directory's id in silence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.hosts.meta_properties import ReplicaFolder, decode, decode_folder, decode_partition_metadata
from migrate.model.ids import DirectoryId
from migrate.model.views import MetaBroken, MetaProperties

DIRECTORY = "fLUdTjFFJ_w2ms3XPW9eXg"
CLUSTER = "REh233dFSJKhrlnVHSnalQ"
STAMP = "#\n#Sat Nov 21 02:45:45 UTC 2026\n"
V0 = f"{STAMP}broker.id=0\ndirectory.id={DIRECTORY}\nversion=0\ncluster.id={CLUSTER}\n".encode()
V1 = f"{STAMP}node.id=3000\ndirectory.id={DIRECTORY}\nversion=1\ncluster.id={CLUSTER}\n".encode()


def without(raw: bytes, key: str) -> bytes:
    """The file without that key's line."""
    return b"".join(line for line in raw.splitlines(keepends=True) if not line.startswith(key.encode() + b"="))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (V0, MetaProperties(0, CLUSTER, 0, DirectoryId(DIRECTORY))),
        (V1, MetaProperties(1, CLUSTER, 3000, DirectoryId(DIRECTORY))),
        (without(V0, "directory.id"), MetaProperties(0, CLUSTER, 0, None)),
        (without(V1, "directory.id"), MetaProperties(1, CLUSTER, 3000, None)),
        (without(V0, "cluster.id"), MetaProperties(0, None, 0, DirectoryId(DIRECTORY))),
        (without(V0, "broker.id"), MetaProperties(0, CLUSTER, None, DirectoryId(DIRECTORY))),
        (V0 + b"broker.id=0\n", MetaProperties(0, CLUSTER, 0, DirectoryId(DIRECTORY))),
        (V0 + b"unknown=1\n", MetaProperties(0, CLUSTER, 0, DirectoryId(DIRECTORY))),
        (V0.replace(b"\n", b"\r\n"), MetaProperties(0, CLUSTER, 0, DirectoryId(DIRECTORY))),
        (V0.replace(b"version=0", b"version=+0"), MetaProperties(0, CLUSTER, 0, DirectoryId(DIRECTORY))),
        (V1 + b"broker.id=4\n", MetaProperties(1, CLUSTER, 3000, DirectoryId(DIRECTORY))),
    ],
)
def test_what_kafka_writes_is_read(raw: bytes, expected: MetaProperties) -> None:
    """Version 0 of brokers with and without directory.id, version 1 of kafka-storage format."""
    assert decode(raw) == expected


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (V0.replace(b"version=0", b"version=2"), "neither 0 nor 1"),
        (V0.replace(b"version=0", b"version=x"), "version 'x' is no id"),
        (V0.replace(b"version=0", b"version=0 "), "version '0 ' is no id"),
        (without(V1, "node.id"), "without node.id"),
        (without(V1, "cluster.id"), "without cluster.id"),
        (V0.replace(b"broker.id=0", b"broker.id=-1"), "broker.id '-1' is no id"),
        (V0.replace(b"broker.id=0", b"broker.id=2147483648"), "is no id"),
        (V0.replace(b"broker.id=0", b"broker.id="), "is no id"),
        (V0.replace(DIRECTORY.encode(), DIRECTORY[:-1].encode()), "is no UUID"),
        (V0.replace(DIRECTORY.encode(), b"not/a+uuid-in+base64//"), "is no UUID"),
        (V0.replace(DIRECTORY.encode(), b"AAAAAAAAAAAAAAAAAAAAAA"), "is reserved"),
        (V0.replace(DIRECTORY.encode(), b"AAAAAAAAAAAAAAAAAAAAYw"), "is reserved"),
        (V0 + b"x=\\u12\n", "malformed escape"),
        (V0.replace(CLUSTER.encode(), b""), "cluster.id is empty"),
    ],
)
def test_what_kafka_refuses_is_broken(raw: bytes, reason: str) -> None:
    """Each with its reason; reserved ids end at 99."""
    found = decode(raw)
    assert isinstance(found, MetaBroken)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "empty"),
        (b"\n \n", "empty"),
        (b"\0" * 124, "NUL"),
        (V0[:60] + b"\0" * 64, "NUL"),
        (b"\xef\xbb\xbf" + V0, "byte order mark"),
        (V0[: V0.index(b"version")], "no version"),
        (without(V0, "version"), "no version"),
        (V0.replace(b"broker.id", b"node.id"), "node.id instead of broker.id"),
        (V1.replace(b"node.id", b"broker.id"), "broker.id instead of node.id"),
        (V0 + b"broker.id=1\n", "broker.id appears twice"),
        (V0 + f"directory.id={DIRECTORY[::-1]}\n".encode(), "directory.id appears twice"),
    ],
)
def test_what_kafka_takes_in_silence_is_broken_too(raw: bytes, reason: str) -> None:
    """Empty, NUL, torn or double: Kafka would start, with a new id or with the wrong one."""
    found = decode(raw)
    assert isinstance(found, MetaBroken)
    assert reason in found.reason


def test_the_first_id_after_the_reserved_ones_is_an_id() -> None:
    """100 is the first that Kafka gives away."""
    raw = V0.replace(DIRECTORY.encode(), DirectoryId.from_bytes((100).to_bytes(16, "big")).encode())
    assert isinstance(decode(raw), MetaProperties)


def test_two_spellings_of_one_id_are_one_id() -> None:
    """Java ignores padding and the last four bits: AAA...ZA and AAA...ZB are the same 16 bytes."""
    for spelling in (DIRECTORY + "==", DIRECTORY[:-1] + "h"):
        found = decode(V0.replace(DIRECTORY.encode(), spelling.encode()))
        assert found == MetaProperties(0, CLUSTER, 0, DirectoryId(DIRECTORY)), spelling


@pytest.mark.parametrize("raw", [V0, V1])
def test_a_file_torn_anywhere_never_loses_the_directory_in_silence(raw: bytes) -> None:
    """Cut after any byte: either the true directory.id is read, or the file is broken (or it says nothing of one)."""
    for length in range(len(raw)):
        found = decode(raw[:length])
        if isinstance(found, MetaProperties):
            assert found.directory_id == DIRECTORY, length
            assert found.node_id in (0, 3000), length


@given(st.binary(max_size=200) | st.binary(max_size=60).map(lambda noise: V0 + noise))
def test_no_bytes_make_it_raise(raw: bytes) -> None:
    """Any file gets an answer."""
    assert isinstance(decode(raw), MetaProperties | MetaBroken)


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


@pytest.mark.slow
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
