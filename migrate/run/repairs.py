"""A node that did not start with its planned file, and whose file a person repaired: may the same plan start it?

It may where the repair does not touch the plan: it changes no key that the step writes or that says which node and
which directories this is, and the checks find nothing in the repaired file that they do not find in the planned one.
The plan has only the SHA-256 of what it wanted; the content is made again from the copies beside the file.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from migrate import checks
from migrate.checks import processes
from migrate.checks.config_sources import refusals
from migrate.checks.phase import no_quorum_yet
from migrate.checks.principals import successor
from migrate.errors import MigrateError, PlanIsStale
from migrate.hosts.leftovers import BACKUP_SUFFIX
from migrate.hosts.properties import diff, for_people, parse, with_content
from migrate.model.broker_modes import FLAG, node_mode
from migrate.model.config_keys import Fate, fate
from migrate.model.findings import blocks
from migrate.model.history import Event
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode
from migrate.model.outcome import Unknown
from migrate.model.plan import Plan, PlannedStep
from migrate.model.stage import Stage
from migrate.model.step import Predicted, Step
from migrate.model.views import ConfigFile, KeptFiles, NoFile, Running, Stopped
from migrate.model.world import Need, World
from migrate.run import journal as journals
from migrate.steps import facts
from migrate.steps.gates import FOR_BLOCKERS
from migrate.steps.prepare import RenderController
from migrate.steps.registry import rebuild
from migrate.steps.roll import SEEN

NOTE: Final = "repaired"  # the note's key, before the node and the planned file's SHA-256
WRITTEN: Final = (Fate.SET, Fate.REMOVED, Fate.REFUSED)
IDENTITY: Final = frozenset(  # which node of which cluster this is, in which mode, and where its replicas are
    {"broker.id", "node.id", "process.roles", FLAG, "zookeeper.connect", "log.dirs", "log.dir", "metadata.log.dir"}
)


def accepted(world: World, key: str, planned: str) -> str:
    """The SHA-256 that stands for the planned one of `config:N`: a repaired file's where one was accepted for it."""
    return world.facts.get(f"{NOTE}:{key.partition(':')[2]}:{planned}", planned)[:64]


def told(notes: Mapping[str, str], step: str) -> tuple[str, ...]:
    """The repairs that were accepted in a step, for its evidence."""
    lines = [value[65:].partition("\n")[0] for key, value in notes.items() if key.startswith(f"{NOTE}:")]
    return tuple(line.removeprefix(f"{step}: ") for line in lines if line.startswith(f"{step}: "))


def planned_files(plan: Plan, planned: PlannedStep, left: Mapping[str, str]) -> dict[str, str]:
    """`config:N` -> SHA-256 of the file that a node is to be started with by this step; `left` is what came before.

    Controllers are finalized one by one in an order that is chosen when it is time: the last step names all files.
    """
    found = dict(left)
    for step in plan.steps if planned.stage is Stage.FINALIZE else (planned,):
        if step.stage is planned.stage:
            files = {**step.binds, **step.expects}  # a step that writes none starts its nodes with those it is bound to
            found.update({key: value for key, value in files.items() if key.startswith("config:")})
    return found


def gone(
    plan: Plan, planned: PlannedStep, left: Mapping[str, str], world: World
) -> Iterator[tuple[NodeId, tuple[str, ...]]]:
    """Nodes without a file that this step neither writes anew nor removes: node, what that file may be (SHA-256).

    Nothing of that is known where other files are not as this plan has left them: its journal may be lost.  With it
    goes what tells that a controller's file was written: that its quorum is there says it, too.
    """
    steps = [step for step in plan.steps if step.stage is Stage.FINALIZE] if planned.stage is Stage.FINALIZE else []
    found, after = dict(left), dict[str, str]()
    for step in (*steps, planned):
        found.update(step.binds)
        after.update(step.expects)
    files = {} if isinstance(world.configs, Unknown) else world.configs
    seen = facts.observed(world, left)
    there = {f"config:{int(node)}" for node, file in files.items() if isinstance(file, ConfigFile)}
    others = any(seen[key] != accepted(world, key, left[key]) for key in left.keys() & there)
    for node, file in files.items():
        key = f"config:{int(node)}"
        known = [entries[key] for entries in (found, after) if key in entries]
        if isinstance(file, NoFile) and known and not {facts.ABSENT, facts.UNKNOWN} & {*known}:
            wanted = dict.fromkeys([*(accepted(world, key, one) for one in known), *known])
            yield node, () if others else tuple(wanted)
        elif isinstance(file, NoFile) and not plan.kind.rolls_back and _was_there(world, node):
            yield node, ()


