"""Errors of the lab and its load."""

from __future__ import annotations

from migrate.errors.base import InputError, Retryable, WorldError


class LoadAlreadyRuns(WorldError):
    """The load of this lab directory lives already; two would write one history."""

    id = "E-LOAD-01"
    hint = "nothing to do: the same command adopts the load that runs; `lab down` stops it"


class LoadNotStarted(WorldError):
    """The load process ended before it was ready, or was not ready in time."""

    id = "E-LOAD-02"
    hint = "read load/load.log under the lab directory; the cluster must answer and the topics must exist"


class LoadHistoryBroken(InputError):
    """A file of the load's history is not what the load writes."""

    id = "E-LOAD-03"
    hint = "the load cannot be judged by a damaged history; keep it for a look, and start with a new lab directory"


class LoadStillRuns(WorldError):
    """The load cannot be judged while it writes."""

    id = "E-LOAD-04"
    hint = "stop the load first"


class LoadNotRead(WorldError, Retryable):
    """A partition of the load could not be read to its end, so that nothing can be said of it."""

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
    hint = "end what listens there (`ss -ltnp` names it), or make the lab in another folder: it chooses other ports"


class LabNotReady(WorldError):
    """A process of the lab died or did not become ready."""

    id = "E-LAB-04"
    hint = "read the end of its log, mend the cause, run the same command again: it goes on from there"


class LabRuns(InputError):
    """The lab must be stopped for that."""

    id = "E-LAB-05"
    hint = "run `kraft-migrate lab down` first"


class SeedRefused(WorldError):
    """The cluster refused a part of the seed."""

    id = "E-LAB-06"
    hint = "`lab seed` may be run again: what is there already is left as it is"


class LabProofFailed(WorldError):
    """The lab does not do what a whole cluster does."""

    id = "E-LAB-09"
    hint = "look at the lab's logs (DIR/logs); the cluster is left as it is"


class FaultRefused(InputError):
    """A part of the lab cannot be broken, or mended, in that way as it stands."""

    id = "E-LAB-11"
    hint = "see `kraft-migrate lab break --help`; nothing was changed"
