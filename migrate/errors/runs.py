"""Errors of plans and runs."""

from __future__ import annotations

from migrate.errors.base import InputError, Retryable, WorldError


class MalformedPlan(InputError):
    """A saved plan cannot be read: no JSON, another schema, missing or unknown fields."""

    id = "E-REPORT-01"
    hint = "make the plan again with `kraft-migrate plan`; nothing was changed"


class PlanUnreadable(InputError):
    """A saved plan cannot be understood, or its fingerprint is not the one of its content."""

    id = "E-PLAN-01"
    hint = "make the plan anew with `kraft-migrate plan`"


class PlanIsStale(InputError):
    """What the plan was made for has changed since."""

    id = "E-PLAN-02"
    exit_code = 6
    hint = "look at what changed, then make the plan anew with `kraft-migrate plan`; nothing was changed by this step"


class NotConfirmed(InputError):
    """A plan with the point of no return in it needs its fingerprint as confirmation."""

    id = "E-PLAN-03"
    exit_code = 4
    hint = "read the plan to its end, then give --confirm with its whole fingerprint"


class NothingToPlan(InputError):
    """The stage that was asked for cannot be planned from where the cluster stands."""

    id = "E-PLAN-04"
    exit_code = 3
    hint = "`kraft-migrate status` names the stage that comes next: plan that one, or `--to` a later one"


class JournalDamaged(InputError):
    """A journal's line is not what was written."""

    id = "E-RUN-01"
    hint = "keep the file as it is; do not edit a journal.  `status` finds the state from the cluster itself"


class JournalUnwritable(WorldError):
    """The journal cannot be written: a run without it does nothing."""

    id = "E-RUN-02"
    hint = "make room, or make the run's folder writable, and run the same command again"


class RunLocked(WorldError):
    """Another process works on this run or on this cluster."""

    id = "E-RUN-03"
    exit_code = 7
    hint = (
        "wait for the other process (`kraft-migrate unlock` says which, and whether it lives), or stop it; then again"
    )


class PlanStopped(WorldError):
    """A step was refused, failed, or is unknown: the run stopped before the next change."""

    id = "E-RUN-04"
    exit_code = 3
    hint = "mend what the reason names and run the same command again; it goes on from this step"


class PredictionFailed(WorldError):
    """What happened is not what the step predicted."""

    id = "E-RUN-05"
    hint = "find out who else acts on this cluster (people, configuration management), stop that, then plan anew"


class NoProgress(WorldError):
    """A wait made no progress for longer than the playbook allows."""

    id = "E-RUN-06"
    exit_code = 5
    hint = "look at what it waits for; the same command goes on waiting"


class AssignmentRefused(WorldError):
    """The controller refused to assign a replica to a directory."""

    id = "E-DIR-01"
    hint = "look at `directories verify` for that replica; nothing else was sent"


class ReplicaMoved(WorldError, Retryable):
    """The controller knows no such replica of the broker: its topic was deleted, or it was moved to another broker."""

    id = "E-DIR-07"
    hint = "run the command again when topics are at rest; `directories verify` shows what the metadata says of it"


class DriveStopped(WorldError):
    """Sending directories was stopped, because the cluster moved under it."""

    id = "E-DIR-02"
    hint = "wait until the cluster is whole and run the command again: what the metadata says is not sent again"


class LeadersNotRestored(WorldError):
    """Partitions stayed with another leader than their preferred one, after an election was asked for."""

    id = "E-LEAD-01"
    hint = "look at the controller's log, then run the same command again: it asks only for what is left"


class RescueUnproven(WorldError):
    """What was sent for the replicas of a dead directory is not in the metadata, or did not free their partitions."""

    id = "E-DIR-05"
    exit_code = 5
    hint = "look at the active controller's log; `directories rescue` without --yes shows what is left"


class RescueRefused(WorldError):
    """Directories are dead and nothing proves which ids they had: nothing is sent for them."""

    id = "E-DIR-06"
    exit_code = 3
    hint = "stop that broker: its partitions fail over at once; then mend or replace the disk and start it"


class RestoreRefused(WorldError):
    """A broker's file cannot be restored: no kept copy leads to it, neither to the byte nor key by key."""

    id = "E-PLAN-05"
    exit_code = 3
    hint = "do what the message says for the keys that it names, then plan the rollback again: docs/rollback.md"


class NoWayBack(WorldError):
    """The migration is finalized, or may be at any moment: there is no way back to ZooKeeper mode."""

    id = "E-PLAN-06"
    exit_code = 3
    hint = "roll every broker forward to KRaft mode: `kraft-migrate plan`"


class NotSetAside(WorldError):
    """A file or folder could not be given another name."""

    id = "E-HOST-09"
    hint = "repair what the message names, such as rights or a disk that is full; the same command moves the rest"