def _was_there(world: World, node: NodeId) -> bool:
    """Is it known that this node has had a file?  A broker always has; a controller, where there is a quorum."""
    if node in {broker.id for broker in world.inventory.brokers} or not isinstance(world.kraft, Unknown):
        return True
    looked = not isinstance(world.zookeeper, Unknown) and not isinstance(world.services, Unknown)
    return looked and not no_quorum_yet(world)


def is_gone(
    plan: Plan,
    planned: PlannedStep,
    world: World,
    node: NodeId,
    wanted: Sequence[str],
    backups: Mapping[NodeId, KeptFiles | Unknown],
    keep: Callable[[bytes], Path],
) -> PlanIsStale:
    """A file is gone: the copy from which it is put back, and the command.

    Where no copy has it, it is made again from what was kept, and `keep` writes it where its operator finds it.  Where
    nothing is `wanted`, all copies are listed with their modes; a controller's file without one is as it was rendered.
    """
    file, kept = world.inventory.node(node), backups[node]
    copies = () if isinstance(kept, Unknown) else kept.configs
    known = {copy.sha256: copy for copy in reversed(copies)}
    seen = replace(world, backups=backups)
    as_rendered = isinstance(file, ControllerNode) and kept == KeptFiles((), ())
    if as_rendered and not wanted:
        wanted = [step.expects.get(f"config:{int(node)}", "") for step in plan.steps if step.stage is Stage.PREPARE]
    same = next((known[one] for one in wanted if one in known), None)
    made = None if same else next((raw for one in wanted if (raw := _content(plan, node, one, seen)) is not None), None)
    if made is None and as_rendered:
        made = _rendered(world, RenderController(int(node)), _files_of(seen, world.inventory.brokers[0].id))
    again = processes.AGAIN
    if same is not None:
        there = same.path.partition(BACKUP_SUFFIX)[0]
        step = f"put it back, on {file.host}: cp -p {shlex.quote(same.path)} {shlex.quote(there)}; {again}"
    elif made is not None:
        step = f"put it back: copy {keep(made)} to {file.config} on {file.host}, readable for its user alone; {again}"
    else:
        told = (f"{copy.path} ({_mode(copy.raw)})" for copy in copies)
        found = kept.reason if isinstance(kept, Unknown) else ", ".join(told) or "none"
        step = (
            f"put it back as it was last (copies on {file.host}: {found}; backup/ in each run's folder has others), "
            f"{again}; or, {plan_anew(plan, world, [file])}"
        )
    return PlanIsStale(
        f"{file.config} of {processes.name_of(world.inventory, node)} on {file.host} is gone",
        where=planned.id,
        why="no node starts without its file, and what it holds cannot be seen",
        next_step=step,
    )


def _rendered(world: World, step: RenderController, brokers: Iterable[bytes]) -> bytes | None:
    """A controller's file from the first of a broker's files that is of ZooKeeper mode, as stage prepare writes it."""
    first = world.inventory.brokers[0].id
    raw = next((raw for raw in brokers if _mode(raw) == "zookeeper mode"), None)
    return None if raw is None else step.target(world, facts.with_config(Predicted(), first, raw))


def _mode(raw: bytes) -> str:
    try:
        return f"{node_mode(parse(raw))} mode"
    except MigrateError:
        return "damaged"


def needs(plan: Plan) -> frozenset[Need]:
    """What `judge` looks at, beside what the step does: copies of files, and what their checks are held against."""
    return FOR_BLOCKERS | {Need.BACKUPS} | (SEEN if plan.kind.has_zookeeper else frozenset())


