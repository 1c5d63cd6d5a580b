"""Rollback readiness: from a World, and what journals and backups say, to READY, READY WITH WORK or NOT READY (pure).

What is unknown bars the way, as a fault would: nobody starts a rollback on a guess.
A rule is asked only where the rollback needs what it looks at.
Sources: the sequences of a rollback as seen on 3.9.2, KAFKA-20488 (epochs), KAFKA-20762 (meta.properties).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import unquote

from migrate.checks import processes
from migrate.checks.phase import kraft_holds_controller
from migrate.checks.registry import Blind
from migrate.checks.releases import METADATA_VERSION_3_9
from migrate.checks.rollback import Origin, Start, origin
from migrate.checks.sight import of_node
from migrate.checks.stored_values import unresolved_ips
from migrate.checks.zookeeper_access import stranger
from migrate.model.broker_modes import FLAG, controller_flags
from migrate.model.causes import cause_of, kraft_only
from migrate.model.difference import DifferenceName
from migrate.model.disk_trouble import sick_directories
from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import (
    GAP_SECONDS,
    Cost,
    Growing,
    Measured,
    MetadataLogs,
    Reason,
    RollbackFacts,
    RollbackReadiness,
    RollbackWord,
    Weight,
    gap_seconds,
)
from migrate.model.stage import ZkMigrationState
from migrate.model.views import (
    MetaBroken,
    MetaMissing,
    Quorum,
    Running,
    Stopped,
    majority,
)
from migrate.model.words import plural, span
from migrate.model.world import NOT_ASKED, World

LAG_MOST: Final = 100  # records: at rest the dual write is a NoOp or two behind
Rule = Callable[[World, RollbackFacts, Origin], Iterator[Reason]]


def bar(name: str, about: str, what: str, next_step: str) -> Reason:
    return Reason(Weight.BAR, name, about, what, next_step)


FIND_COPY: Final = (
    "the copies beside its file (FILE.kraft-migrate-backup...) must be readable: `kraft-migrate doctor --inventory "
    "FILE --hosts` says what its host refuses; then look again"
)
USE_COPY: Final = (
    "do what this says, or put a true copy of the ZooKeeper-mode file there: files are restored, and never made up; "
    "then look again"
)


def work(name: str, about: str, what: str, next_step: str) -> Reason:
    return Reason(Weight.WORK, name, about, what, next_step)


def sources(world: World, _facts: RollbackFacts, origin: Origin) -> Iterator[Reason]:
    """ZooKeeper is what the way leads back to; without the files nobody knows what to take back."""
    if isinstance(world.zookeeper, Unknown):
        yield bar("zookeeper-unknown", "ZooKeeper", world.zookeeper.reason, "bring ZooKeeper back, then look again")
    for node, reason in origin.unknown.items():
        next_step = "make its file, its process and the controllers' metadata readable for us"
        yield bar("broker-unknown", f"broker {int(node)}", reason, next_step)


def controllers_without_flag(world: World, facts: RollbackFacts, origin: Origin) -> Iterator[Reason]:
    """The first start of a controller without the flag is the point of no return: elected, it finalizes."""
    for node in facts.unflagged:
        yield _unflagged(node, "a run started it without the migration flag")
    flags = controller_flags(world)
    for flag in flags:
        if flag.answer is False and flag.node not in facts.unflagged:
            yield _unflagged(flag.node, "it answers without the migration flag")
    if isinstance(world.configs, Unknown):
        return
    for flag in flags:
        about = f"controller {flag.node}"
        if isinstance(flag.file, Unknown) and origin.start > Start.NOTHING:
            what = f"whether its file has {FLAG} is not known: {flag.file.reason}"
            yield work("flag-unknown", about, what, "make its configuration file readable for us")
        if flag.file is False:
            what = f"{flag.path} lacks {FLAG}: started with it, the controller would finalize by being elected"
            next_step = "put the file back from its backup before anything restarts that controller"
            yield work("flag-not-in-file", about, what, next_step)


def _unflagged(node: int, what: str) -> Reason:
    what = f"{what}: as soon as it is elected the migration is finalized"
    next_step = "if the metadata still says MIGRATION: stop it at once, put the flag back into its file, look again"
    return bar("controller-without-flag", f"controller {node}", what, next_step)


def backups(world: World, facts: RollbackFacts, origin: Origin) -> Iterator[Reason]:
    """Files are restored from backups, never generated: each changed broker needs its own."""
    for node in origin.changed:
        kept, about = facts.configs.get(node, Unknown("it was not looked for")), f"broker {int(node)}"
        if isinstance(kept, Unknown):
            yield bar("backup-unknown", about, f"its backup is not known: {kept.reason}", FIND_COPY)
        elif kept.problem:
            yield bar("backup-unusable", about, f"{kept.path}: {kept.problem}", USE_COPY)
        elif kept.note:
            what = f"its file was {kept.note}: the rollback restores the migration's keys alone, key by key"
            yield Reason(Weight.NOTE, "file-edited", about, what)
    tree = facts.zookeeper
    if isinstance(tree, Unknown) or tree.problem:
        said = tree.reason if isinstance(tree, Unknown) else f"{tree.path}: {tree.problem}"
        what = f"there is no whole backup of the tree ({said})"
        next_step = "make one now: kraft-migrate backup create NAME.jsonl.gz "
        next_step += f"--inventory {shlex.quote(world.inventory.path)}"
        yield work("no-zookeeper-backup", "ZooKeeper", what, next_step)


def disks(world: World, _facts: RollbackFacts, origin: Origin) -> Iterator[Reason]:
    """A restarted broker must find every directory healthy, and ZooKeeper mode takes meta.properties of version 0."""
    for node in origin.changed:
        about = f"broker {int(node)}"
        found = of_node(world.disks, node)
        if isinstance(found, Unknown):
            yield bar("disks-unknown", about, f"its disks: {found.reason}", "make its log directories readable for us")
            continue
        for entry in found.directories:
            place = f"{about} {entry.path}"
            if not entry.healthy:
                yield bar("disk", place, entry.health, "repair it first: one disk is one broker in migration mode")
            if entry.problem:
                continue  # what was read of a broken disk is no second fault
            if isinstance(entry.meta, MetaBroken):
                yield bar("meta-broken", place, entry.meta.reason, "repair meta.properties: see explain B-RBK-03")
            elif isinstance(entry.meta, MetaMissing):
                what, next_step = "there is no meta.properties", "`status` says what this directory needs"
                yield bar("no-identity", place, f"{what}: emptied, new, or not mounted (B-DIR-24)", next_step)
            elif entry.meta.version != 0:
                what = f"meta.properties has version {entry.meta.version}, ZooKeeper mode takes 0 only (KAFKA-20762)"
                next_step = "the rollback writes version 0 with the same ids, after a backup"
                yield work("meta-version", place, what, next_step)


def dual_write(world: World, facts: RollbackFacts, origin: Origin) -> Iterator[Reason]:
    """What KRaft has and ZooKeeper lacks is lost by a rollback."""
    if isinstance(world.zookeeper, Unknown):
        return
    znode, note = world.zookeeper.migration, world.zookeeper.copy_note
    if isinstance(znode, Unknown):  # also before the copy: it is what says that nothing was copied
        yield bar("migration-unknown", "/migration", znode.reason, "make /migration readable for us")
    elif not origin.copied:
        return
    elif note is None:
        what = "the metadata says that the copy is done, `/migration` does not: no controller continues without help"
        kept = "a rollback keeps everything that was there before the copy"
        yield work("stuck-copy", "/migration", what, f"nothing was written to ZooKeeper since, so {kept}")
    elif isinstance(world.kraft, Unknown):
        yield from _without_quorum(world, world.kraft.reason, facts.discarded)
    else:
        lag = world.kraft.offset - note.offset
        if lag > LAG_MOST:
            what = f"dual write is {lag} records behind the metadata: what they say would be lost"
            next_step = "wait until it has caught up; if it does not move, look at the active controller's log"
            yield bar("lag", "/migration", what, next_step)
        for entry in kraft_only(world.kraft.entities):
            yield bar("kraft-only", entry.about, "Kafka cannot write it to ZooKeeper (B-MIG-14)", entry.remove)
        for where, name in dict.fromkeys(unresolved_ips(world.zookeeper)):
            what = f"a broker of ZooKeeper mode ends at its start, because {name} is no address to it (B-ZKN-27)"
            shown = unquote(name)
            remove = f"kafka-configs --bootstrap-server HOST:PORT --alter --ip {shown} --delete-config KEY"
            next_step = (
                f"delete its quotas: `{remove}`; then restart the active controller, which takes them out of ZooKeeper"
            )
            yield bar("ip-quota", where, what, next_step)
        yield from _compared(world, facts.discarded)


def _without_quorum(world: World, reason: str, discarded: Collection[DifferenceName]) -> Iterator[Reason]:
    """The logs of stopped controllers say what was committed; the rollback's plan and its own gate read them."""
    logs, what = world.metadata_logs, f"whether ZooKeeper has everything is unknown: {reason}"
    down = processes.ended(world, world.inventory.controllers)
    lost = len(world.inventory.controllers) - len(down) < majority(len(world.inventory.controllers))
    if lost and world.lost_logs:
        yield from _compared(world, discarded)
    elif lost and isinstance(logs, MetadataLogs) and not isinstance(logs.end, Unknown):
        written = "the rollback starts the controllers first, so that they write it to ZooKeeper"
        for row in _compared(world, discarded):
            barred = row.weight is Weight.BAR
            yield replace(row, weight=Weight.WORK, next_step=written) if barred else row
    elif lost and (logs is NOT_ASKED or isinstance(logs, Growing)):
        next_step = "`kraft-migrate rollback plan` compares it with what the stopped controllers' files hold"
        yield work("not-compared", "the KRaft metadata", what, next_step)
    else:
        next_step = "bring a majority of the controllers up; or compare what their files hold with ZooKeeper"
        yield bar("lag-unknown", "the KRaft metadata", what, next_step)


