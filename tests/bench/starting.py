"""The races of Spark's start: our driver with its class archive against PySpark's own way, and behind the reading.

Both sides start from a new Python process in which nothing of Spark is imported, and end with the first job's answer:
the join with which a session of ours is made warm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from migrate.diff.session import SparkHandle, _warm
from tests.bench import agreeing
from tests.bench.races import Race, Work
from tests.bench.resident import cpu_of_all

TRAININGS: Final = 2  # sessions until the archive is there: the first one writes it
PATIENCE: Final = 600.0


@contextmanager
def archived(_folder: Path, _size: int) -> Iterator[None]:
    """The archive is made once per user: before anything is timed."""
    train(_folder)
    yield


def train(folder: Path) -> None:
    """Sessions until one maps the archive, or as many as should do."""
    for _ in range(TRAININGS):
        handle = SparkHandle.start(folder)
        handle.get(PATIENCE)
        archive = handle._archive
        handle.stop()
        if archive is None or archive.used:
            return


@contextmanager
def our_start(folder: Path, _size: int) -> Iterator[Work]:
    """As every command of ours that compares."""
    handles: list[SparkHandle] = []

    def timed() -> Any:
        handles.append(SparkHandle.start(folder))
        return handles[0].get(PATIENCE)

    try:
        yield Work(timed, lambda session: str(session.range(8).count()), tree=True, clock=cpu_of_all)
    finally:
        handles[0].stop()


@contextmanager
def pysparks_start(_folder: Path, _size: int) -> Iterator[Work]:
    """As PySpark's documentation starts a session, with its defaults but for the number of threads, which is ours."""
    sessions: list[Any] = []

    def timed() -> Any:
        from pyspark.sql import SparkSession

        sessions.append(SparkSession.builder.master("local[2]").getOrCreate())
        _warm(sessions[0])
        return sessions[0]

    try:
        yield Work(timed, lambda session: str(session.range(8).count()), tree=True, clock=cpu_of_all)
    finally:
        sessions[0].stop()


# -- behind the reading ----------------------------------------------------------------------------------------------
@contextmanager
def files_and_archive(folder: Path, size: int) -> Iterator[None]:
    """Both sides' files to read meanwhile, and the archive."""
    train(folder)
    with agreeing.both_sides(folder, size):
        yield


def reading(folder: Path, *, first: bool) -> Iterator[Work]:
    """Both sides' files, and a session: begun before they are read, or after."""
    handles: list[SparkHandle] = []

    def begin() -> None:
        handles.append(SparkHandle.start(folder))

    def timed() -> list[str]:
        if first:
            begin()
        found = agreeing.ours(folder)
        if not first:
            begin()
        handles[0].get(PATIENCE)
        return found

    try:
        yield Work(timed, str, tree=True)  # by the clock: what is hidden takes as much CPU
    finally:
        handles[0].stop()


side: Callable[..., Any] = contextmanager(reading)


RACES: Final = (
    Race(
        "session and first job",
        1,
        promise=2.6,
        at_most=False,
        around=archived,
        sides={"ours": our_start, "peer": pysparks_start},
        once="it has no N",
        least=1,
        goal="P7",
        peer="SparkSession.builder.getOrCreate()",
        note="CPU seconds, driver and launcher included; the class archive is there; the first job is a join",
    ),
    Race(
        "session behind the reading",
        500_000,
        promise=1.0,
        at_most=False,
        around=files_and_archive,
        sides={
            "ours": lambda folder, _size: side(folder, first=True),
            "peer": lambda folder, _size: side(folder, first=False),
        },
        goal="P7",
        peer="the same, one after the other",
        note="ZooKeeper's files and a checkpoint are read and fingerprinted meanwhile",
    ),
)
