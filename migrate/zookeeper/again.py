"""Reading the same tree again and again, as a wait does: cheaply, and never an old one.

ZooKeeper numbers every transaction (zxid), and each answer names the newest one that its server has made.  After a sync
that is the newest of the whole ensemble.  Is it the one at which the last view stood, then nothing at all has happened
since: no znode, no ACL and no session has changed, and the view is the tree's as it is now.

Where something did happen, a watch says what (`migrate.zookeeper.tree_watch`), and that is read again: while a KRaft
controller is in dual write it writes /migration twice a second, and nothing else moves for most of the time.  Whoever
reads once needs no watch; the second whole read sets it.  A whole read it is again where the server has no such watch
(before 3.6), where an event may have been missed (a connection or session ended), where more than topics, states and
single znodes changed, where something may not be read or is malformed, and where a transaction happened of which no
event told: an ACL's, a session's, one of znodes that may not be read; before 3.9, where events do not name theirs, that
is every one.  Only a caller that waits, and proves before it acts (`poll`), is content with the events alone, and not
for long.  Whole reads keep a distance: an ensemble that serves a cluster is not read by us without a pause.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Final

from migrate.errors import MalformedZnode, MigrateError
from migrate.model.secrets import Digester
from migrate.model.views import NoZnode, ZookeeperView
from migrate.zookeeper import layout
from migrate.zookeeper.changes import TAKEOVER, Touched, catch_up
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.collect import Collected
from migrate.zookeeper.password_encoder import EncoderSecrets
from migrate.zookeeper.read import read_acls, read_kept, takeover_of, view_from
from migrate.zookeeper.tree_watch import TreeWatch, watch
from migrate.zookeeper.znode import Absent

LOG: Final = logging.getLogger("migrate.zookeeper")
REST: Final = 3.0  # times as long as the last whole read took
MOST_REST: Final = 5.0  # seconds
OLDEST: Final = 30.0  # seconds; after so many a poll is a whole read, where events do not say that they are all


def _sleep(seconds: float) -> None:
    threading.Event().wait(seconds)  # Ctrl-C ends it at once


@dataclass(slots=True)
class Kept:
    """What was read of a tree, and a view of it.

    All that was `found` is right up to the transaction `stands`; `view` lacks what is in `moved`: ask `current`.
    `touched` gathers what has changed since somebody took it; `proven` is the time of the last look without a doubt;
    once there was one, which a poll was content with, nothing but a whole read makes it `sure` again.
    """

    found: Collected
    view: ZookeeperView
    secrets: EncoderSecrets | None
    digester: Digester
    stands: int
    proven: float
    sure: bool = True
    touched: Touched = field(default_factory=partial(Touched, everything=True))
    moved: Touched = field(default_factory=Touched)

    def current(self) -> ZookeeperView:
        """The view of what was found.  Raises MalformedZnode: a whole read tells of it as it tells of all."""
        found, moved, self.moved = self.found, self.moved, Touched(everything=True)
        if moved.everything or moved.topics or moved.states or not moved.singles <= TAKEOVER:
            states = chain.from_iterable(map(dict.values, found.states.values()))
            found.count = len(found.znodes) + sum(not isinstance(state, Absent) for state in states)
            self.view = view_from(found, self.view.connect, self.digester, self.secrets)
            for entry in found.malformed.values():
                raise MalformedZnode(entry.problem, where=entry.path)
        elif moved.singles or found.zxid_last != self.view.zxid_last:
            self.view = self._with_takeover()
        self.moved = Touched()
        return self.view

    def _with_takeover(self) -> ZookeeperView:
        """Nothing but the takeover's znodes is another."""
        found, view = self.found, self.view
        now, before = takeover_of(found.znodes), (view.migration, view.controller, view.controller_epoch)
        epoch = found.znodes.get(layout.CONTROLLER_EPOCH)
        there, were = (sum(not isinstance(one, NoZnode) for one in some) for some in (now, before))
        return replace(
            view,
            migration=now.migration,
            controller=now.controller,
            controller_epoch=now.controller_epoch,
            controller_epoch_version=-1 if epoch is None else epoch.version,
            znodes=view.znodes + there - were,
            zxid_first=found.zxid_first,
            zxid_last=found.zxid_last,
        )