def _compared(world: World, discarded: Collection[DifferenceName]) -> Iterator[Reason]:
    """As the rollback's own gate, which asks before the controllers stop: /migration's offset proves nothing.

    What the playbook accepts counts: it was accepted for the way to KRaft.  Registrations of brokers do not count: each
    broker makes its own.
    """
    report = world.diff
    if isinstance(report, Unknown):
        why = "" if report is NOT_ASKED else f" ({report.reason})"
        what = f"it was not compared with the metadata{why}: /migration is no proof that it has everything"
        next_step = "`kraft-migrate rollback plan` compares them and names each difference; the rollback does so again "
        yield work("not-compared", "ZooKeeper", what, f"{next_step}before it stops a controller")
        return
    lasting = report.standing(discarded)
    if lasting:
        row, *_ = lasting
        first, cause = DifferenceName.of(row), cause_of(row)
        what = f"{plural(len(lasting), 'difference')} that no rule covers, {first} among them ({cause.cause})"
        next_step = f"{cause.what_to_do}; `kraft-migrate rollback plan` names all"
        yield bar("different", "ZooKeeper", what, f"{next_step}, and {world.give_up} gives them up")


def brokers_down(world: World, _facts: RollbackFacts, origin: Origin) -> Iterator[Reason]:
    """One broker may be down: it comes back in its turn.  With two, partitions are without their minimum ISR."""
    if origin.start < Start.MIGRATION or isinstance(world.services, Unknown):
        return  # the latter is said by `running_controllers`
    down = []
    for node in world.inventory.brokers:
        state = of_node(world.services, node.id)
        if isinstance(state, Unknown):
            yield bar("service-unknown", f"broker {int(node.id)}", state.reason, "make its process visible for us")
        elif isinstance(state, Stopped):
            down.append(int(node.id))
    if len(down) > 1:
        yield bar("brokers-down", f"brokers {down}", "more than one is down", "start all but one of them first")
    elif down:
        next_step = "start it first, or let the rollback start it"
        if any(sick.broker == down[0] for sick in sick_directories(world)):
            next_step = "its disk comes first: see there"  # a start would make its replicas anew
        yield work("broker-down", f"broker {down[0]}", "it is down", next_step)
    yield from _not_whole(world, down)


