"""What a roll's gate or proof says beside its own reason where disks are not as they should be: which, where to look.

A broker that did not start, or registered fewer directories than its file names, says nothing of the cause.
"""

from __future__ import annotations

from dataclasses import replace

from migrate.model.disk_trouble import sick_directories
from migrate.model.outcome import NotYet, Readiness, Refused
from migrate.model.world import World

LOOK = "`status` says what that does and what to do"


def with_sick_disks(world: World, broker: int | None, found: Readiness) -> Readiness:
    """The same answer: a refusal names the broker's sick directories, a wait those of all brokers as its next step.

    Without a broker the proof is of the whole cluster, and a refusal names all of them, too.  A disk that dies under
    another broker keeps the ISRs from filling: that does not come by itself.
    """
    if not isinstance(found, Refused | NotYet):
        return found
    sick = [
        f"{one.node} {one.directory.path}: {one.said}"
        for one in sick_directories(world)
        if broker in (None, one.broker) or isinstance(found, NotYet)
    ]
    if not sick:
        return found
    words = f"{'; '.join(sick)}: {LOOK}"
    if isinstance(found, NotYet):
        return replace(found, next_step=words)
    return replace(found, reason=f"{found.reason}; {words}")
