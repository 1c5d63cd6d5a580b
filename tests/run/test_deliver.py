"""Notifications are signed, tried again where that helps, bounded in time, and never say a secret."""

from __future__ import annotations

import json
import queue
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from migrate.errors import MigrateError, NotDelivered, NotTaken, SecretUnreadable
from migrate.model.inventory import Hook, Recipient, SecretFile, Webhook
from migrate.model.notifications import Happening, Notice
from migrate.report.notices import trial
from migrate.run import deliver as module
from migrate.run.deliver import Delivery, deliver, delivered_within
from tests.testing.certificates import Pki, secret
from tests.testing.receiver import SECRET, Receiver, genuine, receiving
from tests.testing.simulated import FakeClock

NOTICE = trial("payments", "host-1", 1_000_000.0)


@dataclass(slots=True)
class Counting(FakeClock):
    """Time passes by sleeping only, and the sleeps are kept."""

    sleeps: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        """Let them pass."""
        self.sleeps.append(seconds)
        self.time += seconds


def pager(folder: Path, url: str) -> Recipient:
    """A webhook there."""
    to = Webhook(url, secret(folder, SECRET, "webhook"))
    return Recipient("pager", to, frozenset({Happening.STOPPED}), {})


def program(folder: Path, text: str, *words: str, timeout: float = 30.0) -> Recipient:
    """A hook that is this script."""
    path = folder / "hook"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return Recipient("channel", Hook((str(path), *words), timeout), frozenset(), {})


def failed(recipient: Recipient, clock: FakeClock | None = None) -> MigrateError:
    """How it was not delivered; nothing of it is a secret."""
    with pytest.raises(MigrateError) as caught:
        deliver(recipient, NOTICE, clock or Counting())
    error = caught.value
    assert "canary" not in f"{error} {error.why} {error.next_step} {error!r} {error.__cause__}"
    assert "canary" not in repr(recipient)
    return error


def test_a_body_is_signed_with_its_time_and_sent_as_it_is(tmp_path: Path) -> None:
    """Whoever changes a byte or the time is found out."""
    with receiving() as receiver:
        deliver(pager(tmp_path, receiver.url), NOTICE, Counting())
    ((path, headers, body),) = receiver.requests
    assert (path, body) == ("/canary-path?canary=query", NOTICE.body)
    assert headers["Content-Type"] == "application/json"
    assert headers["X-Kraft-Migrate-Timestamp"] == "1000000"
    assert genuine(headers, body)
    assert not genuine(headers, body + b" ")
    assert not genuine({**headers, "X-Kraft-Migrate-Timestamp": "1000001"}, body)
    assert json.loads(body)["schema"] == "kraft-migrate/notification/v1"


def test_a_receiver_that_fails_twice_is_tried_again(tmp_path: Path) -> None:
    """The same body, signed anew with the time of each try."""
    clock = Counting()
    with receiving(500, 503) as receiver:
        deliver(pager(tmp_path, receiver.url), NOTICE, clock)
    assert len(receiver.taken) == 3
    assert len({body for _, _, body in receiver.requests}) == 1
    assert len({headers["X-Kraft-Migrate-Timestamp"] for _, headers, _ in receiver.requests}) == 3
    assert clock.sleeps == [1, 2]


def test_the_tries_have_an_end(tmp_path: Path) -> None:
    """Five, and the last answer is said."""
    with receiving(*[500] * 9) as receiver:
        error = failed(pager(tmp_path, receiver.url))
    assert isinstance(error, NotTaken)
    assert str(error) == "webhook pager at 127.0.0.1: it answered with 500"
    assert len(receiver.requests) == 5


@pytest.mark.parametrize("code", [302, 307, 400, 401, 404])
def test_an_answer_that_stays_is_not_asked_for_again(tmp_path: Path, code: int) -> None:
    """A redirect is not followed either."""
    with receiving(code) as receiver:
        error = failed(pager(tmp_path, receiver.url))
    assert isinstance(error, NotDelivered)
    assert f"answered with {code}" in str(error)
    assert len(receiver.requests) == 1


