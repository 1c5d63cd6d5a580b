"""Notifications on their way: a thread for each recipient, so that nobody waits for a webhook that does not answer.

What cannot be delivered is said and forgotten: it ends no run.  What is said never has the URL, the secret, or a word
of the command but its program.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import logging
import math
import queue
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from migrate import __version__
from migrate.errors import MigrateError, NotDelivered, NotTaken, Retryable
from migrate.hosts.runner import LocalRunner
from migrate.kafka.secrets import read_secret
from migrate.model.inventory import Hook, Recipient, Webhook
from migrate.model.notifications import Notice
from migrate.model.ports import Clock
from migrate.model.trusted import distrust_of
from migrate.model.words import plural

LOG: Final = logging.getLogger("migrate.run")
TIMESTAMP: Final = "X-Kraft-Migrate-Timestamp"
SIGNATURE: Final = "X-Kraft-Migrate-Signature"
ANSWERS_WITHIN: Final = 10.0  # seconds of silence that end a request
ATTEMPTS: Final = 5
MOST_WAITING: Final = 100  # notices for one recipient
SPARE: Final = 2.0  # seconds before the end of the process, in which a hook is ended
LATER: Final = frozenset({408, 425, 429})  # and all of 500 to 599: HTTP's own "try again"


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """`sha256=` and the HMAC in hex, over the timestamp, a dot, and the body as it is sent."""
    signed = timestamp.encode() + b"." + body
    return "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def deliver(recipient: Recipient, notice: Notice, clock: Clock, within: float = math.inf) -> None:
    """Deliver one notice; a webhook is tried five times, a hook is ended after `within` seconds at the latest.

    Raises:
        NotDelivered, NotTaken, SecretUnreadable: it did not arrive.
    """
    match recipient.to:
        case Webhook() as webhook:
            retry = Retrying(
                retry=retry_if_exception_type(Retryable),
                stop=stop_after_attempt(ATTEMPTS),
                wait=wait_exponential(max=30),
                sleep=clock.sleep,
                reraise=True,
            )
            retry(_post, webhook, recipient.place, notice.body, clock)
        case Hook() as hook:
            _run(hook, recipient.place, notice.body, min(hook.timeout, within))


def _post(webhook: Webhook, place: str, body: bytes, clock: Clock) -> None:
    timestamp = str(int(clock.now()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"kraft-migrate/{__version__}",
        TIMESTAMP: timestamp,
        SIGNATURE: signature(read_secret(webhook.secret), timestamp, body),
    }
    request = urllib.request.Request(webhook.url, body, headers, method="POST")  # noqa: S310 - the reader refused others
    opener = urllib.request.OpenerDirector()  # without the handler of redirects: what is signed goes to one place
    opener.add_handler(urllib.request.ProxyHandler(None if urlsplit(webhook.url).scheme == "https" else {}))
    opener.add_handler(urllib.request.HTTPHandler())
    opener.add_handler(urllib.request.HTTPSHandler(context=ssl.create_default_context()))
    opener.add_handler(urllib.request.HTTPDefaultErrorHandler())
    opener.add_handler(urllib.request.HTTPErrorProcessor())
    try:
        with opener.open(request, timeout=ANSWERS_WITHIN):
            pass  # the code is all that counts
    except urllib.error.HTTPError as error:
        error.close()
        kind = NotTaken if error.code in LATER or error.code >= 500 else NotDelivered
        why = "redirects are not followed" if 300 <= error.code < 400 else ""
        raise kind(f"it answered with {error.code}", where=place, why=why) from None
    except (OSError, http.client.HTTPException) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise NotDelivered(f"its certificate is not trusted: {cause.verify_message}", where=place) from None
        silent = f"within {ANSWERS_WITHIN:.0f} s" if isinstance(cause, TimeoutError) else type(cause).__name__
        raise NotTaken(f"no answer: {getattr(cause, 'strerror', None) or silent}", where=place) from None


def _run(hook: Hook, place: str, body: bytes, seconds: float) -> None:
    """The program and its folder must be out of others' reach, as with a secret's command."""
    program = Path(hook.argv[0])
    try:
        problem = distrust_of(program, program.parent)
    except OSError as error:
        raise NotDelivered(f"it cannot be started: {error.strerror}", where=place) from None
    if problem:
        raise NotDelivered(f"it cannot be trusted: {problem}", where=place, next_step="chown it, or chmod go-w")
    try:
        done = LocalRunner().run(hook.argv, stdin=body, seconds=seconds)
    except MigrateError as error:
        raise NotDelivered(error.what, where=place) from None
    if done.code:
        said = f": {done.says}" if done.says else ""
        raise NotDelivered(f"it ended with {done.code}{said}", where=place)


class Delivery:
    """One recipient's queue, and the thread that empties it.  `say` is told what did not arrive."""

    def __init__(self, recipient: Recipient, clock: Clock, say: Callable[[str], None]) -> None:
        self._recipient, self._clock, self._say = recipient, clock, say
        self._notices: queue.SimpleQueue[Notice | None] = queue.SimpleQueue()
        self._until = math.inf
        self._thread = threading.Thread(target=self._work, name=f"notify {recipient.name}", daemon=True)
        self._thread.start()

    def put(self, notice: Notice) -> None:
        """Never waits."""
        if self._notices.qsize() >= MOST_WAITING:
            self._lost(notice, f"{self._recipient.place}: {MOST_WAITING} notifications wait already")
        else:
            self._notices.put(notice)

    def close(self, until: float) -> None:
        """No more will come; no hook outlives that moment of the clock, for nobody would end it."""
        self._until = until
        self._notices.put(None)

    def wait(self, seconds: float) -> None:
        """Give what is left so much time; what does not arrive is said, and its thread is left to itself."""
        self._thread.join(max(0.0, seconds))
        if self._thread.is_alive():
            behind = plural(max(1, self._notices.qsize()), "notification")
            self._say(f"{behind} not delivered before the end: {self._recipient.place} still tries")

    def _work(self) -> None:
        while (notice := self._notices.get()) is not None:
            try:
                deliver(self._recipient, notice, self._clock, max(0.0, self._until - self._clock.monotonic() - SPARE))
            except MigrateError as error:
                self._lost(notice, str(error))
            except Exception as error:
                LOG.debug("a notification", exc_info=True)
                self._lost(notice, f"{self._recipient.place}: {type(error).__name__}")

    def _lost(self, notice: Notice, why: str) -> None:
        self._say(f"notification {notice.event} was not delivered: {why}")


def delivered_within(deliveries: Sequence[Delivery], seconds: float, clock: Clock) -> None:
    """Close all, and wait for all of them together, for so long at most."""
    deadline = clock.monotonic() + seconds
    for delivery in deliveries:
        delivery.close(deadline)
    for delivery in deliveries:
        delivery.wait(deadline - clock.monotonic())
