"""The packages that this distribution requires, by its own metadata, and the error for one that is not installed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from typing import Final

from migrate.errors import PackageMissing

DISTRIBUTION: Final = "kafka-kraft-migrate"
EXTRAS: Final = {  # for users, each with what needs it
    "java": "a Java runtime, for hosts without one",
    "lab": "`lab`",
    "connect": "`diff` on a Spark Connect server",
}
_LINE: Final = re.compile(r'(?P<text>(?P<package>[\w.-]+)[^;]*?)\s*(;.*extra == "(?P<extra>\w+)".*)?')
_PACKAGES: Final = {"py4j": "pyspark", "re2": "google-re2", "yaml": "pyyaml", "grpc": "pyspark"}
_CONNECT: Final = "grpc"  # a module that pyspark brings for Spark Connect alone


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package with its bounds, such as `asyncssh>=2.18`; `extra` is empty where every command needs it."""

    package: str
    text: str
    extra: str

    @property
    def installed(self) -> str | None:
        """Its version; None where it is not installed, or without what its extra needs of it."""
        if self.extra == "connect" and self.package == "pyspark" and find_spec(_CONNECT) is None:
            return None
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return None


def install_line(wanted: Iterable[Requirement]) -> str:
    return " ".join([sys.executable, "-m pip install", *(f"'{one.text}'" for one in wanted)])


@cache
def requirements() -> tuple[Requirement, ...]:
    """What every command needs, then each extra's; nothing where the package runs without its metadata."""
    try:
        lines = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return ()
    matches = [found for line in lines if (found := _LINE.fullmatch(line)) is not None]
    read = [Requirement(found["package"].lower(), found["text"], found["extra"] or "") for found in matches]
    return tuple(one for extra in ("", *EXTRAS) for one in read if one.extra == extra)


def package_missing(module: str) -> PackageMissing | None:
    """The error for a module that cannot be imported; None where no package that we require has it."""
    top = module.partition(".")[0]
    package = _PACKAGES.get(top, top.replace("_", "-"))
    found = [one for one in requirements() if one.package == package and (one.extra or top != _CONNECT)]
    if not found:
        return None
    extras = " and ".join(f"`{one.extra}`" for one in found)
    return PackageMissing(
        f"the package {found[0].text} is not installed",
        why=f"it comes with the extra {extras}" if found[0].extra else "a plain installation has it",
        next_step=install_line(found[:1]),
    )


def require(*modules: str) -> None:
    """Raise PackageMissing for the first of these modules that is not there; none of them is imported."""
    for module in modules:
        if find_spec(module) is None and (error := package_missing(module)) is not None:
            raise error
