"""Mount points of this host, from /proc/self/mountinfo (proc(5))."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """A mount point and its filesystem type; both "" where not known."""

    point: str
    filesystem: str


@dataclass(frozen=True, slots=True)
class Mounts:
    """All mount points, the latest mounted last."""

    mounts: tuple[Mount, ...]

    @classmethod
    def read(cls, source: str = "/proc/self/mountinfo") -> Self:
        """The table of this process; empty where the host has none."""
        try:
            with Path(source).open(encoding="utf-8", errors="surrogateescape") as lines:
                return cls(tuple(mount for line in lines if (mount := decode(line))))
        except OSError:
            return cls(())

    def of(self, path: str) -> Mount:
        """The mount that holds the path: the longest prefix, and of equal ones the one mounted on top."""
        real = os.path.realpath(path)
        best = Mount("", "")
        for mount in self.mounts:
            inside = real == mount.point or real.startswith(mount.point.rstrip("/") + "/")
            if inside and len(mount.point) >= len(best.point):
                best = mount
        return best


def decode(line: str) -> Mount | None:
    """One line of mountinfo; None for a line of another form."""
    before, dash, after = line.partition(" - ")
    fields, kinds = before.split(), after.split()
    if not dash or len(fields) < 5 or not kinds:
        return None
    return Mount(_OCTAL.sub(lambda octal: chr(int(octal[1], 8)), fields[4]), kinds[0])
