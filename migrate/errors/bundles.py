"""Errors of what was seen elsewhere or earlier: the collector's answers, and bundles."""

from __future__ import annotations

from migrate.errors.base import InputError


class CollectedDamaged(InputError):
    """A collector's answer cannot be read, is no such answer, or its SHA-256 is not that of its content."""

    id = "E-COLLECT-01"
    hint = "copy the file again, or run `collect_disks.py` again on that host; do not edit its answer"


class CollectedOtherVersion(InputError):
    """A collector's answer in a format that this release does not know."""

    id = "E-COLLECT-02"
    hint = "`kraft-migrate directories collector` prints this release's collector: run that one on the host"


class CollectedForNobody(InputError):
    """A collector's answer does not belong to exactly one node of the inventory."""

    id = "E-COLLECT-03"
    hint = "run the collector with --node N or on the right properties file, and give one file a node"


class BundleDamaged(InputError):
    """A bundle cannot be read, is no bundle, or a part of it is not what its manifest says."""

    id = "E-BUNDLE-01"
    hint = "copy the bundle again, or make another with `kraft-migrate bundle create`; do not edit it"


class BundleOtherVersion(InputError):
    """A bundle in a format that this release does not know."""

    id = "E-BUNDLE-02"
    hint = "read it with the release that made it (`kraft-migrate bundle show` names it), or make another"


class BundleExists(InputError):
    """There is something at the path at which a bundle shall be made."""

    id = "E-BUNDLE-03"
    hint = "give another path, or remove what is there"
