"""Playbooks, inventories and acceptances become values, or errors that say where, why and what next."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from migrate.errors import DocumentInvalid, InputError, NotSupportedYet
from migrate.lab.configure import inventory_of
from migrate.lab.topology import plan_topology
from migrate.model.config_keys import QuorumKind
from migrate.model.ids import NodeId
from migrate.model.inventory import Access, Inventory, OwnCommands, SecretFile
from migrate.model.stage import MIGRATION, DirectoryPolicy, Stage
from migrate.playbook.load import (
    KINDS,
    dump_inventory,
    json_schema,
    kind_of,
    load_accepted,
    load_inventory,
    load_playbook,
    load_playbook_with_inventory,
    shipped,
)
from tests.cli.commands import kraft_migrate
from tests.playbook.corpus import HEAD, INVENTORY, NO_INVENTORY, NO_PLAYBOOK, SPEC, Bad, policy, stages, with_commands
from tests.testing import worlds

PLAYBOOKS = Path(__file__).parents[2] / "playbooks"


def write(folder: Path, text: str | bytes, name: str = "file.yaml") -> Path:
    """A file with that content."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def load_any(path: Path) -> object:
    """By the file's kind, as lint does."""
    loaders: dict[str, Callable[[Path], object]] = {
        "Inventory": load_inventory,
        "MigrationPlaybook": load_playbook,
        "AcceptedDifferences": load_accepted,
    }
    return loaders[kind_of(path)](path)


@pytest.mark.parametrize("bad", [*NO_PLAYBOOK, *NO_INVENTORY], ids=lambda bad: bad.name)
def test_wrong_content_is_refused_with_line_and_column(tmp_path: Path, bad: Bad) -> None:
    """The exact key, what is wrong with it, and a next step."""
    path = write(tmp_path, bad.raw)
    with pytest.raises(DocumentInvalid) as caught:
        load_any(path)
    error = caught.value
    assert isinstance(error, bad.error)
    assert re.fullmatch(re.escape(str(path)) + r":\d+:\d+", error.where)
    if bad.at:
        assert error.where == f"{path}:{bad.at}"
    assert bad.says in f"{error.what} {error.why} {error.next_step}"
    assert error.next_step
    assert error.problems


def test_all_problems_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    """Nobody wants to mend one line a run; what is only not supported yet does not come first."""
    text = SPEC + "  reports: []\n  polcy: {}\n  controllers: {ids: ['1']}\n"
    with pytest.raises(DocumentInvalid) as caught:
        load_playbook(write(tmp_path, text))
    assert "(and 2 more)" in caught.value.what
    assert not isinstance(caught.value, NotSupportedYet)
    assert sorted(int(problem.where.rsplit(":", 2)[1]) for problem in caught.value.problems) == [6, 7, 8]


def test_an_empty_playbook_assesses_only(tmp_path: Path) -> None:
    """Safe defaults: nothing is changed, nothing is driven, nothing is accepted."""
    found = load_playbook(write(tmp_path, SPEC))
    assert found.stages == (Stage.ASSESS,)
    assert found.default_policy is DirectoryPolicy.OBSERVE
    assert (found.accept_unavailable, found.accepted_differences, dict(found.broker_policies)) == ((), (), {})
    assert (found.no_progress_seconds, found.soak_seconds) == (600.0, 7 * 86400.0)
    assert (found.lock_path, found.expect_cluster_id, found.expect_brokers) == ("/kraft-migrate/lock", None, None)


