"""ZooKeeper's MultiRead (opcode 22, ZOOKEEPER-3402, since 3.6): hundreds of reads in one request, over kazoo's session.

kazoo has no such request.  Ours is handed to the client's own queue, so that session, chroot, TLS and authentication
stay kazoo's.  Nothing here waits or retries: migrate.zookeeper.client does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kazoo.exceptions import EXCEPTIONS, NoAuthError, NoNodeError
from kazoo.protocol.serialization import int_struct, multiheader_struct, read_buffer, read_string, stat_struct

from migrate.zookeeper.znode import Absent, Znode

GET_DATA: Final = 4
GET_CHILDREN: Final = 8
FAILED: Final = -1
# ZooKeeper 3.9.7 takes at most 1,000 operations; a request over jute.maxbuffer (1 MB) breaks the connection
MAX_OPERATIONS: Final = 500
MAX_REQUEST_BYTES: Final = 200_000
HEADER_BYTES: Final = multiheader_struct.size + int_struct.size + 1

Answer = Znode | tuple[str, ...] | Absent
ABSENT: Final[dict[int, Absent]] = {NoNodeError.code: Absent.MISSING, NoAuthError.code: Absent.DENIED}


class MultiRead:
    """One request: `kind` (GET_DATA or GET_CHILDREN) of every path; `paths` are absolute, chroot included.

    It has the shape of kazoo's own requests (`type`, `serialize`, `deserialize`).
    """

    type = 22

    def __init__(self, kind: int, paths: Sequence[str]) -> None:
        self.kind = kind
        self.paths = paths

    def __repr__(self) -> str:
        return f"MultiRead({len(self.paths)} paths)"

    def serialize(self) -> bytes:
        """The request's body."""
        header = multiheader_struct.pack(self.kind, False, -1)
        parts: list[bytes] = []
        for path in self.paths:
            raw = path.encode()
            parts += (header, int_struct.pack(len(raw)), raw, b"\x00")
        parts.append(multiheader_struct.pack(-1, True, -1))
        return b"".join(parts)

    def deserialize(self, raw: bytes, offset: int) -> list[Answer]:
        """One answer a path, in order; raises kazoo's exception for an error that is neither NoNode nor NoAuth."""
        answers: list[Answer] = []
        while True:
            kind, done, _ = multiheader_struct.unpack_from(raw, offset)
            offset += multiheader_struct.size
            if done:
                break
            if kind == GET_DATA:
                data, offset = read_buffer(raw, offset)
                answers.append(znode_of(data, stat_struct.unpack_from(raw, offset)))
                offset += stat_struct.size
            elif kind == GET_CHILDREN:
                (count,) = int_struct.unpack_from(raw, offset)
                offset += int_struct.size
                names: list[str] = []
                for _ in range(count):
                    name, offset = read_string(raw, offset)
                    names.append(name)
                answers.append(tuple(sorted(names)))
            else:
                (code,) = int_struct.unpack_from(raw, offset)
                offset += int_struct.size
                if code not in ABSENT:
                    raise EXCEPTIONS[code]
                answers.append(ABSENT[code])
        if len(answers) != len(self.paths):
            message = f"{len(answers)} answers to {len(self.paths)} reads"
            raise ValueError(message)
        return answers


def znode_of(data: bytes | None, stat: Sequence[Any]) -> Znode:
    """A Znode from data and a stat in ZooKeeper's order (`org.apache.zookeeper.data.Stat`)."""
    czxid, mzxid, _, _, version, _, _, owner, _, children, _ = stat
    return Znode(data, version, czxid, mzxid, owner, children)


def chunks(
    paths: Sequence[str], operations: int = MAX_OPERATIONS, request_bytes: int = MAX_REQUEST_BYTES
) -> Iterator[Sequence[str]]:
    """The paths in runs that fit one request each."""
    start = size = 0
    for index, path in enumerate(paths):
        cost = HEADER_BYTES + len(path.encode())
        if index > start and (index - start >= operations or size + cost > request_bytes):
            yield paths[start:index]
            start, size = index, 0
        size += cost
    if start < len(paths):
        yield paths[start:]
