"""Secrets from variables and commands: the value reaches who asks for it, and no message, word or environment."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from migrate.errors import SecretUnreadable
from migrate.java import secret_command
from migrate.kafka.secrets import read_secret
from migrate.model.inventory import SecretCommand, SecretFile, SecretVariable
from migrate.playbook.load import dump_inventory, load_inventory
from tests.playbook.corpus import INVENTORY

CANARY = "canary-$(id)-'\";`é"
NAME = "KRAFT_MIGRATE_TEST_SECRET"


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    """Answers of commands are kept for minutes."""
    secret_command._KEPT.clear()
    yield
    secret_command._KEPT.clear()


def program(folder: Path, text: str, mode: int = 0o755) -> str:
    """A program of the operator's; `$0` is its path."""
    path = folder / "vault"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(mode)
    return str(path)


def refused(secret: SecretCommand | SecretFile | SecretVariable) -> SecretUnreadable:
    """Why; never with the canary, or with words of the command beyond its program."""
    with pytest.raises(SecretUnreadable) as caught:
        read_secret(secret)
    error = caught.value
    told = repr(error) + str(error) + error.where + error.why + error.next_step
    assert "canary" not in told
    assert "--token" not in told
    assert (error.__cause__, error.__suppress_context__) == (None, True) or error.__context__ is None
    return error


def living(session: int) -> list[str]:
    """Processes of that session which are more than an entry that nobody has asked for yet."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, its_session = path.read_text().rpartition(")")[2].split()[:4]
            found += [path.parent.name] if int(its_session) == session and state != "Z" else []
    return found


# -- variables -----------------------------------------------------------------------------------------------------
def test_a_variable_is_read_and_no_child_is_given_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From the moment on at which an inventory names it, before anything is started."""
    monkeypatch.setenv(NAME, f" {CANARY}\n")
    path = tmp_path / "inventory.yaml"
    path.write_text(INVENTORY + f"  password_encoder_secret: {{env: {NAME}}}\n")
    found = load_inventory(path).password_encoder_secret
    assert found == SecretVariable(NAME)
    assert NAME not in os.environ
    names = subprocess.run(
        [sys.executable, "-c", "import os; print(sorted(os.environ))"], capture_output=True, text=True, check=True
    )
    assert NAME not in names.stdout
    for _ in range(2):
        assert read_secret(found) == CANARY


