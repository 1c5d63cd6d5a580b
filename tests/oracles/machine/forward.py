"""The way forward, as a pure protocol: from any state of a cluster the moves that may come next.

Nothing is remembered but that finalize was begun: where a migration stands is read off the cluster, so that an
interrupted transition is only another state.  Production's steps are held to it: what they do is always one of these
moves (`migrate.steps` decides more finely, and never more freely).
"""

from __future__ import annotations

from tests.oracles.machine.moves import EVERY, Act, Choice, Done, Guard, Guards, Move, Moves, Stop, Wait, on_each
from tests.oracles.machine.roll import roll
from tests.oracles.machine.standing import Flag, Metadata, Mode, Owner, Registered, Standing, Views, Znode

COPIED = (Metadata.MIGRATION, Metadata.POST_MIGRATION)


def forward(standing: Standing, guards: Guards = EVERY) -> Choice:
    """What may be done next on the way to finalized."""
    for rule in (_blocked, _provision, _first_roll, _copy, _second_roll, _finalize, _prove):
        choice = rule(standing, guards)
        if choice is not None:
            return choice
    return Done()


def _blocked(standing: Standing, guards: Guards) -> Choice | None:
    """What no further step may pass, wherever it is found."""
    if standing.znode is Znode.NULL:
        return Stop("/migration holds null data", Guard.STALE_MIGRATION)
    if standing.metadata is Metadata.NONE:
        return Stop("the quorum was first started without the flag: it cannot migrate", Guard.FLAG)
    # in POST_MIGRATION forward is the only way, whoever crossed: brokers left behind are rolled into KRaft mode
    crossed = standing.metadata is Metadata.POST_MIGRATION
    begun = standing.finalizing and standing.metadata is Metadata.MIGRATION
    if standing.flagless and not (crossed or begun) and Guard.FLAG in guards:
        return Stop("a controller's file or process lacks the flag: it finalizes by being elected", Guard.FLAG)
    if standing.znode is Znode.COPIED and standing.metadata not in COPIED and Guard.STALE_MIGRATION in guards:
        unknown = standing.metadata is Metadata.UNKNOWN
        if not unknown or Guard.UNKNOWN in guards:
            guard = Guard.UNKNOWN if unknown else Guard.STALE_MIGRATION
            return Stop("/migration remembers a copy that no readable metadata has made", guard)
    if Guard.STALENESS in guards and not all(entry.ours for entry in standing.brokers):
        return Stop("a broker's file is not what the plan was made from", Guard.STALENESS)
    if Guard.DISKS in guards and not all(entry.healthy for entry in standing.brokers):
        return Stop("a broker has a failed directory", Guard.DISKS)
    return None


def _provision(standing: Standing, guards: Guards) -> Choice | None:
    """Controllers: files, storage, processes."""
    if standing.metadata in COPIED:
        return None
    if standing.old_log:
        return Stop("the controllers' metadata is of a quorum that was given up: finish the rollback first")
    if standing.metadata is Metadata.UNKNOWN and not all(_untouched(entry.file) for entry in standing.brokers):
        if standing.any_controller_up:
            return Wait("a majority of the controllers")
        return Stop("brokers are beyond ZooKeeper mode and no controller runs: finish the rollback first")
    for act, nodes in (
        (Act.RENDER, [n for n, entry in enumerate(standing.controllers) if entry.file is Flag.GONE]),
        (Act.FORMAT, [n for n, entry in enumerate(standing.controllers) if not entry.formatted]),
        (Act.START_CONTROLLER, [n for n, entry in enumerate(standing.controllers) if not entry.process]),
    ):
        if nodes:
            begun = standing.any_controller_up or Guard.WHOLE not in guards
            if begun or all(entry.whole for entry in standing.brokers):
                return on_each(act, nodes)
            return Wait("every broker to be whole")
    return None if standing.quorum_whole else Wait("the quorum's leader")


def _untouched(mode: Mode) -> bool:
    return mode is Mode.ZOOKEEPER


def _first_roll(standing: Standing, guards: Guards) -> Choice | None:
    """Every broker into migration mode; the last registration starts the copy."""
    if standing.metadata is not Metadata.PRE_MIGRATION:
        return None
    return roll(standing, Mode.MIGRATION, guards)


