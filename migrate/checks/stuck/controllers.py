"""The quorum and the controllers' registrations: why nobody leads, and who has not registered with the flag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from migrate.checks import processes
from migrate.checks.quorum import other_quorum
from migrate.checks.sight import of_node
from migrate.checks.stuck.seen import (
    exit_of,
    explanation,
    leader_log,
    log_lines,
    no_answer,
    not_seen,
    other_file,
    quorum_of,
)
from migrate.checks.zookeeper import sample
from migrate.model.broker_modes import FLAG, ControllerFlag, Mode, flag_of, positions
from migrate.model.findings import Clues, Explanation
from migrate.model.ids import NodeId
from migrate.model.inventory import ControllerNode
from migrate.model.outcome import Unknown
from migrate.model.views import (
    NOT_THERE,
    BrokerDisks,
    ConfigFile,
    KraftView,
    MetaMissing,
    Quorum,
    Running,
    Stopped,
    majority,
)
from migrate.model.world import World

LEADER: Final = "a leader of the controllers' quorum"
REGISTERS_CONTROLLERS: Final = 15  # metadata.version 3.7-IV0: below it the driver does not ask for them
SURVIVOR: Final = "docs/support.md has what is left under `Two of three are lost`"
FETCHES_MS: Final = 10_000  # a voter that was not caught up for longer does not fetch


def no_leader(world: World, clues: Clues) -> Iterator[Explanation]:
    """For a quorum without leader, or metadata that cannot be read: stopped, silent, at odds, or Unknown."""
    nodes = world.inventory.controllers
    quorum = quorum_of(world)
    stopped = [int(node.id) for node in nodes if isinstance(of_node(world.services, node.id), Stopped)]
    needed = majority(len(nodes))
    found: list[Explanation] = []
    if nodes and len(nodes) - len(stopped) < needed:
        names = ", ".join(map(str, stopped))
        cause = f"{len(stopped)} of {len(nodes)} controllers are stopped ({names}), and {needed} must run"
        lines = [line for node in stopped for line in log_lines(clues, node)]
        owner, lost = f"whoever runs controllers {names}", [node for node in stopped if _is_empty(world, node)]
        cause += f"; the metadata directories of {', '.join(map(str, lost))} are empty" if lost else ""
        typed = processes.start(world.inventory, stopped)
        how = f"Start them, with the migration flag in every file ({typed}); where one died, its log says why."
        how = _two_lost(world) if len(nodes) - len(lost) < needed else how
        found.append(explanation("S-STUCK-10", LEADER, cause, *lines, owner=owner, nodes=stopped, next_step=how))
    for node in nodes:
        answer = no_answer(world, node.id)
        if isinstance(of_node(world.services, node.id), Running) and answer is not None:
            found.append(_silent(world, clues, node, answer))
    found += _at_odds(world)
    if not found:
        waits = LEADER if isinstance(quorum, Unknown) else "metadata that can be read"
        lines = [line for node in nodes for line in log_lines(clues, node.id)]
        ids, why = [node.id for node in nodes], Unknown(_why_unknown(world, quorum))
        found.append(explanation("S-STUCK-13", waits, why, *lines, owner="the controllers", nodes=ids))
    yield from found


def _is_empty(world: World, node: int) -> bool:
    """Does that controller's metadata directory hold nothing of a quorum?  One that nobody could read may well."""
    disks = of_node(world.disks, NodeId(node))
    return isinstance(disks, BrokerDisks) and all(
        isinstance(entry.meta, MetaMissing) and not entry.holds_metadata_log and entry.problem in ("", NOT_THERE)
        for entry in disks.directories
    )


def _two_lost(world: World) -> str:
    """What is left where a majority has lost its metadata: never a format, which would make an empty quorum."""
    back = all(one.furthest in (Mode.ZOOKEEPER, Mode.MIGRATION) for one in positions(world))
    none = all(_is_empty(world, int(node.id)) for node in world.inventory.controllers)
    how = "gives up what they alone held" if none else "compares ZooKeeper with the log that is left"
    left = f"every broker can go back to ZooKeeper mode: stop every controller, then {world.give_up}, which {how}"
    return (
        "Is a disk only not mounted? Mount it, and start its controller. Format none of these directories: controllers "
        f"with empty logs elect each other. Where the logs are lost for good, {left if back else SURVIVOR}."
    )


def _silent(world: World, clues: Clues, node: ControllerNode, answer: Unknown) -> Explanation:
    file = of_node(world.configs, node.id)
    listens = file.values.get("listeners", "") if isinstance(file, ConfigFile) else ""
    cause = f"it runs and does not answer at {node.address}"
    if listens and f"://{node.address}" not in listens:
        cause = f"its file makes it listen on {listens}, and it is called at {node.address}"
    evidence, owner = (answer.reason, *log_lines(clues, node.id)), f"controller {int(node.id)}"
    return explanation("S-STUCK-11", LEADER, cause, *evidence, owner=owner, nodes=[node.id])


