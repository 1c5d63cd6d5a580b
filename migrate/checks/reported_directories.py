"""DIR: what a running broker says of its log directories, against what lies on its host."""

from __future__ import annotations

import os

from migrate.checks.registry import ALWAYS, Hit, Result, check
from migrate.checks.sight import both, broker_disks, log_dir_answers
from migrate.model.findings import CodeDoc
from migrate.model.ids import NodeId
from migrate.model.stage import Stage
from migrate.model.views import BrokerDisks, LogDirAnswer
from migrate.model.world import World

Answers = dict[NodeId, tuple[LogDirAnswer, ...]]
Disks = dict[NodeId, BrokerDisks]


@check(
    CodeDoc(
        "B-DIR-20",
        "a broker runs with other log directories than its file names",
        "Its next restart would lose directories, or find new ones: replicas would go missing in the middle of the"
        " migration.",
        "log.dirs was edited since the broker's start, or the inventory names the wrong file.",
        "Find out which list is right; correct the file (or restart the broker with it) before the migration.",
        "DescribeLogDirs; log.dirs",
    ),
    sees=both(log_dir_answers, broker_disks),
    blocks_from=Stage.MIGRATION_MODE,
    when=ALWAYS,
)
def other_directories(seen: tuple[Answers, Disks], world: World) -> Result:
    """Paths as sets; a directory that is offline is still told by the broker (B-DIR-17)."""
    answers, disks = seen
    for node in sorted(answers.keys() & disks.keys()):
        told = {os.path.normpath(entry.path) for entry in answers[node]}
        here = {os.path.normpath(entry.path) for entry in disks[node].directories}
        if told - here:
            yield Hit(f"broker {node}", f"it uses, and its file does not name: {', '.join(sorted(told - here))}")
        if here - told:
            yield Hit(f"broker {node}", f"its file names, and it does not use: {', '.join(sorted(here - told))}")
