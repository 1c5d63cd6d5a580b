"""controllers.overrides: the operator's own keys, by controller; never ours, never a secret in clear."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import DocumentInvalid
from migrate.hosts.properties import parse
from migrate.model.ids import NodeId
from migrate.model.inventory import KraftAuthorizer, Playbook
from migrate.model.stage import Stage
from migrate.model.step import Predicted
from migrate.playbook.load import load_playbook
from migrate.steps.prepare import RenderController
from tests.playbook.corpus import SPEC
from tests.testing.worlds import world_at


def load(folder: Path, *lines: str) -> Playbook:
    """A playbook with these lines under `controllers`."""
    path = folder / "p.yaml"
    text = SPEC + "  controllers:\n    ids: [3000, 3001, 3002]\n" + "".join(f"    {line}\n" for line in lines)
    path.write_text(text, encoding="utf-8")
    return load_playbook(path)


def test_overrides_are_of_all_controllers_and_of_one_on_top(tmp_path: Path) -> None:
    """A certificate of its own, a load of all."""
    found = load(
        tmp_path,
        "overrides: {num.io.threads: '4', ssl.keystore.location: /etc/kafka/c.p12}",
        "overrides_of: {3001: {ssl.keystore.location: /etc/kafka/c1.p12}}",
    ).controller_overrides
    common = {"num.io.threads": "4", "ssl.keystore.location": "/etc/kafka/c.p12"}
    assert found[NodeId(3000)] == found[NodeId(3002)] == common
    assert found[NodeId(3001)] == {**common, "ssl.keystore.location": "/etc/kafka/c1.p12"}


def test_a_playbook_without_overrides_has_none(tmp_path: Path) -> None:
    """Nor one that names no controllers."""
    assert load(tmp_path).controller_overrides == {}


@pytest.mark.parametrize(
    ("lines", "says", "line"),
    [
        (["overrides:", "  node.id: '7'"], "node.id cannot be overridden", 9),
        (["overrides:", "  min.insync.replicas: '1'"], "min.insync.replicas cannot be overridden", 9),
        (["overrides:", "  broker.id: '1'"], "broker.id cannot be overridden", 9),
        (["overrides:", "  controller.quorum.bootstrap.servers: a:1"], "cannot be overridden", 9),
        (["overrides:", "  'a b': c"], "no configuration key", 9),
        (["overrides:", "  'x=y': c"], "no configuration key", 9),
        (["overrides:", "  ssl.key.password: hush"], "ssl.key.password holds a secret", 9),
        (["overrides:", "  ssl.key.password: 'x${file:/a:b}'"], "holds a secret", 9),
        (["overrides_of: {9: {num.io.threads: '1'}}"], "'9' is none of the controllers", 8),
        (["overrides_of: {x: {num.io.threads: '1'}}"], "'x' is none of the controllers", 8),
        (["overrides_of:", "  3000: {zookeeper.connect: 'a:1'}"], "zookeeper.connect cannot be overridden", 9),
    ],
)
def test_what_is_not_the_operators_to_set_is_refused_at_its_line(
    tmp_path: Path, lines: list[str], says: str, line: int
) -> None:
    """With the reason and the next step; a secret's text is not repeated."""
    with pytest.raises(DocumentInvalid) as caught:
        load(tmp_path, *lines)
    assert says in caught.value.what
    assert f"p.yaml:{line}:" in caught.value.where
    assert "hush" not in f"{caught.value} {caught.value.why} {caught.value.next_step}"


def test_a_secret_by_reference_is_taken(tmp_path: Path) -> None:
    """The controller resolves it; the playbook and the run's folder never hold it."""
    found = load(tmp_path, "overrides: {ssl.key.password: '${file:/etc/kafka/secrets:key}'}")
    assert found.controller_overrides[NodeId(3000)] == {"ssl.key.password": "${file:/etc/kafka/secrets:key}"}


def test_a_rendered_file_has_its_controllers_overrides(tmp_path: Path) -> None:
    """And the plan's diff shows them."""
    playbook = load(tmp_path, "overrides_of: {3001: {num.io.threads: '5'}}")
    world = replace(world_at(Stage.ASSESS), playbook=playbook)
    contents = [RenderController(node).target(world, Predicted()) for node in (3000, 3001)]
    threads = [parse(content).get("num.io.threads") for content in contents if content is not None]
    assert threads == [None, "5"]
    (action,) = RenderController(3001).actions(world, Predicted())
    assert "+num.io.threads=5" in action.diff


def test_the_class_that_decides_in_kraft_mode_and_its_keys(tmp_path: Path) -> None:
    """Its own keys alone; none that Kafka's table has, and no secret in clear."""
    path = tmp_path / "p.yaml"
    text = SPEC + "  policy:\n    authorizer:\n      kraft: {class: org.example.Kraft, properties: {PLACE}}\n"
    path.write_text(text.replace("PLACE", "kraft.url: 'https://p'"), encoding="utf-8")
    assert load_playbook(path).kraft_authorizer == KraftAuthorizer("org.example.Kraft", {"kraft.url": "https://p"})
    for wrong, says in (
        ("super.users: 'User:x'", "super.users cannot be overridden"),
        ("kraft.password: hush", "kraft.password holds a secret"),
        ("'a b': c", "no configuration key"),
    ):
        path.write_text(text.replace("PLACE", wrong), encoding="utf-8")
        with pytest.raises(DocumentInvalid, match=says):
            load_playbook(path)