def _copy(standing: Standing, guards: Guards) -> Choice | None:
    """Kafka's own: only watched."""
    if standing.metadata is Metadata.PRE_MIGRATION:
        return Wait("the migration driver to copy")
    if standing.metadata is Metadata.MIGRATION and standing.znode is not Znode.COPIED:
        return Wait("/migration to get its offset; if it never does, only the rollback leads out")
    if standing.metadata is Metadata.MIGRATION and standing.owner is not Owner.KRAFT:
        return Wait("a KRaft controller to hold /controller")
    if any(Mode.ZOOKEEPER in (entry.file, entry.process) for entry in standing.brokers):
        return Stop("a broker is in ZooKeeper mode after the copy: finish the rollback first")
    return None


def _second_roll(standing: Standing, guards: Guards) -> Choice | None:
    """Every broker into KRaft mode, each proven before the next."""
    if standing.metadata is not Metadata.MIGRATION or all(entry.file is Mode.KRAFT for entry in standing.brokers):
        left = [entry for entry in standing.brokers if entry.process is not Mode.KRAFT]
        return roll(standing, Mode.KRAFT, guards) if left else None
    if Guard.ALL_KRAFT not in guards and all(entry.whole for entry in standing.brokers):
        return None
    if not standing.quorum_whole:
        return Wait("the quorum")
    return _unequal(standing, guards) or roll(standing, Mode.KRAFT, guards, assign=True)


def _unequal(standing: Standing, guards: Guards) -> Choice | None:
    if standing.views is Views.EQUAL or Guard.ZERO_DIFFERENCE not in guards:
        return None
    if standing.views is not Views.DIFFER:
        return Wait("dual write, and a comparison")
    return Stop("ZooKeeper and the metadata differ", Guard.ZERO_DIFFERENCE)


def _finalize(standing: Standing, guards: Guards) -> Choice | None:
    """Controllers without the flag, one at a time, the active one last; gates before the first."""
    crossed = any(entry.process is Flag.OFF for entry in standing.controllers)
    if not crossed and standing.metadata is Metadata.MIGRATION:
        held = _no_return_gates(standing, guards)
        if held is not None:
            return held
    down = [n for n, entry in enumerate(standing.controllers) if not entry.process]
    if down:  # stopped by us or crashed: from here on each is started without the flag
        return Moves(tuple(Move(_next_of_a_stopped_one(standing.controllers[number].file), number) for number in down))
    left = [n for n, entry in enumerate(standing.controllers) if entry.process is Flag.ON]
    if not left:
        return (
            None if crossed and standing.metadata is Metadata.POST_MIGRATION else Wait("an election without the flag")
        )
    if not standing.quorum_whole:
        return Wait("the quorum's leader")
    followers = [n for n in left if not standing.controllers[n].leads]
    return on_each(Act.STOP_CONTROLLER, (followers or left) if Guard.LEADER_LAST in guards else left)


def _next_of_a_stopped_one(file: Flag) -> Act:
    return Act.START_CONTROLLER if file is Flag.OFF else Act.FLAG_OFF


def _no_return_gates(standing: Standing, guards: Guards) -> Choice | None:
    """Nothing irreversible without proof."""
    unequal = _unequal(standing, guards)
    if unequal is not None:
        return unequal
    for entry in standing.brokers:
        if entry.process is not Mode.KRAFT or entry.registered is not Registered.KRAFT:
            if Guard.ALL_KRAFT in guards:
                return Wait("every broker to be registered in KRaft mode")
        elif not entry.verified and Guard.LEDGER in guards:
            return Wait("every replica to be VERIFIED")
        if not entry.whole and Guard.WHOLE in guards:
            return Wait("every broker to be whole")
    return None


def _prove(standing: Standing, guards: Guards) -> Choice | None:
    """Done is what is proven: every broker in KRaft mode, whole, every replica VERIFIED."""
    if all(entry.process is Mode.KRAFT and entry.whole and entry.verified for entry in standing.brokers):
        return None
    return Wait("every broker to be whole in KRaft mode, and every replica VERIFIED")
