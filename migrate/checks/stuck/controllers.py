"""The quorum and the controllers' registrations: why nobody leads, and who has not registered with the flag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from migrate.checks import processes
from migrate.checks.quorum import VOTERS, voters_of
from migrate.checks.stuck.seen import (
    controller_answer,
    explained,
    file_of,
    leader_log,
    listed,
    no_answer,
    quorum_of,
    said,
    state_of,
)
from migrate.checks.zookeeper import sample
from migrate.model.flag import FLAG, ControllerFlag, flag_of
from migrate.model.inventory import ControllerNode
from migrate.model.outcome import Unknown
from migrate.model.views import ConfigFile, KraftView, Quorum, Running, Stopped, majority
from migrate.model.waiting import Clues, Explanation
from migrate.model.world import World

LEADER: Final = "a leader of the controllers' quorum"
REGISTERS_CONTROLLERS: Final = 15  # metadata.version 3.7-IV0: below it the driver does not ask for them
FETCHES_MS: Final = 10_000  # a voter that was not caught up for longer does not fetch


def no_leader(world: World, clues: Clues) -> Iterator[Explanation]:
    """For a quorum without leader, or metadata that cannot be read: stopped, silent, at odds, or Unknown."""
    nodes = world.inventory.controllers
    quorum = quorum_of(world)
    stopped = [int(node.id) for node in nodes if isinstance(state_of(world, node.id), Stopped)]
    needed = majority(len(nodes))
    known = 0
    if nodes and len(nodes) - len(stopped) < needed:
        known += 1
        yield explained(
            "S-STUCK-10",
            LEADER,
            f"whoever runs controllers {listed(stopped)}",
            f"{len(stopped)} of {len(nodes)} controllers are stopped ({listed(stopped)}), and {needed} must run",
            evidence=tuple(line for node in stopped for line in said(clues, node)),
            nodes=tuple(stopped),
        )
    for node in nodes:
        answer = no_answer(world, node.id)
        if isinstance(state_of(world, node.id), Running) and answer is not None:
            known += 1
            yield _silent(world, clues, node, answer)
    for found in _at_odds(world):
        known += 1
        yield found
    if not known:
        yield explained(
            "S-STUCK-13",
            LEADER if isinstance(quorum, Unknown) else "metadata that can be read",
            "the controllers",
            Unknown(_untold(world, quorum)),
            evidence=tuple(line for node in nodes for line in said(clues, node.id)),
            nodes=tuple(int(node.id) for node in nodes),
        )


def _silent(world: World, clues: Clues, node: ControllerNode, answer: Unknown) -> Explanation:
    file = file_of(world, node.id)
    listens = file.values.get("listeners", "") if isinstance(file, ConfigFile) else ""
    elsewhere = bool(listens) and f"://{node.address}" not in listens
    cause: str | Unknown = f"it runs and does not answer at {node.address}"
    if elsewhere:
        cause = f"its file makes it listen on {listens}, and it is called at {node.address}"
    return explained(
        "S-STUCK-11",
        LEADER,
        f"controller {int(node.id)}",
        cause,
        evidence=(answer.reason, *said(clues, node.id)),
        nodes=(int(node.id),),
    )


def _at_odds(world: World) -> Iterator[Explanation]:
    """Controllers whose files have other voters than the inventory."""
    wanted = voters_of(world.inventory.voters)
    for node in world.inventory.controllers:
        file = file_of(world, node.id)
        if not isinstance(file, ConfigFile):
            continue
        text = file.values.get(VOTERS, "").strip()
        if voters_of(text) != wanted:
            yield explained(
                "S-STUCK-12",
                LEADER,
                f"whoever keeps {file.path}",
                f"the file of controller {int(node.id)} has {VOTERS}={text or '(missing)'}, the inventory gives "
                f"{world.inventory.voters}",
                nodes=(int(node.id),),
            )


def _untold(world: World, quorum: Quorum | Unknown) -> str:
    parts = []
    if isinstance(quorum, Unknown):
        parts.append(quorum.reason)
    if isinstance(world.kraft, Unknown):
        parts.append(world.kraft.reason)
    unseen = [
        f"the process of controller {int(node.id)}: {state.reason}"
        for node in world.inventory.controllers
        if isinstance(state := state_of(world, node.id), Unknown)
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
        match state_of(world, node):
            case Stopped():
                why.append(f"controller {node} is stopped")
            case _ if (answer := no_answer(world, node)) is not None:
                why.append(f"controller {node} does not answer ({answer.reason})")
    yield explained(
        "S-STUCK-14",
        f"a committed record of leader {int(quorum.leader)}",
        f"controllers {listed(behind)}" if behind else "the controllers",
        "; ".join(why) if why else Unknown(f"voters {behind} do not fetch, and they run and answer"),
        evidence=(f"high watermark {quorum.high_watermark}", *(line for node in behind for line in said(clues, node))),
        nodes=tuple(behind),
    )


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
    file, state, answer = file_of(world, node), state_of(world, node), controller_answer(world, node)
    waits = f"controller {node} to register with the migration flag"
    registered = flag.registered is False
    metadata = "the metadata has its registration without the flag" if registered else "the metadata has none of it"
    evidence = (metadata, *said(clues, node), *leader_log(world, clues, node))
    found = False

    def told(code: str, owner: str, cause: str | Unknown, *more: str) -> Explanation:
        return explained(code, waits, owner, cause, evidence=(*more, *evidence), nodes=(node,))

    if isinstance(file, ConfigFile) and flag.file is False:
        found = True
        value = file.values.get(FLAG, "").strip()
        yield told("S-STUCK-20", f"whoever keeps {file.path}", f"{FLAG} is {value or 'missing'} in its file", file.path)
    if isinstance(state, Stopped):
        found = True
        cause = processes.do_not_run(world.inventory, [node])
        yield told("S-STUCK-22", f"whoever runs controller {node}", cause, _exit(state))
    elif isinstance(file, ConfigFile) and flag.file is True and isinstance(state, Running):
        if state.config_sha256 not in (None, file.sha256):
            found = True
            cause = "its file has the flag, and its process was started with another file"
            yield told("S-STUCK-21", f"whoever runs controller {node}", cause, _hashes(state, file))
        elif flag.answer is False:
            found = True
            cause = "its file has the flag, and its process says that it was started without"
            yield told("S-STUCK-21", f"whoever runs controller {node}", cause, "ApiVersions without ZkMigrationReady")
    unanswered = no_answer(world, node)
    if not found and isinstance(state, Running) and unanswered is not None:
        found = True
        yield told("S-STUCK-23", f"controller {node}", "it runs and does not answer", unanswered.reason)
    if not found:
        yield told("S-STUCK-24", f"controller {node}", Unknown(_unseen(file, state, answer)))


def _exit(state: Stopped) -> str:
    return "" if state.exit_code is None else f"it ended with code {state.exit_code}"


def _hashes(state: Running, file: ConfigFile) -> str:
    return f"{file.path} is {file.sha256[:12]}, the process was started with {(state.config_sha256 or '')[:12]}"


def _unseen(file: object, state: object, answer: object) -> str:
    unseen = [
        f"{what}: {part.reason}"
        for what, part in (("its file", file), ("its process", state), ("its answer", answer))
        if isinstance(part, Unknown)
    ]
    if unseen:
        return "not seen: " + "; ".join(unseen)
    return "its file has the flag, its process runs with that file and answers with the flag"
