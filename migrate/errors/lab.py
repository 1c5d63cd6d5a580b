"""Errors of the lab and its load."""

from __future__ import annotations

from migrate.errors.base import InputError, Retryable, WorldError


class LoadAlreadyRuns(WorldError):
    """The load of this lab directory is already running; two would write one history."""

    id = "E-LOAD-01"
    hint = "nothing to do: the same command adopts the running load; `lab down` stops it"


class LoadNotStarted(WorldError):
    """The load process ended before it was ready, or was not ready in time."""

    id = "E-LOAD-02"
    hint = "read load/load.log under the lab directory; the cluster must answer and the topics must exist"


class LoadHistoryBroken(InputError):
    """A file of the load's history is not what the load writes."""

    id = "E-LOAD-03"
    hint = "a damaged history proves nothing; keep it for analysis, and start with a new lab directory"


class LoadStillRuns(WorldError):
    """The load cannot be checked while it writes."""

    id = "E-LOAD-04"
    hint = "stop the load first"


class LoadNotRead(WorldError, Retryable):
    """A partition of the load could not be read to its end."""

    id = "E-LOAD-05"
    hint = "wait until every partition has a leader, then run the same command again"


class LabFolderNotOurs(InputError):
    """The lab's folder holds something else."""

    id = "E-LAB-01"
    hint = "give --dir an empty or new folder, or one that `lab up` made"


class LabMissing(InputError):
    """There is no lab in that folder."""

    id = "E-LAB-02"
    hint = "run `kraft-migrate lab up --dir DIR` first"


class PortTaken(InputError):
    """A port of the lab is in use by something else."""

    id = "E-LAB-03"
    hint = "stop what listens there (`ss -ltnp` names it), or create the lab in another folder: it chooses other ports"


class LabNotReady(WorldError):
    """A process of the lab died or did not become ready."""

    id = "E-LAB-04"
    hint = "read the end of its log, fix the cause, run the same command again: it resumes from there"


class LabRuns(InputError):
    """The lab must be stopped first."""

    id = "E-LAB-05"
    hint = "run `kraft-migrate lab down` first"


class SeedRefused(WorldError):
    """The cluster refused a part of the seed."""

    id = "E-LAB-06"
    hint = "`lab seed` may be run again: it leaves what exists unchanged"


class LabProofFailed(WorldError):
    """The lab does not behave as a healthy cluster does."""

    id = "E-LAB-09"
    hint = "check the lab's logs (DIR/logs); the cluster is left unchanged"


class FaultRefused(InputError):
    """A part of the lab cannot be broken, or repaired, in that way in its present state."""

    id = "E-LAB-11"
    hint = "see `kraft-migrate lab break --help`; nothing was changed"
