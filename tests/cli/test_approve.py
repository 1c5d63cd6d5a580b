"""`approve` and `control` as an operator calls them: what is written, what is refused, what is said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from migrate.cli.planning import load_plan, save_plan
from migrate.model.approvals import NotApproved, decide
from migrate.model.stage import Stage
from migrate.plan.build import build
from migrate.playbook.load import load_inventory, load_playbook
from migrate.run import approvals
from migrate.run.control import Control, Request, read
from tests.cli.commands import kraft_migrate, playbook_in
from tests.steps.looks import whole
from tests.testing.no_room import no_room

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
SECTION = f"""\
  approvals: {{groups: {{'@oncall': [alice, bob]}}, keys: {{alice: {approvals.public_line(KEY)}}}}}
  rollback: {{approval: {{reviewers: [carol]}}}}
  stages:
    - {{name: assess}}
    - {{name: prepare, approval: {{reviewers: ['@oncall'], min: 2}}}}
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A saved plan whose stage prepare asks for two approvals."""
    file = playbook_in(tmp_path, "assess")
    file.write_text(file.read_text().partition("  stages:\n")[0] + SECTION)
    playbook, inventory = load_playbook(file), load_inventory(tmp_path / "inventory.yaml")
    world = replace(whole(Stage.ASSESS), inventory=inventory, playbook=playbook)
    return save_plan(inventory, build(world, playbook, target=Stage.PREPARE, only=False, created=1.0))


def key_file(folder: Path, key: Ed25519PrivateKey) -> Path:
    """A private key as a file."""
    path = folder / "key"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    return path


def test_a_recorded_approval_says_that_it_is_only_recorded(plan: Path) -> None:
    """A file in the run's folder, of this plan, and nothing else."""
    answer = kraft_migrate("approve", plan, "--as", "bob", "--comment", "read it")
    assert (answer.code, answer.err) == (0, "")
    assert "name     recorded, not proven" in answer.out
    assert "for      prepare" in answer.out
    (given,) = approvals.load(plan.parent)
    assert (given.reviewer, given.comment, given.signature) == ("bob", "read it", "")
    assert given.plan.startswith(plan.parent.name)


def test_an_approval_names_the_content_that_the_plans_pages_show(plan: Path) -> None:
    """Text, page and `approve` show one sum, and it is the one that is signed."""
    answer = kraft_migrate("approve", plan, "--as", "bob")
    (given,) = approvals.load(plan.parent)
    assert f"content  {given.content}\n" in answer.out
    assert given.content.encode() in given.signed_bytes()
    for name in ("plan.txt", "plan.html"):
        assert given.content in (plan.parent / name).read_text()


def test_a_plan_whose_findings_were_exchanged_is_another_content(plan: Path) -> None:
    """Its fingerprint is the same, and its own sums fit: what was approved was something else."""
    assert kraft_migrate("approve", plan, "--as", "bob").code == 0
    made = load_plan(plan)
    save_plan(load_inventory(made.inventory), replace(made, findings=()))
    edited = load_plan(plan)
    assert edited.fingerprint == made.fingerprint
    playbook = load_playbook(made.playbook)
    found = approvals.refuse_strange(playbook.approvals, edited.fingerprint, plan.parent)
    answer = decide(playbook.approvals, "prepare", edited, found, found[0].approval.time)
    assert isinstance(answer, NotApproved)
    assert "made again or edited since" in answer.because[0]


def test_a_signed_approval_is_proven(plan: Path, tmp_path: Path) -> None:
    """By the key that the playbook has for that name."""
    answer = kraft_migrate("approve", plan, "--as", "alice", "--sign", key_file(tmp_path, KEY), "-o", "json")
    assert answer.code == 0
    assert json.loads(answer.out)["counts_for"] == ["prepare"]
    policy = load_playbook(tmp_path / "playbook.yaml").approvals
    assert [entry.proven for entry in approvals.judged(policy, approvals.load(plan.parent))] == [True]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--as", "alice"), 1, "counts only where it is signed"),
        (("--as", "bob", "--sign", "KEY"), 1, "no public key for bob"),
        (("--as", "mallory"), 64, "alice, bob"),
        (("--as", "carol"), 64, "carol is no reviewer"),
        (("--as", "bob", "--stage", "kraft-mode"), 64, "asks for no approval"),
        (("--as", "alice", "--sign", "missing"), 1, "cannot be read"),
    ],
)
def test_a_yes_that_would_not_count_is_refused(
    plan: Path, tmp_path: Path, words: tuple[str, ...], code: int, says: str
) -> None:
    """Nobody goes home in the belief to have approved."""
    path = key_file(tmp_path, KEY)
    answer = kraft_migrate("approve", plan, *(str(path) if word == "KEY" else word for word in words))
    assert answer.code == code
    assert says in answer.err
    assert approvals.load(plan.parent) == []


