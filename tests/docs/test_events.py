"""The scripts of docs/automation.md: a real curl to a real server, a real file, a mailer on PATH."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from migrate.cli.progress import json_line
from migrate.model.history import Event
from migrate.run.clock import SystemClock
from migrate.run.on_event import EventCommand
from tests.report import story

PAGE = (Path(__file__).parents[2] / "docs" / "automation.md").read_text(encoding="utf-8")
STOP = Event(57, 1796076000.5, "stop", {"reason": 'outside of "the window"\n', "code": "E-WIN-02"})
STAGE = Event(3, 1796070000.0, "stage", {"stage": "copy"})
WAITS = Event(9, 1796070001.0, "waiting", {"step": "copy/copy", "what": "the copy", "owner": "o", "next": "n"})
NOTE = Event(58, 1796076001.0, "note", {"key": "k", "value": '"event":"stop"'})
needs_jq = pytest.mark.skipif(
    shutil.which("jq") is None or shutil.which("curl") is None, reason="no jq or no curl on this machine"
)


def script(folder: Path, name: str) -> Path:
    """The script of that name, saved as the page says."""
    text = re.search(rf"^`{name}`.*?^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert text is not None
    path = folder / name
    path.write_text(text[1], encoding="utf-8")
    path.chmod(0o755)
    return path


def given(words: list[str], *events: Event) -> None:
    """Events of a run, as `--on-event` gives them: each is taken."""
    said: list[str] = []
    command = EventCommand(words, SystemClock(), said.append)
    for event in events:
        command(json_line(story.plan(), event))
    assert (command.close(), said) == ("", [])


@contextmanager
def server() -> Iterator[tuple[str, list[tuple[str, str, Any]]]]:
    """Its URL, and the path, type and JSON of each request."""
    taken: list[tuple[str, str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.append((self.path, self.headers["Content-Type"], json.loads(body)))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    listens = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listens.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listens.server_address[1]}/hooks/canary", taken
    finally:
        listens.shutdown()
        thread.join()
        listens.server_close()


def test_the_example_for_mail_gives_the_mailer_a_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To whom it is told, with the event; nothing for a wait.  The mailer is replaced: it must send nothing."""
    mailer = tmp_path / "sendmail"
    mailer.write_text(f'#!/bin/sh\n[ "$*" = -t ] && cat >> {tmp_path}/letters\n')
    mailer.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    given([str(script(tmp_path, "tell-mail")), "oncall@example.com"], WAITS, STOP, NOTE)
    head, _, body = (tmp_path / "letters").read_text().partition("\n\n")
    assert head.splitlines() == ["To: oncall@example.com", f"Subject: kraft-migrate on {os.uname().nodename}"]
    assert json.loads(body)["data"] == dict(STOP.data)


@pytest.mark.slow
@needs_jq
def test_the_example_for_a_chat_posts_to_a_server(tmp_path: Path) -> None:
    """By the real curl; the URL is in a file alone."""
    with server() as (url, taken):
        (tmp_path / "chat").write_text(f'url = "{url}"\n')
        given([str(script(tmp_path, "tell-chat")), str(tmp_path / "chat")], STAGE, WAITS, STOP, NOTE)
    run = story.plan().short
    assert taken == [
        ("/hooks/canary", "application/json", {"text": f"kraft-migrate {run}: {text}"})
        for text in ("stage  copy", "waiting copy/copy the copy", 'stop  outside of "the window"\n')
    ]


@needs_jq
def test_the_example_for_a_chat_fails_where_nobody_takes_it(tmp_path: Path) -> None:
    """Else no failure would be told."""
    with server() as (url, _):
        pass
    (tmp_path / "chat").write_text(f'url = "{url}"\n')
    said: list[str] = []
    command = EventCommand([str(script(tmp_path, "tell-chat")), str(tmp_path / "chat")], SystemClock(), said.append)
    command(json_line(story.plan(), STOP))
    assert "1 failed (the first: it ended with 7)" in command.close()
    assert "canary" not in "".join(said)


@pytest.mark.slow
@needs_jq
def test_the_example_for_prometheus_writes_what_its_reader_takes(tmp_path: Path) -> None:
    """The newest event, but for notes; a run that has stopped is not active."""
    path = tmp_path / "kraft_migrate.prom"
    words = [str(script(tmp_path, "tell-textfile")), str(path)]
    for events, active, newest in (((STAGE, WAITS), 1.0, WAITS), ((STOP, NOTE), 0.0, STOP)):
        given(words, *events)
        found = {
            sample.name: (sample.labels, sample.value)
            for family in text_string_to_metric_families(path.read_text())
            for sample in family.samples
        }
        run = {"run": story.plan().short}
        labels = {**run, "event": newest.name, "step": newest.data.get("step", "")}
        assert found == {
            "kraft_migrate_run_active": (run, active),
            "kraft_migrate_event_number": (run, float(newest.number)),
            "kraft_migrate_event_time_seconds": (labels, newest.time),
        }
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["kraft_migrate.prom", "tell-textfile"]


def test_the_line_on_the_page_is_one() -> None:
    """Byte for byte as it is written: people try their commands with it."""
    block = re.search(r"^```json\n(.*)\n```$", PAGE, re.MULTILINE)
    assert block is not None
    line = json.loads(block[1])
    assert json_line(story.plan(), Event(line["n"], line["time"], line["event"], line["data"])) == block[1].replace(
        "1a2b3c4d", story.plan().short
    )