def test_a_full_playbook_becomes_its_values(tmp_path: Path) -> None:
    """Every key that this release acts on."""
    write(
        tmp_path,
        "apiVersion: kraft-migrate/v1\nkind: AcceptedDifferences\nmetadata: {name: a}\nspec:\n  accept:\n"
        "    - rule: DIFFERS\n      selector: {kind: topic-config, name: t, field: retention.ms}\n"
        "      reason: known\n      ticket: CHG1\n      expires: 2026-12-01\n",
        "accepted.yaml",
    )
    text = (
        HEAD.replace("name: p", "name: p, change: 007")
        + """spec:
  cluster:
    inventory: sub/inventory.yaml
    expect: {cluster_id: REh233dFSJKhrlnVHSnalQ, brokers: [2, 0, 1]}
  policy:
    directories: {default: drive, brokers: {0: observe}}
    availability: {accept_unavailable: [scratch-.*, audit]}
    no_progress_timeout: 2m
    lock: {path: /ops/lock}
  stages:
    - {name: copy, no_progress_timeout: 1h}
    - {name: hybrid, diff: {accept: accepted.yaml}}
    - {name: kraft-mode, no_progress_timeout: 3m}
    - {name: soak, duration: 0s}
    - name: finalize
    - {name: cleanup}
"""
    )
    path = write(tmp_path, text, "p.yaml")
    found = load_playbook(path)
    assert (found.name, found.change, found.path) == ("p", "007", str(path))
    assert found.stages == MIGRATION[5:]
    assert found.inventory == str(tmp_path / "sub/inventory.yaml")
    assert [found.policy(broker) for broker in (0, 1)] == [DirectoryPolicy.OBSERVE, DirectoryPolicy.DRIVE]
    assert found.accept_unavailable == ("scratch-.*", "audit")
    assert [found.patience(stage) for stage in (Stage.COPY, Stage.HYBRID, Stage.KRAFT_MODE)] == [3600.0, 120.0, 180.0]
    assert (found.no_progress_seconds, found.soak_seconds) == (120.0, 0.0)
    assert (found.lock_path, found.expect_cluster_id) == ("/ops/lock", "REh233dFSJKhrlnVHSnalQ")
    assert found.expect_brokers == (2, 0, 1)
    (accepted,) = found.accepted_differences
    assert (accepted.kind, accepted.name, accepted.field, accepted.expires) == (
        "topic-config",
        "t",
        "retention.ms",
        "2026-12-01",
    )


def test_the_hash_is_of_the_bytes(tmp_path: Path) -> None:
    """A plan is bound to it: a comment counts, too."""
    first, second = load_playbook(write(tmp_path, SPEC)), load_playbook(write(tmp_path, SPEC + "# note\n"))
    assert first.sha256 != second.sha256
    assert re.fullmatch("[0-9a-f]{64}", first.sha256)


@pytest.mark.parametrize(
    ("rule", "expires", "says"),
    [
        ("B-ZKN-01", "2026-12-01", "pattern"),
        ("EQUAL", "2026-12-01", "pattern"),
        ("W-DIR-07", "2026-13-01", "a day is expected"),
        ("W-DIR-07", "soon", "a day is expected"),
    ],
)
def test_blockers_cannot_be_accepted_and_acceptances_end(tmp_path: Path, rule: str, expires: str, says: str) -> None:
    """Only differences and warnings, each with a last day."""
    text = (
        "apiVersion: kraft-migrate/v1\nkind: AcceptedDifferences\nmetadata: {name: a}\nspec:\n  accept:\n"
        f"    - {{rule: {rule}, selector: {{kind: k, name: n, field: f}}, reason: r, ticket: t, expires: {expires}}}\n"
    )
    with pytest.raises(DocumentInvalid, match=says):
        load_accepted(write(tmp_path, text))


# -- inventory ---------------------------------------------------------------------------------------------------
def test_the_kind_of_the_quorum_is_read_and_written(tmp_path: Path) -> None:
    """Static where the file does not say; every node's file then finds the quorum by that kind's key."""
    path = write(tmp_path, INVENTORY, "inventory.yaml")
    assert load_inventory(path).quorum_key == ("controller.quorum.voters", "3000@c0:9090")
    dynamic = replace(load_inventory(path), quorum=QuorumKind.DYNAMIC)
    path.write_text(dump_inventory(dynamic))
    assert load_inventory(path) == dynamic
    assert load_inventory(path).quorum_key == ("controller.quorum.bootstrap.servers", "c0:9090")


def test_an_inventory_becomes_its_value_with_paths_beside_the_file(tmp_path: Path) -> None:
    """Relative paths are relative to the file, wherever the command runs."""
    found = load_inventory(write(tmp_path, INVENTORY, "inventory.yaml"))
    assert [(node.id, node.config, node.rack) for node in found.brokers] == [
        (0, "/etc/kafka/b0.properties", None),
        (1, "/etc/kafka/b1.properties", "r1"),
    ]
    assert found.voters == "3000@c0:9090"
    assert found.controllers[0].metadata_directory == "/data/c0"
    assert (found.executor, dict(found.executor_options)) == ("manual", {"inbox": str(tmp_path / "state")})
    assert (found.runs, found.expect_cluster_id) == (str(tmp_path / "runs"), None)
    assert found.broker_access == Access()


