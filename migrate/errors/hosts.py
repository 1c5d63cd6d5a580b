"""Errors of hosts (files, directories, processes, secrets), and of the lab and its load."""

from __future__ import annotations

from migrate.errors.base import InputError, Retryable, WorldError


class FileNotReplaced(WorldError, code="E-HOST-01"):
    """A file could not be replaced; its old content is still there."""

    hint = "check the permissions, symlink or disk named above, then run the same command again"


class BadProperties(InputError, code="E-HOST-02"):
    """A properties file that Kafka itself would refuse to load."""

    hint = "fix that line of the file (a restarted node would not start either), then run the same command again"


class DuplicateProperty(InputError, code="E-HOST-03"):
    """A key that must be changed appears more than once in its file."""

    hint = "leave one line of each key in that file (Kafka uses the last), then plan again"


class ConfigUnreadable(WorldError, code="E-HOST-04"):
    """A node's configuration file cannot be read."""

    hint = "check the path in the inventory and the permissions of that file"


class SecretUnreadable(InputError, code="E-HOST-05"):
    """A secret's file is missing, empty, readable by or owned by others; or its variable or command yields nothing."""

    hint = "name a file of your own, of mode 0600, that holds the secret alone; or fix the variable or the command"


class ProcessSpecUnreadable(InputError, code="E-PROC-01"):
    """The supervisor's description of a process is missing or not readable."""

    hint = "the lab's folder must be whole: `lab status --dir DIR` shows what it holds"


class ProcessNotStarted(WorldError, code="E-PROC-02"):
    """A process could not be started."""

    hint = "fix what the last lines of its log, named above, report; the same command starts it again"


class ProcessNotStopped(WorldError, code="E-PROC-03"):
    """A process did not stop after SIGTERM."""

    hint = "look at the end of its log; a broker may wait for its controller. The same command waits again"


class StorageNotFormatted(WorldError, code="E-PROC-04"):
    """kafka-storage format refused."""

    hint = "read what it says above; nothing was started"


class WordRefused(InputError, code="E-HOST-20"):
    """A path, unit or host name is not allowed in a command."""

    hint = "correct that name in the inventory"


class HostCommandUnknown(WorldError, code="E-HOST-21"):
    """A command was started on a host, and whether it finished is unknown."""

    hint = "the same command looks at the host again before it does anything"


class HostUnreachable(HostCommandUnknown, Retryable, code="E-HOST-22"):
    """No connection to a host: the command never began."""

    hint = "try `ssh HOST true` by hand as the user who runs this, with BatchMode=yes"


class HostKeyNotTrusted(HostCommandUnknown, code="E-HOST-23"):
    """A host's key is unknown or differs from the known one; keys are never accepted automatically."""

    hint = "compare the key with what the host's owner says, then put it into known_hosts by hand"


class HostDenied(HostCommandUnknown, code="E-HOST-24"):
    """A host refused the login."""

    hint = "check the key, the agent or the account; `ssh HOST true` must work without a prompt"


class HostPrintsText(HostCommandUnknown, code="E-HOST-29"):
    """A host's login files write to stdout, so that their text mixes with the output of commands."""

    hint = "let .bashrc, .cshrc and the like print for interactive shells only; `ssh HOST true` must print nothing"


class HostAnswerTooLong(HostCommandUnknown, code="E-HOST-30"):
    """A command on a host wrote more than the limit allows; it was stopped."""

    hint = "check what answers: docs/limits.md says how much is read, and why"


class SshMissing(WorldError, code="E-HOST-25"):
    """There is no OpenSSH client on this host."""

    hint = "install the OpenSSH client, or choose another executor"


class HostCommandRefused(WorldError, code="E-HOST-26"):
    """A command on a host failed."""

    hint = "`kraft-migrate doctor --hosts` says what a host lacks"


class HostRightMissing(WorldError, code="E-HOST-27"):
    """The host program of a host refuses a command that the plan's steps need, or does not run there."""

    hint = "run on that host what `kraft-migrate doctor --host-setup HOST` prints; then the same command again"


class HostProgramMissing(HostCommandRefused, code="E-HOST-28"):
    """The host program is not installed on a host, sudo does not allow it, or its installation is not safe."""

    hint = "run on that host what `kraft-migrate doctor --host-setup HOST` prints; then the same command again"


class UnitNotUsable(WorldError, code="E-PROC-05"):
    """A systemd unit, or a node's own commands, cannot be used as they are."""

    hint = "`systemctl cat UNIT` on that host shows what a unit is made of; commands are `service` in the inventory"


class PersonCouldNot(WorldError, code="E-MAN-01"):
    """The operator reported that an instruction could not be carried out."""

    hint = "resolve the reason, then run the same command again: it writes that instruction again"


class NotTold(WorldError, code="E-MAN-03"):
    """No collector answer shows what is at a path of a manually operated host."""

    hint = "run the collector as the last instruction for that node, or `manual look`, shows, and bring its answer"


class MetadataAwaited(NotTold, code="E-MAN-04"):
    """A stopped controller's metadata log is needed, and the operator has been asked to bring it."""

    hint = "bring what the README.txt of the folder named above asks for, then run the same command again"


class InstructionDamaged(InputError, code="E-MAN-05"):
    """A file of a manual instruction is not the one that was written."""

    hint = "keep the folder as evidence, move it out of `manual`, then run the same command again"


