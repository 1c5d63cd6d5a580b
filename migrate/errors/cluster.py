"""Errors of ZooKeeper, of Kafka's nodes, and of metadata."""

from __future__ import annotations

from migrate.errors.base import InputError, Retryable, WorldError


class ConnectStringWrong(InputError):
    """zookeeper.connect cannot be read."""

    id = "E-ZK-01"
    hint = "write it as Kafka does: host:port,host:port/chroot"


class ZookeeperUnreachable(WorldError, Retryable):
    """No server of the connect string granted a session."""

    id = "E-ZK-02"
    hint = "check that ZooKeeper runs, that the ports are right, and that this host can reach them"


class ChrootMissing(InputError):
    """The ensemble answers, but the chroot of the connect string does not exist there."""

    id = "E-ZK-03"
    hint = "compare with zookeeper.connect of a broker: the chroot is the part from the first / on"


class ZookeeperSessionLost(WorldError, Retryable):
    """The connection or the session ended during a request."""

    id = "E-ZK-04"
    hint = "run the same command again; if it persists, check the ensemble's health and the network"


class ZookeeperDenied(WorldError):
    """ZooKeeper refuses this identity."""

    id = "E-ZK-05"
    hint = "give the tool the brokers' ZooKeeper identity, or have the znode's ACL opened for it"


class NotKafkasTree(InputError):
    """There is no Kafka cluster below the chroot."""

    id = "E-ZK-06"
    hint = "check the chroot: /cluster/id, /brokers/ids and /brokers/topics are there on every ZooKeeper-mode cluster"


class MalformedZnode(InputError):
    """A znode's data is not what Kafka writes there."""

    id = "E-ZK-07"
    hint = "inspect the znode with zookeeper-shell; Kafka itself may fail on it, so repair it before you continue"


class ZnodeChanged(WorldError):
    """A conditional write was refused: the znode has changed since the write was decided."""

    id = "E-ZK-08"
    hint = "find out who else writes there (a person, another tool), then plan again; nothing was overwritten"


class PasswordUndecodable(InputError):
    """An encoded password configuration cannot be decoded with the given secret."""

    id = "E-ZK-09"
    hint = "give the password.encoder.secret with which the brokers run"


class BackupUnreadable(InputError):
    """A ZooKeeper backup file is truncated, changed, or not a backup of this tool."""

    id = "E-ZK-10"
    hint = "take another copy of the backup; its SHA-256 is in the run's journal"


class ZnodesNotRestored(WorldError):
    """Parts of a backup cannot be restored now: a KRaft controller runs, or may run."""

    id = "E-ZK-11"
    exit_code = 3
    hint = "stop every KRaft controller first, or use `kraft-migrate rollback`; nothing was written"


class LockHeld(WorldError):
    """Another run holds the cluster's lock."""

    id = "E-LOCK-01"
    exit_code = 7
    hint = (
        "wait for the other run (`kraft-migrate unlock` says whose it is); a dead process's lock goes with its session"
    )


class LockLost(WorldError):
    """The run has lost its own lock: it stops before the next change."""

    id = "E-LOCK-02"
    exit_code = 10
    hint = "check who holds the lock now; the same command resumes where this run stopped"


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


class NodeUnreachable(WorldError, Retryable):
    """A broker or controller cannot be reached."""

    id = "E-KAFKA-01"
    hint = "check that the process runs and that its address in the inventory is right"


class ConnectionClosed(WorldError, Retryable):
    """The other side closed the connection instead of answering."""

    id = "E-KAFKA-02"
    hint = "the node may be stopping, or the listener does not serve the request or requires authentication"


class AnswerTimeout(WorldError, Retryable):
    """No answer in time; whether the request was carried out is not known."""

    id = "E-KAFKA-03"
    hint = "check that node's log; the same command observes again before it acts"


class AnswerBroken(WorldError):
    """The answer is not one that Kafka's protocol allows here."""

    id = "E-KAFKA-04"
    hint = "check that the address belongs to Apache Kafka 3.9 and to the right listener"


class AccessRefused(WorldError):
    """Authentication failed, or the principal is not authorized for the request."""

    id = "E-KAFKA-05"
    hint = "compare user, mechanism and permissions of the inventory's access with the listener's"


class AccessUnsupported(InputError):
    """A security protocol or mechanism that this release does not speak."""

    id = "E-KAFKA-06"
    hint = "give a listener with PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; SASL by PLAIN or SCRAM"


class NoActiveController(WorldError, Retryable):
    """No controller that answers reports that it leads the quorum."""

    id = "E-KAFKA-07"
    hint = "check that a majority of the controllers runs and has elected a leader"


