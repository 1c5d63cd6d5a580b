"""Signatures by ssh-keygen: of keys that ssh-agent or a security key holds, and of every kind that OpenSSH signs with.

The format is SSHSIG (PROTOCOL.sshsig of OpenSSH), so an auditor can verify one with ssh-keygen alone.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from migrate.errors import KeyUnusable

ARMOR: Final = "-----BEGIN SSH SIGNATURE-----"
NAMESPACE: Final = "kraft-migrate"  # a signature that was made for another purpose never fits
SIGNER: Final = "signer"
SECONDS: Final = 120.0  # somebody types a passphrase, or touches a security key
# what ssh-keygen needs to find an agent, and to ask a person; secrets of this process do not reach it
VARIABLES: Final = (
    "PATH", "HOME", "USER", "TERM", "SSH_AUTH_SOCK", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "SSH_SK_PROVIDER",
    "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR",
)  # fmt: skip


def sign(public: Path, content: bytes) -> str:
    """The signature by the private key of that .pub file: beside it, in the agent, on a security key.  KeyUnusable."""
    done = _run(("sign", "-f", str(public), "-n", NAMESPACE), content)
    text = done.stdout.decode(errors="replace")
    if done.returncode or not text.startswith(ARMOR):
        said = " ".join(done.stderr.decode(errors="replace").split())[-300:]
        raise KeyUnusable(
            f"ssh-keygen did not sign: {said or done.returncode}",
            where=str(public),
            next_step="load the key into ssh-agent (ssh-add), or connect the security key; then approve again",
        )
    return text


def verify(public: str, content: bytes, signature: str) -> bool:
    """Does it fit that public key, `TYPE BLOB`, and this purpose?  KeyUnusable where ssh-keygen is missing."""
    with tempfile.TemporaryDirectory(prefix="kraft-migrate-") as folder:
        allowed, given = Path(folder, "allowed"), Path(folder, "signature")
        allowed.write_text(f'{SIGNER} namespaces="{NAMESPACE}" {public}\n', encoding="ascii")
        given.write_text(signature, encoding="utf-8")
        words = ("verify", "-f", str(allowed), "-I", SIGNER, "-n", NAMESPACE, "-s", str(given))
        return _run(words, content).returncode == 0


def _run(words: Sequence[str], content: bytes) -> subprocess.CompletedProcess[bytes]:
    environment = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    try:
        return subprocess.run(
            ["ssh-keygen", "-Y", *words],
            input=content, capture_output=True, timeout=SECONDS, check=False, env=environment,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise KeyUnusable(
            "there is no ssh-keygen on this host", next_step="install the OpenSSH client (8.1 or later)"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise KeyUnusable(
            f"ssh-keygen did not end in {SECONDS:.0f} s", next_step="was the security key touched?"
        ) from error
