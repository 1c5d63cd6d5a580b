"""On a real cluster at rest, commands answer from a bundle and from the collector's files as they answer live."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from migrate.hosts import collect_disks
from migrate.lab.cluster import Lab
from tests.cli.commands import kraft_migrate

pytestmark = pytest.mark.kafka


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
        return {key: steady(entry) for key, entry in answer.items() if key not in ("free_bytes", "time", "created")}
    return [steady(entry) for entry in answer] if isinstance(answer, list) else answer


def asked(*words: object) -> tuple[int, Any]:
    """Exit code and answer of a command."""
    ended = kraft_migrate(*words, "-o", "json")
    assert ended.out, ended.err
    return ended.code, steady(json.loads(ended.out))


def test_live_bundle_and_collector_give_one_answer(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """assess, directories show and verify; no password of the lab is in the bundle or in the collector's files."""
    inventory = lab.inventory_path
    commands = (("assess",), ("directories", "show"), ("directories", "verify"))
    live = [asked(*words, "--inventory", inventory) for words in commands]
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
    assert kept == live
    collected = [asked(*words, "--inventory", inventory, "--disks", disks) for words in commands]
    assert collected == live
    written = [gzip.decompress((tmp_path / "b").read_bytes()), *(path.read_bytes() for path in disks.iterdir())]
    secrets = [path.read_bytes().strip() for path in lab.topology.folder("secrets").iterdir()]
    assert secrets
    for raw in written:
        assert not [secret for secret in secrets if secret in raw]
