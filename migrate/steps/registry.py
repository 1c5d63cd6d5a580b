"""Every kind of step by its name, so that a saved plan becomes steps again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from migrate.errors import PlanUnreadable
from migrate.model.step import Step
from migrate.steps import (
    assign,
    cleanup,
    controllers,
    finalize,
    forward,
    look,
    prepare,
    protocol,
)
from migrate.steps.directories import steps as directories
from migrate.steps.rollback import brokers, control, copy_again, flag
from migrate.steps.rollback import cleanup as rollback_cleanup

KINDS: Final[Mapping[str, Any]] = {
    cls.kind: cls
    for cls in (
        look.Discover,
        look.Assess,
        prepare.BackUpZookeeper,
        prepare.BackUpBroker,
        prepare.RenderController,
        controllers.FormatControllers,
        controllers.FormatVoters,
        controllers.StartControllers,
        controllers.StartVoters,
        forward.RollToMigrationMode,
        look.CanaryInMigrationMode,
        look.WatchCopy,
        look.ProveHybrid,
        assign.AssignDirectories,
        forward.RollToKraft,
        look.CanaryInKraftMode,
        finalize.RollForward,
        finalize.FinishFinalize,
        look.Soak,
        finalize.FinalizeController,
        cleanup.ReleaseZookeeper,
        cleanup.RemoveCopies,
        cleanup.ProveFinal,
        brokers.RollBackToMigrationMode,
        flag.PutFlagBack,
        control.FinishDualWrite,
        control.KeepZookeeper,
        control.StopControllers,
        control.RaiseStateVersions,
        control.HandBackControl,
        brokers.RollToZookeeperMode,
        rollback_cleanup.SetControllerAside,
        rollback_cleanup.ProveZookeeperMode,
        copy_again.StopStuckControllers,
        copy_again.SetMetadataAside,
        copy_again.RestartInMigrationMode,
        directories.KeepDirectoryFiles,
        directories.AddDirectories,
        directories.RemoveDirectories,
        directories.ProveDirectories,
        protocol.KeepProtocolFiles,
        protocol.RaiseProtocol,
        protocol.LowerProtocol,
        protocol.ProveProtocol,
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
