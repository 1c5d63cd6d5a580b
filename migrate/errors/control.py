"""Errors of windows, approvals, control and evidence: why a run waits, parks, or does not begin."""

from __future__ import annotations

from migrate.errors.base import InputError, WorldError


class WindowNeverOpens(InputError):
    """A change window has no opening any more: what waits for it would wait for ever."""

    id = "E-WIN-01"
    exit_code = 3
    hint = "correct the window in the playbook, then plan again; nothing was changed"


class WindowClosed(WorldError):
    """The window is closed, or too short for what would have to follow: nothing was begun in this session."""

    id = "E-WIN-02"
    exit_code = 4
    hint = "run the same command again when the window is open"


class RunParked(WorldError):
    """The run stopped of its own accord at a safe point, with the reason that is named."""

    id = "E-PARK-01"
    exit_code = 5
    hint = "run the same command again to go on; `status` shows how the cluster stands"


class RunInterrupted(WorldError):
    """Ctrl-C or SIGTERM: the run stopped at the next safe point, with no step half done."""

    id = "E-PARK-02"
    exit_code = 130
    hint = "run the same command again to go on"


class ClockJumped(WorldError):
    """This host's clock was set while the run went on, or stands before the journal's last line."""

    id = "E-PARK-03"
    hint = "set the clock right (NTP), then run the same command again; windows and approvals rest on it"


class ControlUnreadable(InputError):
    """A run's control file cannot be understood; a wish that cannot be read is never taken as none."""

    id = "E-CTL-01"
    hint = "write it with `kraft-migrate control`, or delete the file; nothing was changed"


class ControlUnwritable(WorldError):
    """What is wished of a run cannot be written into its folder: the run goes on as before."""

    id = "E-CTL-02"
    hint = "make room, or give the right to write into the run's folder; then run the same command again"


class NotApproved(InputError):
    """A stage asks for approvals, and there are not enough that count."""

    id = "E-APPR-01"
    exit_code = 4
    hint = "let the reviewers run `kraft-migrate approve PLAN`, then the same command; nothing of that stage was begun"


class ApprovalRefused(InputError):
    """An approval in the run's folder does not count: unreadable, of another plan, or its signature does not fit."""

    id = "E-APPR-02"
    exit_code = 4
    hint = "find out where the file comes from and take it away; nothing was changed"


class KeyUnusable(InputError):
    """A key for signing cannot be used: unreadable, no Ed25519 key, or another one than the playbook has."""

    id = "E-APPR-03"
    hint = "name the private key of the pair (ssh-keygen -t ed25519) whose public key stands in the playbook"


class LockNotDead(WorldError):
    """A lock was not removed: its owner lives, or it is not the one that was named."""

    id = "E-LOCK-03"
    exit_code = 7
    hint = "look again with `kraft-migrate unlock`; a living owner is stopped, not robbed"


class EvidenceBroken(InputError):
    """An evidence bundle is not what was written: a hash, the journal's chain, a fingerprint or signature is wrong."""

    id = "E-EVID-01"
    hint = "do not rely on this file; make the bundle again from the run's folder"
