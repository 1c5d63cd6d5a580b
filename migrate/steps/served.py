"""A roll's proof that a broker's listeners serve what they served before it was stopped (pure, but for the note).

What was served is a fact of the journal from the step's beginning on: a run that was killed holds the broker to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode
from migrate.model.listeners import Change, Heard, changed, from_note, lost, noted, unseen
from migrate.model.outcome import Failed, NotYet, Outcome, Unknown
from migrate.model.ports import Effects
from migrate.model.world import NOT_ASKED, World

CAUSE: Final = (
    "a KRaft broker opens its listeners by its file alone, and takes no store afterwards for a listener that began "
    "without one, nor any other dynamic value of that broker (KAFKA-17431)"
)


def key(step: str) -> str:
    return f"served:{step}"


def note(step: str, broker: int, world: World, effects: Effects) -> None:
    """Keep what is served now; what an interrupted attempt has kept stays, for it saw the broker before its stop."""
    found = _heard(world, broker)
    if found != NOT_ASKED and key(step) not in world.facts:
        effects.note(key(step), noted(found))


def kept(step: str, node: BrokerNode, world: World, *, back: bool) -> Outcome | None:
    """None where every listener that served serves; else what ends the proof, or what it waits for.

    In a rollback (`back`), to a file from before, a listener may serve what it served then, and what cannot be applied
    is no news: only a listener that is gone counts.
    """
    now, before = _heard(world, int(node.id)), _before(step, world)
    if isinstance(now, Unknown):
        return None if isinstance(before, Unknown) and now != NOT_ASKED else now
    if isinstance(before, Unknown):
        return None
    dead = list(lost(before, now))
    other = [] if back else list(changed(before, now))
    refused = () if back else _new_refusals(before, now)
    name = f"broker {int(node.id)}"
    if refused or other or any(not change.passing for change in dead):
        return _failed(node, [*dead, *other], refused, gone=bool(dead))
    if dead:
        return NotYet(
            f"{_told(dead)} ({name})",
            name,
            f"look at its log, and whether something else holds the port; {CAUSE}",
            progress=_told(dead),
        )
    return None


def evidence(step: str, broker: int, world: World) -> Iterator[str]:
    """What was compared, and what could not be: named, and no proof."""
    now, before = _heard(world, broker), _before(step, world)
    if isinstance(before, Unknown) or isinstance(now, Unknown):
        yield f"what its listeners serve was not compared: {before.reason if isinstance(before, Unknown) else now}"
        return
    gone_on = [name for name, was in before.listeners.items() if was.serves and name in now.listeners]
    if gone_on:
        yield f"listeners that serve what they served: {', '.join(sorted(gone_on))}"
    told = [*(change.told for change in changed(before, now)), *unseen(before, now)]
    if told:
        yield f"of its listeners nothing is proven where {'; '.join(told)}"
    if isinstance(now.not_applied, Unknown):
        yield f"whether it could apply its configuration is not known: {now.not_applied.reason}"
    elif now.not_applied:
        yield f"as before, its log says: {'; '.join(now.not_applied)}"


def _heard(world: World, broker: int) -> Heard | Unknown:
    if isinstance(world.listeners, Unknown):
        return world.listeners
    return world.listeners.get(NodeId(broker), Unknown(f"the listeners of broker {broker} were not met"))


def _before(step: str, world: World) -> Heard | Unknown:
    text = world.facts.get(key(step))
    return Unknown("nobody noted what they served before its stop") if text is None else from_note(text)


def _new_refusals(before: Heard, now: Heard) -> tuple[str, ...]:
    """What is said since this start, and was not since the last one; where that is not known, all of it."""
    if isinstance(now.not_applied, Unknown):
        return ()
    said = () if isinstance(before.not_applied, Unknown) else before.not_applied
    known = {line.partition(" (")[0] for line in said}
    return tuple(line for line in now.not_applied if line.partition(" (")[0] not in known)


def _told(changes: list[Change]) -> str:
    return "; ".join(change.told for change in changes)


def _failed(node: BrokerNode, changes: list[Change], refused: tuple[str, ...], *, gone: bool) -> Failed:
    name, file = f"broker {int(node.id)}", f"{node.config} on {node.host}"
    dynamic = f"`kafka-configs --describe --entity-type brokers --entity-name {int(node.id)}`"
    said = f"its log says: {'; '.join(refused)}" if refused else ""
    what = "; ".join(part for part in (_told(changes), said) if part)
    if gone:
        after = (
            "write what that listener is made of (its stores with their types and passwords; which of it is dynamic, "
            f"{dynamic} shows) into {file}, restart {name}, and give the same command again"
        )
    elif changes:
        after = (
            f"what differs comes from {file}, from a dynamic configuration ({dynamic}), or from a store that was "
            f"replaced: repair it, restart {name}, and give the same command again; where the listener shall be as it "
            "is now, make a new plan"
        )
    else:
        after = (
            "correct or delete that dynamic value (`kafka-configs --alter --entity-type brokers`), restart "
            f"{name} with its file as it is, and give the same command again"
        )
    cause = f". Likely cause: {CAUSE}" if gone or refused else ""
    return Failed(f"{name}: {what}{cause}", f"no other broker was touched; {after}")
