"""Errors of playbooks, plans, runs and bundles."""

from __future__ import annotations

from migrate.errors.base import InputError, MigrateError, Retryable, WorldError


class MalformedPlan(InputError, code="E-REPORT-01"):
    """A saved plan cannot be read: not JSON, another schema, missing or unknown fields."""

    hint = "make the plan again with `kraft-migrate plan`; nothing was changed"


class JudgedUnreadable(InputError, code="E-REPORT-02"):
    """What a lab judged of a run, beside its journal, cannot be read."""

    hint = "delete the file to have a report of the journal alone"


class PlanUnreadable(InputError, code="E-PLAN-01"):
    """A saved plan cannot be decoded, or its fingerprint does not match its content."""

    hint = "make the plan again with `kraft-migrate plan`"


class PlanIsStale(InputError, code="E-PLAN-02", exit_code=6):
    """The cluster or its files have changed since the plan was made."""

    hint = "check what changed, then make the plan again with `kraft-migrate plan`; nothing was changed by this step"


class NotConfirmed(InputError, code="E-PLAN-03", exit_code=4):
    """--confirm names another plan, or is missing for the point of no return or a rollback."""

    hint = "read the plan to its end, then give --confirm with its whole fingerprint"


class NothingToPlan(InputError, code="E-PLAN-04", exit_code=3):
    """The requested stage cannot be planned from the cluster's present state."""

    hint = "`kraft-migrate status` names the next stage: plan that one, or `--to` a later one"


class PlanExists(InputError, code="E-PLAN-07"):
    """There is another file where a plan was to be saved: a plan never replaces one."""

    hint = "give another name: a run, or whoever approved it, may refer to the file that is there"


class JournalDamaged(InputError, code="E-RUN-01"):
    """A journal's line is not what was written."""

    hint = "keep the file as it is; do not edit a journal.  `status` finds the state from the cluster itself"


class JournalUnwritable(WorldError, code="E-RUN-02"):
    """The journal cannot be written: a run changes nothing without it."""

    hint = "free disk space, or make the run's folder writable, and run the same command again"


class RunLocked(WorldError, code="E-RUN-03", exit_code=7):
    """Another process works on this run or on this cluster."""

    hint = (
        "`kraft-migrate status` says what that run does; wait until it ends, or let it park by Ctrl-C in its terminal "
        "(`kraft-migrate unlock` says whether it still runs)"
    )


class PlanStopped(WorldError, code="E-RUN-04", exit_code=3):
    """A step was refused, failed, or is unknown: the run stopped before the next change."""

    hint = "fix what the reason names and run the same command again; it resumes at this step"


class PredictionFailed(WorldError, code="E-RUN-05"):
    """The outcome differs from what the step predicted."""

    hint = "find out who else changes this cluster (people, configuration management), stop that, then plan again"


class NoProgress(WorldError, code="E-RUN-06", exit_code=5):
    """A wait made no progress for longer than the playbook allows."""

    hint = "check what it waits for; the same command continues to wait"


class AssignmentRefused(WorldError, code="E-DIR-01"):
    """The controller refused to assign a replica to a directory."""

    hint = "run `directories verify` for that replica; nothing else was sent"


class ReplicaMoved(WorldError, Retryable, code="E-DIR-07"):
    """The controller has no such replica of the broker: its topic was deleted, or the replica was moved."""

    hint = "run the command again when no topics are being changed; `directories verify` shows what the metadata has"


class DriveStopped(WorldError, code="E-DIR-02"):
    """Sending directory assignments was stopped because the cluster changed."""

    hint = "wait until the cluster is healthy and run the command again: what the metadata has is not sent again"


class RescueUnproven(WorldError, code="E-DIR-05", exit_code=5):
    """What was sent for the replicas of a dead directory is not in the metadata, or did not free their partitions."""

    hint = "check the active controller's log; `directories rescue` without --yes shows what is left"


class RescueRefused(WorldError, code="E-DIR-06", exit_code=3):
    """Directories have failed and nothing proves which ids they had: nothing is sent for them."""

    hint = "stop that broker: its partitions fail over at once; then repair or replace the disk and start it"


class RestoreRefused(WorldError, code="E-PLAN-05", exit_code=3):
    """A broker's file cannot be restored from any kept copy, neither byte for byte nor key by key."""

    hint = "docs/rollback.md says which copies are looked for"


