"""The evidence of a run in one file: plan, approvals, journal, playbook, reports, versions, and the hash of each.

A plain tar of a closed form: members in the order of their names, every header field fixed, a manifest with the size
and SHA-256 of each member, and the manifest's own hash as the last member.  Read back, the file must be byte for byte
what `pack` would write of its content, so no byte of it can change unnoticed.  Backups of ZooKeeper and of
configuration files hold secrets: only their hashes are in it.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from migrate import __version__
from migrate.errors import EvidenceBroken, JournalDamaged, KeyUnusable, MigrateError, PlanUnreadable
from migrate.model import plain_tar, strict_json
from migrate.model.approvals import ApprovalPolicy, other_content
from migrate.model.plan import Plan
from migrate.report.plan_json import plan_from_json
from migrate.run import approvals
from migrate.run import journal as journals

FORMAT: Final = "kraft-migrate/evidence/v1"
MANIFEST: Final = "manifest.json"
SEAL: Final = "manifest.sha256"
SIGNATURE: Final = "manifest.sig"
KEPT: Final = (
    "plan.json",
    "plan.txt",
    "plan.html",
    "journal.jsonl",
    "control.json",
    "report.html",
    "report.md",
    "report.json",
)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was verified: does it hold, and by what?  `told` is what the file itself says about it."""

    name: str
    holds: bool
    said: str
    told: str = ""


# -- writing ---------------------------------------------------------------------------------------------------------
def collect(folder: pathlib.Path, playbook: pathlib.Path, made: float) -> dict[str, bytes]:
    """The members of a run's evidence, by name."""
    found = {name: (folder / name).read_bytes() for name in KEPT if (folder / name).exists()}
    for path in sorted((folder / approvals.FOLDER).glob("*.json")):
        found[f"{approvals.FOLDER}/{path.name}"] = path.read_bytes()
    if playbook.exists():
        found["playbook.yaml"] = playbook.read_bytes()
    found["backups.json"] = _json(dict(_backups(folder / "backup")))
    found["versions.json"] = _json(
        {"kraft-migrate": __version__, "python": platform.python_version(), "system": sys.platform, "made": made}
    )
    return found


def _backups(folder: pathlib.Path) -> Iterator[tuple[str, str]]:
    for path in sorted(entry for entry in folder.rglob("*") if entry.is_file()):
        yield str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest()


def pack(members: Mapping[str, bytes], signature: str = "") -> bytes:
    """The file's bytes; `signature` is over `manifest_of(members)`, empty where it is not signed."""
    manifest = manifest_of(members)
    whole = {**members, MANIFEST: manifest}
    if signature:
        whole[SIGNATURE] = signature.encode()
    seal = hashlib.sha256(manifest + signature.encode()).hexdigest().encode()
    return plain_tar.pack({**dict(sorted(whole.items())), SEAL: seal})


def manifest_of(members: Mapping[str, bytes]) -> bytes:
    """Format, and size and SHA-256 of each member."""
    rows = {
        name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in sorted(members.items())
    }
    return _json({"format": FORMAT, "members": rows})


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()


# -- reading ---------------------------------------------------------------------------------------------------------
def unpack(raw: bytes) -> tuple[dict[str, bytes], str]:
    """Members and signature; EvidenceBroken where a single byte is not what `pack` writes."""
    try:
        found = plain_tar.unpack(raw)
    except plain_tar.NotPlainTar as error:
        raise EvidenceBroken(f"it is no evidence file: {error}") from error
    manifest, seal = found.pop(MANIFEST, b""), found.pop(SEAL, b"")
    signature = found.pop(SIGNATURE, b"").decode("ascii", errors="replace")
    if hashlib.sha256(manifest + signature.encode()).hexdigest().encode() != seal:
        raise EvidenceBroken("the manifest is not the one that was sealed", where=MANIFEST)
    if manifest_of(found) != manifest:
        raise EvidenceBroken(f"not what the manifest says: {', '.join(_changed(found, manifest))}", where=MANIFEST)
    if pack(found, signature) != raw:
        raise EvidenceBroken("bytes between its members were changed")
    return found, signature