@dataclass(frozen=True, slots=True)
class Repair:
    """What a node is started with in place of the planned file; `lines` are a diff without secrets."""

    step: str
    node: int
    planned: str
    content: bytes
    text: str
    lines: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"{NOTE}:{self.node}:{self.planned}"

    @property
    def value(self) -> str:
        return "\n".join([f"{facts.sha256(self.content)} {self.step}: {self.text}", *self.lines])


def started(events: Iterable[Event], step: str) -> frozenset[int]:
    """The nodes that a step has started so far."""
    return frozenset(node for at, node in journals.starts(events) if at == step)


def due(
    wanted: Mapping[str, str], step: Step, world: World, before: frozenset[int]
) -> Iterator[tuple[NodeId, bytes, str]]:
    """Nodes that a step is to start with another file than the planned one: node, file, planned SHA-256.

    Of those that it has started before: one that is down again, or that was started by hand with that very file.  Of
    any: one whose repair was accepted in an earlier step.
    """
    if isinstance(world.services, Unknown):
        return
    known = {value[:64] for key, value in world.facts.items() if key.startswith(f"{NOTE}:")}
    for number in step.starts(world):
        node, file = NodeId(number), facts.config(world, number)
        planned = wanted.get(f"config:{number}", facts.UNKNOWN)
        if not isinstance(file, ConfigFile) or planned == facts.UNKNOWN:
            continue
        try:
            content = step.becomes(world, number, file.raw)
        except MigrateError:
            continue  # the step's own gates say why
        found, state = facts.sha256(content), world.services.get(node)
        by_hand = content == file.raw and isinstance(state, Running) and state.config_sha256 == found
        down = number in before and (by_hand or isinstance(state, Stopped))
        other = found != accepted(world, f"config:{number}", planned)
        # a person may have changed what the step writes, in the file that it had written: writing it again is a circle
        undone = content != file.raw and node_mode(file.values) is node_mode(parse(content))
        if (other and (down or file.sha256 in known)) or (undone and down):
            yield node, content, planned


def judge(
    plan: Plan, planned: PlannedStep, step: Step, world: World, found: tuple[NodeId, bytes, str], now: float
) -> Repair | None:
    """The repair that is accepted, None where there is none; `world` has the copies beside the files, `now` is when.

    Raises:
        PlanIsStale: the change is not a repair; the error says what leads on.
    """
    node, content, wanted = found
    name = processes.name_of(world.inventory, node)
    original = _content(plan, node, wanted, world)
    if original is None:
        raise _refused(plan, planned, world, node, "what the plan wants it to be is in no copy beside it", "")
    before, after = parse(original), parse(content)
    keys = [key for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)]
    third = _third(plan, planned, step, world, node, before)
    if own := sorted({key for key in keys if _is_ours(step, key, world)} | third):
        back = "; ".join(f"{key}={for_people(key, before[key])}" if key in before else f"no {key}" for key in own)
        what = f"{', '.join(own)} must stay as the plan has {'it' if len(own) == 1 else 'them'}"
        raise _refused(plan, planned, world, node, what, f"put these keys back ({back}) and give the same command")
    if worse := [*refusals(after), *_new_blockers(world, node, original, content, planned.stage)]:
        what = f"it was repaired in {', '.join(keys)}, and still has problems: {'; '.join(worse[:5])}"
        raise _refused(plan, planned, world, node, what, "repair that too and give the same command")
    if facts.sha256(content) == accepted(world, f"config:{int(node)}", wanted):
        return None  # the file from before: the step edits it as planned
    file, when = world.inventory.node(node), time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    what = f"was repaired by a person, in {', '.join(keys) or 'comments or order alone'}: the run goes on with it"
    if content == original:
        what = "is the planned one again"
    text = f"{file.config} of {name} on {file.host} {what} (found at {when})"
    lines = tuple(diff(original, content, file.config, ("planned", "repaired")))
    return Repair(planned.id, int(node), wanted, content, text, lines)


