"""Errors of ZooKeeper's own files: snapshots and transaction logs."""

from __future__ import annotations

from migrate.errors.base import InputError


class ZookeeperFilesMissing(InputError):
    """A folder holds no ZooKeeper data, or its files cannot be read."""

    id = "E-ZKF-01"
    hint = "name ZooKeeper's dataDir (and its dataLogDir, if it has one), or the version-2 folder in it"


class ZookeeperFileDamaged(InputError):
    """A snapshot or transaction log is cut short, changed, or not one."""

    id = "E-ZKF-02"
    hint = "copy the file again, or take the files of another server of the ensemble"


class TransactionsMissing(InputError):
    """The transaction logs do not continue the snapshot without a gap."""

    id = "E-ZKF-03"
    hint = "copy snapshots first and then all logs of dataDir and dataLogDir, or take another server's files"


class TreeDigestDiffers(InputError):
    """The tree that the files give is not the one that ZooKeeper had."""

    id = "E-ZKF-04"
    hint = "take the files of another server of the ensemble, or read the running one"
