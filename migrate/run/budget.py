"""The error budget: the playbook's probe while a run lasts, and how many of its requests failed lately.

A line of JSON a report, appended: `{"time": 1796000000.0, "ok": 200, "failed": 0}`; the numbers count since the line
before, the time is in seconds since the epoch.  A probe that is silent tells nothing, and nothing is never fine.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from migrate.errors import PackageMissing, ProbeSilent
from migrate.kafka.tls import cluster_config
from migrate.kafka.topic_probe import TopicProbe
from migrate.model import strict_json
from migrate.model.history import Event
from migrate.model.inventory import ErrorBudget, Inventory, Playbook
from migrate.model.outcome import NotYet, Readiness, Ready, Unknown
from migrate.run import journal as journals

TAIL: Final = 1_000_000  # bytes: more than a probe writes in any budget's time at a line a second


def within_budget(budget: ErrorBudget, now: float) -> Readiness:
    try:
        lines = _tail(Path(budget.history))
    except OSError as error:
        return Unknown(f"the probe's file {budget.history} cannot be read: {error.strerror}")
    passed, failed = 0, 0
    for line in lines:
        try:
            body = strict_json.mapping(line)
            time, one, other = float(body["time"]), int(body["ok"]), int(body["failed"])
            odd = min(one, other) < 0
        except (ValueError, TypeError, KeyError):
            odd = True
        if odd:
            return Unknown(f"a line of the probe's file {budget.history} is none of a probe's")
        if now - budget.seconds <= time <= now + 1.0:
            passed, failed = passed + one, failed + other
    if not passed + failed:
        return Unknown(f"the probe wrote nothing to {budget.history} within {budget.seconds:.0f} s")
    share = failed / (passed + failed)
    if share <= budget.share:
        return Ready()
    return NotYet(
        f"the error budget to recover: at most {budget.share:.2%} of a probe's requests may fail",
        "the clients that the probe represents",
        f"{failed} of {passed + failed} failed within {budget.seconds:.0f} s; nothing is restarted meanwhile",
        progress=str(failed),
    )


def clients_served(playbook: Playbook | Unknown, now: float) -> Readiness:
    if isinstance(playbook, Unknown) or playbook.budget is None:
        return Ready()
    return within_budget(playbook.budget, now)


def _tail(path: Path) -> list[bytes]:
    """The last whole lines; one that is being written is left out."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - TAIL))
        raw = file.read(TAIL)
    whole = raw.rpartition(b"\n")[0].splitlines()
    return whole[1:] if end > TAIL else whole


LOG: Final = logging.getLogger("migrate.run")


@contextmanager
def probed(inventory: Inventory, playbook: Playbook | Unknown, events: tuple[Event, ...]) -> Iterator[None]:
    """With policy.probes.topic: a probe that works before anything else begins, to the end of the run.

    A step that is half done is finished first, with a probe or without: without, the next restart finds it silent.
    Raises ProbeSilent, PackageMissing, SecretUnreadable, StoreUnreadable; nothing was changed then.
    """
    budget = None if isinstance(playbook, Unknown) else playbook.budget
    if budget is None or not budget.topic:
        yield
        return
    config = cluster_config(inventory)
    probe = TopicProbe(config, budget.topic, Path(budget.history))
    try:
        probe.start()
    except (ProbeSilent, PackageMissing) as error:
        if not journals.begun(events) - journals.concluded(events):
            raise
        LOG.warning("the probe does not work: %s; what is half done is finished, nothing more is begun", error)
    try:
        yield
    finally:
        probe.close()