def _changed(found: Mapping[str, bytes], manifest: bytes) -> list[str]:
    try:
        rows = strict_json.mapping(manifest)["members"]
        names = sorted({*found, *rows})
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in found.items()}
        return [name for name in names if hashes.get(name) != rows.get(name, {}).get("sha256")]
    except (ValueError, KeyError, TypeError, AttributeError):
        return ["the manifest itself"]


def checks(members: Mapping[str, bytes], policy: ApprovalPolicy | None) -> Iterator[Check]:
    """What the evidence says about itself: the plan, the journal, the playbook, each approval.

    `policy` is the approvals' part of the playbook in it; None where that could not be read.
    """
    yield Check("members", holds=True, said=f"{len(members)} files, each by its SHA-256")
    plan, said = _plan(members)
    told = "" if plan is None else f"cluster {plan.cluster!r}, change {plan.change!r}, playbook {plan.playbook!r}"
    yield Check("plan", plan is not None, said, told)
    if plan is None:
        return
    yield _journal(members, plan)
    sha256 = hashlib.sha256(members.get("playbook.yaml", b"")).hexdigest()
    fits = sha256 == plan.playbook_sha256
    yield Check("playbook", fits, "the one that the plan was made from" if fits else "not the one of the plan")
    yield from _approvals(members, plan, policy if fits else None)


def _plan(members: Mapping[str, bytes]) -> tuple[Plan | None, str]:
    try:
        plan = plan_from_json(members["plan.json"].decode())
    except PlanUnreadable as error:
        return None, error.what
    except (KeyError, UnicodeDecodeError, MigrateError) as error:
        return None, f"there is none that can be read: {error}"
    return plan, f"fingerprint {plan.fingerprint}"


def _journal(members: Mapping[str, bytes], plan: Plan) -> Check:
    if "journal.jsonl" not in members:
        return Check("journal", holds=True, said="none: the plan was not carried out")
    try:
        reading = journals.decode(members["journal.jsonl"], "journal.jsonl")
    except JournalDamaged as error:
        return Check("journal", holds=False, said=error.what)
    if reading.torn:
        return Check("journal", holds=False, said="its last line is torn")
    named = reading.events[0].data.get("plan") if reading.events else None
    if named != plan.fingerprint:
        return Check("journal", holds=False, said="it is another plan's")
    said = f"{len(reading.events)} events in one chain, of this plan"
    return Check("journal", holds=True, said=said, told=f"its last event is {reading.events[-1].name!r}")


def _approvals(members: Mapping[str, bytes], plan: Plan, policy: ApprovalPolicy | None) -> Iterator[Check]:
    for name in sorted(entry for entry in members if entry.startswith(f"{approvals.FOLDER}/")):
        try:
            given = approvals.from_json(members[name].decode(), name)
        except (MigrateError, UnicodeDecodeError) as error:
            yield Check(name, holds=False, said=str(error))
            continue
        if given.plan != plan.fingerprint:
            yield Check(name, holds=False, said=f"it is of plan {given.plan[:8]}")
        elif given.content != plan.content:
            yield Check(name, holds=False, said=other_content(given, plan.content))
        elif policy is None and given.signature:
            yield Check(name, holds=False, said="signed, and there is no playbook to check it by")
        else:
            (judged,) = approvals.judged(policy or ApprovalPolicy(), [given])
            worth = "signed by the key that the playbook names" if judged.proven else "recorded, not proven"
            yield Check(name, not judged.fault, judged.fault or worth, f"approval of {given.reviewer!r}")


def signature_check(members: Mapping[str, bytes], signature: str, key: str) -> Check:
    """Is the whole file signed with that key?"""
    if not signature:
        return Check("signature", holds=False, said="it is not signed, and a key was named")
    try:
        fits = approvals.verify(key, manifest_of(members), signature)
    except KeyUnusable as error:
        return Check("signature", holds=False, said=error.what)
    return Check("signature", fits, "of the key that was named" if fits else "it does not fit the key that was named")
