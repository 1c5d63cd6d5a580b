"""What `status` says of broken log directories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any


def as_values(world: Any) -> list[dict[str, Any]]:
    """Every directory that is not as it should be: what is wrong, what that does, what to do."""
    from migrate.model.disk_mends import disk_troubles

    return [{**asdict(trouble), "mode": str(trouble.mode), "do": list(trouble.do)} for trouble in disk_troubles(world)]


def as_lines(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The same for a person."""
    for row in rows:
        yield f"disk     broker {row['broker']} ({row['mode']}) {row['path']}: {row['what']}"
        yield f"disk       {row['effect']}"
        for words in row["do"]:
            yield f"disk       do: {words}"
