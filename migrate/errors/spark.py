"""Errors of Spark."""

from __future__ import annotations

from migrate.errors.base import InputError, WorldError


class SparkDidNotStart(WorldError):
    """Spark's driver JVM or its session did not come up; `why` holds the end of its log."""

    id = "E-SPARK-01"
    hint = "read the log named above; `kraft-migrate doctor` checks Java and the memory that is free"


class SparkGone(WorldError):
    """The Spark session ended, or its driver died, while it was needed."""

    id = "E-SPARK-02"
    hint = "run the same command again: gates that need Spark never pass without it"


class PartitionFilesRefused(InputError):
    """Files that should hold the partitions of one side do not, or cannot be written."""

    id = "E-SPARK-03"
    hint = "name a folder of Parquet files with a table of partitions, as `metadata export` writes them"
