"""Signatures by the real ssh-keygen: keys of every kind, by the agent or the file beside, and what never fits."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate.errors import KeyUnusable
from migrate.hosts import ssh_signatures
from migrate.model.approvals import public_key
from migrate.run import approvals

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no OpenSSH client on this machine")
CONTENT = b'{"plan": "1a2b3c4d"}'
KINDS = {"ed25519": "256", "ecdsa-256": "256", "ecdsa-384": "384", "ecdsa-521": "521"}


def never() -> str:
    """Nobody is asked for a passphrase here."""
    raise AssertionError


@pytest.fixture(params=KINDS)
def public(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A pair of that kind; its .pub file."""
    kind = str(request.param).partition("-")[0]
    words = ["ssh-keygen", "-q", "-t", kind, "-b", KINDS[request.param], "-N", "", "-C", "alice on her desk"]
    subprocess.run([*words, "-f", str(tmp_path / "key")], check=True)
    return tmp_path / "key.pub"


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """One of the test's own."""
    socket = tmp_path / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL) as process:
        try:
            while not socket.exists():
                os.sched_yield()
            monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
            yield
        finally:
            process.terminate()


def test_the_file_beside_signs_and_the_signature_fits_that_key_content_and_purpose(public: Path) -> None:
    """The public key is as a playbook has it, without its comment."""
    signer = approvals.signer(public, never)
    assert signer.public == " ".join(public.read_text().split()[:2])
    signature = signer.sign(CONTENT)
    assert approvals.verify(signer.public, CONTENT, signature)
    assert not approvals.verify(signer.public, CONTENT + b" ", signature)
    assert not approvals.verify(signer.public, CONTENT, signature.replace("AAAA", "AAAB", 1))
    assert not approvals.verify(signer.public, CONTENT, f"{ssh_signatures.ARMOR}\nAAAA\n")
    assert not approvals.verify(signer.public, CONTENT, base64.b64encode(bytes(64)).decode())


@pytest.mark.usefixtures("agent")
def test_a_key_that_only_the_agent_holds_signs(public: Path) -> None:
    """Taken out of the agent again, it does not; the words say what to do."""
    private = public.with_suffix("")
    subprocess.run(["ssh-add", "-q", str(private)], check=True)
    private.unlink()
    signer = approvals.signer(public, never)
    assert approvals.verify(signer.public, CONTENT, signer.sign(CONTENT))
    subprocess.run(["ssh-add", "-q", "-D"], check=True)
    with pytest.raises(KeyUnusable, match="No private key found") as caught:
        signer.sign(CONTENT)
    assert "ssh-add" in str(caught.value.next_step)


def test_a_signature_of_another_key_or_for_another_purpose_never_fits(public: Path, tmp_path: Path) -> None:
    """A reviewer signs files for others too: git commits, releases."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "other")], check=True)
    other = approvals.signer(tmp_path / "other.pub", never)
    mine = approvals.signer(public, never).public
    assert not approvals.verify(mine, CONTENT, other.sign(CONTENT))
    words = ["ssh-keygen", "-Y", "sign", "-n", "git", "-f", str(public)]
    for_git = subprocess.run(words, input=CONTENT, capture_output=True, check=True).stdout.decode()
    assert not approvals.verify(mine, CONTENT, for_git)


def test_ssh_keygen_alone_verifies_it(public: Path, tmp_path: Path) -> None:
    """As an auditor does it, without this tool."""
    signer = approvals.signer(public, never)
    (tmp_path / "content.sig").write_text(signer.sign(CONTENT))
    (tmp_path / "allowed").write_text(f"alice {signer.public}\n")
    words = ["ssh-keygen", "-Y", "verify", "-f", "allowed", "-I", "alice", "-n", "kraft-migrate", "-s", "content.sig"]
    done = subprocess.run(words, input=CONTENT, capture_output=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_private_key_of_another_kind_names_its_pub_file(tmp_path: Path) -> None:
    """Ed25519 keys alone are read here."""
    words = ["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(tmp_path / "key")]
    subprocess.run(words, check=True)
    with pytest.raises(KeyUnusable, match="not Ed25519") as caught:
        approvals.signer(tmp_path / "key", never)
    assert ".pub file" in str(caught.value.next_step)


def test_without_ssh_keygen_it_is_said(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a signature nor a silent no."""
    signer = approvals.signer(public, never)
    signature = signer.sign(CONTENT)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(KeyUnusable, match="no ssh-keygen"):
        signer.sign(CONTENT)
    with pytest.raises(KeyUnusable, match="no ssh-keygen"):
        approvals.verify(signer.public, CONTENT, signature)


def field(*parts: bytes) -> str:
    """A blob of these fields."""
    return base64.b64encode(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).decode()


@pytest.mark.parametrize(
    "line",
    [
        f"sk-ssh-ed25519@openssh.com {field(b'sk-ssh-ed25519@openssh.com', bytes(range(32)), b'ssh:')} key on a chain",
        f"ecdsa-sha2-nistp256 {field(b'ecdsa-sha2-nistp256', b'nistp256', b'4' * 65)}",
    ],
)
def test_keys_of_security_keys_are_taken(line: str) -> None:
    """By their form; whether ssh-keygen takes one is found out as it signs."""
    assert public_key(line) == " ".join(line.split()[:2])


@pytest.mark.parametrize(
    "line",
    [
        f"ssh-ed25519 {field(b'ssh-ed25519', bytes(range(31)))}",
        f"ssh-ed25519 {field(b'ssh-ed25519', bytes(range(32)), b'more')}",
        f"ssh-ed25519 {field(b'ecdsa-sha2-nistp256', bytes(range(32)))}",
        f"sk-ssh-ed25519@openssh.com {field(b'sk-ssh-ed25519@openssh.com', bytes(32), b'ssh:')}",
        f"ssh-rsa {field(b'ssh-rsa', b'3', b'5' * 256)}",
        f"ssh-ed25519 {field(b'ssh-ed25519', bytes(range(32)))[:-4]}",
        "ssh-ed25519 //////8=",
        "ssh-ed25519",
        "",
    ],
)
def test_what_is_no_such_key_is_refused(line: str) -> None:
    """Its type is the blob's, each field has its length, and a point of small order is none."""
    with pytest.raises(ValueError, match=r"public key|small order"):
        public_key(line)