class NotController(WorldError, Retryable):
    """NOT_CONTROLLER (41): the leader changed, or it is still in PRE_MIGRATION."""

    id = "E-KAFKA-08"
    hint = "find the active controller again; directories cannot be assigned before the copy"


class StaleBrokerEpoch(WorldError, Retryable):
    """STALE_BROKER_EPOCH (77): the broker registered again since its epoch was read."""

    id = "E-KAFKA-09"
    hint = "read the registration again, then send"


class KafkaRefused(WorldError):
    """Kafka answered with an error that a retry does not resolve."""

    id = "E-KAFKA-10"
    hint = "the error's name is Kafka's own; check the node's log for the reason"


class NotLeader(KafkaRefused):
    """A request that only the quorum's leader serves was sent to another controller."""

    id = "E-KAFKA-13"
    hint = "ask the other controllers"


class OtherCluster(WorldError):
    """The controllers belong to another cluster than expected (INCONSISTENT_CLUSTER_ID, 104)."""

    id = "E-KAFKA-11"
    hint = "compare the cluster id of the inventory with the controllers' meta.properties"


class MetadataMoved(WorldError, Retryable):
    """Leader, epoch or snapshot changed during a read of the metadata log: the read is repeated."""

    id = "E-KAFKA-12"
    hint = "nothing to do: the read is repeated"


class MetadataBehind(WorldError, Retryable):
    """The metadata log did not reach the offset that was waited for."""

    id = "E-KAFKA-14"
    hint = "check that a majority of the controllers runs: the active one writes twice a second"


class ProbeSilent(WorldError):
    """The probe topic of the playbook cannot be written and read back: nothing was changed."""

    id = "E-PROBE-01"
    hint = "create the topic, and let broker_access write and read it; or remove probes.topic and plan again"


class TlsRefused(WorldError):
    """The TLS handshake failed: one side does not accept the other's certificate, or does not use TLS."""

    id = "E-KAFKA-15"
    hint = "compare truststore, keystore and address of the inventory with the listener's certificate"


class StoreUnreadable(InputError):
    """A truststore or keystore cannot be used: missing, another format or password, no certificate or key in it."""

    id = "E-KAFKA-16"
    hint = "name the store's path, type (PEM, PKCS12, JKS) and the file of its password as they are"


class DecodeError(InputError):
    """Bytes do not follow Kafka's format: truncated, a wrong length, trailing bytes."""

    id = "E-WIRE-01"
    hint = "the bytes were damaged or come from another release; read them again from another node"


class EncodeError(InputError):
    """Values do not fit the message that is to be encoded."""

    id = "E-WIRE-02"
    hint = "this is most likely a defect of kraft-migrate: keep the message and report it"


class UnknownSchemaError(DecodeError):
    """A record or message of an unknown type or version."""

    id = "E-WIRE-03"
    hint = "it was written by a release other than Kafka 3.9: use a release of kraft-migrate that supports it"


class BatchError(DecodeError):
    """A record batch contradicts itself: its magic, counts, offsets or attributes."""

    id = "E-BATCH-01"
    hint = "the file or answer is damaged: read the metadata of another controller"


class BatchCutError(BatchError):
    """The bytes end inside a record batch."""

    id = "E-BATCH-02"
    hint = "copy the file again after its process has stopped, or read the metadata of another controller"


class BatchCrcError(BatchError):
    """A record batch's CRC-32C does not match its bytes."""

    id = "E-BATCH-03"
    hint = "the file is damaged: read the metadata of another controller"


class MetadataFileError(InputError):
    """A path holds no KRaft metadata, or a file there cannot be read as what its name says."""

    id = "E-KRAFT-01"
    hint = "give a .log, a .checkpoint, or a controller's metadata directory"


class SnapshotError(InputError):
    """A metadata snapshot is incomplete: it lacks its header or footer, or disagrees with its name."""

    id = "E-KRAFT-02"
    hint = "copy the snapshot again, or use another controller's"


class ReplayError(InputError):
    """Metadata records contradict earlier ones: a gap, an unknown topic or broker, a broken transaction."""

    id = "E-KRAFT-03"
    hint = "read the metadata from its beginning again (from the active controller)"


class MetadataDiverges(InputError):
    """Metadata directories contradict each other: different epochs, records or clusters at one offset."""

    id = "E-KRAFT-04"
    hint = "give the directories of a majority of one quorum's controllers, or a single directory to inspect it"


class OffsetNotThere(InputError):
    """The metadata does not contain the requested offset, or does not prove that it is committed."""

    id = "E-KRAFT-05"
    hint = "request an offset within the metadata, or add the directories of more controllers"


class ExportRefused(InputError):
    """The folder for an export is not empty, or cannot be written."""

    id = "E-KRAFT-06"
    hint = "name a folder that does not exist yet; nothing is ever overwritten"
