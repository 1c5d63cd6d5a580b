"""The modules that decide, and the tests that must notice a mistake in them."""

from __future__ import annotations

from typing import Final

GROUPS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "steps": (
        (
            "migrate.steps.gates",
            "migrate.steps.finalize",
            "migrate.steps.facts",
            "migrate.steps.registry",
            "migrate.steps.controllers",
            "migrate.steps.roll_broker",
            "migrate.steps.configuration",
            "migrate.steps.rollback.gates",
            "migrate.steps.rollback.control",
            "migrate.steps.rollback.brokers",
            "migrate.steps.rollback.flag",
            "migrate.steps.rollback.restore",
            "migrate.steps.rollback.cleanup",
        ),
        ("tests/steps",),
    ),
    "run": (
        (
            "migrate.run.guards",
            "migrate.run.engine",
            "migrate.run.gatekeeper",
            "migrate.run.staleness",
            "migrate.run.journal",
            "migrate.run.control",
            "migrate.run.locks",
            "migrate.run.effects",
            "migrate.run.before_copy",
            "migrate.run.waits",
        ),
        ("tests/run",),
    ),
    "model": (
        (
            "migrate.model.ledger",
            "migrate.model.verdict",
            "migrate.model.alike",
            "migrate.model.difference",
            "migrate.model.fingerprints",
            "migrate.model.detect",
            "migrate.model.kraft_only",
        ),
        ("tests/model", "tests/steps", "tests/diff", "tests/observe"),
    ),
    "diff": (
        ("migrate.diff.expected", "migrate.diff.excuses", "migrate.observe.ledgers", "migrate.observe.metadata_logs"),
        ("tests/diff", "tests/observe", "tests/steps/test_gates.py"),
    ),
    "checks": (
        (
            "migrate.checks.way_back_rules",
            "migrate.checks.directories",
            "migrate.checks.rollback",
            "migrate.checks.phase",
        ),
        ("tests/checks", "tests/docs/test_way_back_page.py"),
    ),
    "zookeeper": (
        (
            "migrate.zookeeper.lock",
            "migrate.zookeeper.client",
            "migrate.zookeeper.decode",
            "migrate.zookeeper.fields",
            "migrate.zookeeper.write",
            "migrate.zookeeper.layout",
        ),
        ("tests/zookeeper",),
    ),
    "kraft": (
        (
            "migrate.kraft.quorum_files",
            "migrate.kraft.lineage",
            "migrate.kraft.replay",
            "migrate.kraft.rules",
            "migrate.kraft.ahead",
        ),
        ("tests/kraft", "tests/observe/test_metadata_files.py", "tests/observe/test_metadata_logs.py"),
    ),
    "hosts": (
        (
            "migrate.hosts.files",
            "migrate.hosts.config",
            "migrate.hosts.properties",
            "migrate.hosts.backups",
            "migrate.hosts.meta_properties",
        ),
        ("tests/hosts",),
    ),
    "plan": (
        ("migrate.plan.build", "migrate.plan.standing", "migrate.plan.roll_order", "migrate.model.plan"),
        ("tests/plan", "tests/model/test_plan.py"),
    ),
}
