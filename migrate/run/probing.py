"""The playbook's probe goes on while a run does: what it sees decides whether the next broker is restarted."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from migrate.errors import ProbeSilent
from migrate.kafka.tls import bootstrap_servers, client_config
from migrate.kafka.topic_probe import TopicProbe
from migrate.model.history import Event
from migrate.model.inventory import Inventory, Playbook
from migrate.model.outcome import Unknown
from migrate.run import journal as journals

LOG: Final = logging.getLogger("migrate.run")


@contextmanager
def probed(inventory: Inventory, playbook: Playbook | Unknown, events: tuple[Event, ...]) -> Iterator[None]:
    """With policy.probes.topic: a probe that works before anything else begins, to the end of the run.

    A step that is half done is finished first, with a probe or without: without, the next restart finds it silent.
    Raises ProbeSilent, SecretUnreadable, StoreUnreadable; nothing was changed then.
    """
    budget = None if isinstance(playbook, Unknown) else playbook.budget
    if budget is None or not budget.topic:
        yield
        return
    config = client_config(bootstrap_servers(inventory), inventory.broker_access)
    probe = TopicProbe(config, budget.topic, Path(budget.history))
    try:
        probe.start()
    except ProbeSilent as error:
        if not journals.begun(events) - journals.concluded(events):
            raise
        LOG.warning("the probe does not work: %s; what is half done is finished, nothing more is begun", error)
    try:
        yield
    finally:
        probe.close()
