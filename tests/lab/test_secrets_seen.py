"""What looks for secrets finds them: in every form, and in children that live for a moment."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import urllib.parse
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.secrets_seen import Processes, forms, holding

SECRET = 's3cr3t/Pa+ss w"ö'


def held(text: str) -> list[str]:
    """Who is found in it."""
    return holding(text.encode(), frozenset({SECRET, "another-one"}))


@pytest.mark.parametrize(
    "encoded",
    [
        str,
        json.dumps,
        lambda secret: urllib.parse.quote(secret, safe=""),
        lambda secret: secret.encode().hex(),
        lambda secret: secret.encode().hex().upper(),
        lambda secret: base64.b64encode(secret.encode()).decode(),
        lambda secret: base64.urlsafe_b64encode(secret.encode()).decode(),
        lambda secret: base64.b64encode(f"\0user\0{secret}".encode()).decode(),
        lambda secret: base64.b64encode(f"\0admin\0{secret} and more".encode()).decode(),
        lambda secret: base64.b64encode(f"\0bob2\0{secret}\n".encode()).decode(),
    ],
    ids=["plain", "json", "percent", "hex", "HEX", "base64", "url", "in 6 bytes", "in 7 bytes", "in 5 bytes"],
)
def test_each_form_of_a_secret_is_found(encoded: Callable[[str], str]) -> None:
    """Wherever it begins in what is encoded."""
    assert held(f"before {encoded(SECRET)} behind") == [SECRET]


def test_what_holds_none_is_not_accused() -> None:
    """Nor does half of one count."""
    assert held("s3cr3t/Pa and base64 of it: czNjcjN0L1Bh") == []
    assert all(len(form) >= 6 for form in forms("short1"))


@pytest.mark.slow
def test_words_and_environment_of_a_child_of_a_child_are_seen(tmp_path: Path) -> None:
    """Ours by descent, whatever they say of themselves."""
    inner = "import sys; sys.stdin.read()"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}, 'word'], env={{'KEY': 'VALUE'}})"
    with (
        Processes(tmp_path) as processes,
        subprocess.Popen([sys.executable, "-c", outer], stdin=subprocess.PIPE) as child,
    ):
        while not any(b"word" in words and b"KEY=VALUE" in environment for _, words, environment in processes.seen):
            assert child.poll() is None
            processes.look()
        assert child.stdin is not None
        child.stdin.close()
    assert processes.of(b"\0word\0") == 1


def test_a_process_that_names_the_folder_is_seen_whoever_started_it(tmp_path: Path) -> None:
    """Brokers are nobody's children by then."""
    command = f"exec setsid {sys.executable} -c 'import sys; sys.stdin.read()' {tmp_path}/conf"
    with subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE) as child:
        processes = Processes(tmp_path)
        while not processes.of(b"/conf"):
            assert child.poll() is None
            processes.look()
        assert child.stdin is not None
        child.stdin.close()