def test_secrets_are_references_only(tmp_path: Path) -> None:
    """Loading an inventory reads no secret."""
    text = INVENTORY.replace(
        "  brokers:\n",
        "  password_encoder_secret: {file: /etc/encoder}\n"
        "  password_encoder_old_secret: {file: old}\n"
        "  brokers:\n    access: {protocol: SASL_PLAINTEXT, "
        "mechanism: PLAIN, username: admin, password: {file: secrets/admin}}\n",
    )
    found = load_inventory(write(tmp_path, text, "inventory.yaml"))
    assert found.password_encoder_secret == SecretFile("/etc/encoder")
    assert found.password_encoder_old_secret == SecretFile(str(tmp_path / "old"))
    assert found.broker_access == Access(
        "SASL_PLAINTEXT", "PLAIN", "admin", SecretFile(str(tmp_path / "secrets/admin"))
    )


words = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_categories=("Cc", "Cs")), min_size=1, max_size=12
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rack=words, user=words, path=words.filter(lambda text: text not in (".", "..")), secret=st.booleans())
def test_a_dumped_inventory_reads_back_equal(tmp_path: Path, rack: str, user: str, path: str, secret: bool) -> None:
    """Whatever the names look like to a YAML reader: `no`, `22:22`, `{`, `- x`, `#`."""
    base = worlds.inventory()
    file = tmp_path / "inventory.yaml"
    access = Access("SASL_PLAINTEXT", "PLAIN", user, SecretFile(f"/secrets/{path}".replace("//", "/").rstrip("/")))
    wanted: Inventory = replace(
        base,
        path=str(file),
        brokers=(replace(base.brokers[0], rack=rack), *base.brokers[1:]),
        broker_access=access if "/" not in path else base.broker_access,
        password_encoder_secret=SecretFile(str(tmp_path / "encoder")) if secret else None,
        password_encoder_old_secret=SecretFile(str(tmp_path / "older")) if secret else None,
        executor="manual",
        executor_options={"inbox": str(tmp_path / "state")},
        runs=str(tmp_path / "runs"),
    )
    text = dump_inventory(wanted)
    file.write_text(text, encoding="utf-8")
    assert load_inventory(file) == wanted
    assert str(tmp_path) not in text, "paths below the file's folder are written relative to it"


def test_a_node_may_have_commands_in_place_of_a_unit(tmp_path: Path) -> None:
    """Words as they are written; written back as they were."""
    text = with_commands(java_home="/opt/java")
    found = load_inventory(write(tmp_path, text, "inventory.yaml"))
    sv = "/usr/bin/sv"
    start, stop = (sv, "start", "kafka"), (sv, "-w", "330", "stop", "kafka")
    own = OwnCommands("kafka", start, stop, ("/opt/ops/status", "kafka"), 330.0, "/opt/java")
    first, *others = found.nodes
    assert (first.service, first.unit, first.supervised_name) == (own, "", "broker 0")
    assert {(node.service, node.unit) for node in others} == {(None, "kafka.service")}
    assert own.typed("restart") == "/usr/bin/sv -w 330 stop kafka && /usr/bin/sv start kafka"
    assert load_inventory(write(tmp_path, dump_inventory(found), "inventory.yaml")) == found


@pytest.mark.parametrize("rate", [None, 1, 500, 1_000_000])
def test_an_inventory_limits_how_fast_zookeeper_is_read(rate: int | None, tmp_path: Path) -> None:
    """Operations a second; without the key there is no limit; written back as it was."""
    text = INVENTORY if rate is None else f"{INVENTORY}  zookeeper_rate: {rate}\n"
    found = load_inventory(write(tmp_path, text, "inventory.yaml"))
    assert found.zookeeper_rate == rate
    assert load_inventory(write(tmp_path, dump_inventory(found), "inventory.yaml")) == found


@pytest.mark.parametrize("rate", ["0", "-1", "1.5", "'500'", "1000001", "fast", "null", "[1]"])
def test_a_rate_that_is_none_is_refused_at_its_line(rate: str, tmp_path: Path) -> None:
    """Nothing is guessed: 0 could mean never, or without end."""
    with pytest.raises(DocumentInvalid) as caught:
        load_inventory(write(tmp_path, f"{INVENTORY}  zookeeper_rate: {rate}\n", "inventory.yaml"))
    assert "zookeeper_rate" in caught.value.what


