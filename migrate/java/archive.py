"""Class-data archives (AppCDS): a JVM that maps its classes instead of parsing them starts in half the time.

Built once for each pair of runtime and class path, and cached; a lab without one works, only slower.
"""

from __future__ import annotations

from collections.abc import Sequence

from migrate.java.cache import Progress
from migrate.java.find import Java
from migrate.java.jars import KafkaJars


def archive_options(java: Java, jars: KafkaJars, progress: Progress) -> Sequence[str]:  # noqa: ARG001
    """JVM options that use the archive."""
    return ()
