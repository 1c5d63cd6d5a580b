"""Errors of ZooKeeper, of Kafka's nodes, and of metadata."""

from __future__ import annotations

from migrate.errors.base import InputError, Retryable, WorldError


class ConnectStringWrong(InputError, code="E-ZK-01"):
    """zookeeper.connect cannot be read."""

    hint = "write it as Kafka does: host:port,host:port/chroot"


class ZookeeperUnreachable(WorldError, Retryable, code="E-ZK-02"):
    """No server of the connect string granted a session."""

    hint = "check that ZooKeeper runs, that the ports are right, and that this host can reach them"


class ChrootMissing(InputError, code="E-ZK-03"):
    """The ensemble answers, but the chroot of the connect string does not exist there."""

    hint = "compare with zookeeper.connect of a broker: the chroot is the part from the first / on"


class ZookeeperSessionLost(WorldError, Retryable, code="E-ZK-04"):
    """The connection or the session ended during a request."""

    hint = "run the same command again; if it persists, check the ensemble's health and the network"


class ZookeeperDenied(WorldError, code="E-ZK-05"):
    """ZooKeeper refuses this identity."""

    hint = "give the tool the brokers' ZooKeeper identity, or have the znode's ACL opened for it"


class NotKafkasTree(InputError, code="E-ZK-06"):
    """There is no Kafka cluster below the chroot."""

    hint = "check the chroot: /cluster/id, /brokers/ids and /brokers/topics are there on every ZooKeeper-mode cluster"


class MalformedZnode(InputError, code="E-ZK-07"):
    """A znode's data is not what Kafka writes there."""

    hint = "inspect the znode with zookeeper-shell; Kafka itself may fail on it, so repair it before you continue"


class ZnodeChanged(WorldError, code="E-ZK-08"):
    """A conditional write was refused: the znode has changed since the write was decided."""

    hint = "find out who else writes there (a person, another tool), then plan again; nothing was overwritten"


class PasswordUndecodable(InputError, code="E-ZK-09"):
    """An encoded password configuration cannot be decoded with the given secret."""

    hint = "give the password.encoder.secret with which the brokers run"


class BackupUnreadable(InputError, code="E-ZK-10"):
    """A ZooKeeper backup file is truncated, changed, or not a backup of this tool."""

    hint = "take another copy of the backup; its SHA-256 is in the run's journal"


class ZnodesNotRestored(WorldError, code="E-ZK-11", exit_code=3):
    """Parts of a backup cannot be restored now: a KRaft controller runs, or may run."""

    hint = "stop every KRaft controller first, or use `kraft-migrate rollback`; nothing was written"


class LockHeld(WorldError, code="E-LOCK-01", exit_code=7):
    """Another run holds the cluster's lock."""

    hint = (
        "wait for the other run (`kraft-migrate unlock` says whose it is); a dead process's lock goes with its session"
    )


class LockLost(WorldError, code="E-LOCK-02", exit_code=10):
    """The run has lost its own lock: it stops before the next change."""

    hint = "check who holds the lock now; the same command resumes where this run stopped"


class NodeUnreachable(WorldError, Retryable, code="E-KAFKA-01"):
    """A broker or controller cannot be reached."""

    hint = "check that the process runs and that its address in the inventory is right"


class ConnectionClosed(WorldError, Retryable, code="E-KAFKA-02"):
    """The other side closed the connection instead of answering."""

    hint = "the node may be stopping, or the listener does not serve the request or requires authentication"


class AnswerTimeout(WorldError, Retryable, code="E-KAFKA-03"):
    """No answer in time; whether the request was carried out is not known."""

    hint = "check that node's log; the same command observes again before it acts"


class AnswerBroken(WorldError, code="E-KAFKA-04"):
    """The answer is not one that Kafka's protocol allows here."""

    hint = "check that the address belongs to Apache Kafka 3.9 and to the right listener"


class AccessRefused(WorldError, code="E-KAFKA-05"):
    """Authentication failed, or the principal is not authorized for the request."""

    hint = "compare user, mechanism and permissions of the inventory's access with the listener's"


class AccessUnsupported(InputError, code="E-KAFKA-06"):
    """A security protocol or mechanism that this release does not support."""

    hint = "give a listener with PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; SASL by PLAIN, SCRAM, GSSAPI, OAUTHBEARER"


class NoActiveController(WorldError, Retryable, code="E-KAFKA-07"):
    """No controller that answers reports that it leads the quorum."""

    hint = "check that a majority of the controllers runs and has elected a leader"


class NotController(WorldError, Retryable, code="E-KAFKA-08"):
    """NOT_CONTROLLER (41): the leader changed, or it is still in PRE_MIGRATION."""

    hint = "find the active controller again; directories cannot be assigned before the copy"


class StaleBrokerEpoch(WorldError, Retryable, code="E-KAFKA-09"):
    """STALE_BROKER_EPOCH (77): the broker registered again since its epoch was read."""

    hint = "read the registration again, then send"


class KafkaRefused(WorldError, code="E-KAFKA-10"):
    """Kafka answered with an error that a retry does not resolve."""

    hint = "the error's name is Kafka's own; check the node's log for the reason"


class NotLeader(KafkaRefused, code="E-KAFKA-13"):
    """A request that only the quorum's leader serves was sent to another controller."""

    hint = "ask the other controllers"