def _at_odds(world: World) -> Iterator[Explanation]:
    """Controllers whose files say another quorum than the inventory."""
    for node in world.inventory.controllers:
        file = of_node(world.configs, node.id)
        if not isinstance(file, ConfigFile):
            continue
        if found := other_quorum(file.values, world.inventory):
            cause = f"in the file of controller {int(node.id)} {found}"
            yield explanation("S-STUCK-12", LEADER, cause, owner=f"whoever keeps {file.path}", nodes=[node.id])


def _why_unknown(world: World, quorum: Quorum | Unknown) -> str:
    parts = [part.reason for part in (quorum, world.kraft) if isinstance(part, Unknown)]
    unseen = [
        f"the process of controller {int(node.id)}: {state.reason}"
        for node in world.inventory.controllers
        if isinstance(state := of_node(world.services, node.id), Unknown)
    ]
    if unseen:
        parts.append("and these could not be seen: " + sample(unseen))
    return "; ".join(parts) or "every controller runs and answers, and their files agree"


def nothing_committed(world: World, clues: Clues, quorum: Quorum) -> Iterator[Explanation]:
    """A leader without a high watermark: who does not fetch, and in which state those are."""
    if quorum.high_watermark > 0:
        return
    behind = [
        int(voter.id)
        for voter in quorum.voters
        if voter.id != quorum.leader and (voter.log_end_offset <= 0 or not 0 <= voter.caught_up_ms <= FETCHES_MS)
    ]
    why = []
    for node in behind:
        match of_node(world.services, node):
            case Stopped():
                why.append(f"controller {node} is stopped")
            case _ if (answer := no_answer(world, node)) is not None:
                why.append(f"controller {node} does not answer ({answer.reason})")
    waits = f"a committed record of leader {int(quorum.leader)}"
    owner = f"controllers {', '.join(map(str, behind))}" if behind else "the controllers"
    cause = "; ".join(why) if why else Unknown(f"voters {behind} do not fetch, and they run and answer")
    lines = [f"high watermark {quorum.high_watermark}", *(line for node in behind for line in log_lines(clues, node))]
    yield explanation("S-STUCK-14", waits, cause, *lines, owner=owner, nodes=behind)


def not_ready(world: World, clues: Clues, kraft: KraftView) -> Iterator[Explanation]:
    """Controllers of the quorum that have not registered with the flag: the driver waits for each of them."""
    if kraft.features.get("metadata.version", 0) < REGISTERS_CONTROLLERS:
        return
    for node in world.inventory.controllers:
        flag = flag_of(world, node.id)
        if flag.registered is not True:
            yield from _one(world, clues, flag)


def _one(world: World, clues: Clues, flag: ControllerFlag) -> Iterator[Explanation]:
    node = flag.node
    file, state, unanswered = of_node(world.configs, node), of_node(world.services, node), no_answer(world, node)
    registered = "its registration without the flag" if flag.registered is False else "none of it"
    evidence = (f"the metadata has {registered}", *log_lines(clues, node), *leader_log(world, clues, node))
    runner = f"whoever runs controller {node}"
    causes: list[tuple[str, str, str | Unknown, str]] = []  # code, owner, cause, and what more is seen
    if isinstance(file, ConfigFile) and flag.file is False:
        cause = f"{FLAG} is {file.values.get(FLAG, '').strip() or 'missing'} in its file"
        causes.append(("S-STUCK-20", f"whoever keeps {file.path}", cause, file.path))
    if isinstance(state, Stopped):
        causes.append(("S-STUCK-22", runner, processes.do_not_run(world.inventory, [node]), exit_of(state)))
    elif isinstance(file, ConfigFile) and flag.file is True and isinstance(state, Running):
        if state.config_sha256 not in (None, file.sha256):
            cause = "its file has the flag, and its process was started with another file"
            causes.append(("S-STUCK-21", runner, cause, other_file(state, file)))
        elif flag.answer is False:
            cause = "its file has the flag, and its process says that it was started without"
            causes.append(("S-STUCK-21", runner, cause, "ApiVersions without ZkMigrationReady"))
    if not causes and isinstance(state, Running) and unanswered is not None:
        causes.append(("S-STUCK-23", f"controller {node}", "it runs and does not answer", unanswered.reason))
    if not causes:
        answer = world.live if isinstance(world.live, Unknown) else of_node(world.live.controllers, node)
        otherwise = "its file has the flag, its process runs with that file and answers with the flag"
        parts = (("its file", file), ("its process", state), ("its answer", answer))
        causes.append(("S-STUCK-24", f"controller {node}", Unknown(not_seen(parts) or otherwise), ""))
    for code, owner, told, more in causes:
        waits = f"controller {node} to register with the migration flag"
        yield explanation(code, waits, told, more, *evidence, owner=owner, nodes=[node])
