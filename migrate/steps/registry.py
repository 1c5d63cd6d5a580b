"""Every kind of step by its name, so that a saved plan becomes steps again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from migrate.errors import PlanUnreadable
from migrate.model.step import Step
from migrate.steps.assign import AssignDirectories
from migrate.steps.at_boot import EnableAtBoot
from migrate.steps.canary import CanaryInKraftMode, CanaryInMigrationMode
from migrate.steps.cleanup import ProveFinal, ReleaseZookeeper, RemoveCopies
from migrate.steps.controllers import FormatController, StartControllers
from migrate.steps.directories.add import AddDirectories, KeepDirectoryFiles
from migrate.steps.directories.look import CheckDirectories, ProveDirectories
from migrate.steps.directories.remove import RemoveDirectories
from migrate.steps.finalize import FinalizeController
from migrate.steps.leaders import RestoreLeaders
from migrate.steps.look import Assess, Discover, ProveHybrid, Soak, WatchCopy
from migrate.steps.prepare import BackUpBroker, BackUpZookeeper, RenderController
from migrate.steps.roll_broker import RollToKraft, RollToMigrationMode
from migrate.steps.roll_forward import FinishFinalize, RollForward
from migrate.steps.rollback.at_boot import DisableAtBoot
from migrate.steps.rollback.brokers import RollBackToMigrationMode, RollToZookeeperMode
from migrate.steps.rollback.cleanup import ProveZookeeperMode, SetControllerAside
from migrate.steps.rollback.control import HandBackControl, KeepZookeeper, StopControllers
from migrate.steps.rollback.copy_again import RestartInMigrationMode, SetMetadataAside, StopStuckControllers
from migrate.steps.rollback.finish import FinishDualWrite
from migrate.steps.rollback.flag import PutFlagBack
from migrate.steps.rollback.leaders import RestoreLeadersInZookeeperMode
from migrate.steps.rollback.versions import RaiseStateVersions

KINDS: Final[Mapping[str, Any]] = {
    cls.kind: cls
    for cls in (
        Discover,
        Assess,
        BackUpZookeeper,
        BackUpBroker,
        RenderController,
        FormatController,
        StartControllers,
        EnableAtBoot,
        RollToMigrationMode,
        CanaryInMigrationMode,
        WatchCopy,
        ProveHybrid,
        AssignDirectories,
        RollToKraft,
        CanaryInKraftMode,
        RestoreLeaders,
        RollForward,
        FinishFinalize,
        Soak,
        FinalizeController,
        ReleaseZookeeper,
        RemoveCopies,
        ProveFinal,
        RollBackToMigrationMode,
        PutFlagBack,
        FinishDualWrite,
        KeepZookeeper,
        DisableAtBoot,
        StopControllers,
        RaiseStateVersions,
        HandBackControl,
        RollToZookeeperMode,
        RestoreLeadersInZookeeperMode,
        SetControllerAside,
        ProveZookeeperMode,
        StopStuckControllers,
        SetMetadataAside,
        RestartInMigrationMode,
        CheckDirectories,
        KeepDirectoryFiles,
        AddDirectories,
        RemoveDirectories,
        ProveDirectories,
    )
}
CONVERT: Final[Mapping[str, Any]] = {"int": int, "float": float, "str": str}


def rebuild(kind: str, params: Mapping[str, str]) -> Step:
    """The step that a plan describes; PlanUnreadable for a kind or a parameter that does not exist."""
    cls = KINDS.get(kind)
    if cls is None:
        raise PlanUnreadable(f"the plan has a step of kind {kind!r}, which this version does not know")
    known = {entry.name: entry for entry in fields(cls)}
    if set(known) != set(params):
        raise PlanUnreadable(f"step {kind!r} takes the parameters {sorted(known)}, the plan has {sorted(params)}")
    try:
        values = {name: CONVERT[str(entry.type)](params[name]) for name, entry in known.items()}
    except ValueError as error:
        raise PlanUnreadable(f"step {kind!r}: {error}") from error
    step: Step = cls(**values)
    return step
