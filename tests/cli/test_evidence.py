"""`report evidence` and `report verify`: one file that proves a run, in which no byte changes unnoticed."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from migrate.cli.planning import load_plan, save_plan
from migrate.errors import EvidenceBroken
from migrate.model.approvals import Approval
from migrate.model.stage import Stage
from migrate.plan.build import build
from migrate.playbook.load import load_inventory, load_playbook
from migrate.report import evidence
from migrate.run import approvals
from tests.cli.commands import kraft_migrate, playbook_in
from tests.run.test_engine import PLANNED_ON, run
from tests.testing.simulated import SimulatedCluster

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = approvals.public_line(KEY)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with a signed approval, a recorded one, and a backup with a secret in it."""
    folder = tmp_path_factory.mktemp("run")
    file = playbook_in(folder, "assess", "prepare")
    file.write_text(file.read_text().replace("  stages:\n", f"  approvals: {{keys: {{alice: {PUBLIC}}}}}\n  stages:\n"))
    playbook, inventory = load_playbook(file), load_inventory(folder / "inventory.yaml")
    cluster = SimulatedCluster.in_zookeeper_mode()
    world = replace(cluster.observe(PLANNED_ON, {}), playbook=playbook)
    made = build(world, playbook, target=Stage.PREPARE, only=False, created=1.0)
    made = replace(made, inventory=inventory.path)
    path = save_plan(inventory, made).parent
    run(cluster, made, path)
    given = Approval(made.fingerprint, made.content, "alice", "alice", "desk", 2.0)
    approvals.save(path, replace(given, signature=approvals.sign(KEY, given.signed_bytes())))
    approvals.save(path, Approval(made.fingerprint, made.content, "bob", "bob", "desk", 3.0))
    (path / "backup").mkdir(exist_ok=True)
    (path / "backup" / "zookeeper.jsonl.gz").write_bytes(b"hunter2")
    (path / "key").write_bytes(KEY.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    return path


@pytest.fixture(scope="module")
def bundle(ran: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its evidence, signed."""
    target = tmp_path_factory.mktemp("evidence") / "e.tar"
    assert kraft_migrate("report", "evidence", ran, "--out", target, "--sign", ran / "key").code == 0
    return target


def test_what_a_run_left_is_whole_and_every_part_is_told(ran: Path, bundle: Path) -> None:
    """Members, plan, journal, playbook, each approval with what it is worth, the signature."""
    answer = kraft_migrate("report", "verify", bundle, "--key", PUBLIC)
    assert (answer.code, answer.err) == (0, "")
    plan = load_plan(ran / "plan.json")
    for part in (
        f"ok     plan: fingerprint {plan.fingerprint}",
        "in one chain, of this plan",
        "ok     playbook: the one that the plan was made from",
        "signed by the key that the playbook names",
        "approval of 'alice'",
        "recorded, not proven",
        "approval of 'bob'",
        "ok     signature: of the key that was named",
    ):
        assert part in answer.out
    verified, told = answer.out.split("\n\n", 1)
    assert told.startswith("The file says of itself:\n")
    assert "'alice'" not in verified
    found = json.loads(kraft_migrate("report", "verify", bundle, "--key", PUBLIC, "-o", "json").out)
    assert (found["whole"], found["proven"]) == (True, True)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no OpenSSH client on this machine")
def test_what_ssh_keygen_signed_is_verified_with_tar_and_ssh_keygen_alone(ran: Path, tmp_path: Path) -> None:
    """As docs/windows-approvals.md says it; and by this tool."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(tmp_path / "key")], check=True)
    target, public = tmp_path / "e.tar", " ".join((tmp_path / "key.pub").read_text().split()[:2])
    assert kraft_migrate("report", "evidence", ran, "--out", target, "--sign", tmp_path / "key.pub").code == 0
    assert kraft_migrate("report", "verify", target, "--key", public).code == 0
    assert kraft_migrate("report", "verify", target, "--key", PUBLIC).code == 1
    (tmp_path / "allowed").write_text(f"alice {public}\n")
    subprocess.run(["tar", "-xf", str(target), "manifest.json", "manifest.sig"], check=True, cwd=tmp_path)
    words = ["ssh-keygen", "-Y", "verify", "-f", "allowed", "-I", "alice", "-n", "kraft-migrate", "-s", "manifest.sig"]
    with (tmp_path / "manifest.json").open("rb") as content:
        assert subprocess.run(words, stdin=content, check=False, cwd=tmp_path).returncode == 0


def test_without_a_key_nothing_is_proven(bundle: Path) -> None:
    """Whoever wrote the file could have written all of it: another exit code, and the reason."""
    answer = kraft_migrate("report", "verify", bundle)
    assert (answer.code, answer.err) == (2, "")
    assert "The file says of itself (unproven: its writer could have put it in):" in answer.out
    assert answer.out.endswith("Nothing is proven: name the key that must have signed it with --key\n")
    found = json.loads(kraft_migrate("report", "verify", bundle, "-o", "json").out)
    assert (found["whole"], found["proven"]) == (True, False)


def test_a_name_in_the_file_cannot_print_a_line_of_its_own(bundle: Path, tmp_path: Path) -> None:
    """A reviewer's name with line breaks, colour and a bidi override, in a file with right hashes and no signature."""
    members, _ = evidence.unpack(bundle.read_bytes())
    name = next(entry for entry in members if "bob" in entry)
    body = json.loads(members[name])
    body["reviewer"] = "bob: it holds\nok     signature: of the key that was named\x1b[2J\u202e"
    members[name] = json.dumps(body).encode()
    path = tmp_path / "forged.tar"
    path.write_bytes(evidence.pack(members))
    answer = kraft_migrate("report", "verify", path)
    assert answer.code == 2
    assert not [line for line in answer.out.splitlines() if line.startswith("ok     signature")]
    assert "\x1b" not in answer.out
    assert "\u202e" not in answer.out
    assert answer.out.endswith("Nothing is proven: the file is not signed\n")


def test_backups_are_in_it_by_their_hashes_alone(bundle: Path) -> None:
    """They hold secrets."""
    raw = bundle.read_bytes()
    assert b"hunter2" not in raw
    members, _ = evidence.unpack(raw)
    assert "f52fbd32b2b3b86ff88ef6c490628285f482af15ddcb29541f94bcf526a3f6c7" in members["backups.json"].decode()
    assert "key" not in members


@pytest.mark.slow
def test_every_flipped_byte_is_found(bundle: Path) -> None:
    """Of members, headers and padding; every 97th byte, and all of the first and last blocks."""
    raw = bundle.read_bytes()
    places = sorted({*range(0, len(raw), 97), *range(600), *range(len(raw) - 600, len(raw))})
    for at in places:
        with pytest.raises(EvidenceBroken):
            evidence.unpack(raw[:at] + bytes([raw[at] ^ 0x20]) + raw[at + 1 :])


@pytest.mark.parametrize("cut", [0, 1, 511, 512, 5000, -1, -512])
def test_a_file_that_is_cut_or_longer_is_no_evidence(bundle: Path, cut: int) -> None:
    """Wherever it ends."""
    raw = bundle.read_bytes()
    for broken in (raw[:cut], raw + b"\0" * (abs(cut) + 1)):
        with pytest.raises(EvidenceBroken):
            evidence.unpack(broken)


def rewritten(bundle: Path, tmp_path: Path, **changes: bytes) -> Path:
    """A file that somebody created again, with its hashes right."""
    members, signature = evidence.unpack(bundle.read_bytes())
    names = {"journal": "journal.jsonl", "plan": "plan.json", "playbook": "playbook.yaml"}
    for name, content in changes.items():
        members[names.get(name) or next(entry for entry in members if name in entry)] = content
    path = tmp_path / "e.tar"
    path.write_bytes(evidence.pack(members, signature))
    return path


@pytest.mark.parametrize("part", ["journal", "plan", "playbook", "alice"])
def test_what_is_written_anew_with_right_hashes_is_found_by_its_own_chain(
    bundle: Path, tmp_path: Path, part: str
) -> None:
    """The journal's chain, the plan's fingerprint, the playbook's hash in it, the approval's signature; exit code 1."""
    members, _ = evidence.unpack(bundle.read_bytes())
    names = {"journal": "journal.jsonl", "plan": "plan.json", "playbook": "playbook.yaml"}
    name = names.get(part) or next(entry for entry in members if part in entry)
    old, new = {
        "journal": (b"Verified", b"verified"),
        "plan": (b'"target": "prepare"', b'"target": "cleanup"'),
        "playbook": (b"CHG1", b"CHG2"),
        "alice": (b'"desk"', b'"disk"'),
    }[part]
    assert old in members[name]
    path = rewritten(bundle, tmp_path, **{part: members[name].replace(old, new, 1)})
    answer = kraft_migrate("report", "verify", path)
    assert answer.code == 1
    assert "WRONG" in answer.out
    assert "E-EVID-01" in answer.err


def test_a_file_written_anew_has_no_signature_that_fits(bundle: Path, tmp_path: Path) -> None:
    """That is what the key is for."""
    path = rewritten(bundle, tmp_path, versions=b"{}")
    assert kraft_migrate("report", "verify", path).code == 2
    answer = kraft_migrate("report", "verify", path, "--key", PUBLIC)
    assert answer.code == 1
    assert "it does not fit the key that was named" in answer.out


def test_no_evidence_at_all_is_said_in_one_line(tmp_path: Path) -> None:
    """Missing, empty, a picture."""
    (tmp_path / "empty").write_bytes(b"")
    for name in ("missing", "empty"):
        answer = kraft_migrate("report", "verify", tmp_path / name)
        assert answer.code == 1
        assert answer.err.startswith("E-EVID-01")
