"""An instruction's content (pure): exact commands, the files that go with them, and the proof.

Proofs are data: a run that was interrupted while it waited reads them again and continues to wait.
"""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from migrate.errors import CannotBeInstructed
from migrate.hosts import collect_disks
from migrate.hosts.collect_disks import Digest, redact
from migrate.hosts.commands import Words, path, quote, unit
from migrate.hosts.manual.reports import Answer, Watched
from migrate.model.ids import NodeId
from migrate.model.views import MetaProperties

NEW_SUFFIX: Final = ".kraft-migrate-new"
Work = tuple[tuple[str, ...], tuple["Proof", ...]]  # lines for a shell, and what must be seen after them


def turn(effect: str, name: str) -> tuple[str, ...]:
    """The lines that start or stop a unit: started without waiting, for the result is observed; stopped with."""
    if effect == "start":  # a second later than its file, so that times prove which file it read
        return quote(("sleep", "1")), quote(("systemctl", "start", "--no-block", "--", unit(name)))
    return (quote(("systemctl", "stop", "--", unit(name))),)


def storage_format(
    tool: str, config: str, cluster_id: str, release: str, *, ignore_formatted: bool, voters: str = ""
) -> Words:
    """kafka-storage format with a node's file; the id in one word with its option, for it may begin with a dash."""
    also: Words = ("--ignore-formatted",) if ignore_formatted else ()
    also += ("--initial-controllers", voters) if voters else ()
    return (tool, "format", f"--cluster-id={cluster_id}", "-c", path(config), "--release-version", release, *also)


CONTENT: Final = "content"  # the engine's own text of the file, in the instruction's folder
PART: Final = "lines"


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
    """One effect on one node's host; `watch` are paths that the collector reports besides."""

    node: NodeId
    effect: str
    what: str
    commands: tuple[str, ...]
    proofs: tuple[Proof, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    by_hand: tuple[str, ...] = ()
    watch: tuple[str, ...] = ()


def check_proof(answer: Answer, proof: Proof) -> str:
    """Check a proof against the collector's answer (pure): "" where it holds, else what the answer shows."""
    if proof.kind in ("process", "no-process"):
        found = answer.processes
        if found is None:
            return "the collector could not see processes: run it as Kafka's own user or as root"
        if proof.kind == "no-process":
            return "" if not found else f"process {found[0].pid} runs"
        if len(found) != 1:
            return f"{len(found)} processes run with that file" if found else "no process runs with that file"
        return f"process {found[0].pid} has words behind the file, which may override it" if found[0].more else ""
    if proof.kind == "formatted":
        directory = answer.directory(proof.path)
        meta = None if directory is None else directory.meta
        fits = isinstance(meta, MetaProperties) and meta.cluster_id == proof.cluster
        return "" if fits else f"{proof.path}: {meta}"
    file = answer.watched.get(proof.path)
    return f"{proof.path} is not in the answer" if file is None else _check_file(file, proof)


def _check_file(file: Watched, proof: Proof) -> str:
    match proof.kind:
        case "file" if file.kind == "file":
            return "" if file.sha256 == proof.sha256 else f"{file.path} is file {file.sha256}"
        case "shown" if file.kind == "file" and file.placeholders:
            return f"{file.path} has {file.placeholders} placeholders in place of secrets"
        case "shown" if file.kind == "file":
            same = sha256(file.shown) == proof.sha256
            return "" if same else f"{file.path}, its secrets hidden, is another text than the planned one"
        case "nothing" | "folder" if file.kind == proof.kind:
            return ""
        case "something" if file.kind in ("file", "folder", "other"):
            return ""
        case "file" | "shown" | "nothing" | "folder" | "something":
            return f"{file.path} is {file.kind} {file.problem}".rstrip()
    raise AssertionError(proof.kind)


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


def readme(
    what: str, where: str, lines: Sequence[str], bring: str, *, by_hand: Sequence[str] = (), then: Sequence[str] = ()
) -> str:
    """The text for a person; `where` names host and node, `bring` the files to bring and where to."""
    return "\n".join((
        what,
        "",
        f"host: {where}",
        "",
        "1. Copy this folder to that host, and work in the copy.",
        *(f"   BY HAND, first: {line}" for line in by_hand),
        "2. Run each line of commands.txt in this order, as root or as a user who may do all of it, and stop at the",
        "   first that fails:",
        "",
        *(f"    {line}" for line in lines),
        "",
        f"3. Bring {bring}",
        "   on the host that runs kraft-migrate.",
        *then,
        "",
    ))  # fmt: skip


def order_readme(order: Order, identity: str, where: str, lines: Sequence[str], inbox: str) -> str:
    """The text of an instruction."""
    then = (
        "   If the answer was made too early to show the result: run the last line again, and bring that answer.",
        "   Once the run has continued, remove the copy from that host: with its `key` a guess can be verified.",
        "",
        "What must be seen then:",
        *(f"  - {proof.text()}" for proof in order.proofs),
        "",
        "kraft-migrate continues once it has observed that. A report is neither needed nor sufficient.",
        "If a line fails, do not begin again from the top: say which it was, as for all that cannot be done, by",
        "kraft-migrate manual could-not --inventory FILE --reason TEXT",
    )
    bring = f"answer-{identity}.json back, under that name, into {inbox}"
    return readme(f"Instruction {identity}: {order.what}", where, lines, bring, by_hand=order.by_hand, then=then)
