"""An instruction's content (pure): exact commands, the files that go with them, and the proof.

An order and its proof are data: a run that was interrupted while it waited reads both again and continues to wait.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from migrate.errors import CannotBeInstructed
from migrate.hosts import collect_disks
from migrate.hosts.collect_disks import Digest, redact
from migrate.hosts.commands import Words, path, quote, unit
from migrate.hosts.manual.reports import Watched
from migrate.model.ids import NodeId

NEW_SUFFIX: Final = ".kraft-migrate-new"
Work = tuple[tuple[str, ...], tuple["Proof", ...]]  # lines for a shell, and what must be seen after them


def _systemctl(*words: str) -> Callable[[str], Words]:
    return lambda name: ("systemctl", *words, "--", unit(name))


unit_start: Final = _systemctl("start", "--no-block")  # without waiting; the caller observes the result
unit_stop: Final = _systemctl("stop")  # waits: the next command inspects the host


def storage_format(tool: str, config: str, cluster_id: str, release: str, *, ignore_formatted: bool) -> Words:
    """kafka-storage format with a node's file; the id in one word with its option, for it may begin with a dash."""
    also = ("--ignore-formatted",) if ignore_formatted else ()
    return (tool, "format", f"--cluster-id={cluster_id}", "-c", path(config), "--release-version", release, *also)


CONTENT: Final = "content"  # the engine's own text of the file, in the instruction's folder
PART: Final = "lines"
LEFT_OUT: Final = b"# (left out)"


@dataclass(frozen=True, slots=True)
class Proof:
    """One thing that must be seen: `kind` says what, the other fields are its parameters."""

    kind: str  # file, shown, nothing, something, folder, formatted, process, no-process, refuses, unregistered
    path: str = ""
    sha256: str = ""
    cluster: str = ""

    def text(self) -> str:
        return {
            "file": f"{self.path} has SHA-256 {self.sha256}",
            "shown": f"{self.path}, its secrets hidden, is the planned text, and no placeholder is left in it",
            "nothing": f"nothing is at {self.path}",
            "something": f"{self.path} is there",
            "folder": f"{self.path} is a folder",
            "formatted": f"{self.path} is formatted for cluster {self.cluster}",
            "process": f"one Kafka process runs with {self.path}, and nothing behind that on its command line",
            "no-process": f"no Kafka process runs with {self.path}",
            "refuses": "the node's address refuses connections",
            "unregistered": "the other brokers do not name it any more",
        }[self.kind]