def test_playbook_and_inventory_are_held_against_each_other(tmp_path: Path) -> None:
    """Each contradiction at the playbook's line, with the inventory's side in words."""
    write(tmp_path, INVENTORY + "  expect: {cluster_id: REh233dFSJKhrlnVHSnalQ}\n", "inventory.yaml")
    text = (
        HEAD
        + "spec:\n  cluster:\n    inventory: inventory.yaml\n"
        + "    expect: {cluster_id: Zx3vJ2kQTLmB1cXw9uYtRA, brokers: [0, 1, 2]}\n"
        + "  controllers: {ids: [3000, 3001]}\n  policy:\n    directories: {brokers: {7: drive}}\n"
    )
    path = write(tmp_path, text, "p.yaml")
    load_playbook(path)
    with pytest.raises(DocumentInvalid) as caught:
        load_playbook_with_inventory(path)
    assert sorted(problem.where for problem in caught.value.problems) == [
        f"{path}:{place}" for place in ("10:29", "7:14", "7:50", "8:17")
    ]
    assert all("inventory.yaml" in problem.why for problem in caught.value.problems)


def test_a_playbook_that_fits_its_inventory_gives_both(tmp_path: Path) -> None:
    """The pair that every command works on."""
    write(tmp_path, INVENTORY, "inventory.yaml")
    text = SPEC + "  controllers: {ids: [3000]}\n  policy:\n    directories: {brokers: {1: drive}}\n"
    found, inventory = load_playbook_with_inventory(write(tmp_path, text, "p.yaml"))
    assert found.inventory == inventory.path
    assert found.broker_policies == {NodeId(1): DirectoryPolicy.DRIVE}


# -- what is shipped ---------------------------------------------------------------------------------------------
RUNNABLE = [path for path in sorted(PLAYBOOKS.glob("*.yaml")) if kind_of(path).endswith("Playbook")]


@pytest.mark.parametrize("path", RUNNABLE, ids=lambda path: path.name)
def test_shipped_playbooks_are_right(path: Path, tmp_path: Path) -> None:
    """They are read by people first: what they say must load, one about every broker beside a lab's inventory."""
    if kind_of(path) != "MigrationPlaybook":
        write(tmp_path, dump_inventory(inventory_of(plan_topology(tmp_path))), "inventory.yaml")
        path = Path(shutil.copy(path, tmp_path))
    assert load_playbook(path).stages


def test_the_demos_playbook_goes_the_whole_way_and_shows_both_policies() -> None:
    """Two brokers observe, one is driven; only what is named may become unavailable."""
    found = load_playbook(shipped("lab-demo.yaml"))
    assert found.stages == MIGRATION[1:]
    assert [found.policy(broker).name for broker in (0, 1, 2)] == ["OBSERVE", "OBSERVE", "DRIVE"]
    assert found.accept_unavailable == ("single-.*",)


def test_the_production_example_stops_before_the_point_of_no_return() -> None:
    """An example that is copied must not finalize by itself."""
    found = load_playbook(shipped("production-example.yaml"))
    assert found.stages[-1] is Stage.SOAK
    assert all(stage.reversible for stage in found.stages)


def test_every_example_is_accepted_and_those_of_one_cluster_fit_together(tmp_path: Path) -> None:
    """By `playbook lint`, and the production example beside the inventory example."""
    examples = sorted(PLAYBOOKS.glob("*.yaml"))
    kinds = {kind_of(path) for path in examples}
    assert kinds == set(KINDS)
    for path in examples:
        ended = kraft_migrate("playbook", "lint", path)
        assert (ended.code, ended.err) == (0, ""), path
    names = ("inventory", "production", "fleet", "accepted-differences")
    for name in names:
        shutil.copy(PLAYBOOKS / f"{name}-example.yaml", tmp_path / f"{name}.yaml")
    ended = kraft_migrate("playbook", "lint", *(tmp_path / f"{name}.yaml" for name in names))
    assert ended.code == 0, ended.err


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("MigrationPlaybook", "playbook.schema.json"),
        ("DirectoryPlaybook", "directory-playbook.schema.json"),
        ("ProtocolPlaybook", "protocol-playbook.schema.json"),
    ],
)
def test_the_published_schema_is_fresh(kind: str, name: str) -> None:
    """Editors read them beside the playbooks."""
    told = f"python -m migrate playbook schema {kind} > playbooks/{name}"
    assert json.loads((PLAYBOOKS / name).read_text()) == json_schema(kind), f"stale: run `{told}`"


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_refuse_unknown_keys_everywhere(kind: str) -> None:
    """As the loader does; ids are integers and durations patterns there."""
    schema = json_schema(kind)
    for name, part in {"": schema, **schema["$defs"]}.items():
        if part.get("type") == "object":
            assert part["additionalProperties"] is False, name
    text = json.dumps(schema)
    assert ('"type": "integer"' in text) is (kind not in ("AcceptedDifferences", "Fleet"))
    assert "apiVersion" in schema["properties"]


