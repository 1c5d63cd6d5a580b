"""Damage to files that people hand over: values of another type or size, keys, lines, bytes and tar headers.

Every choice is an argument, so that hypothesis shrinks what it finds and a long run draws by itself.
"""

from __future__ import annotations

import base64
import copy
import functools
import gzip
import io
import json
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from migrate.errors import MigrateError
from migrate.model.written import Quoted
from migrate.playbook.document import parse_document
from migrate.run.journal import HEAD

Choose = Callable[[int], int]  # from 0 to below the argument
Parts = Mapping[str, bytes]

RAW: Final = "@@raw@@"
ACTING: Final = "a\nok     signature: of the key that was named\x1b[2J\x07\r\u202e\u2028"
ENCODED: Final = tuple(
    base64.b64encode(raw).decode()
    for raw in (
        b"\xff\xfe",
        b"[" * 50_000,
        b'{"version":1e999,"config":{"a":Infinity}}',
        b'{"version":3,"partitions":{"0":[%s]}}' % (b"1" * 400),
        b'{"version":3,"partitions":{"%s":[0]},"topic_id":7}' % (b"9" * 30),
        b"a=\\uD800\nversion=\\u00",
    )
)
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**70, 10**400, 0.5, 1e308, -1e18),
    *(
        float("inf"),
        float("-inf"),
        float("nan"),
        "",
        " ",
        "x",
        "\0",
        "\ud800",
        ACTING,
        "x" * 300,
        "é",
        "0",
        "-1",
        "1e999",
    ),
    *(
        "/",
        "../../x",
        "/dev/zero",
        "(",
        "[",
        "*",
        "=",
        "Infinity",
        "9" * 30,
        [],
        {},
        [[]],
        [None],
        {"": None},
        {"x": 1},
    ),
    *ENCODED,
)
FRAGMENTS: Final = (
    *("[" * 50_000, "[" * 2000 + "]" * 2000, '{"a":' * 3000 + "1" + "}" * 3000, "1" * 5000, "-" + "9" * 400, "1e999"),
    *('{"a": 1, "a": 2}', "Infinity", "-NaN", "'x'", "//", "", "," * 3, "{}, " * 500 + "{}", '"\\ud800"', '"\\u0000"'),
    *(
        "&a [*a]",
        "*a",
        "!!python/object:os.system x",
        "!x y",
        "<<: {a: 1}",
        "? [a] : b",
        "|\n  x",
        "0x10",
        "1_000",
        "~",
    ),
)
KEY_EDITS: Final = ("drop", "rename", "twice", "more")
PIECES: Final = (
    *(
        b"",
        b"\0",
        b"\n",
        b"\r\n",
        b"\\",
        b"\\\n",
        b"=",
        b":",
        b"#",
        b"!",
        b"%",
        b"\\u",
        b"\\uD800",
        b"\\u12",
        b"\xff\xfe",
    ),
    *(
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"-1",
        b"99999999999999999999",
        b"1e999",
        b"NaN",
        b"\x1b[2J",
        b"${x}",
        b"[",
        b"{",
    ),
    *(
        b"9" * 5000,
        b"(" * 5000,
        b"x" * 70_000,
        b"\x00\x00\x00\x00",
        b"\xff" * 4,
        b"\x7f\xff\xff\xff",
        b"\x80" + b"\0" * 3,
    ),
    *(b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\x80" * 10, b"---\n", b"\t", b"'", b'"', b"\xe2\x80\xae"),
)
HEADERS: Final[tuple[Mapping[str, Any], ...]] = (
    *({"type": kind, "linkname": "/etc/passwd"} for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE)),
    *(
        {"type": kind}
        for kind in (tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE)
    ),
    {"type": tarfile.GNUTYPE_SPARSE},
    {"pax_headers": {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(2**40)}},
    {"pax_headers": {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(2**41)}},
    *({"pax_headers": {"size": size}} for size in ("9" * 20, "-1", "x")),
    *({"pax_headers": {"path": path}} for path in ("/etc/x", "../../x", "\0")),
    *({"claimed": size} for size in (2**32, 2**33 - 1, 8**11 - 1)),
    *({"name": name} for name in ("/etc/x", "../../x", "x" * 99, "a/" * 60, "manifest.json", "")),
    *({"mode": 0o4777}, {"uid": 2**21 - 1}, {"mtime": 8**11 - 1}, {"uname": "root"}, {"twice": True}),
)