def test_nobody_there_is_tried_again_and_said(tmp_path: Path) -> None:
    """As a refused connection."""
    with receiving() as receiver:
        pass
    clock = Counting()
    error = failed(pager(tmp_path, receiver.url), clock)
    assert isinstance(error, NotTaken)
    assert str(error) == "webhook pager at 127.0.0.1: no answer: Connection refused"
    assert len(clock.sleeps) == 4


def test_silence_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver that takes a request and never answers."""
    monkeypatch.setattr(module, "ANSWERS_WITHIN", 0.05)
    with receiving(hangs=True) as receiver:
        error = failed(pager(tmp_path, receiver.url))
        receiver.wait_for(5)
    assert isinstance(error, NotTaken)
    assert "no answer" in str(error)


def test_a_certificate_that_nobody_vouches_for_is_refused_at_once(tmp_path: Path) -> None:
    """And one that is trusted is taken."""
    with receiving(tls=Pki(tmp_path).server()) as receiver:
        error = failed(pager(tmp_path, receiver.url.replace("http:", "https:")))
    assert isinstance(error, NotDelivered)
    assert "certificate is not trusted" in str(error)
    assert receiver.requests == []


def test_a_trusted_certificate_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An authority of one's own, as OpenSSL is told of it."""
    pki = Pki(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", pki.truststore.path)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with receiving(tls=pki.server()) as receiver:
        deliver(pager(tmp_path, receiver.url.replace("http:", "https:")), NOTICE, Counting())
    assert len(receiver.taken) == 1


def test_a_secret_that_cannot_be_read_sends_nothing(tmp_path: Path) -> None:
    """Unsigned is not sent."""
    with receiving() as receiver:
        webhook = Webhook(receiver.url, SecretFile(str(tmp_path / "missing")))
        error = failed(replace(pager(tmp_path, ""), to=webhook))
    assert isinstance(error, SecretUnreadable)
    assert receiver.requests == []


# -- hooks -------------------------------------------------------------------------------------------------------
def test_a_hook_gets_the_body_as_its_input_and_its_words_as_they_are(tmp_path: Path) -> None:
    """No shell reads them."""
    hook = program(tmp_path, 'cat > "$1"; echo "$2" > "$1.words"', str(tmp_path / "got"), "$(id); a b")
    deliver(hook, NOTICE, Counting())
    assert (tmp_path / "got").read_bytes() == NOTICE.body
    assert (tmp_path / "got.words").read_text() == "$(id); a b\n"


def test_a_hook_that_reads_nothing_is_fine(tmp_path: Path) -> None:
    """It may only ring a bell."""
    deliver(program(tmp_path, "exec <&-; exit 0"), NOTICE, Counting())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("echo -e '\\033[1mno route' >&2; exit 3", "it ended with 3: "),
        ("sleep 600 & sleep 600", "no end after 0 s"),
    ],
)
def test_a_hook_that_fails_or_stays_is_ended_and_said(tmp_path: Path, text: str, said: str) -> None:
    """Its time is bounded; what it complains of is made visible."""
    error = failed(program(tmp_path, text, "canary-word", timeout=30 if "exit" in text else 0.2))
    assert isinstance(error, NotDelivered)
    assert said in str(error)
    assert str(error).isprintable()


def test_a_program_that_others_can_write_is_not_run(tmp_path: Path) -> None:
    """It would run as this user."""
    hook = program(tmp_path, f"touch {tmp_path}/ran")
    (tmp_path / "hook").chmod(0o777)
    assert "cannot be trusted" in str(failed(hook))
    missing = replace(hook, to=Hook((str(tmp_path / "none"),), 1.0))
    assert "cannot be started" in str(failed(missing))
    assert not (tmp_path / "ran").exists()


# -- threads -----------------------------------------------------------------------------------------------------
def notice(number: int) -> Notice:
    """One of several."""
    return replace(NOTICE, n=number)