class OtherCluster(WorldError, code="E-KAFKA-11"):
    """The controllers belong to another cluster than expected (INCONSISTENT_CLUSTER_ID, 104)."""

    hint = "compare the cluster id of the inventory with the controllers' meta.properties"


class MetadataMoved(WorldError, Retryable, code="E-KAFKA-12"):
    """Leader, epoch or snapshot changed during a read of the metadata log: the read is repeated."""

    hint = "nothing to do: the read is repeated"


class MetadataBehind(WorldError, Retryable, code="E-KAFKA-14"):
    """The metadata log did not reach the offset that was waited for."""

    hint = "check that a majority of the controllers runs: the active one writes twice a second"


class TlsRefused(WorldError, code="E-KAFKA-15"):
    """The TLS handshake failed: one side does not accept the other's certificate, or does not use TLS."""

    hint = "compare truststore, keystore and address of the inventory with the listener's certificate"


class StoreUnreadable(InputError, code="E-KAFKA-16"):
    """A truststore or keystore cannot be used: missing, another format or password, no certificate or key in it."""

    hint = "name the store's path, type (PEM, PKCS12, JKS) and the file of its password as they are"


class KerberosUnusable(InputError, code="E-KRB-01"):
    """This host cannot log in by Kerberos: no library, keytab, key, ticket, or realm in krb5.conf."""

    hint = "correct `kerberos` of the inventory's access, or this host's krb5.conf"


class KerberosRefused(WorldError, code="E-KRB-02"):
    """The KDC or the listener refuses a login by Kerberos: principal, key, service, host name or clock."""

    hint = "compare principal, service and host names with the KDC's, and this host's clock"


class KdcUnreachable(WorldError, Retryable, code="E-KRB-03"):
    """No KDC of the realm answers: no login by Kerberos, and no node that uses it could start either."""

    hint = "bring a KDC back, or correct [realms] of this host's krb5.conf; what waits goes on by itself"


class TokenUnusable(InputError, code="E-OAUTH-01"):
    """The token for a login by OAUTHBEARER has ended, names another user than the inventory, or is no token."""

    hint = "let the issuer write a new token, or correct `username` and `oauth` of the inventory's access"


class TokenRefused(WorldError, code="E-OAUTH-02"):
    """The token endpoint gives no token: it refuses the client, or answers what is none."""

    hint = "compare `endpoint`, `client_id`, `client_secret` and `scope` of the inventory's access with the issuer's"


class IssuerUnreachable(WorldError, Retryable, code="E-OAUTH-03"):
    """The token endpoint does not answer: without it no login by OAUTHBEARER, and no node that uses it could start."""

    hint = "bring the issuer back; a run waits, and goes on by itself"


class DecodeError(InputError, code="E-WIRE-01"):
    """Bytes do not follow Kafka's format: truncated, a wrong length, trailing bytes."""

    hint = "the bytes were damaged or come from another release; read them again from another node"


class EncodeError(InputError, code="E-WIRE-02"):
    """Values do not fit the message that is to be encoded."""

    hint = "this is most likely a defect of kraft-migrate: keep the message and report it"


class UnknownSchemaError(DecodeError, code="E-WIRE-03"):
    """A record or message of an unknown type or version."""

    hint = "it was written by a release other than Kafka 3.9 to 4.4: use a release of kraft-migrate that supports it"


class BatchError(DecodeError, code="E-BATCH-01"):
    """A record batch contradicts itself: its magic, counts, offsets or attributes."""

    hint = "the file or answer is damaged: read the metadata of another controller"


class BatchCutError(BatchError, code="E-BATCH-02"):
    """The bytes end inside a record batch."""

    hint = "copy the file again after its process has stopped, or read the metadata of another controller"


class BatchCrcError(BatchError, code="E-BATCH-03"):
    """A record batch's CRC-32C does not match its bytes."""

    hint = "the file is damaged: read the metadata of another controller"


class MetadataFileError(InputError, code="E-KRAFT-01"):
    """A path holds no KRaft metadata, or a file there cannot be read as what its name says."""

    hint = "give a .log, a .checkpoint, or a controller's metadata directory"


class SnapshotError(InputError, code="E-KRAFT-02"):
    """A metadata snapshot is incomplete: it lacks its header or footer, or disagrees with its name."""

    hint = "copy the snapshot again, or use another controller's"


class ReplayError(InputError, code="E-KRAFT-03"):
    """Metadata records contradict earlier ones: a gap, an unknown topic or broker, a broken transaction."""

    hint = "read the metadata from its beginning again (from the active controller)"


class MetadataDiverges(InputError, code="E-KRAFT-04"):
    """Metadata directories contradict each other: different epochs, records or clusters at one offset."""

    hint = "give the directories of a majority of one quorum's controllers, or a single directory to inspect it"


class OffsetNotThere(InputError, code="E-KRAFT-05"):
    """The metadata does not contain the requested offset, or does not prove that it is committed."""

    hint = "request an offset within the metadata, or add the directories of more controllers"


class ExportRefused(InputError, code="E-KRAFT-06"):
    """The folder for an export is not empty, or cannot be written."""

    hint = "name a folder that does not exist yet; nothing is ever overwritten"
