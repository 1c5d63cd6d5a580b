"""Operate hosts by instructions: files, disks and services, from the collector's answers and the network.

Each effect is an instruction, and done when it is seen to be done.  What was not reported since is Unknown.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from migrate.errors import CannotBeInstructed, HostCommandRefused, NotTold, ProcessNotStarted
from migrate.hosts.commands import quote
from migrate.hosts.manual import commands
from migrate.hosts.manual.commands import CONTENT, Order, Proof, Work
from migrate.hosts.manual.desk import OBSERVED, Desk
from migrate.hosts.manual.reports import Answer, Watched, not_told_error
from migrate.hosts.manual.witness import ANSWERS, REFUSES
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks, Running, ServiceState, Stopped

STARTING: Final = 180.0  # seconds in which a started node may not listen yet; unknown from then on
TOOL: Final = "kafka-storage.sh"


class ManualFiles:
    """`model.ports.Files` by the collector's answers and instructions."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.between: Callable[[str], None] = lambda _label: None  # nothing of ours is written on hosts

    def _answer(self, node: NodeId) -> Answer:
        answer = self._desk.answer(node)
        if isinstance(answer, Unknown):
            raise NotTold(answer.reason)
        return answer

    def read(self, node: NodeId, path: str) -> bytes:
        """A file's text, with secrets as digests unless this tool wrote it; NotTold without an answer."""
        answer = self._answer(node)
        meta = answer.metas.get(path)
        if meta is not None:
            return meta
        file = answer.watched.get(path)
        if path in answer.without_meta or (not self.exists(node, path) if file is None else file.kind == "nothing"):
            raise FileNotFoundError(errno.ENOENT, "there is nothing at that path", path)
        if file is None:
            raise not_told_error(node, path)
        if file.kind != "file":
            raise OSError(errno.EIO, f"it is {file.kind} {file.problem}", path)
        if file.placeholders:
            raise NotTold(
                f"{file.placeholders} of its values are placeholders for secrets: it is not complete", where=path
            )
        return self._desk.text_of(file)

    def exists(self, node: NodeId, path: str) -> bool:
        """Is there anything at that path?  NotTold without an answer."""
        answer = self._answer(node)
        file = answer.watched.get(path)
        if file is not None and file.kind != "error":
            return file.kind != "nothing"
        if answer.metas.get(path) is not None:
            return True
        folder, name = os.path.split(path)
        for other in answer.watched.values():
            near, begins = os.path.split(other.path)
            if near == folder and name.startswith(begins) and other.near is not None:
                return name in other.near
        if path in answer.without_meta:
            return False
        raise not_told_error(node, path)

    def names(self, node: NodeId, path: str) -> Sequence[str]:
        """Names in a folder: of the watched files and their copies, or of a log directory's folders."""
        answer = self._answer(node)
        if path in answer.folders:
            return answer.folders[path]
        near = [other.near for other in answer.watched.values() if os.path.dirname(other.path) == path]  # noqa: PTH120
        known = [names for names in near if names is not None]
        if not known or len(known) < len(near):  # a folder that could not be listed is not an empty one
            raise not_told_error(node, path)
        return sorted({name for names in known for name in names})

    def write(self, node: NodeId, path: str, content: bytes) -> None:
        """Have the file written; over when its answer proves it.

        What it replaces must still be what was looked at, and what is neither file nor nothing is not replaced.
        """
        answer = self._answer(node)
        old = self._replaced(node, answer, path)
        desk, files, by_hand = self._desk, {CONTENT: content}, tuple[str, ...]()
        same = next(
            (
                file
                for file in answer.watched.values()
                if file.kind == "file" and content in (answer.metas.get(file.path), desk.text_of(file))
            ),
            None,
        )
        if same is not None:
            work = commands.copy_file(same, path, old)
        elif old is not None and commands.placeholders(content):
            work, parts = commands.edited_file(old, desk.text_of(old), content, desk.digest())
            files |= parts
        else:
            work = commands.whole_file(path, content, old, desk.digest())
            source = ", ".join(f"{node.host}:{node.config}" for node in desk.inventory.brokers[:1])
            by_hand = tuple(
                f"in the file `{CONTENT}` replace the placeholder behind {key}= by that key's value in {source}"
                for key in commands.placeholders(content)
            )
        self._ask(node, "write", f"write {path}", work, (path,), files, by_hand)

    def _replaced(self, node: NodeId, answer: Answer, path: str) -> Watched | None:
        """The present file, None for none; NotTold or CannotBeInstructed for anything else."""
        old = answer.watched.get(path)
        if not self.exists(node, path):
            return None
        if old is None or old.kind == "error":
            raise NotTold("it exists, but the collector's answer does not say what it is", where=path)
        if old.kind != "file":
            raise CannotBeInstructed(f"a {old.kind} is there, and not a file", where=path)
        return old

    def rename(self, node: NodeId, old: str, new: str) -> None:
        self._ask(node, "set-aside", f"rename {old} to {new}", commands.rename(old, new), (old, new))

    def remove(self, node: NodeId, path: str) -> None:
        self._ask(node, "remove", f"remove {path}", commands.remove(path), (path,))

    def move_entries(self, node: NodeId, folder: str, new: str, entries: Sequence[str]) -> None:
        """Have those entries of a folder moved into a new one inside it, those that are there."""
        work = commands.move_entries(folder, new, entries)
        watch = tuple(proof.path for proof in work[1])
        self._ask(node, "set-aside", f"move the metadata in {folder} to {new}", work, watch)

    def make_directory(self, node: NodeId, path: str) -> None:
        answer = self._desk.answer(node)
        file = None if isinstance(answer, Unknown) else answer.watched.get(path)
        if file is not None and file.kind == "folder":
            return
        self._ask(node, "make-directory", f"make the folder {path}", commands.make_directory(path), (path,))

    def _ask(
        self, node: NodeId, effect: str, what: str, work: Work, watch: tuple[str, ...],
        files: Mapping[str, bytes] | None = None, by_hand: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        order = Order(node, effect, what, *work, files=files or {}, by_hand=by_hand, watch=watch)
        self._desk.carry_out(order)


class ManualDisks:
    """`model.ports.Disks` by the collector's answers."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def look(self, broker: NodeId, log_dirs: Sequence[str], metadata_dir: str | None) -> BrokerDisks | Unknown:
        answer = self._desk.answer(broker)
        if isinstance(answer, Unknown):
            return answer
        if isinstance(answer.collected.disks, Unknown):
            return answer.collected.disks
        found = {path: answer.directory(path) for path in (*log_dirs, *([metadata_dir] if metadata_dir else []))}
        absent = [path for path, entry in found.items() if entry is None]
        if absent:
            return Unknown(f"the collector's answer does not include {', '.join(absent)}")
        known = {path: entry for path, entry in found.items() if entry is not None}
        apart = None if metadata_dir is None else known[metadata_dir]
        return BrokerDisks(broker, tuple(known[path] for path in log_dirs), apart)


class ManualServices:
    """`model.ports.ServiceControl` by instructions, the network and the collector's answers."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def state(self, node: NodeId) -> ServiceState:
        """Running where its address answers, Stopped where it refuses and that was proven, else Unknown.

        A process that the collector has just seen started is one, although it does not listen yet; one that it sees
        behind a stop is no stopped node.  Which file it runs with is known from the answer that was made after its last
        start; pid 0: nobody told.
        """
        found = self._desk.witness.connects(node)
        answer = self._desk.answer(node)
        processes = None if isinstance(answer, Unknown) else answer.processes
        turn = self._desk.last_turn(node)
        if found == ANSWERS:
            return self._running(node, answer) if turn != "stop" else Running(0, 0.0, None)
        if found != REFUSES:
            return Unknown(f"node {int(node)}: {found}")
        if processes == () or (turn == "stop" and processes is None):
            return Stopped()
        if turn == "start" and processes and self._desk.since_turn(node) < STARTING:
            return self._running(node, answer)
        if processes:
            seen = ", ".join(str(entry.pid) for entry in processes)
            return Unknown(f"node {int(node)} refuses connections, and the collector saw process {seen} of it")
        return Unknown(f"node {int(node)} refuses connections, and no answer shows that its process has ended")

    def _running(self, node: NodeId, answer: Answer | Unknown) -> Running:
        """The process, as far as the answer identifies it and its file."""
        if isinstance(answer, Unknown) or not answer.processes or len(answer.processes) != 1:
            return Running(0, 0.0, None)
        config = self._desk.inventory.node(node).config
        proven = answer.started_with(config) is not None
        digest = hashlib.sha256(self._desk.text_of(answer.watched[config])).hexdigest() if proven else None
        return Running(answer.processes[0].pid, answer.processes[0].started, digest)

    def stop(self, node: NodeId, timeout: float) -> None:
        """Have it stopped; over when its address refuses, no other broker names it, and the collector saw no process.

        A broker closes its listener before it has written its logs: the network alone does not prove its end.
        """
        if self._desk.last_turn(node) == "stop" and isinstance(self.state(node), Stopped):
            return  # and it was told to stay down
        entry = self._desk.inventory.node(node)
        broker = isinstance(entry, BrokerNode) and len(self._desk.inventory.brokers) > 1
        among = (Proof("unregistered"),) if broker else ()
        proofs = (Proof("refuses"), *among, Proof("no-process", entry.config))
        what = f"stop the Kafka process of node {int(node)} by SIGTERM, never SIGKILL (it may take {timeout:.0f} s), "
        what += "and keep it stopped until an instruction says start"
        self._turn(node, "stop", what, proofs)

    def start(self, node: NodeId) -> None:
        """Have it started; over when the collector saw one process with its file.  Readiness is observed later."""
        state = self.state(node)
        if not isinstance(state, Stopped):
            reason = "its address answers already" if isinstance(state, Running) else state.reason
            raise ProcessNotStarted(f"node {int(node)} was not started: {reason}")
        config = self._desk.inventory.node(node).config
        what = f"start the Kafka process of node {int(node)} with {config}"
        self._turn(node, "start", what, (Proof("process", config),))
        if isinstance(self._desk.inventory.node(node), BrokerNode):
            self._look_when_up(node, config)

    def resume(self) -> None:
        """Resume what an interrupted run left open: an instruction, or the check after a broker's start."""
        self._desk.resume()
        for broker in self._desk.inventory.brokers:
            last = self._desk.last(broker.id)
            if last is not None and (last.effect, last.closed) == ("start", OBSERVED):
                self._look_when_up(broker.id, broker.config)

    def _look_when_up(self, node: NodeId, config: str) -> None:
        """Inspect again once it is up: a broker writes to its disks while it starts."""
        listens = f"node {int(node)} to listen"
        self._desk.wait_for(listens, lambda: self._desk.witness.connects(node) == ANSWERS, STARTING)
        what = f"look at node {int(node)} again, now that it was started"
        self._desk.carry_out(Order(node, "look", what, (), (Proof("process", config),)))

    def _turn(self, node: NodeId, effect: str, what: str, proofs: tuple[Proof, ...]) -> None:
        unit = self._desk.inventory.node(node).unit
        lines = commands.turn(effect, unit) if unit else ()
        by_hand = () if unit else (f"{what}, in the way that host has for it",)
        self._desk.carry_out(Order(node, effect, what, lines, proofs, by_hand=by_hand))

    def last_words(self, node: NodeId, lines: int) -> Sequence[str]:
        return (f"the last {lines} lines of its log are on {self._desk.inventory.node(node).host}: look there",)

    def format_storage(
        self, node: NodeId, cluster_id: str, release_version: str, *, ignore_formatted: bool = False, voters: str = ""
    ) -> str:
        """Have its storage formatted; over when every directory shows the cluster's id."""
        entry = self._desk.inventory.node(node)
        home = self._desk.inventory.kafka_home_of(entry)
        words = commands.storage_format(
            f"{home.rstrip('/')}/bin/{TOOL}" if home else TOOL, entry.config, cluster_id, release_version,
            ignore_formatted=ignore_formatted, voters=voters,
        )  # fmt: skip
        if isinstance(entry, BrokerNode):
            answer = self._desk.answer(node)
            disks = answer if isinstance(answer, Unknown) else answer.collected.disks
            if isinstance(disks, Unknown):
                raise HostCommandRefused(f"its directories are unknown: {disks.reason}", where=entry.host)
            places = [directory.path for directory in disks.directories]
        else:
            places = [entry.metadata_directory]
        proofs = tuple(Proof("formatted", path, cluster=cluster_id) for path in places)
        what = f"format the storage of node {int(node)}"
        self._desk.carry_out(Order(node, "format", what, (quote(words),), proofs))
        return f"formatted, as the collector saw: {', '.join(places)}"
