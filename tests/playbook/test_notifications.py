"""A file of notifications names who is told of what; whatever else it says is refused at its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import DocumentInvalid, DocumentNotTrusted, DocumentUnreadable, NotSupportedYet
from migrate.model.inventory import Hook, Recipient, SecretCommand, SecretFile, Webhook
from migrate.model.notifications import Happening
from migrate.playbook.load import load_notifications, load_playbook, load_playbook_with_inventory
from tests.cli.commands import kraft_migrate
from tests.playbook.corpus import INVENTORY, SPEC

HEAD = "apiVersion: kraft-migrate/v1\nkind: Notifications\nmetadata: {name: night}\nspec:\n"
WEBHOOK = "name: pager, url: 'https://pager.example.com/x', secret: {file: k}"


def written(folder: Path, spec: str) -> Path:
    """A file with that spec."""
    path = folder / "notifications.yaml"
    path.write_text(HEAD + spec, encoding="utf-8")
    return path


def of_webhook(folder: Path, text: str) -> Path:
    """A file with one webhook."""
    return written(folder, f"  webhooks:\n    - {{{text}}}\n")


def refusal(path: Path) -> DocumentInvalid:
    """How it is refused; canaries are not repeated."""
    with pytest.raises(DocumentInvalid) as caught:
        load_notifications(path)
    assert not any("canary" in f"{problem} {problem.why}" for problem in caught.value.problems)
    return caught.value


def test_a_file_becomes_recipients_with_paths_beside_it(tmp_path: Path) -> None:
    """Webhooks first; secrets stay references."""
    path = written(
        tmp_path,
        "  webhooks:\n"
        "    - name: pager\n"
        "      url: https://pager.example.com/x?team=a\n"
        "      secret: {file: keys/pager}\n"
        "      events: [stopped, needs-approval]\n"
        "      waits_longer_than: 20m\n"
        "    - {name: own, url: 'http://[::1]:8080/', secret: {command: [/bin/secret]}, half_rolled_longer_than: 12h}\n"
        "  hooks:\n"
        "    - {name: bell, command: [/bin/ring, a b], events: [ended]}\n",
    )
    pager = Webhook("https://pager.example.com/x?team=a", SecretFile(str(tmp_path / "keys" / "pager")))
    assert load_notifications(path) == (
        Recipient("pager", pager, frozenset({Happening.STOPPED, Happening.NEEDS_APPROVAL}), {Happening.WAITS: 1200.0}),
        Recipient(
            "own",
            Webhook("http://[::1]:8080/", SecretCommand(("/bin/secret",))),
            frozenset(),
            {Happening.HALF_ROLLED: 43200.0},
        ),
        Recipient("bell", Hook(("/bin/ring", "a b"), 10.0), frozenset({Happening.ENDED}), {}),
    )


@pytest.mark.parametrize("url", ["http://localhost:9/x", "http://127.8.0.1/", "https://h:8443/a/b?c=d"])
def test_https_is_taken_and_http_to_this_host(url: str, tmp_path: Path) -> None:
    """A relay beside the tool may do the rest."""
    path = of_webhook(tmp_path, f"name: p, url: '{url}', secret: {{file: k}}, events: [ended]")
    assert len(load_notifications(path)) == 1


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://pager.example.com/canary", "https is expected"),
        ("http://127.0.0.1.example.com/canary", "https is expected"),
        ("http://localhost.example.com/canary", "https is expected"),
        ("ftp://h/canary", "https is expected"),
        ("file:///canary", "a URL is expected"),
        ("pager.example.com/canary", "a URL is expected"),
        ("https://h:port/canary", "a URL is expected"),
        ("https:///canary", "a URL is expected"),
        ("https://h/canary x", "a URL is expected"),
        ("https://user:canary@h/", "names a user"),
        ("https://h/canary#top", "no fragment"),
    ],
)
def test_other_urls_are_refused_and_not_repeated(url: str, says: str, tmp_path: Path) -> None:
    """A path may be the key to a channel."""
    error = refusal(of_webhook(tmp_path, f"name: p, url: '{url}', secret: {{file: k}}, events: [ended]"))
    assert says in str(error)
    assert error.where == f"{tmp_path}/notifications.yaml:6:17"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (WEBHOOK, "pager is told of nothing"),
        (
            WEBHOOK + ", events: [parkd]",
            "expected begins, needs-approval, parked, stopped, point-of-no-return or ended",
        ),
        (WEBHOOK + ", events: [waits-longer-than]", "spec.webhooks[0].events[0] is 'waits-longer-than', expected"),
        (WEBHOOK + ", waits_longer_than: 20", "a duration is expected"),
        (WEBHOOK + ", waits_longer_than: 0s", "greater than or equal to 1"),
        (WEBHOOK + ", colour: red", "unknown key"),
        ("name: p, url: 'https://h/', events: [ended]", "secret is missing"),
        ("name: p, url: 'https://h/', secret: canary, events: [ended]", "a mapping"),
    ],
)
def test_wrong_webhooks_are_refused(text: str, says: str, tmp_path: Path) -> None:
    """What is chosen by nobody, what there is not, and a secret in the file."""
    assert says in str(refusal(of_webhook(tmp_path, text)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{name: b, command: [ring], events: [ended]}", "absolute path"),
        ("{name: b, command: [], events: [ended]}", "at least 1"),
        ("{name: b, command: /bin/ring, events: [ended]}", "a list is expected"),
        ("{name: b, command: [/bin/ring], timeout: 1h, events: [ended]}", "less than or equal to 30"),
    ],
)
def test_wrong_hooks_are_refused(text: str, says: str, tmp_path: Path) -> None:
    """No shell, no search along PATH, no hour."""
    assert says in str(refusal(written(tmp_path, f"  hooks:\n    - {text}\n")))


def test_a_name_is_given_once(tmp_path: Path) -> None:
    """Among webhooks and hooks together."""
    hook = "    - {name: pager, command: [/bin/ring], events: [ended]}\n"
    error = refusal(written(tmp_path, f"  webhooks:\n    - {{{WEBHOOK}, events: [ended]}}\n  hooks:\n{hook}"))
    assert "the name pager appears twice" in str(error)


def test_nobody_may_be_named(tmp_path: Path) -> None:
    """To be quiet without a change of the playbook."""
    assert load_notifications(written(tmp_path, "  {}\n")) == ()


def test_others_may_not_write_it(tmp_path: Path) -> None:
    """It names commands that are run."""
    path = written(tmp_path, "  {}\n")
    path.chmod(0o666)
    with pytest.raises(DocumentNotTrusted):
        load_notifications(path)


# -- the playbook that names it ----------------------------------------------------------------------------------
def named(folder: Path) -> Path:
    """A playbook that names such a file."""
    (folder / "inventory.yaml").write_text(INVENTORY)
    path = folder / "p.yaml"
    path.write_text(SPEC + "  notifications: notifications.yaml\n")
    return path


def test_a_playbook_names_it_and_another_pager_is_no_other_playbook(tmp_path: Path) -> None:
    """A plan is bound to the playbook's bytes: it and its approvals hold when the file beside it changes."""
    playbook = named(tmp_path)
    of_webhook(tmp_path, WEBHOOK + ", events: [ended]")
    before = load_playbook(playbook)
    of_webhook(tmp_path, WEBHOOK + ", events: [stopped]")
    after = load_playbook(playbook)
    assert before.notifications != after.notifications
    assert replace(before, notifications=()) == replace(after, notifications=())
    assert load_playbook_with_inventory(playbook)[0].notifications == after.notifications