class RollbackImpossible(WorldError, code="E-PLAN-06", exit_code=3):
    """The migration is finalized, or may be at any moment: rollback to ZooKeeper mode is impossible."""

    hint = "roll every broker forward to KRaft mode: `kraft-migrate plan`"


class NotSetAside(WorldError, code="E-HOST-09"):
    """A file or folder could not be renamed."""

    hint = "fix what the message names, such as permissions or a full disk; the same command moves the rest"


class WindowNeverOpens(InputError, code="E-WIN-01", exit_code=3):
    """A change window never opens again: a run would wait for it forever."""

    hint = "correct the window in the playbook, then plan again; nothing was changed"


class WindowClosed(WorldError, code="E-WIN-02", exit_code=4):
    """The window is closed, or too short for the next steps: nothing was started in this session."""

    hint = "run the same command again when the window is open"


class RunParked(WorldError, code="E-PARK-01", exit_code=5):
    """The run stopped itself at a safe point, for the reason given."""

    hint = "run the same command again to resume; `status` shows the state of the cluster"


class RunInterrupted(WorldError, code="E-PARK-02", exit_code=130):
    """Ctrl-C, SIGTERM or SIGHUP: the run stopped at the next safe point, with no step in progress."""

    hint = "run the same command again to resume"


class ClockJumped(WorldError, code="E-PARK-03"):
    """This host's clock was changed during the run, or is before the journal's last line."""

    hint = "correct the clock (NTP), then run the same command again; windows depend on it"


class LockNotDead(WorldError, code="E-LOCK-03", exit_code=7):
    """A lock was not removed: its owner is alive, or it is not the named one."""

    hint = "check again with `kraft-migrate unlock`; stop a living owner, never take its lock"


class DocumentNotTrusted(InputError, code="E-PLAY-05"):
    """Another user could have written a file that decides what is done or run."""

    hint = "check the file, change its owner to your account, and remove write permission for everybody else"


class DocumentUnreadable(InputError, code="E-PLAY-01"):
    """A YAML file cannot be read at all: missing, too large, or not UTF-8."""

    hint = "give the path of a readable UTF-8 file of at most 256 KiB"


class YamlRefused(InputError, code="E-PLAY-02"):
    """The file is not YAML, or uses what strict YAML forbids: aliases, tags, duplicate keys, several documents."""

    hint = "write the value out at the place named above; `kraft-migrate playbook lint FILE` checks the file again"


class DocumentInvalid(InputError, code="E-PLAY-03"):
    """The YAML is valid but its content is wrong: an unknown or missing key, a wrong type, ids that collide.

    `problems` has all of them; the first one is the error's own text.
    """

    hint = "fix the place named above; `kraft-migrate playbook lint FILE` shows all of them at once"

    def __init__(
        self, what: str, *, where: str = "", why: str = "", next_step: str = "", problems: tuple[MigrateError, ...] = ()
    ) -> None:
        super().__init__(what, where=where, why=why, next_step=next_step)
        self.problems = problems or (self,)


class NotSupportedYet(DocumentInvalid, code="E-PLAY-04"):
    """A key or value that the format reserves and this release does not support: refused, never ignored."""

    hint = "remove it; this release would not act on it"


class CollectedDamaged(InputError, code="E-COLLECT-01"):
    """A collector's answer cannot be read, or its SHA-256 does not match its content."""

    hint = "copy the file again, or run `collect_disks.py` again on that host; do not edit its answer"


class CollectedOtherVersion(InputError, code="E-COLLECT-02"):
    """A collector's answer has a format that this release does not support."""

    hint = "`kraft-migrate directories collector` prints this release's collector: run that one on the host"


class CollectedForNobody(InputError, code="E-COLLECT-03"):
    """A collector's answer does not belong to exactly one node of the inventory."""

    hint = "run the collector with --node N or on the right properties file, and give one file per node"


class BundleDamaged(InputError, code="E-BUNDLE-01"):
    """A bundle cannot be read, or a part of it does not match its manifest."""

    hint = "copy the bundle again, or make another with `kraft-migrate bundle create`; do not edit it"


class BundleOtherVersion(InputError, code="E-BUNDLE-02"):
    """A bundle has a format that this release does not support."""

    hint = "read it with the release that made it (`kraft-migrate bundle show` names it), or make another"


class BundleExists(InputError, code="E-BUNDLE-03"):
    """The path for a new bundle already exists."""

    hint = "give another path, or remove what exists"
