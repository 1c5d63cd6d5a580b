"""Approvals as files in a run's folder: written whole, read strictly, signed and checked.

`approvals/REVIEWER-TIME.json` in the run's folder; the signature is over `Approval.signed_bytes`.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from migrate.errors import ApprovalRefused, KeyUnusable
from migrate.hosts import ssh_signatures
from migrate.hosts.files import read_within
from migrate.model import strict_json
from migrate.model.approvals import APPROVAL_FORMAT, KEY_FIELDS, Approval, ApprovalPolicy, Judged, public_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FOLDER: Final = "approvals"
OPENSSH: Final = b"-----BEGIN OPENSSH PRIVATE KEY-----"
GIVE_PUB: Final = (
    "give its .pub file: ssh-keygen signs with the key that the agent, a security key or the file beside it has"
)
UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")


# -- files -----------------------------------------------------------------------------------------------------------
def to_json(approval: Approval) -> str:
    body = {**strict_json.mapping(approval.signed_bytes()), "signature": approval.signature}
    return json.dumps(body, indent=1, sort_keys=True) + "\n"


def from_json(text: str, where: str) -> Approval:
    try:
        body = strict_json.loads(text)
        if not isinstance(body, dict) or body.pop("format", None) != APPROVAL_FORMAT:
            raise ApprovalRefused(
                f"its format is not {APPROVAL_FORMAT}",
                where=where,
                why="it is no approval, or one of another release, which is bound to less of the plan",
                next_step="take the file away, and let its reviewer approve the plan again",
            )
        found: Approval = strict_json.build(Approval, body)
    except (ValueError, TypeError) as error:
        raise ApprovalRefused(f"it is no approval: {error}", where=where) from error
    return found


def save(folder: pathlib.Path, approval: Approval) -> pathlib.Path:
    """Write the approval into a run's folder, whole or not at all; its path."""
    target = folder / FOLDER / f"{UNSAFE.sub('_', approval.reviewer)}-{approval.time:.0f}.json"
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write(target, approval)
    return target


def write(target: pathlib.Path, approval: Approval) -> None:
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        part.write_text(to_json(approval), encoding="utf-8")
        os.link(part, target)  # fails where it exists: an approval is never overwritten
    except FileExistsError as error:
        raise ApprovalRefused("there is an approval of that name and second already", where=str(target)) from error
    finally:
        part.unlink(missing_ok=True)


def load(folder: pathlib.Path) -> list[Approval]:
    found = []
    for path in sorted((folder / FOLDER).glob("*.json")):
        try:
            text = read_within(path, "approval").decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ApprovalRefused(f"it cannot be read: {error}", where=str(path)) from error
        found.append(from_json(text, str(path)))
    return sorted(found, key=lambda approval: approval.time)


def judged(policy: ApprovalPolicy, found: Iterable[Approval]) -> list[Judged]:
    return [_judge(policy.keys, approval) for approval in found]


def _judge(keys: Mapping[str, str], approval: Approval) -> Judged:
    if not approval.signature:
        return Judged(approval, proven=False)
    key = keys.get(approval.reviewer)
    if key is None:
        return Judged(approval, proven=False, fault="it is signed, and the playbook has no key for that name")
    fits = verify(key, approval.signed_bytes(), approval.signature)
    return Judged(approval, proven=fits, fault="" if fits else "its signature does not fit")


def refuse_strange(policy: ApprovalPolicy, fingerprint: str, folder: pathlib.Path) -> list[Judged]:
    """The run's approvals, judged; ApprovalRefused where one is of another plan, or its signature does not fit."""
    found = judged(policy, load(folder))
    for entry in found:
        where = f"{folder / FOLDER}: {entry.approval.reviewer}"
        if entry.approval.plan != fingerprint:
            raise ApprovalRefused(
                f"it approves plan {entry.approval.plan[:8]}, this is {fingerprint[:8]}",
                where=where,
                why="approving one plan never approves another",
            )
        if entry.fault:
            raise ApprovalRefused(entry.fault, where=where, why="somebody else wrote it, or it was changed")
    return found


# -- signatures ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Signer:
    """Who signs: the public key as a playbook has it, and the private one's work, wherever that key is."""

    public: str
    sign: Callable[[bytes], str]


def signer(path: pathlib.Path, passphrase: Callable[[], str]) -> Signer:
    """The signer of a file: an Ed25519 private key, or a .pub file whose private key ssh-agent or a security key holds.

    Raises KeyUnusable.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise KeyUnusable(f"the key cannot be read: {error.strerror}", where=str(path)) from error
    if raw.partition(b" ")[0].decode(errors="replace") in KEY_FIELDS:
        try:
            return Signer(public_key(raw.decode(errors="replace")), partial(ssh_signatures.sign, path))
        except ValueError as error:
            raise KeyUnusable(str(error), where=str(path)) from error
    key = _private(raw, path, passphrase)
    return Signer(public_line(key), partial(sign, key))


def _private(raw: bytes, path: pathlib.Path, passphrase: Callable[[], str]) -> Ed25519PrivateKey:
    """PEM or OpenSSH; `passphrase` is asked where it is encrypted."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - cryptography, for who signs
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key  # noqa: PLC0415

    loader: Any = load_ssh_private_key if raw.startswith(OPENSSH) else load_pem_private_key
    try:
        try:
            key = loader(raw, None)
        except TypeError:  # the key is encrypted
            key = loader(raw, passphrase().encode())
    except UnsupportedAlgorithm as error:
        raise KeyUnusable("the key is of another kind", where=str(path), next_step=GIVE_PUB) from error
    except (ValueError, TypeError) as error:
        raise KeyUnusable("this is no private key, or its passphrase is another", where=str(path)) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyUnusable("the key is not Ed25519", where=str(path), next_step=GIVE_PUB)
    return key


def public_line(key: Ed25519PrivateKey) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415 - as above

    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def sign(key: Ed25519PrivateKey, content: bytes) -> str:
    return base64.b64encode(key.sign(content)).decode()


def verify(public: str, content: bytes, signature: str) -> bool:
    """Does the signature fit?  False for whatever is none; KeyUnusable where the public key is none."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key  # noqa: PLC0415

    try:
        public = public_key(public)
        if signature.startswith(ssh_signatures.ARMOR):
            return ssh_signatures.verify(public, content, signature)
        key = load_ssh_public_key(public.encode())
    except ValueError as error:
        raise KeyUnusable(str(error), where=public[:24]) from error
    if not isinstance(key, Ed25519PublicKey):
        return False  # keys of other kinds sign by ssh-keygen
    try:
        raw = base64.b64decode(signature, validate=True)
        key.verify(raw, content)
    except (binascii.Error, ValueError, InvalidSignature):
        return False
    return True
