"""`playbook notify-test` shows before the night whether the pager rings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import kraft_migrate, playbook_in
from tests.playbook.test_notifications import written
from tests.run.test_deliver import program
from tests.testing.certificates import secret
from tests.testing.receiver import SECRET, Receiver, receiving


def named(folder: Path, receiver: Receiver, *, hook: str = "true") -> Path:
    """A file with a webhook and a hook."""
    secret(folder, SECRET, "key")
    program(folder, hook)
    return written(
        folder,
        f"  webhooks:\n    - {{name: pager, url: '{receiver.url}', secret: {{file: key}}, events: [stopped]}}\n"
        f"  hooks:\n    - {{name: bell, command: ['{folder}/hook', canary-word], events: [ended]}}\n",
    )


def test_each_is_sent_a_test_whatever_it_has_chosen(tmp_path: Path) -> None:
    """Signed as in a run; by the file or by a playbook that names it."""
    playbook = playbook_in(tmp_path)
    playbook.write_text(playbook.read_text() + "  notifications: notifications.yaml\n")
    with receiving() as receiver:
        file = named(tmp_path, receiver, hook=f"cat > {tmp_path}/told")
        for given in (file, playbook):
            (tmp_path / "told").unlink(missing_ok=True)
            ended = kraft_migrate("playbook", "notify-test", given)
            assert (ended.code, ended.err) == (0, "")
            assert ended.out.splitlines() == [
                "webhook pager at 127.0.0.1: delivered",
                f"hook bell ({tmp_path}/hook): delivered",
            ]
            assert json.loads((tmp_path / "told").read_text())["event"] == "test"
    assert [body["event"] for body in receiver.taken] == ["test", "test"]
    assert receiver.taken[0]["cluster"] == "notifications"


def test_what_does_not_arrive_is_told_and_the_others_are_tried(tmp_path: Path) -> None:
    """Exit code 1, with what to do; no URL, no word of the command, no secret."""
    with receiving(404) as receiver:
        ended = kraft_migrate("playbook", "notify-test", named(tmp_path, receiver, hook="exit 7"))
    assert ended.code == 1
    assert "E-NOTE-01" in ended.out
    assert "it answered with 404" in ended.out
    assert "it ended with 7" in ended.out
    assert "canary" not in ended.out + ended.err


@pytest.mark.parametrize("spec", ["  {}\n", "  webhooks: []\n"])
def test_a_file_that_names_nobody_is_no_success(spec: str, tmp_path: Path) -> None:
    """Whoever tries it wants to hear something."""
    ended = kraft_migrate("playbook", "notify-test", written(tmp_path, spec))
    assert ended.code == 64
    assert "no webhook and no hook is named" in ended.err