def _third(
    plan: Plan, planned: PlannedStep, step: Step, world: World, node: NodeId, wanted: Mapping[str, str]
) -> set[str]:
    """Keys of the step with neither the planned value nor the one from before: a change that would be written over."""
    raw = _content(plan, node, planned.binds.get(f"config:{int(node)}", ""), world)
    before, file = {} if raw is None else parse(raw), facts.config(world, node)
    assert isinstance(file, ConfigFile)
    return {
        key
        for key in wanted.keys() | file.values.keys()
        if file.values.get(key) not in (wanted.get(key), before.get(key)) and _is_ours(step, key, world)
    }


def plan_anew(plan: Plan, world: World, nodes: Iterable[BrokerNode | ControllerNode]) -> str:
    """What leads on where the plan no longer fits the cluster: a plan is made of nodes that run."""
    down = processes.ended(world, nodes)
    typed = f"start what is down with its file as it is ({processes.start(world.inventory, down)})"
    first = f"{processes.disks_first(world, down) or typed}, then " if down else ""
    return f"{first}make a new plan: `{plan.plan_again}`"


def _refused(plan: Plan, planned: PlannedStep, world: World, node: NodeId, what: str, back: str) -> PlanIsStale:
    anew = plan_anew(plan, world, [world.inventory.node(node)])
    return PlanIsStale(
        f"{world.inventory.node(node).config} is not as planned: {what}",
        where=planned.id,
        why="the plan's other steps, and its rollback, rest on the file that it shows",
        next_step=f"{back}; or, where the change is what {processes.name_of(world.inventory, node)} needs, {anew}"
        if back
        else anew,
    )


def _is_ours(step: Step, key: str, world: World) -> bool:
    given = (world.inventory.broker_properties, world.inventory.controller_properties)
    added = {name for entry in given if entry is not None for name in entry.values}
    added |= {*(kraft.properties if (kraft := successor(world)) else ())}
    return key in IDENTITY | added | {"super.users"} or any(fate(key, moment) in WRITTEN for moment in step.writes_at)


def _new_blockers(world: World, node: NodeId, planned: bytes, found: bytes, stage: Stage) -> list[str]:
    """What would block the stage by the repaired file, and does not by the planned one."""
    assert not isinstance(world.configs, Unknown)
    file = world.configs[node]
    assert isinstance(file, ConfigFile)

    def blocking(raw: bytes) -> dict[tuple[str, str, str], str]:
        assert not isinstance(world.configs, Unknown)
        seen = checks.run(replace(world, configs={**world.configs, node: with_content(file, raw)}), target=stage)
        return {
            (entry.code, entry.about, entry.message): f"{entry.code} {entry.about}: {entry.message}"
            for entry in seen
            if blocks(entry, stage)
        }

    before = blocking(planned)
    return [text for key, text in blocking(found).items() if key not in before]


def _content(plan: Plan, node: NodeId, wanted: str, world: World) -> bytes | None:
    """The file of that SHA-256: a copy of the node's, or what the plan's steps make of one."""
    known = {facts.sha256(raw): raw for raw in _files_of(world, node)}
    first = world.inventory.brokers[0].id
    for planned in plan.steps:
        step = rebuild(planned.kind, planned.params)
        made: list[bytes | None] = []
        if isinstance(step, RenderController) and step.controller == node:
            before = (facts.with_config(Predicted(), first, raw) for raw in _files_of(world, first))
            made += [step.target(world, one) for one in before]
        if node in step.starts(world):
            made += [_made(step, world, node, raw) for raw in known.values()]
        known |= {facts.sha256(raw): raw for raw in made if raw is not None}
    return known.get(wanted)


def _files_of(world: World, node: NodeId) -> list[bytes]:
    """The node's file as it is now, and the copies beside it."""
    kept = Unknown("") if isinstance(world.backups, Unknown) else world.backups.get(node, Unknown(""))
    file = facts.config(world, node)
    now = [file.raw] if isinstance(file, ConfigFile) else []
    return now if isinstance(kept, Unknown) else now + [copy.raw for copy in kept.configs]


def _made(step: Step, world: World, node: NodeId, raw: bytes) -> bytes | None:
    try:
        return step.becomes(world, node, raw)
    except MigrateError:
        return None
