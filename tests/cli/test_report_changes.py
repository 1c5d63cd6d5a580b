"""`report changes`: what a run changed in each node's file, as a patch and as variables, and no secret in either."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from migrate.hosts.properties import parse
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import ConfigFile, NoFile
from migrate.report.handover import Handover
from tests.cli.commands import kraft_migrate, tree
from tests.cli.whole_runs import whole_run
from tests.run.test_engine import PLANNED_ON

Configs = Mapping[NodeId, ConfigFile | NoFile | Unknown]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Configs, Configs]:
    """The folder of a run that took a simulated cluster through everything; its files before and after."""
    folder = tmp_path_factory.mktemp("run")
    path, world, cluster = whole_run(folder)
    after = cluster.observe(PLANNED_ON, {}).configs
    assert not isinstance(world.configs, Unknown)
    assert not isinstance(after, Unknown)
    return path, world.configs, after


def now_are(configs: Configs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hosts have these files."""
    monkeypatch.setattr("migrate.observe.sources.Sources.configs", lambda _: configs)


@pytest.mark.slow
def test_each_node_has_a_patch_and_variables_that_lead_from_then_to_now(
    ended: tuple[Path, Configs, Configs], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set what is set and remove what is gone: the file of now, key by key; a controller's from nothing."""
    folder, before, after = ended
    now_are(after, monkeypatch)
    answer = kraft_migrate("report", "changes", folder, "--out", tmp_path / "out")
    assert (answer.code, answer.err) == (0, "")
    assert len(tree(tmp_path / "out")) == 2 * len(after)
    for node, now in after.items():
        [path] = (tmp_path / "out").glob(f"*-{int(node)}.yml")
        said = yaml.safe_load(path.read_text())
        then = before[node]
        assert isinstance(now, ConfigFile)
        values = dict(then.values) if isinstance(then, ConfigFile) else {}
        for key in said["kraft_migrate_removed"]:
            del values[key]
        values |= said["kraft_migrate_set"]
        assert {key: value for key, value in now.values.items() if key not in said["kraft_migrate_hidden"]} == {
            key: value for key, value in values.items() if key not in said["kraft_migrate_hidden"]
        }
        assert said["kraft_migrate_config"] == now.path
        assert f"+++ {now.path} (after)" in path.with_suffix(".patch").read_text()
    assert "-zookeeper.connect=" in (tmp_path / "out" / "broker-1.patch").read_text()


def test_after_a_rollback_there_is_nothing_to_hand_over(
    ended: tuple[Path, Configs, Configs], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers' files are as they were; that is said, and no file is written for them."""
    folder, before, after = ended
    now_are({**after, **{node: file for node, file in before.items() if isinstance(file, ConfigFile)}}, monkeypatch)
    answer = kraft_migrate("report", "changes", folder, "--out", tmp_path)
    assert answer.code == 0
    assert "broker-1" in answer.out
    assert "is as it was" in answer.out
    assert not [*tmp_path.glob("broker-*")]


@pytest.mark.parametrize("hidden", [NoFile("/etc/kafka/server.properties"), Unknown("no route to host")])
def test_a_file_that_cannot_be_seen_leaves_nothing_half_written(
    hidden: NoFile | Unknown, ended: tuple[Path, Configs, Configs], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node is named, with the reason."""
    folder, _, after = ended
    now_are({**after, max(after): hidden}, monkeypatch)
    answer = kraft_migrate("report", "changes", folder, "--out", tmp_path / "out")
    assert answer.code == 1
    assert f"-{int(max(after))}" in answer.err
    assert not (tmp_path / "out").exists()


def test_a_run_without_the_first_copies_is_refused(
    ended: tuple[Path, Configs, Configs], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The difference to nothing would be a whole broker's file."""
    folder, _, after = ended
    now_are(after, monkeypatch)
    later = tmp_path / "later"
    later.mkdir()
    (later / "plan.json").write_bytes((folder / "plan.json").read_bytes())
    (later / "plan.json").chmod(0o600)
    answer = kraft_migrate("report", "changes", later, "--out", tmp_path / "out")
    assert answer.code == 1
    assert "name the run that carried out the stage prepare" in answer.err


def test_no_secret_is_shown_and_each_is_named() -> None:
    """By its key, by a JAAS text in another key, and in the diff; values with templates are not resolved again."""
    before = b"broker.rack=1\nssl.key.password=never-shown-old\nsame.password=never-shown-same\n"
    after = (
        b"broker.rack={{ x }}\nssl.key.password=never-shown-new\nsame.password=never-shown-same\n"
        b'odd=m required user_bob="never-shown-bob";\n# password=never-shown-comment\nlog.dir=\\u00e9"\n'
    )
    one = Handover("broker-1", "h", "/etc/k\n", before, after)
    assert "never-shown" not in one.patch() + one.variables()
    assert "(sensitive)" in one.patch()
    assert 'kraft_migrate_hidden: ["odd", "ssl.key.password"]' in one.variables()
    assert '  "broker.rack": !unsafe "{{ x }}"' in one.variables()
    loaded = yaml.safe_load(one.variables().replace("!unsafe ", ""))
    assert loaded["kraft_migrate_set"] == {"broker.rack": "{{ x }}", "log.dir": parse(after)["log.dir"]}
    assert loaded["kraft_migrate_config"] == "/etc/k\n"
