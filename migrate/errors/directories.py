"""Errors of directories that a KRaft broker gets, or gives back."""

from __future__ import annotations

from migrate.errors.base import WorldError


class DirectoryLost(WorldError):
    """A log directory of a stopped broker is not what it was when the step looked: the broker is not started."""

    id = "E-DIR-10"
    exit_code = 3
    hint = "`kraft-migrate status` says what is wrong with it and which command mends it; then the same command goes on"


class DirectoryInUse(WorldError):
    """A directory that was to be taken out of a broker's configuration got a replica at the last moment."""

    id = "E-DIR-08"
    exit_code = 3
    hint = "the broker was started again as it was; move its replicas away with kafka-reassign-partitions, then go on"


class DirectoriesRefused(WorldError):
    """A directory cannot become a log directory, or cannot be taken away: nothing is planned, nothing was changed."""

    id = "E-DIR-09"
    exit_code = 3
    hint = "mend what is named, and plan again"