def _not_whole(world: World, down: list[int]) -> Iterator[Reason]:
    if isinstance(world.live, Unknown):
        yield bar("live-unknown", "the brokers", world.live.reason, "make the brokers' listeners reachable for us")
        return
    worst = 0
    for node in world.inventory.brokers:
        answer = world.live.metadata.get(node.id, Unknown("it was not asked"))
        if not isinstance(answer, Unknown):
            worst = max(worst, len(answer.unhealthy))
        elif int(node.id) not in down:
            yield bar("no-answer", f"broker {int(node.id)}", answer.reason, "see that it serves its clients")
    if worst:
        next_step = "no broker is stopped before every partition is whole, but for the one that is down"
        yield work("not-whole", f"{worst} partitions", "they lack a leader or a member of their ISR", next_step)


def quorum(world: World, _facts: RollbackFacts, origin: Origin) -> Iterator[Reason]:
    """A KRaft broker goes back to migration mode with the controllers up: they need a leader and a majority."""
    if origin.start is not Start.KRAFT:
        return
    found = world.live if isinstance(world.live, Unknown) else world.live.quorum
    if isinstance(found, Unknown):
        yield bar("no-quorum", "the controllers", found.reason, "bring a majority of the controllers up")
    else:
        yield from _majority(world, found)
    if isinstance(world.kraft, Unknown):
        return  # said by `dual_write`
    level = world.kraft.features.get("metadata.version", "unknown")
    if level != METADATA_VERSION_3_9:
        what = f"metadata.version is {level}, the brokers' protocol version is {METADATA_VERSION_3_9} (3.9)"
        what += ": brokers in migration mode would be refused"
        yield bar("metadata-version", "the KRaft metadata", what, "none is known: metadata.version cannot be lowered")


