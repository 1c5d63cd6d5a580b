"""Errors of hosts: files, directories, processes, secrets."""

from __future__ import annotations

from migrate.errors.base import InputError, Retryable, WorldError


class FileNotReplaced(WorldError):
    """A file could not be replaced; its old content is still there."""

    id = "E-HOST-01"
    hint = "see to the rights, the link or the disk named above, then run the same command again"


class BadProperties(InputError):
    """A properties file that Kafka itself would refuse to load."""

    id = "E-HOST-02"
    hint = "mend that line of the file (a node that restarts would not come up either), then run the same command again"


class DuplicateProperty(InputError):
    """A key that is to be changed stands more than once in its file."""

    id = "E-HOST-03"
    hint = "leave one line of each key in that file (Kafka uses the last), then plan again"


class ConfigUnreadable(WorldError):
    """A node's configuration file cannot be read."""

    id = "E-HOST-04"
    hint = "see to the path in the inventory and to the rights on that file"


class SecretUnreadable(InputError):
    """A secret's file is missing, empty, readable by others or not one's own; or its variable or command gives none."""

    id = "E-HOST-05"
    hint = "name a file of your own, of mode 0600, that holds the secret alone; or fix the variable or the command"


class ProcessSpecUnreadable(InputError):
    """The supervisor's description of a process is missing or not readable."""

    id = "E-PROC-01"
    hint = "the lab's folder must be whole: `lab status --dir DIR` shows what it holds"


class ProcessNotStarted(WorldError):
    """A process could not be started."""

    id = "E-PROC-02"
    hint = "read the last lines of its log, named above, and mend what they say; the same command starts it again"


class ProcessNotStopped(WorldError):
    """A process was asked to end and lives on."""

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
    """A path, unit or host name that is no part of any command of ours."""

    id = "E-HOST-20"
    hint = "correct that name in the inventory"


class HostCommandUnknown(WorldError):
    """A command was begun on a host, and nobody knows whether it came to its end."""

    id = "E-HOST-21"
    hint = "the same command looks at the host again before it does anything"


class HostUnreachable(HostCommandUnknown, Retryable):
    """No connection to a host: the command never began."""

    id = "E-HOST-22"
    hint = "try `ssh HOST true` by hand as the user who runs this, with BatchMode=yes"


class HostKeyNotTrusted(HostCommandUnknown):
    """A host's key is not known, or is another than the known one; keys are never accepted here."""

    id = "E-HOST-23"
    hint = "compare the key with what the host's owner says, then put it into known_hosts by hand"


class HostDenied(HostCommandUnknown):
    """A host refused the login."""

    id = "E-HOST-24"
    hint = "see to the key, the agent or the account; `ssh HOST true` must work without a question"


class HostPrintsText(HostCommandUnknown):
    """A host prints text of its own into what commands answer: its login files write to stdout."""

    id = "E-HOST-29"
    hint = "let .bashrc, .cshrc and the like print for interactive shells only; `ssh HOST true` must print nothing"


class HostAnswerTooLong(HostCommandUnknown):
    """A command on a host answered with more than any real answer has; it was ended."""

    id = "E-HOST-30"
    hint = "see what answers there; where it is right, allow more: `--limit answer=512MiB` before the command's name"


class SshMissing(WorldError):
    """There is no OpenSSH client on this host."""

    id = "E-HOST-25"
    hint = "install the OpenSSH client, or choose another executor"


class HostCommandRefused(WorldError):
    """A command on a host ended with an error of its own."""

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
    """A person said that an instruction could not be carried out."""

    id = "E-MAN-01"
    hint = "see to the reason, then run the same command again: it renders that instruction anew"


class NotTold(WorldError):
    """Nobody told what is at a path of a host that only people may touch."""

    id = "E-MAN-03"
    hint = "run the collector's line of the last instruction for that node, or of `manual look`, and bring its answer"


class MetadataAwaited(NotTold):
    """A stopped controller's metadata log is needed, and a person is asked to bring it."""

    id = "E-MAN-04"
    hint = "bring what the README.txt of the folder named above asks for, then run the same command again"


class InstructionDamaged(InputError):
    """A file of an instruction for a person is not the one that was rendered."""

    id = "E-MAN-05"
    hint = "keep the folder for whoever looks into it, move it out of `manual`, then run the same command again"


class CannotBeInstructed(WorldError):
    """No instruction can be written for this without seeing a file that the collector may not show."""

    id = "E-MAN-02"
    hint = "choose executor ssh or local, or do what is named above by hand, with a fresh answer of the collector"


class DirectoryLost(WorldError):
    """A log directory of a stopped broker is not what it was when the step looked: the broker is not started."""

    id = "E-DIR-10"
    exit_code = 3
    hint = "`kraft-migrate status` says what is wrong with it and which command mends it; then the same command goes on"


class DirectoryInUse(WorldError):
    """A directory that was to be taken out of a broker's configuration got a replica at the last moment."""

    id = "E-DIR-08"
    exit_code = 3
    hint = "the broker was started again as it was; move its replicas away with kafka-reassign-partitions, then go on"


class DirectoriesRefused(WorldError):
    """A directory cannot become a log directory, or cannot be taken away: nothing is planned, nothing was changed."""

    id = "E-DIR-09"
    exit_code = 3
    hint = "mend what is named, and plan again"
