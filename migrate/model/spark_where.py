"""Where the comparisons are computed: on this host, or on a cluster of Spark's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

LOCAL: Final = "local[2]"


@dataclass(frozen=True, slots=True)
class SparkWhere:
    """`master` is Spark's own word for it (local[2], spark://host:7077, yarn, k8s://..., sc://host:15002).

    `conf` are settings that win over ours.  They stand on a command line: no secret belongs there.
    """

    master: str = LOCAL
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Does everything happen in one JVM of this host?"""
        return self.master.startswith("local")

    @property
    def is_connect(self) -> bool:
        """Does another process hold the driver, a Spark Connect server?"""
        return self.master.startswith("sc://")