def test_notices_arrive_in_order_and_the_end_waits_for_them(tmp_path: Path) -> None:
    """Each once."""
    said: list[str] = []
    with receiving() as receiver:
        delivery = Delivery(pager(tmp_path, receiver.url), Counting(), said.append)
        for number in range(5):
            delivery.put(notice(number))
        delivered_within([delivery], 60, Counting())
    assert [body["n"] for body in receiver.taken] == [0, 1, 2, 3, 4]
    assert said == []


def test_one_that_hangs_holds_up_neither_the_run_nor_the_others(tmp_path: Path) -> None:
    """The other is told; the end is bounded, and says what did not arrive."""
    said: list[str] = []
    with receiving(hangs=True) as silent, receiving() as receiver:
        stuck = Delivery(pager(tmp_path, silent.url), Counting(), said.append)
        works = Delivery(replace(pager(tmp_path, receiver.url), name="other"), Counting(), said.append)
        for delivery in (stuck, works):
            delivery.put(notice(1))
            delivery.put(notice(2))
        silent.wait_for(1)
        receiver.wait_for(2)
        delivered_within([stuck, works], 0.0, Counting())
        assert said[0] == "2 notifications not delivered before the end: webhook pager at 127.0.0.1 still tries"


def test_no_hook_outlives_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What begins behind the session's end gets the time that is left, whatever its own would be."""
    with pytest.raises(NotDelivered, match="no end after"):
        deliver(program(tmp_path, "sleep 600 & sleep 600"), NOTICE, Counting(), 0.2)
    closed, within = threading.Event(), list[float]()

    def first_waits(*given: Any) -> None:
        within.append(given[3])
        closed.wait()

    monkeypatch.setattr(module, "deliver", first_waits)
    delivery = Delivery(program(tmp_path, "true"), Counting(), print)
    delivery.put(notice(1))
    delivery.put(notice(2))
    delivery.close(Counting().monotonic() + 40)
    closed.set()
    delivery.wait(60)
    assert within[1] == 40 - module.SPARE


def test_what_cannot_be_delivered_is_said_and_the_next_is_tried(tmp_path: Path) -> None:
    """Never the secret."""
    said: queue.SimpleQueue[str] = queue.SimpleQueue()
    with receiving(404) as receiver:
        delivery = Delivery(pager(tmp_path, receiver.url), Counting(), said.put)
        delivery.put(notice(1))
        delivery.put(notice(2))
        delivered_within([delivery], 60, Counting())
    told = said.get(timeout=60)
    assert told == "notification test was not delivered: webhook pager at 127.0.0.1: it answered with 404"
    assert len(receiver.taken) == 2


def test_too_many_are_said_and_not_kept(tmp_path: Path) -> None:
    """A receiver that is away for a night fills no memory."""
    said: list[str] = []
    with receiving(hangs=True) as receiver:
        delivery = Delivery(pager(tmp_path, receiver.url), Counting(), said.append)
        delivery.put(notice(0))
        receiver.wait_for(1)
        for number in range(module.MOST_WAITING + 3):
            delivery.put(notice(number))
        assert len(said) == 3
        assert "100 notifications wait already" in said[0]


def test_a_defect_in_a_delivery_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said by its kind."""
    said: list[str] = []

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(module, "deliver", broken)
    delivery = Delivery(program(tmp_path, "true"), Counting(), said.append)
    delivery.put(NOTICE)
    delivered_within([delivery], 60, Counting())
    assert said[0].endswith(": ZeroDivisionError")


def test_the_receiver_of_these_tests_refuses_what_is_not_signed() -> None:
    """Else `taken` would prove nothing."""
    receiver = Receiver()
    receiver.requests.append(
        ("/", {"X-Kraft-Migrate-Timestamp": "1", "X-Kraft-Migrate-Signature": "sha256=00"}, NOTICE.body)
    )
    with pytest.raises(AssertionError):
        assert receiver.taken
