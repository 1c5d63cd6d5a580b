"""Which controllers lack the migration flag: one answer, by each source, and never a guess."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from migrate.model.flag import FLAG, controller_flags, flag_of, has_flag
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import NoFile
from tests.testing import worlds


@pytest.mark.parametrize(
    ("value", "expected"), [(None, False), ("", False), ("true", True), (" TRUE ", True), ("yes", False)]
)
def test_the_flag_is_read_as_kafka_reads_it(value: str | None, expected: bool) -> None:
    """`ConfigDef.parseType`: anything but true is false to us, and Kafka does not start on it."""
    assert has_flag({} if value is None else {FLAG: value}) is expected


def test_every_source_answers_for_itself() -> None:
    """The file decides the next start, the answer is the process's, the registration what the metadata last heard."""
    world = worlds.with_values(worlds.world_at(Stage.HYBRID), 3001, **{FLAG: None})
    found = {flag.node: flag for flag in controller_flags(world)}
    assert list(found) == [3000, 3001, 3002]
    assert (found[3001].file, found[3001].answer, found[3001].registered) == (False, True, True)
    assert (found[3000].file, found[3000].answer, found[3000].registered) == (True, True, True)
    assert found[3000].path


@pytest.mark.parametrize("part", ["configs", "live", "kraft"])
def test_what_is_not_seen_is_unknown_and_never_without_or_with_the_flag(part: str) -> None:
    """Also where the whole part is missing."""
    whole = worlds.world_at(Stage.HYBRID)
    changes: dict[str, Any] = {part: Unknown("hidden")}
    world = replace(whole, **changes)
    name = {"configs": "file", "live": "answer", "kraft": "registered"}[part]
    assert getattr(flag_of(world, 3000), name) == Unknown("hidden")


def test_a_controller_that_nobody_looked_at_is_unknown() -> None:
    """No file was read and no answer came; the metadata, which is whole, does not know it."""
    found = flag_of(worlds.world_at(Stage.HYBRID), 9999)
    assert isinstance(found.file, Unknown)
    assert isinstance(found.answer, Unknown)
    assert found.registered is None


def test_a_file_that_does_not_exist_is_known() -> None:
    """It is neither with the flag nor without it."""
    world = worlds.world_at(Stage.HYBRID)
    assert not isinstance(world.configs, Unknown)
    gone = replace(world, configs={**world.configs, NodeId(3000): NoFile("/etc/gone")})
    assert flag_of(gone, 3000).file == NoFile("/etc/gone")