@dataclass(frozen=True, slots=True)
class Order:
    """One effect on one host."""

    node: NodeId
    host: str
    effect: str
    what: str
    commands: tuple[str, ...]
    proofs: tuple[Proof, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    by_hand: tuple[str, ...] = ()
    watch: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The same for the same effect with the same content: an open instruction is found again by it."""
        told: list[Any] = [int(self.node), self.effect, self.what, [[p.kind, p.path, p.sha256] for p in self.proofs]]
        told.append({name: hashlib.sha256(raw).hexdigest() for name, raw in sorted(self.files.items())})
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


# -- files -------------------------------------------------------------------------------------------------------------
def sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def placeholders(content: bytes) -> tuple[str, ...]:
    """Keys whose value is a placeholder for a secret."""
    return tuple(collect_disks.placeholders(content.decode("latin-1")))


def copy_file(source: Watched, target: str, old: Watched | None) -> Work:
    """Replace a file of the host with another one, byte by byte, if both are unchanged since they were inspected."""
    copied = quote(("cp", "-p", "-T", "--", source.path, _new_name(target)))
    lines = (*_unchanged(old), *_unchanged(source), copied, *_in_place(target, old is not None))
    return lines, (Proof("file", target, source.sha256),)


def whole_file(target: str, content: bytes, old: Watched | None, digest: Digest) -> Work:
    """Replace a file with a text of this tool; the operator replaces its placeholders with secrets."""
    proof = Proof("file", target, sha256(content))
    if placeholders(content):
        proof = Proof("shown", target, sha256(redact(content, digest)))
    return (*_unchanged(old), _new_from(CONTENT, target), *_in_place(target, old is not None)), (proof,)


def edited_file(old: Watched, before: bytes, content: bytes, digest: Digest) -> tuple[Work, dict[str, bytes]]:
    """Change some lines of the host's file: all others stay, secrets and comments among them.

    Raises:
        CannotBeInstructed: a changed line would hold a secret, or lines cannot be counted.
    """
    was, wanted = before.splitlines(keepends=True), content.splitlines(keepends=True)
    if old.lines not in (before.count(b"\n"), -1) or not before.endswith(b"\n"):
        raise CannotBeInstructed(
            "a secret spans several lines, or the last line has no end: its lines cannot be distinguished",
            where=old.path,
            next_step="put each key on a line of its own, end the file with a line end, and collect again",
        )
    new, found, files = _new_name(old.path), list[str](), dict[str, bytes]()
    matcher = difflib.SequenceMatcher(None, was, wanted, autojunk=False)
    for tag, first, last, start, end in matcher.get_opcodes():
        if tag == "equal":
            found.append(f"{quote(('sed', '-n', f'{first + 1},{last}p', old.path))} >> {quote((new,))}")
        elif end > start:
            part = b"".join(wanted[start:end])
            if placeholders(part):
                raise CannotBeInstructed(f"a new line holds a secret ({placeholders(part)[0]})", where=old.path)
            name = f"{PART}-{len(files) + 1}"
            files[name] = part
            found.append(f"{quote(('cat', name))} >> {quote((new,))}")
    lines = (*_unchanged(old), _new_from("/dev/null", old.path), *found, *_in_place(old.path, True))
    return (lines, (Proof("shown", old.path, sha256(redact(content, digest))),)), files


def _unchanged(old: Watched | None) -> tuple[str, ...]:
    """Check that the file is unchanged: hours may pass before the operator acts, and others may edit it."""
    return () if old is None else (f"{quote(('printf', '%s', f'{old.sha256}  {old.path}'))} | sha256sum -c -",)


def _new_name(file: str) -> str:
    """The path of a file's new content before it replaces the old."""
    folder, name = os.path.split(path(file))
    return f"{folder.rstrip('/')}/.{name}{NEW_SUFFIX}"


def _new_from(source: str, target: str) -> str:
    return quote(("install", "-m", "600", "-T", "--", source, _new_name(target)))


def _own_like(place: str, other: str) -> Words:
    """The owner of another file or folder: the broker must be able to read, or to write into it."""
    return ("chown", f"--reference={path(other)}", "--", path(place))


def _in_place(target: str, old: bool) -> tuple[str, ...]:
    """Owner and mode of the old file; rename(2), the target never a folder to move into; all of it durable."""
    new, folder = _new_name(target), os.path.dirname(target)  # noqa: PTH120 - a path of another host
    mode = (("chmod", f"--reference={path(target)}", "--", new),) if old else ()
    owned = (_own_like(new, target if old else folder), *mode)
    words = (*owned, ("sync", "--", new), ("mv", "-T", "--", new, path(target)), ("sync", "--", path(folder)))
    return tuple(map(quote, words))


def rename(old: str, new: str) -> Work:
    """Set aside; nothing happens if the target exists."""
    return (quote(("mv", "-T", "-n", "--", path(old), path(new))),), (Proof("nothing", old), Proof("something", new))


def remove(file: str) -> Work:
    return (quote(("rm", "--", path(file))),), (Proof("nothing", file),)


def move_entries(folder: str, new: str, entries: Sequence[str]) -> Work:
    """Set aside those entries that exist."""
    named = [word for entry in entries for word in ("-o", "-name", entry)][1:]
    found = ("find", path(folder), "-mindepth", "1", "-maxdepth", "1", "(", *named, ")")
    moved = (*found, "-exec", "mv", "-n", "-t", path(new), "--", "{}", "+")
    lines, made = make_directory(new)
    return (*lines, quote(moved)), (*made, *(Proof("nothing", f"{folder}/{entry}") for entry in entries))


def make_directory(folder: str) -> Work:
    """A folder and its parents, owned as its parent."""
    made = ("mkdir", "-p", "-m", "750", "--", path(folder))
    owned = _own_like(folder, os.path.dirname(folder))  # noqa: PTH120 - a path of another host
    return (quote(made), quote(owned)), (Proof("folder", folder),)


# -- as text -----------------------------------------------------------------------------------------------------------
def collector_words(
    node: NodeId, identity: str, config: str, directories: Sequence[str], watch: Sequence[str]
) -> tuple[str, ...]:
    """The collector's command on the host; without directories it inspects those of the file."""
    asked = ("--instruction", identity) if identity else ()
    also = [word for file in dict.fromkeys((config, *watch)) for word in ("--watch", path(file))]
    given = ("--", *map(path, directories)) if directories else ("--properties", config)
    start = ("python3", "collect_disks.py", "--probe", "--node", str(int(node)), "--key-file", "key")
    return (*start, *asked, *also, "--process", path(config), *given)


def readme(order: Order, identity: str, lines: Sequence[str], inbox: str, since: str) -> str:
    steps = [
        f"Instruction {identity}: {order.what}",
        "",
        f"host:  {order.host}   (node {int(order.node)})",
        f"since: {since}",
        "",
        "1. Copy this folder to that host, and work in the copy.",
        *(f"   BY HAND, first: {line}" for line in order.by_hand),
        "2. Run each line of commands.txt in this order, as root or as a user who may do all of it. Stop at the first",
        "   that fails, and do not begin again from the top: say with `could-not` which line it was.",
        "",
        *(f"    {line}" for line in lines),
        "",
        f"3. Bring answer-{identity}.json back, into {inbox} on the host that runs kraft-migrate.",
        "   If it was made too early to show the result: run the last line again, and bring that answer.",
        "   Once the run has continued, remove the copy from that host: with its `key` a guess can be verified.",
        "",
        "What must be seen then:",
        *(f"  - {proof.text()}" for proof in order.proofs),
        "",
        "kraft-migrate continues once it has observed that. A report is neither needed nor sufficient.",
        "If it cannot be done: kraft-migrate manual could-not --inventory FILE --reason TEXT",
    ]
    return "\n".join(steps) + "\n"