def test_a_missing_shipped_file_is_a_typed_error() -> None:
    """A broken installation says so."""
    with pytest.raises(InputError, match=r"no playbook nothing\.yaml"):
        shipped("nothing.yaml")


@pytest.mark.parametrize(
    "section",
    [
        "controllers: {ids: [3000], quorum: static}",
        "windows: {default: {allow: [always], dst: shortest}}",
        "policy: {rollout: {max_fail: 0}}",
        "policy: {backup: {zookeeper: required}}",
        "policy: {health: {max_urp: 0}}",
        "stages: [{name: assess, fail_on: [blocker]}]",
    ],
)
def test_a_key_that_takes_one_value_is_no_key_any_more(section: str, tmp_path: Path) -> None:
    """As any other name that is unknown."""
    with pytest.raises(DocumentInvalid):
        load_playbook(write(tmp_path, SPEC.rstrip("\n") + f"\n  {section}\n", "p.yaml"))


FULL = (
    policy("availability: {accept_unavailable: [a]}", "no_progress_timeout: 2m"),
    stages("{name: assess}", "{name: prepare}"),
    INVENTORY,
    (PLAYBOOKS / "lab-demo.yaml").read_text(),
)
PIECES = (
    "true",
    "no",
    "-1",
    "[]",
    "{}",
    "''",
    "9" * 30,
    "1e9",
    "x: y",
    "name",
    "null",
    ", ",
    "é",
    "22:22",
    "kind: Inventory",
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_mutation_is_a_value_or_a_typed_error(tmp_path: Path, data: st.DataObject) -> None:
    """Words exchanged, lines dropped, doubled and moved: never a bare exception, never an error without a place."""
    lines = data.draw(st.sampled_from(FULL)).splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(lines) - 1))
        parts = re.split(r"([\s:,\[\]{}]+)", lines[index])
        parts[data.draw(st.integers(0, len(parts) - 1))] = data.draw(st.sampled_from(PIECES))
        lines[index] = data.draw(st.sampled_from(("".join(parts), "", "  " + lines[index], lines[index - 1])))
    path = write(tmp_path, "\n".join(lines))
    refused: InputError | None = None
    try:
        load_any(path)
    except InputError as error:
        refused = error
    assert refused is None or (refused.where.startswith(str(tmp_path)) and refused.next_step)


def test_defaults_are_of_every_node_that_does_not_say_otherwise(tmp_path: Path) -> None:
    """Each is whole when it is read; what neither says is refused at the node, and a bad default at its own line."""
    own = "{user: kafka, start: [/s], stop: [/s], status: [/s], timeout: 9s}"
    text = INVENTORY.replace("manual, inbox: state", "ssh, kafka_home: /opt/kafka").replace(
        "  brokers:\n", "  brokers:\n    defaults: {config: /etc/kafka/all.properties, unit: kafka.service}\n"
    )
    text = text.replace(", config: /etc/kafka/b0.properties", "").replace("rack: r1", f"rack: r1, service: {own}")
    text = text.replace(
        "  controllers:\n", "  controllers:\n    defaults: {metadata_directory: /data/c, unit: c.service}\n"
    )
    text = text.replace(", metadata_directory: /data/c0", "")
    path = tmp_path / "inventory.yaml"
    path.write_text(text)
    found = load_inventory(path)
    assert [(node.config, node.unit) for node in found.brokers] == [
        ("/etc/kafka/all.properties", "kafka.service"),
        ("/etc/kafka/b1.properties", ""),
    ]
    assert (found.controllers[0].metadata_directory, found.controllers[0].unit) == ("/data/c", "c.service")
    path.write_text(dump_inventory(replace(found, path=str(path))))
    assert load_inventory(path) == found
    path.write_text(text.replace("metadata_directory: /data/c, ", "").replace("/etc/kafka/all.properties", "[a]"))
    with pytest.raises(DocumentInvalid) as caught:
        load_inventory(path)
    assert [problem.where for problem in caught.value.problems] == [f"{path}:9:16"]
    path.write_text(text.replace("metadata_directory: /data/c, ", ""))
    with pytest.raises(DocumentInvalid, match="node 3000 has no metadata_directory") as caught:
        load_inventory(path)
    assert "`defaults` beside `nodes`" in caught.value.next_step
