"""Errors of directories that a KRaft broker gets, or gives back."""

from __future__ import annotations

from migrate.errors.base import WorldError


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