class CannotBeInstructed(WorldError, code="E-MAN-02"):
    """No instruction can be written without a file that the collector may not show."""

    hint = "choose executor ssh or local, or do what is named above by hand, with a fresh answer of the collector"


class DirectoryLost(WorldError, code="E-DIR-10", exit_code=3):
    """A log directory of a stopped broker has changed since the step checked it: the broker is not started."""

    hint = "`kraft-migrate status` shows what is wrong and which command repairs it; then run this command again"


class DirectoryInUse(WorldError, code="E-DIR-08", exit_code=3):
    """A directory that was to be removed from a broker's configuration received a replica at the last moment."""

    hint = "the broker was restarted unchanged; move its replicas away with kafka-reassign-partitions, then run again"


class DirectoriesRefused(WorldError, code="E-DIR-09", exit_code=3):
    """A directory cannot be added or removed as a log directory: nothing is planned, nothing was changed."""

    hint = "fix what is named, and plan again"


class NoJava(InputError, code="E-JAVA-01"):
    """No Java runtime was found."""

    hint = "install Java 17 to 21 and set JAVA_HOME, or install the extra `java`, which brings a runtime"


class JavaVersionUnsupported(InputError, code="E-JAVA-02"):
    """The Java runtime is too old or too new, or does not report its version."""

    hint = "point JAVA_HOME at Java 17 to 21, or unset it to search for another Java"


class KafkaHomeUnusable(InputError, code="E-JAVA-03"):
    """--kafka-home holds no Kafka distribution that can migrate."""

    hint = "name the folder of an unpacked Apache Kafka 3.9 (it has libs/), or leave it out: the jars are fetched"


class JarsUnavailable(Retryable, WorldError, code="E-JAVA-04"):
    """Kafka's jars could not be fetched."""

    hint = (
        "give --kafka-home DIR of an unpacked Apache Kafka 3.9.2, or name your mirror in an ivysettings.xml"
        " (KRAFT_MIGRATE_IVYSETTINGS, or ~/.ivy2/ivysettings.xml), and run the same command again"
    )


class JarSumWrong(InputError, code="E-JAVA-05"):
    """A jar is not the one that the lock list names."""

    hint = "find out who changed the jar (a mirror, a disk); remove the folder named above and run the command again"


class JavaToolFailed(WorldError, code="E-JAVA-06"):
    """A Java program of this tool or of Kafka failed, or did not finish."""

    hint = "read the program's last output, above; `kraft-migrate doctor` checks Java, memory and Kafka's jars"


class SparkDidNotStart(WorldError, code="E-SPARK-01"):
    """Spark's driver JVM or its session did not come up; `why` holds the end of its log."""

    hint = "correct what Spark says above; `kraft-migrate doctor` checks Java and free memory"


class SparkGone(WorldError, code="E-SPARK-02"):
    """The Spark session ended, or its driver died, while it was needed."""

    hint = "run the same command again: gates that need Spark never pass without it"


class LoadAlreadyRuns(WorldError, code="E-LOAD-01"):
    """The load of this lab directory is already running; two would write one history."""

    hint = "nothing to do: the same command adopts the running load; `lab down` stops it"


class LoadNotStarted(WorldError, code="E-LOAD-02"):
    """The load process ended before it was ready, or was not ready in time."""

    hint = "read logs/load-*.log under the lab directory; the cluster must answer and the topics must exist"


class LoadHistoryBroken(InputError, code="E-LOAD-03"):
    """A file of the load's history is not what the load writes."""

    hint = "a damaged history proves nothing; keep it for analysis, and start with a new lab directory"


class LoadStillRuns(WorldError, code="E-LOAD-04"):
    """The load cannot be checked while it writes."""

    hint = "stop the load first"


class LoadNotRead(WorldError, Retryable, code="E-LOAD-05"):
    """A partition of the load could not be read to its end."""

    hint = "wait until every partition has a leader, then run the same command again"


class LabFolderNotOurs(InputError, code="E-LAB-01"):
    """The lab's folder holds something else."""

    hint = "give --dir an empty or new folder, or one that `lab up` made"


class LabMissing(InputError, code="E-LAB-02"):
    """There is no lab in that folder."""

    hint = "name the lab's folder with --dir DIR; `kraft-migrate lab up --dir DIR` makes one"


class PortTaken(InputError, code="E-LAB-03"):
    """A port of the lab is in use by something else."""

    hint = "stop what listens there (`ss -ltnp` names it), or create the lab in another folder: it chooses other ports"


class LabNotReady(WorldError, code="E-LAB-04"):
    """A process of the lab died or did not become ready."""

    hint = "read the end of its log, fix the cause, run the same command again: it resumes from there"


class SeedRefused(WorldError, code="E-LAB-06"):
    """The cluster refused a part of the seed."""

    hint = "`lab seed` may be run again: it leaves what exists unchanged"


class LabProofFailed(WorldError, code="E-LAB-09"):
    """The lab does not behave as a healthy cluster does."""

    hint = "check the lab's logs (DIR/logs); the cluster is left unchanged"


class LabRefused(InputError, code="E-LAB-11"):
    """The lab in this folder cannot do that in its present state."""

    hint = "see `kraft-migrate lab up --help`; nothing was changed"
