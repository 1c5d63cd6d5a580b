"""ZooKeeper's MultiRead (opcode 22, ZOOKEEPER-3402, since 3.6): hundreds of reads in one request, over kazoo's session.

kazoo has no such request.  Ours is handed to the client's own queue, so that session, chroot, TLS and authentication
stay kazoo's.  Nothing here waits or retries: migrate.zookeeper.client does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from struct import Struct
from typing import Any, Final

from kazoo.exceptions import EXCEPTIONS, NoAuthError, NoNodeError
from kazoo.protocol.serialization import int_struct, multiheader_struct, read_buffer, read_string, stat_struct

from migrate.zookeeper.layout import Absent, Znode

GET_DATA: Final = 4
GET_CHILDREN: Final = 8
FAILED: Final = -1
# ZooKeeper 3.9.7 takes at most 1,000 operations; a request over jute.maxbuffer (1 MB) breaks the connection
MAX_OPERATIONS: Final = 500
MAX_REQUEST_BYTES: Final = 200_000
HEADER_BYTES: Final = multiheader_struct.size + int_struct.size + 1
RESULT: Final = Struct(">i?ii")  # kind, is it the end?, error; and the length of the data, where that is what follows
# of a stat only what a Znode keeps, in its order: version stands between mzxid and the owner
STAT: Final = Struct(">qq16xi8xq4xi8x")

Answer = Znode | tuple[str, ...] | Absent
ABSENT: Final[dict[int, Absent]] = {NoNodeError.code: Absent.MISSING, NoAuthError.code: Absent.DENIED}


class MultiRead:
    """One request: `kind` (GET_DATA or GET_CHILDREN) of every path; `paths` are absolute, chroot included.

    It has the shape of kazoo's own requests (`type`, `serialize`, `deserialize`).
    """

    type = 22

    def __init__(self, kind: int, paths: Sequence[bytes]) -> None:
        self.kind = kind
        self.paths = paths

    def __repr__(self) -> str:
        return f"MultiRead({len(self.paths)} paths)"

    def serialize(self) -> bytes:
        heads = {length: RESULT.pack(self.kind, False, -1, length) for length in {*map(len, self.paths)}}
        parts = [heads[len(path)] + path for path in self.paths]
        return b"\x00".join((*parts, multiheader_struct.pack(-1, True, -1)))  # no watch, after each

    def deserialize(self, raw: bytes, offset: int) -> list[Answer]:
        """One answer a path, in order; raises kazoo's exception for an error that is neither NoNode nor NoAuth."""
        answers: list[Answer] = []
        while True:
            if self.kind == GET_DATA:
                offset = plain_data(raw, offset, answers)
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
            raise ValueError(f"{len(answers)} answers to {len(self.paths)} reads")
        return answers


def plain_data(raw: bytes, offset: int, answers: list[Answer]) -> int:
    """Append the znodes from `offset` on, as far as each has data (of any length): answers where that ends.

    Most of what is read from ZooKeeper goes through here.
    """
    read_result, read_stat, new, append = RESULT.unpack_from, STAT.unpack_from, tuple.__new__, answers.append
    last = len(raw) - RESULT.size - STAT.size
    while offset <= last:
        kind, done, _, length = read_result(raw, offset)
        end = offset + RESULT.size + length
        if kind != GET_DATA or done or length < 0 or end > last + RESULT.size:
            break
        czxid, mzxid, version, owner, children = read_stat(raw, end)
        append(new(Znode, (raw[end - length : end], version, czxid, mzxid, owner, children)))
        offset = end + STAT.size
    return offset


def znode_of(data: bytes | None, stat: Sequence[Any]) -> Znode:
    """A Znode from data and a stat in ZooKeeper's order (`org.apache.zookeeper.data.Stat`)."""
    czxid, mzxid, _, _, version, _, _, owner, _, children, _ = stat
    return Znode(data, version, czxid, mzxid, owner, children)


def chunks(
    paths: Sequence[bytes], operations: int = MAX_OPERATIONS, request_bytes: int = MAX_REQUEST_BYTES
) -> Iterator[Sequence[bytes]]:
    """The paths in runs that fit one request each."""
    ends = [*accumulate(map(HEADER_BYTES.__add__, map(len, paths)))]
    start = size = 0
    while start < len(paths):
        fitting = bisect_right(ends, size + request_bytes, start)
        stop = max(start + 1, min(fitting, start + operations))
        yield paths[start:stop]
        start, size = stop, ends[stop - 1]
