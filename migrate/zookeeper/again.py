"""Reading the same tree again, as waits and `status --watch` do: never an old one, and not without a pause.

ZooKeeper numbers every transaction (zxid), and each answer names the newest one that its server has made.  After a sync
that is the newest of the whole ensemble.  If it is the one of the last view, nothing has happened since: no znode, no
ACL and no session has changed.  Any other zxid is a whole read.  Whole reads keep a distance: an ensemble that serves
a cluster is not read by us all the time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from migrate.model.secrets import Digester
from migrate.model.views import ZookeeperView
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.password_encoder import EncoderSecrets
from migrate.zookeeper.read import read_view

LOG: Final = logging.getLogger("migrate.zookeeper")
REST: Final = 3.0  # times as long as the last whole read took
MOST_REST: Final = 5.0  # seconds


def _sleep(seconds: float) -> None:
    threading.Event().wait(seconds)  # Ctrl-C ends it at once


class Rereader:
    """Reads the whole view through one client after the other, and remembers the last one.

    `whole` counts the whole reads.  `monotonic` and `sleep` are the clock's.
    """

    def __init__(
        self,
        digester: Digester,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = _sleep,
    ) -> None:
        self.whole = 0
        self._digester = digester
        self._monotonic = monotonic
        self._sleep = sleep
        self._free = monotonic()
        self._last: tuple[int, int, EncoderSecrets | None, ZookeeperView] | None = None

    def read(self, client: ZookeeperClient, secrets: EncoderSecrets | None = None) -> ZookeeperView:
        """The view as the tree is after this call began.  Raises what `read_view` raises."""
        if self._last is not None:
            client.sync()
            *known, view = self._last
            if known == [client.session, client.zxid(), secrets]:
                LOG.debug("nothing has happened in ZooKeeper since the last look")
                return view
            self._last = None
        left = self._free - self._monotonic()
        if client.pace.rate is None and left > 0:  # where the operator says how fast it may be read, that is enough
            self._sleep(left)
        begun = self._monotonic()
        view = read_view(client, self._digester, secrets)
        self.whole += 1
        now = self._monotonic()
        self._free = now + min(REST * (now - begun), MOST_REST)
        # one zxid from the first answer to the last: nothing happened meanwhile, so all of it is of that moment
        if view.zxid_first == view.zxid_last == client.zxid():
            self._last = (client.session, view.zxid_last, secrets, view)
        return view
