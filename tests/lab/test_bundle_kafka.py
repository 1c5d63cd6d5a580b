"""On a real cluster at rest, commands answer from a bundle and from the collector's files as they answer live."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from migrate.checks.releases import FETCH, fixes, lacks, least_release
from migrate.hosts import collect_disks
from migrate.kafka import live
from migrate.lab.cluster import Lab
from migrate.model.secrets import without_digits
from migrate.model.views import NodeAnswer
from tests.cli.commands import kraft_migrate

pytestmark = pytest.mark.kafka
# what moves by itself, and what a look cost
MOVING = ("free_bytes", "time", "created", "looked", "zookeeper_reads")
# a bundle has no secrets, so that the sums of its files are others, and so is what a plan is bound by; comments are
# left out; disks fill; a schedule counts from the minute in which its plan was made
BOUND = re.compile(
    r"/fingerprint|/content|/plan/created|/plan/summary/schedule/\d+/ends|/plan/steps/\d+/(binds|expects)/config:|/plan/summary/disks/\d+/free"
    r"|/plan/steps/\d+/actions/\d+/diff/\d+: '[ +-]#.*' and '[ +-]# \(left out\)'"
)


OF_HOSTS = {  # what no bundle holds: units, command lines, ports, rights and logins on hosts, servers of ZooKeeper
    *("B-OPS-06", "B-OPS-09", "B-OPS-12", "B-OPS-17", "W-OPS-05", "W-OPS-07", "W-OPS-10", "W-OPS-11"),
    *("B-CFG-26", "B-CFG-29", "B-CFG-32", "B-SEC-21", "W-ZKN-20"),
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Three brokers with topics, quotas, ACLs, SCRAM users and passwords; nobody writes."""
    made = Lab.create(tmp_path_factory.mktemp("bundle") / "lab")
    try:
        made.up()
        made.seed()
        yield made
    finally:
        made.down()


def steady(answer: Any) -> Any:
    """An answer without what moves by itself: free space, sizes of Kafka's own topics, clocks."""
    if isinstance(answer, dict):
        return {key: steady(entry) for key, entry in answer.items() if key not in MOVING}
    return [steady(entry) for entry in answer] if isinstance(answer, list) else answer


def differing(one: Any, two: Any, path: str = "") -> list[str]:
    """The paths at which two answers differ."""
    if isinstance(one, dict) and isinstance(two, dict):
        keys = sorted(one.keys() | two.keys())
        return [found for key in keys for found in differing(one.get(key), two.get(key), f"{path}/{key}")]
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        pairs = enumerate(zip(one, two, strict=True))
        return [found for number, (a, b) in pairs for found in differing(a, b, f"{path}/{number}")]
    return [] if one == two else [f"{path}: {one!r:.200} and {two!r:.200}"]


def asked(*words: object) -> tuple[int, Any]:
    """Exit code and answer of a command."""
    ended = kraft_migrate(*words, "-o", "json")
    assert ended.out, ended.err
    return ended.code, steady(json.loads(without_digits(ended.out))["result"])


def told(assessment: Any) -> list[Any]:
    """The findings of an assessment, but for blind spots and what only hosts tell."""
    return [row for row in assessment["findings"] if row["severity"] != "?" and row["code"] not in OF_HOSTS]


def test_live_bundle_and_collector_give_one_answer(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """assess, directories show and verify; no password of the lab is in the bundle or in the collector's files."""
    inventory = lab.inventory_path
    commands = (("assess",), ("directories", "show"), ("directories", "verify"))
    seen = [asked(*words, "--inventory", inventory) for words in commands]
    ended = kraft_migrate("bundle", "create", tmp_path / "b", "--inventory", inventory)
    assert (ended.code, ended.err) == (0, "")
    key = tmp_path / "key"
    key.write_text("0123456789abcdef" * 2)
    disks = tmp_path / "disks"
    disks.mkdir()
    for broker in lab.topology.brokers:
        words = ["--properties", str(lab.topology.config(f"broker-{broker.id}")), "--probe", "--key-file", str(key)]
        assert collect_disks.main(words) == 0
        (disks / f"{broker.id}.json").write_text(capsys.readouterr().out)
    kept = [asked(*words, "--from-bundle", tmp_path / "b") for words in commands]
    assert kept[1:] == seen[1:]
    (code, from_bundle), (_, live_answer) = kept[0], seen[0]
    blind, seeing = ({*answer["checks"]["not_made"]} for answer in (from_bundle, live_answer))
    assert (code, from_bundle["verdict"]) == (1, "INCOMPLETE"), "what a bundle does not hold is never taken for fine"
    assert seeing <= blind <= seeing | OF_HOSTS
    assert told(from_bundle) == told(live_answer)
    code, planned = asked("plan", lab.playbook_path)
    assert (code, len(planned["plan"]["steps"]) > 12) == (2, True)
    again = asked("plan", lab.playbook_path, "--from-bundle", tmp_path / "b")
    ours, theirs = ({"plan": {"steps": answer["plan"]["steps"]}} for answer in (planned, again[1]))
    assert [line for line in differing(ours, theirs) if not BOUND.match(line)] == []
    collected = [asked(*words, "--inventory", inventory, "--disks", disks) for words in commands]
    assert collected == seen
    written = [gzip.decompress((tmp_path / "b").read_bytes()), *(path.read_bytes() for path in disks.iterdir())]
    secrets = [path.read_bytes().strip() for path in lab.topology.folder("secrets").iterdir()]
    assert secrets
    for raw in written:
        assert not [secret for secret in secrets if secret in raw]


def test_brokers_tell_their_line_of_releases_and_the_advice_is_for_what_they_hold(lab: Lab) -> None:
    """From the API versions that real brokers tell: nothing that 3.9 fixed, and what is open touches our features."""
    answers = live.look(lab.inventory).brokers
    assert {entry.id for entry in lab.inventory.brokers} == set(answers)
    for answer in answers.values():
        assert isinstance(answer, NodeAnswer)
        assert answer.apis[FETCH] == 17
        assert least_release(answer) == "3.9"
    _, told = asked("assess", "--inventory", lab.inventory_path)
    codes = {row["code"] for row in told["findings"]}
    assert not codes & {"B-VER-05", "B-VER-06"}
    advice = [row for row in told["findings"] if row["code"] == "I-VER-10"]
    assert advice
    known = {fix.id: fix for fix in fixes()}
    for row in advice:
        assert known[row["about"]].features & {"always", "jbod", "scram", "quotas", "acls", "tokens", "transactions"}
        assert lacks(known[row["about"]], "3.9")
