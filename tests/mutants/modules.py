"""The modules that decide, and the tests that must notice a mistake in them: those that mirror them, and few beside."""

from __future__ import annotations

from typing import Final

STEPS: Final = tuple(
    f"tests/steps/{name}.py"
    for name in (
        "rollback/test_brokers",
        "rollback/test_cleanup",
        "rollback/test_control",
        "rollback/test_flag",
        "rollback/test_gates",
        "test_restore",
        "rollback/test_steps",
        "test_churn",
        "test_configuration",
        "test_configuration_properties",
        "test_configuration_secured",
        "test_controllers",
        "test_disks",
        "test_disks_order",
        "test_facts",
        "test_finalize",
        "test_gates",
        "test_registry",
        "test_resume",
        "test_forward",
    )
)
GROUPS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "gates": (
        (
            "migrate.steps.gates",
            "migrate.steps.finalize",
            "migrate.steps.rollback.gates",
            "migrate.steps.rollback.control",
        ),
        STEPS,
    ),
    "steps": (
        (
            "migrate.steps.facts",
            "migrate.steps.registry",
            "migrate.steps.controllers",
            "migrate.steps.roll",
            "migrate.steps.forward",
            "migrate.steps.configuration",
            "migrate.steps.rollback.brokers",
            "migrate.steps.rollback.flag",
            "migrate.steps.restore",
            "migrate.steps.rollback.cleanup",
        ),
        STEPS,
    ),
    "guards": (
        ("migrate.run.guards", "migrate.run.past_runs"),
        (
            "tests/run/test_at_boot.py",
            "tests/run/test_guards.py",
            "tests/run/test_guards_answers.py",
            "tests/run/test_guards_staleness.py",
            "tests/run/test_mutations.py",
            "tests/run/test_new_plans.py",
            "tests/run/test_past_runs.py",
            "tests/run/test_past_runs_before_copy.py",
        ),
    ),
    "engine": (
        ("migrate.run.engine", "migrate.run.journal", "migrate.run.locks", "migrate.run.effects", "migrate.run.waits"),
        (
            "tests/run/test_canary.py",
            "tests/run/test_effects.py",
            "tests/run/test_engine.py",
            "tests/run/test_gatekeeper_health.py",
            "tests/run/test_guards.py",
            "tests/run/test_journal.py",
            "tests/run/test_journal_measures.py",
            "tests/run/test_locks_and_crash.py",
            "tests/run/test_locks_hosts.py",
            "tests/run/test_lost_and_cut.py",
            "tests/run/test_waits.py",
        ),
    ),
    "gatekeeper": (
        ("migrate.run.gatekeeper", "migrate.run.interrupts"),
        (
            "tests/run/test_canary.py",
            "tests/run/test_interrupts.py",
            "tests/run/test_gatekeeper.py",
            "tests/run/test_gatekeeper_health.py",
            "tests/run/test_gatekeeper_rules.py",
        ),
    ),
    "verdict": (
        (
            "migrate.model.ledger",
            "migrate.model.difference",
            "migrate.model.causes",
            "migrate.model.plan",
        ),
        (
            "tests/diff/test_ledger.py",
            "tests/model/test_causes.py",
            "tests/model/test_difference.py",
            "tests/model/test_facts_ledger.py",
            "tests/model/test_ledger.py",
            "tests/model/test_plan.py",
        ),
    ),
    "diff": (
        ("migrate.diff.expected",),
        ("tests/diff/test_expected.py",),
    ),
    "quorum": (
        (
            "migrate.kraft.quorum_files",
            "migrate.kraft.image",
            "migrate.observe.metadata_logs",
        ),
        (
            "tests/kraft/test_fetch.py",
            "tests/kraft/test_idle.py",
            "tests/kraft/test_image.py",
            "tests/kraft/test_quorum_files.py",
            "tests/kraft/test_quorum_files_lineage.py",
            "tests/observe/test_metadata_files.py",
            "tests/observe/test_metadata_logs.py",
        ),
    ),
    "rollback readiness": (("migrate.checks.rollback.readiness",), ("tests/checks/rollback/test_readiness.py",)),
    "directories": (
        ("migrate.checks.directories", "migrate.checks.phase", "migrate.model.kafka_start"),
        (
            "tests/checks/test_checks.py",
            "tests/checks/test_directories.py",
            "tests/checks/test_parity.py",
            "tests/checks/test_phase.py",
            "tests/hosts/test_kafka_start_directories.py",
            "tests/steps/test_gates.py",
        ),
    ),
    "znodes": (
        ("migrate.zookeeper.decode", "migrate.zookeeper.fields", "migrate.zookeeper.layout"),
        ("tests/zookeeper/test_decode.py", "tests/zookeeper/test_fields.py", "tests/zookeeper/test_read_malformed.py"),
    ),
    "session": (
        ("migrate.zookeeper.client",),
        ("tests/zookeeper/test_client.py", "tests/zookeeper/test_client_session.py"),
    ),
    "lock": (
        ("migrate.zookeeper.lock",),
        ("tests/zookeeper/test_lock_asked.py", "tests/zookeeper/test_lock_taken.py"),
    ),
    "files": (
        (
            "migrate.hosts.files",
            "migrate.hosts.properties",
            "migrate.hosts.leftovers",
            "migrate.hosts.meta_properties",
        ),
        (
            "tests/hosts/test_files.py",
            "tests/hosts/test_leftovers.py",
            "tests/hosts/test_meta_properties.py",
            "tests/hosts/test_properties.py",
            "tests/steps/test_restore.py",
        ),
    ),
    "plan": (
        ("migrate.plan.build",),
        ("tests/plan/test_build.py", "tests/plan/test_build.py"),
    ),
}