def test_a_variable_that_is_set_again_is_the_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that is not, is as it was."""
    for value in ("one", "two"):
        monkeypatch.setenv(NAME, value)
        assert read_secret(SecretVariable(NAME)) == value
    assert read_secret(SecretVariable(NAME)) == "two"


@pytest.mark.parametrize(("value", "says"), [(None, "is not set"), (" \n", "is empty"), ("canary\udcff", "not UTF-8")])
def test_a_variable_that_is_no_secret_is_refused_by_its_name(
    monkeypatch: pytest.MonkeyPatch, value: str | None, says: str
) -> None:
    """Not set, empty, or bytes that are no text."""
    name = NAME + says.replace(" ", "_").replace("-", "_").upper()
    if value is not None:
        monkeypatch.setenv(name, value)
    error = refused(SecretVariable(name))
    assert says in error.what
    assert error.where == f"environment {name}"


# -- files ---------------------------------------------------------------------------------------------------------
@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
def test_a_secrets_file_of_another_user_is_not_read(tmp_path: Path) -> None:
    """Root could read it whatever its mode is; its owner could change it at any time."""
    path = tmp_path / "password"
    path.write_text("canary")
    path.chmod(0o600)
    assert read_secret(SecretFile(str(path))) == "canary"
    os.chown(path, 65534, 65534)
    error = refused(SecretFile(str(path)))
    assert "it belongs to" in error.what
    assert (error.where, error.id) == (str(path), SecretUnreadable.id)
    assert "chown" in error.next_step


# -- commands ------------------------------------------------------------------------------------------------------
def test_a_commands_words_reach_it_as_they_are(tmp_path: Path) -> None:
    """No shell has seen them, and what it writes is the secret, without the white space around it."""
    made = tmp_path / "made"
    words = ("$(touch made)", "; touch made", "a b", "*", "")
    read = read_secret(SecretCommand((program(tmp_path, "printf '%s|' \"$@\"; echo"), *words)))
    assert read == "|".join(words) + "|"
    assert not made.exists()


def test_a_command_is_given_no_input_no_terminal_and_no_other_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it waits for nobody; what else it needs of the environment is there."""
    monkeypatch.setenv(NAME, CANARY)
    monkeypatch.setenv("VAULT_ADDR", "https://vault")
    assert read_secret(SecretVariable(NAME)) == CANARY
    asks = 'cat; (: < /dev/tty) 2>/dev/null && echo tty; env | grep -c canary; echo "$VAULT_ADDR"'
    assert read_secret(SecretCommand((program(tmp_path, asks),))) == "0\nhttps://vault"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("echo canary; echo canary >&2; exit 3", "ended with 3"),
        ("echo canary; kill -9 $$", "ended with -9"),
        ("echo canary >&2", "is empty"),
        ("printf 'canary\\377'", "is not UTF-8"),
        ("yes canary", "more than 64 KiB"),
        ("echo canary; sleep 600", "did not end within 1 s"),
        ("echo canary; sleep 600 & exit 0", "did not end within 1 s"),  # what it started holds its output
    ],
)
def test_a_command_that_fails_is_refused_by_its_program_alone(
    tmp_path: Path, text: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it wrote, to its standard error too, is in no message; nothing of it goes on living."""
    alive = tmp_path / "alive"
    words = (program(tmp_path, f"echo $$ > {alive}; {text}"), "--token", "canary-token")
    began = time.monotonic()
    monkeypatch.setattr("migrate.kafka.secrets.COMMAND_SECONDS", 1.0)
    error = refused(SecretCommand(words))
    assert time.monotonic() - began < 5
    assert says in error.what
    assert error.where == words[0]
    session, deadline = int(alive.read_text()), time.monotonic() + 20
    while found := living(session):  # killed, and not yet gone
        assert time.monotonic() < deadline, found


def test_a_program_that_others_can_change_is_not_run(tmp_path: Path) -> None:
    """It would be run as this user; the same rule decides that decides for files."""
    made = tmp_path / "made"
    for mode in (0o757, 0o777):
        error = refused(SecretCommand((program(tmp_path, f"touch {made}; echo x", mode),)))
        assert f"{mode:04o}" in error.what
        assert "chmod go-w" in error.next_step
    program(tmp_path, f"touch {made}; echo x")
    tmp_path.chmod(0o757)
    assert f"{tmp_path}: its mode is 0757" in refused(SecretCommand((str(tmp_path / "vault"),))).what
    assert not made.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
def test_a_program_of_another_user_or_of_a_group_with_others_is_not_run(tmp_path: Path) -> None:
    """Whoever owns it can change it, whatever its mode is now."""
    made = tmp_path / "made"
    path = program(tmp_path, f"touch {made}; echo x")
    os.chown(path, 65534, 0)
    assert "it belongs to" in refused(SecretCommand((path,))).what
    os.chown(path, 0, 65534)
    Path(path).chmod(0o775)
    assert "others of its group may write it" in refused(SecretCommand((path,))).what
    assert not made.exists()


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_command_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    """Nothing there, or a folder."""
    tmp_path.chmod(0o755)
    assert "cannot be started" in refused(SecretCommand((str(tmp_path / name),))).what


@pytest.mark.slow
def test_an_answer_is_asked_for_once_by_all_who_need_it(tmp_path: Path) -> None:
    """Connections are opened by the hundred, at the same time; a failure is not kept."""
    count = tmp_path / "count"
    secret = SecretCommand((program(tmp_path, f"echo x >> {count}; sleep 0.2; echo {os.getpid()}"),))
    told: list[str] = []
    threads = [threading.Thread(target=lambda: told.append(read_secret(secret))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [str(os.getpid())] * 8
    assert count.read_text() == "x\n"
    fails = SecretCommand((program(tmp_path, f"echo x >> {count}; exit 1"), "other"))
    for _ in range(2):
        refused(fails)
    assert count.read_text() == "x\n" * 3


def test_a_command_that_hangs_delays_no_other(tmp_path: Path) -> None:
    """A pager's secret that no vault answers for holds up no connection of a run."""
    for name in ("begun", "go-on"):
        os.mkfifo(tmp_path / name)
    hangs = SecretCommand((program(tmp_path, f"echo > {tmp_path}/begun; read line < {tmp_path}/go-on; echo late"),))
    told: list[str] = []
    thread = threading.Thread(target=lambda: told.append(read_secret(hangs)))
    thread.start()
    (tmp_path / "begun").read_text()
    assert read_secret(SecretCommand(("/bin/echo", "soon"))) == "soon"
    assert told == []
    (tmp_path / "go-on").write_text("\n")
    thread.join()
    assert told == ["late"]


def test_every_kind_of_reference_is_written_as_it_is_read(tmp_path: Path) -> None:
    """Through an inventory and back."""
    path = tmp_path / "inventory.yaml"
    current = "{command: [/bin/vault, read, 'a: b']}"
    old = f"{{env: {NAME}}}"
    path.write_text(f"{INVENTORY}  password_encoder_secret: {current}\n  password_encoder_old_secret: {old}\n")
    found = load_inventory(path)
    assert found.password_encoder_secret == SecretCommand(("/bin/vault", "read", "a: b"))
    assert found.password_encoder_old_secret == SecretVariable(NAME)
    path.write_text(dump_inventory(found))
    assert load_inventory(path) == found