def test_another_key_than_the_playbooks_is_refused(plan: Path, tmp_path: Path) -> None:
    """Before it is written, not when the run begins."""
    answer = kraft_migrate("approve", plan, "--as", "alice", "--sign", key_file(tmp_path, OTHER))
    assert (answer.code, answer.err.split(":")[0]) == (1, "E-APPR-03")


def test_an_approval_made_elsewhere_is_carried_over_as_a_file(plan: Path, tmp_path: Path) -> None:
    """A reviewer's own machine writes it, the operator puts it into the run's folder."""
    out = tmp_path / "bob.json"
    assert kraft_migrate("approve", plan, "--as", "bob", "--out", out).code == 0
    assert approvals.load(plan.parent) == []
    (plan.parent / "approvals").mkdir()
    (plan.parent / "approvals" / "bob.json").write_bytes(out.read_bytes())
    assert [given.reviewer for given in approvals.load(plan.parent)] == ["bob"]


def test_apply_refuses_a_strange_approval_before_it_locks_or_looks(plan: Path) -> None:
    """Of another plan: exit code 4, no journal, no lock file."""
    assert kraft_migrate("approve", plan, "--as", "bob").code == 0
    (file,) = (plan.parent / "approvals").iterdir()
    file.write_text(file.read_text().replace(plan.parent.name, "00000000"))
    answer = kraft_migrate("apply", plan)
    assert answer.code == 4
    assert answer.err.startswith("E-APPR-02")
    assert not (plan.parent / "journal.jsonl").exists()
    assert not (plan.parent.parent / "lock").exists()


# -- control -----------------------------------------------------------------------------------------------------------
def test_requests_are_one_file_that_each_command_replaces(plan: Path) -> None:
    """By the plan or its folder; resume takes all of them back."""
    folder = plan.parent
    assert kraft_migrate("control", "show", plan).out == "no request: it runs\n"
    assert kraft_migrate("control", "pause", plan, "--reason", "pager").code == 0
    assert read(folder).request is Request.PAUSE
    assert kraft_migrate("control", "hold-after", folder, "hybrid").code == 0
    found = read(folder)
    assert (found.request, found.hold_after, found.reason) == (Request.PAUSE, "hybrid", "")
    assert "pause, hold after hybrid, by " in kraft_migrate("control", "show", folder).out
    assert kraft_migrate("control", "abort", folder).code == 0
    assert read(folder).request is Request.ABORT
    assert kraft_migrate("control", "resume", folder).code == 0
    assert replace(read(folder), by="", host="", time=0.0) == Control()
    assert json.loads(kraft_migrate("control", "show", folder, "-o", "json").out)["request"] == "run"


def test_a_stage_that_is_none_and_a_folder_without_plan_are_wrong_usage(plan: Path, tmp_path: Path) -> None:
    """64, and nothing is written."""
    assert kraft_migrate("control", "hold-after", plan, "hybird").code == 64
    assert kraft_migrate("control", "pause", tmp_path).code == 64
    assert not (tmp_path / "control.json").exists()


def test_a_damaged_control_file_is_told_and_resume_does_not_guess_it(plan: Path) -> None:
    """It is deleted by a person, who knows what was requested."""
    (plan.parent / "control.json").write_text("{")
    for words in (("show",), ("resume",)):
        answer = kraft_migrate("control", *words, plan)
        assert (answer.code, answer.err.split(":")[0]) == (1, "E-CTL-01")


def test_the_point_of_no_return_wants_the_clusters_name_on_top(tmp_path: Path) -> None:
    """Without a terminal: refused without --confirm-cluster, and with another name."""
    file = playbook_in(tmp_path)
    playbook, inventory = load_playbook(file), load_inventory(tmp_path / "inventory.yaml")
    world = replace(whole(Stage.ASSESS), inventory=inventory, playbook=playbook)
    made = build(world, playbook, target=Stage.CLEANUP, only=False, created=1.0)
    path = save_plan(inventory, made)
    for words in ((), ("--confirm-cluster", "lab2")):
        answer = kraft_migrate("apply", path, "--confirm", made.fingerprint, *words)
        assert answer.code == 4
        assert "the cluster's name was not given" in answer.err
        assert not (path.parent / "journal.jsonl").exists()


def test_a_pause_that_cannot_be_written_ends_with_a_named_error(plan: Path) -> None:
    """The emergency brake says what else stops the run."""
    with no_room():
        answer = kraft_migrate("control", "pause", plan.parent)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("E-CTL-02: the request was not written: ")
    assert not [path for path in plan.parent.iterdir() if "control" in path.name]