def _majority(world: World, found: Quorum) -> Iterator[Reason]:
    assert not isinstance(world.live, Unknown)
    voters = [voter.id for voter in found.voters]
    answering = [
        node for node in voters if not isinstance(world.live.controllers.get(node, Unknown("not asked")), Unknown)
    ]
    silent = sorted(int(node) for node in voters if node not in answering)
    if len(answering) < majority(len(voters)):
        yield bar("no-majority", f"controllers {silent}", "they do not answer", "bring them up first")
    elif silent:
        yield work("controller-down", f"controllers {silent}", "they do not answer", "start them before the first roll")


def znodes(world: World, _facts: RollbackFacts, origin: Origin) -> Iterator[Reason]:
    """What the rollback does to /controller and /controller_epoch, and what must not be in progress meanwhile."""
    if origin.start < Start.CONTROLLERS or isinstance(world.zookeeper, Unknown):
        return
    view = world.zookeeper
    if isinstance(view.controller, Unknown) or isinstance(view.controller_epoch, Unknown):
        yield bar("controller-unknown", "/controller", "it cannot be read", "make /controller readable for us")
    elif view.epoch_below is not None:
        epoch, kraft_epoch = view.epoch_below
        what = f"it is {epoch}, the KRaft controllers are at {kraft_epoch}: the rollback raises it before it "
        what += "deletes /controller (KAFKA-20488)"
        yield Reason(Weight.NOTE, "epoch-rule", "/controller_epoch", what)
    found = {"reassignments": view.pending.reassignments, "log directory failures": view.pending.log_dir_events}
    for name, entries in found.items():
        if entries:
            yield work("pending", entries[0], f"{len(entries)} {name} are in progress", "wait until they are done")


def identity(world: World, _facts: RollbackFacts, _origin: Origin) -> Iterator[Reason]:
    """Closed znodes are the brokers'; a right of our own may do: `rollback apply` asks ZooKeeper at its start."""
    if isinstance(world.zookeeper, Unknown):
        return
    said = stranger(world.zookeeper, world)
    if said is not None:
        what = f"whether we may delete /controller is not known: {said.reason if isinstance(said, Blind) else said}"
        rights = (
            "doctor --rights lists what is missing, and rollback apply checks the permissions before it stops anything"
        )
        yield work("zookeeper-identity", "ZooKeeper", what, f"have the brokers' identity available; {rights}")


def running_controllers(world: World, _facts: RollbackFacts, origin: Origin) -> Iterator[Reason]:
    """Which controllers are stopped first; one whose process cannot be seen must not be left running by mistake."""
    if origin.start < Start.CONTROLLERS:
        return
    if isinstance(world.services, Unknown):
        yield bar("services-unknown", "the nodes", world.services.reason, "make their processes visible for us")
        return
    for node in world.inventory.controllers:
        state = of_node(world.services, node.id)
        if not isinstance(state, Running | Stopped):
            what = "a controller that runs on claims /controller again and deletes what ZooKeeper's made meanwhile"
            about = f"controller {int(node.id)}"
            yield bar("service-unknown", about, f"{state.reason}; {what}", "make its process visible for us")
    if not isinstance(world.kraft, Unknown) and world.kraft.migration_state is ZkMigrationState.NONE:
        yield Reason(Weight.NOTE, "state-none", "the KRaft metadata", "controllers were started without the flag")


RULES: Final[tuple[Rule, ...]] = (
    sources,
    controllers_without_flag,
    dual_write,
    backups,
    disks,
    brokers_down,
    quorum,
    running_controllers,
    znodes,
    identity,
)


NO_FACTS: Final = RollbackFacts()
PROCEDURES: Final[Mapping[Start, str]] = {
    Start.NOTHING: "nothing to undo",
    Start.CONTROLLERS: "stop the controllers, delete /migration",
    Start.MIGRATION: "stop the controllers, repair the znodes, roll the brokers to ZooKeeper mode",
    Start.KRAFT: "roll the KRaft brokers to migration mode, stop the controllers, repair the znodes, "
    "roll the brokers to ZooKeeper mode",
    Start.FINALIZED: "none: no rollback is possible once a controller has run without the flag",
}