# -- values in JSON and YAML -----------------------------------------------------------------------------------------
def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value, the whole first."""
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in inner:
        yield from places(entry, (*at, key))


def edits(value: Any) -> list[tuple[tuple[Any, ...], int]]:
    """Every edit of every place: the place, and the number of what is done there."""
    each = len(VALUES) + len(FRAGMENTS)
    return [
        (at, number)
        for at in places(value)
        for number in range(each + (len(KEY_EDITS) if at and isinstance(at[-1], str) else 0))
    ]


def edited(value: Any, at: tuple[Any, ...], number: int) -> str:
    """The value as JSON text, one place of it changed."""
    if number < len(VALUES):
        return _text(_with(value, at, VALUES[number]))
    number -= len(VALUES)
    if number < len(FRAGMENTS):
        return _text(_with(value, at, RAW)).replace(f'"{RAW}"', FRAGMENTS[number])
    return _key_edited(value, at, KEY_EDITS[number - len(FRAGMENTS)])


def _key_edited(value: Any, at: tuple[Any, ...], how: str) -> str:
    *above, key = at
    outer = value
    for step in above:
        outer = outer[step]
    changed = dict(outer)
    if how == "drop":
        del changed[key]
    elif how == "rename":
        changed[f"{key}x"] = changed.pop(key)
    else:
        changed[RAW if how == "twice" else "more"] = changed[key]
    return _text(_with(value, tuple(above), changed)).replace(f'"{RAW}"', json.dumps(key))


def _with(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    if not at:
        return new
    changed = copy.copy(value)
    changed[at[0]] = _with(value[at[0]], at[1:], new)
    return changed


def _text(value: Any) -> str:
    try:
        return json.dumps(value, separators=(",", ":"))
    except (RecursionError, ValueError):
        return "null"


# -- parts of a file -------------------------------------------------------------------------------------------------
@functools.lru_cache(64)
def values_of(name: str, raw: bytes) -> list[tuple[str, Any, str]]:
    """The values in a part: text before, value, text behind; none where the part is neither JSON nor YAML."""
    try:
        if name.endswith(".json"):
            return [("", json.loads(raw), "\n")]
        if name.endswith(".yaml"):
            from pathlib import Path

            return [("", _typed(parse_document(raw, Path(name)).data), "\n")]
        if name.endswith(".jsonl"):
            lines = raw.decode().splitlines(keepends=True)
            heads = [HEAD if re.match(r"[0-9a-f]{8} [0-9a-f]{8} ", line) else 0 for line in lines]
            return [
                ("".join(lines[:at]) + line[:head], json.loads(line[head:]), "\n" + "".join(lines[at + 1 :]))
                for at, (line, head) in enumerate(zip(lines, heads, strict=True))
            ]
    except (ValueError, RecursionError, MigrateError):
        pass
    return []


def _typed(node: Any) -> Any:
    """Unquoted numbers and booleans of YAML as such: quoted they would be other values."""
    if isinstance(node, dict):
        return {key: _typed(entry) for key, entry in node.items()}
    if isinstance(node, list):
        return [_typed(entry) for entry in node]
    if not isinstance(node, Quoted) and re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?|true|false|null", node):
        return json.loads(node)
    return str(node)


def every_edit(parts: Parts) -> list[tuple[str, int, tuple[Any, ...], int]]:
    """Every edit of every value in every part."""
    return [
        (name, which, at, number)
        for name, raw in parts.items()
        for which, (_, value, _) in enumerate(values_of(name, raw))
        for at, number in edits(value)
    ]


def with_edit(parts: Parts, edit: tuple[str, int, tuple[Any, ...], int]) -> dict[str, bytes]:
    """The parts with that edit."""
    name, which, at, number = edit
    before, value, behind = values_of(name, parts[name])[which]
    return {**parts, name: (before + edited(value, at, number) + behind).encode("utf-8", "surrogatepass")}


def bytes_damaged(choose: Choose, raw: bytes) -> bytes:
    """One to three flips, cuts, insertions, repetitions or losses."""
    for _ in range(1 + choose(3)):
        at = choose(len(raw) + 1)
        end = min(len(raw), at + 1 + choose(64))
        match choose(6):
            case 0:
                raw = raw[:at] + bytes([choose(256)]) + raw[at + 1 :]
            case 1:
                raw = raw[:at]
            case 2:
                raw = raw[:at] + PIECES[choose(len(PIECES))] + raw[at:]
            case 3:
                piece = PIECES[choose(len(PIECES))]
                raw = raw[:at] + piece + raw[at + len(piece) :]
            case 4:
                raw = raw[:end] + raw[at:end] + raw[end:]
            case _:
                raw = raw[:at] + raw[end:]
    return raw


def lines_damaged(choose: Choose, raw: bytes) -> bytes:
    """A line of a text twice, gone, elsewhere, or its value another one."""
    lines = raw.splitlines(keepends=True) or [b""]
    at = choose(len(lines))
    match choose(4):
        case 0:
            lines.insert(choose(len(lines) + 1), lines[at])
        case 1:
            del lines[at]
        case 2:
            key, sign, _ = lines[at].partition(b"=")
            lines[at] = key + sign + PIECES[choose(len(PIECES))] + b"\n"
        case _:
            lines[at] = PIECES[choose(len(PIECES))] + lines[at]
    return b"".join(lines)


def damaged_parts(choose: Choose, parts: Parts) -> dict[str, bytes]:
    """The parts with one of them damaged."""
    name = sorted(parts)[choose(len(parts))]
    raw = parts[name]
    found = values_of(name, raw)
    if found and choose(4):
        which = choose(len(found))
        some = edits(found[which][1])
        return with_edit(parts, (name, which, *some[choose(len(some))]))
    text = lines_damaged if not name.endswith(".bin") and choose(2) else bytes_damaged
    return {**parts, name: text(choose, raw)}


# -- tar ---------------------------------------------------------------------------------------------------------------
def tar_damaged(choose: Choose, members: Sequence[tuple[str, bytes]]) -> bytes:
    """The members as an archive, the header of one of them another one."""
    return tar_with(members, choose(len(members)), HEADERS[choose(len(HEADERS))])


def tar_with(members: Sequence[tuple[str, bytes]], bad: int, fields: Mapping[str, Any]) -> bytes:
    """An archive in which the header of member `bad` has those fields; `claimed` is a size without its bytes."""
    out = io.BytesIO()
    for at, (name, content) in enumerate(members):
        changed = fields if at == bad else {}
        info = tarfile.TarInfo(name)
        info.size, info.mode = len(content), 0o600
        for key in changed.keys() - {"claimed", "twice"}:
            setattr(info, key, changed[key])
        info.size = changed.get("claimed", info.size)
        block = info.tobuf(tarfile.USTAR_FORMAT if not changed else tarfile.PAX_FORMAT)
        whole = block + content + bytes(-len(content) % 512)
        out.write(whole * (2 if "twice" in changed else 1))
    return out.getvalue() + bytes(1024)


def gzipped(raw: bytes) -> bytes:
    """The same bytes for the same content."""
    return gzip.compress(raw, mtime=0)