class Rereader:
    """Reads the whole view through one client after the other, with what it remembers of the last time.

    `whole` counts the whole reads, `narrow` those of changes alone.  `monotonic` and `sleep` are the clock's.
    """

    def __init__(
        self,
        digester: Digester,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = _sleep,
    ) -> None:
        self.whole = self.narrow = 0
        self.kept: Kept | None = None
        self._digester = digester
        self._monotonic = monotonic
        self._sleep = sleep
        self._free = monotonic()
        self._last: tuple[int, int, EncoderSecrets | None, ZookeeperView] | None = None
        self._watch: TreeWatch | None = None
        self._read_by: ZookeeperClient | None = None
        self._has_watches = True

    def read(
        self, client: ZookeeperClient, secrets: EncoderSecrets | None = None, *, poll: bool = False
    ) -> ZookeeperView:
        """The view as the tree stands after this call began; `poll`: nobody acts on it.

        Raises what `read_view` raises.
        """
        if self._last is not None:
            client.sync()
            *known, view = self._last
            if known == [client.session, client.zxid(), secrets]:
                LOG.debug("nothing has happened in ZooKeeper since the last look")
                return view
            self._last = None
        again = self.follow(client, secrets, poll=poll)
        try:
            if again is not None:
                return replace(again.current(), acls=read_acls(client))
        except MigrateError as error:
            LOG.debug("what changed cannot be told by itself: %s", error)
        return self._whole(client, secrets)

    def follow(
        self, client: ZookeeperClient, secrets: EncoderSecrets | None = None, *, poll: bool = False
    ) -> Kept | None:
        """What was read, with what has changed since; None: only a whole read (`read`) can say."""
        kept, seen = self.kept, self._watch
        self.kept = None  # until all of it is right again
        if kept is None or seen is None or seen.client is not client or kept.secrets != secrets:
            return None
        if not (poll or (kept.sure and seen.names_transactions)):
            return None
        found = kept.found
        try:
            now = catch_up(client, found, seen, kept.stands)
        except MigrateError as error:
            LOG.debug("the changes alone cannot be read: %s", error)
            return None
        kept.sure = kept.sure and now is not None and now.whole
        if now is None or not (kept.sure or (poll and self._monotonic() - kept.proven < OLDEST)):
            return None
        if kept.sure:
            kept.proven = self._monotonic()
        kept.stands = found.zxid_first = found.zxid_last = now.zxid
        kept.touched.add(now.touched)
        kept.moved.add(now.touched)
        self.kept = kept
        self.narrow += 1
        return kept

    def _whole(self, client: ZookeeperClient, secrets: EncoderSecrets | None) -> ZookeeperView:
        self.kept = None
        self._rest(client)
        self._set_watch(client)
        begun = self._monotonic()
        view, found = read_kept(client, self._digester, secrets)
        self.whole += 1
        now = self._monotonic()
        self._free = now + min(REST * (now - begun), MOST_REST)
        # one zxid from the first answer to the last: nothing happened meanwhile, so all of it is of that moment
        if view.zxid_first == view.zxid_last == client.zxid():
            self._last = (client.session, view.zxid_last, secrets, view)
        if self._watch is not None and not (found.denied or found.moving or found.malformed):
            self.kept = Kept(found, view, secrets, self._digester, found.zxid_first, begun)
        return view

    def _set_watch(self, client: ZookeeperClient) -> None:
        """Before the second whole read by a client, and wherever events may have been missed."""
        if self._watch is not None and (self._watch.client is not client or self._watch.take() is None):
            self._watch = None
        if self._watch is None and self._read_by is client and client.multiread and self._has_watches:
            self._watch = watch(client)
            self._has_watches = self._watch is not None
        self._read_by = client

    def _rest(self, client: ZookeeperClient) -> None:
        """Leave the ensemble to others; where the operator says how fast it may be read, that is enough."""
        left = self._free - self._monotonic()
        if client.pace.rate is None and left > 0:
            self._sleep(left)