def rollback_readiness(world: World, facts: RollbackFacts = NO_FACTS) -> RollbackReadiness:
    begin = origin(world)
    procedure = PROCEDURES[begin.start]
    if begin.start is Start.FINALIZED:
        what = "the migration is finalized" if world.finalized else "the migration is finalized, or there was none"
        what += ": ZooKeeper is not written any more"
        next_step = "none: roll forward every broker that is not in KRaft mode yet"
        reasons: tuple[Reason, ...] = (bar("finalized", "the KRaft metadata", what, next_step),)
        cost = Cost(0, 0, 0.0, 0.0, 0.0, "-")
        return RollbackReadiness(RollbackWord.NOT_READY, begin.label, procedure, reasons, cost, gone=True)
    reasons = tuple(reason for rule in RULES for reason in rule(world, facts, begin))
    if begin.start is Start.NOTHING:  # a fault of the cluster does not bar what needs no step
        reasons = tuple(reason for reason in reasons if reason.name.endswith("-unknown"))
    weights = {reason.weight for reason in reasons}
    word = RollbackWord.READY
    if Weight.BAR in weights:
        word = RollbackWord.NOT_READY
    elif Weight.WORK in weights:
        word = RollbackWord.READY_WITH_WORK
    reasons = tuple(sorted(reasons, key=lambda reason: tuple(Weight).index(reason.weight)))
    return RollbackReadiness(word, begin.label, procedure, reasons, _cost(world, facts, begin))


def _cost(world: World, facts: RollbackFacts, begin: Origin) -> Cost:
    """Rolls, restarts, their time, and the gap; the gap is there only where KRaft has to give /controller back."""
    rolls = 2 if begin.kraft else int(bool(begin.migration))
    restarts = len(begin.migration) + 2 * len(begin.kraft)
    each = facts.durations.restart
    gap, gap_rests_on = _gap(world, facts, begin)
    basis = [f"{span(each.p50, each.p90)} per restart ({each.source})"] if restarts else []
    basis += [gap_rests_on] if gap_rests_on else []
    without = 0.0 if isinstance(gap, Unknown) else gap
    low, high = (restarts * one + without for one in (each.p50, each.p90))
    return Cost(rolls, restarts, low, high, gap, "; ".join(basis) or "nothing is restarted")


def _gap(world: World, facts: RollbackFacts, begin: Origin) -> tuple[float | Unknown, str]:
    """Seconds without a controller, and what they rest on: "" where KRaft has no /controller to give back."""
    if not begin.seen:
        neither = Unknown("neither ZooKeeper nor the metadata says who the controller is")
        return neither, f"the time without a controller is unknown: {neither.reason}"
    if not (kraft_holds_controller(world) or (isinstance(world.zookeeper, Unknown) and begin.copied)):
        return 0.0, ""
    if facts.gap:
        return facts.gap.seconds, _duration_in_words(facts.gap.seconds, "without a controller", facts.gap, "")
    size = metadata_log_bytes(world)
    if isinstance(size, Unknown):
        return size, f"the time without a controller is unknown: {size.reason}"
    seconds = gap_seconds(size)
    return seconds, _duration_in_words(seconds, "without a controller", None, gap_basis(world, size))


def _duration_in_words(seconds: float, what: str, measured: Measured | None, otherwise: str) -> str:
    known = otherwise if measured is None else f"median of {measured.samples} measured here"
    return f"{seconds:.0f} s {what} ({known})"


def gap_basis(world: World, log_bytes: int) -> str:
    """What `gap_seconds` of those bytes counts, and what it does not."""
    said = f"estimated: {GAP_SECONDS:.0f} s, and the reading of {log_bytes / 1e6:.0f} MB of controllers' metadata logs"
    if world.inventory.executor == "local":  # on this host
        return said
    return f"{said}; the time to copy them from their hosts was not measured and is not in it"


def metadata_log_bytes(world: World) -> int | Unknown:
    """Bytes of the segments of all controllers' metadata logs; Unknown where the size of one was not seen."""
    if isinstance(world.disks, Unknown):
        return Unknown(f"the controllers' directories cannot be seen: {world.disks.reason}")
    total = 0
    for node in world.inventory.controllers:
        found, what = of_node(world.disks, node.id), f"the metadata log of controller {int(node.id)}"
        if isinstance(found, Unknown):
            return Unknown(f"{what} cannot be seen: {found.reason}")
        for entry in found.directories:
            if entry.holds_metadata_log and entry.metadata_log_bytes < 0:
                return Unknown(f"the size of {what} was not seen")
            if entry.problem and not entry.holds_metadata_log:
                return Unknown(f"{what} cannot be seen: {entry.path} {entry.problem}")
            total += max(entry.metadata_log_bytes, 0)
    return total