def test_lint_says_what_is_wrong_in_the_file_that_a_playbook_names(tmp_path: Path) -> None:
    """Missing, or wrong; of the file itself, too."""
    playbook = named(tmp_path)
    with pytest.raises(DocumentUnreadable):
        load_playbook(playbook)
    wrong = of_webhook(tmp_path, WEBHOOK + ", events: [parkd]")
    for file in (playbook, wrong):
        ended = kraft_migrate("playbook", "lint", file)
        assert ended.code == 1
        assert "notifications.yaml:6:" in ended.err or "notifications.yaml:6:" in ended.out
    of_webhook(tmp_path, WEBHOOK + ", events: [parked]")
    assert kraft_migrate("playbook", "lint", playbook, wrong).code == 0


def test_show_names_who_is_told_and_no_url(tmp_path: Path) -> None:
    """Its host is enough."""
    of_webhook(tmp_path, WEBHOOK.replace("com/x", "com/canary-path") + ", events: [ended]")
    for output in ("text", "json"):
        ended = kraft_migrate("playbook", "show", named(tmp_path), "-o", output)
        assert ended.code == 0
        assert "canary-path" not in ended.out
    assert "webhook pager at pager.example.com" in ended.out


def test_hooks_in_a_playbook_are_sent_to_that_file(tmp_path: Path) -> None:
    """The old reserved key says where they stand now."""
    path = tmp_path / "p.yaml"
    path.write_text(SPEC + "  hooks: []\n")
    with pytest.raises(NotSupportedYet) as caught:
        load_playbook(path)
    assert "kind Notifications" in caught.value.next_step
