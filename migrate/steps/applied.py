"""Does a broker run with the dynamic configurations that are stored for it, after its second roll (pure)?

A KRaft broker learns them after its start, and leaves out all of one entity with one that it cannot apply
(KAFKA-17431).  DescribeConfigs of a broker is answered by that broker, from what it has applied; quotas and credentials
are described from the metadata, and say nothing of what was applied.
"""

from __future__ import annotations

from migrate.checks.config_sources import LISTENERS
from migrate.checks.stored_values import UNASKED, not_applied, to_apply
from migrate.model.config_keys import base_name
from migrate.model.ids import NodeId
from migrate.model.outcome import NotYet, Readiness, Ready, Unknown
from migrate.model.ports import Effects
from migrate.model.world import World


def evidence(world: World, broker: int) -> tuple[str, ...]:
    """How many dynamic configurations the broker says it runs with."""
    if isinstance(world.kraft, Unknown) or isinstance(world.applied, Unknown):
        return ()
    stored = to_apply(world.kraft, broker)
    if not stored:
        return ()
    said = world.applied.get(NodeId(broker), UNASKED)
    if isinstance(said, Unknown):
        return ()
    missing = [one.key for one in not_applied(world.kraft, broker, said)]
    less = f"; not with {', '.join(missing)}, as before the roll" if missing else ""
    return (f"it runs with {len(stored) - len(missing)} of {len(stored)} stored dynamic configurations{less}",)


def unapplied(broker: int) -> str:
    return f"unapplied:{broker}"


def note_before(world: World, broker: int, effects: Effects) -> None:
    """What it does not run with before its stop: Kafka refuses it in every mode, and the roll takes nothing away."""
    if isinstance(world.kraft, Unknown) or isinstance(world.applied, Unknown):
        return
    said = world.applied.get(NodeId(broker), UNASKED)
    if not isinstance(said, Unknown) and (found := not_applied(world.kraft, broker, said)):
        effects.note(unapplied(broker), ",".join(one.key for one in found))


def runs_with_what_is_stored(world: World, broker: int) -> Readiness:
    """By the broker's own answer, a moment after its start; with dynamic listeners it loses them all (W-CFG-20)."""
    if isinstance(world.kraft, Unknown):
        return world.kraft
    stored = to_apply(world.kraft, broker)
    rows = zip(world.kraft.entities.key, world.kraft.entities.name, strict=True)
    if not stored or any(key == str(broker) and base_name(name) in LISTENERS for key, name in rows):
        return Ready()
    said = world.applied if isinstance(world.applied, Unknown) else world.applied.get(NodeId(broker), UNASKED)
    if isinstance(said, Unknown):
        return said
    before = world.facts.get(unapplied(broker), "").split(",")
    missing = [one for one in not_applied(world.kraft, broker, said) if one.key not in before]
    if not missing:
        return Ready()
    return NotYet(
        f"broker {broker} to run with what is stored for it: {'; '.join(one.words for one in missing[:3])}",
        f"broker {broker}",
        "look for 'could not be applied' in its log: it names the value that Kafka refuses, and all others of that "
        "entity are left out with it. Correct or delete that value (kafka-configs.sh --alter --entity-type brokers), "
        "then run the same command again",
        progress=str(len(missing)),
    )
