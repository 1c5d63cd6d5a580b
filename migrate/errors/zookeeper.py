"""Errors of ZooKeeper, of the lock in it, and of its files."""

from __future__ import annotations

from migrate.errors.base import InputError, Retryable, WorldError


class ConnectStringWrong(InputError):
    """zookeeper.connect cannot be read."""

    id = "E-ZK-01"
    hint = "write it as Kafka does: host:port,host:port/chroot"


class ZookeeperUnreachable(WorldError, Retryable):
    """No server of the connect string gave us a session."""

    id = "E-ZK-02"
    hint = "check that ZooKeeper runs, that the ports are right, and that this host may reach them"


class ChrootMissing(InputError):
    """The ensemble answers, but the chroot of the connect string does not exist there."""

    id = "E-ZK-03"
    hint = "compare with zookeeper.connect of a broker: the chroot is the part from the first / on"


class ZookeeperSessionLost(WorldError, Retryable):
    """The connection or the session ended while we were asking."""

    id = "E-ZK-04"
    hint = "run the same command again; if it lasts, look at the ensemble's health and at the network"


class ZookeeperDenied(WorldError):
    """ZooKeeper refuses this identity."""

    id = "E-ZK-05"
    hint = "give the tool the brokers' ZooKeeper identity, or have the znode's ACL opened for it"


class NotKafkasTree(InputError):
    """Below the chroot lies no Kafka cluster."""

    id = "E-ZK-06"
    hint = "check the chroot: /cluster/id, /brokers/ids and /brokers/topics are there on every ZooKeeper-mode cluster"


class MalformedZnode(InputError):
    """A znode's data is not what Kafka writes there."""

    id = "E-ZK-07"
    hint = "look at the znode with zookeeper-shell; Kafka itself may stop on it, so mend it before going on"


class ZnodeChanged(WorldError):
    """A conditional write was refused: the znode is not as it was when the write was decided."""

    id = "E-ZK-08"
    hint = "find out who else writes there (a person, another tool), then plan anew; nothing was overwritten"


class PasswordUndecodable(InputError):
    """An encoded password configuration cannot be decoded with the given secret."""

    id = "E-ZK-09"
    hint = "give the password.encoder.secret with which the brokers run"


class BackupUnreadable(InputError):
    """A ZooKeeper backup file is torn, changed, or not one of ours."""

    id = "E-ZK-10"
    hint = "take another copy of the backup; its SHA-256 is in the run's journal"


class ZnodesNotRestored(WorldError):
    """Parts of a backup cannot be put back now: a KRaft controller runs, or may."""

    id = "E-ZK-11"
    exit_code = 3
    hint = "stop every KRaft controller first, or go back with `kraft-migrate rollback`; nothing was written"


class LockHeld(WorldError):
    """Another run holds the cluster's lock."""

    id = "E-LOCK-01"
    exit_code = 7
    hint = (
        "wait for the other run (`kraft-migrate unlock` says whose it is); a dead process's lock goes with its session"
    )


class LockLost(WorldError):
    """The run's own lock is gone: nothing more may be done."""

    id = "E-LOCK-02"
    exit_code = 10
    hint = "see who holds the lock now; the same command goes on from where this run stopped"


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
