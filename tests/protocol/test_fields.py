"""Schemas as values: ranges of versions, and defaults that are new each time."""

from __future__ import annotations

import pytest

from migrate.protocol.fields import ALL_VERSIONS, INT32, STRING, Array, Field, Struct, Versions


class TestVersionRanges:
    """Kafka's spelling of versions."""

    @pytest.mark.parametrize(
        ("text", "inside", "outside"),
        [("0+", [0, 9], [-1]), ("1-3", [1, 3], [0, 4]), ("2", [2], [1, 3]), ("none", [], [0])],
    )
    def test_ranges_mean_what_kafka_means(self, text: str, inside: list[int], outside: list[int]) -> None:
        """Open, closed, single and empty."""
        versions = Versions.parse(text)
        assert all(version in versions for version in inside)
        assert not any(version in versions for version in outside)


class TestDefaults:
    """What an absent field means."""

    @pytest.mark.parametrize(
        ("entry", "expected"),
        [
            (Field("a", INT32), 0),
            (Field("a", INT32, default=-1), -1),
            (Field("a", STRING, nullable=ALL_VERSIONS, default=None), None),
            (Field("a", STRING), ""),
            (Field("a", Array(INT32)), []),
            (
                Field(
                    "a",
                    Struct(
                        "S",
                        (
                            Field("b", INT32, default=5),
                            Field("c", INT32, Versions(1, 2)),
                            Field("d", INT32, tagged=ALL_VERSIONS, tag=0),
                        ),
                    ),
                ),
                {"b": 5},
            ),
        ],
    )
    def test_each_type_has_its_own(self, entry: Field, expected: object) -> None:
        """In version 0."""
        assert entry.default_value(0) == expected

    def test_lists_and_structs_are_new_each_time(self) -> None:
        """A caller may change what it was given."""
        entry = Field("a", Array(INT32))
        entry.default_value(0).append(1)
        assert entry.default_value(0) == []
