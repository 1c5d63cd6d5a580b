"""Approvals: who said yes to which plan, and whether that is enough for a stage (pure).

An approval is bound to a plan's fingerprint, so approving plan A never approves plan B, and to the sum of all that its
reviewer read, so a plan whose findings, words or figures were exchanged is not approved.  Names are recorded; proven is
only a name whose public key stands in the playbook, by a signature that fits.  The playbook's hash is part of the
fingerprint, so keys cannot be exchanged behind an approved plan.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # a playbook has a policy, and a plan knows playbooks
    from migrate.model.plan import Plan

APPROVAL_FORMAT: Final = "kraft-migrate/approval/v2"  # v1 named no sum of the plan's content
EXPECTED_KEY: Final = (
    "a public key in one line is expected: ssh-ed25519 AAAA... (ssh-keygen -t ed25519 makes a pair), an ECDSA key, or "
    "one of a security key"
)
DEFAULT_EXPIRY: Final = 86400.0
CLOCKS_DIFFER: Final = 300.0  # seconds by which a reviewer's clock may be ahead of ours
_P: Final = 2**255 - 19
_ORDER_8: Final = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
ED25519: Final = "ssh-ed25519"
KEY_FIELDS: Final[Mapping[str, tuple[int, ...]]] = {  # lengths of the fields behind the type (RFC 8709, 5656; U2F)
    ED25519: (32,),
    "sk-ssh-ed25519@openssh.com": (32, 0),
    "ecdsa-sha2-nistp256": (8, 65),
    "ecdsa-sha2-nistp384": (8, 97),
    "ecdsa-sha2-nistp521": (8, 133),
    "sk-ecdsa-sha2-nistp256@openssh.com": (8, 65, 0),
}  # 0: of any length
SMALL_ORDER: Final = frozenset({0, 1, _P - 1, _P, _P + 1, _ORDER_8, _P - _ORDER_8})


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """What a stage asks for: `minimum` of the reviewers (names, or @groups), none older than `expires` seconds."""

    reviewers: tuple[str, ...]
    minimum: int = 1
    expires: float = DEFAULT_EXPIRY
    distinct: bool = True
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalPolicy:
    """The playbook's word on approvals: rules by stage label (and `rollback`), public keys, groups."""

    rules: Mapping[str, ApprovalRule] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)  # reviewer -> OpenSSH public key, `TYPE BLOB`
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # @name -> reviewers
    signed: bool = False  # do only signed approvals count?

    def reviewers(self, rule: ApprovalRule) -> tuple[str, ...]:
        """The persons that a rule names, groups replaced by their members."""
        named = [person for entry in rule.reviewers for person in self.groups.get(entry, (entry,))]
        return tuple(dict.fromkeys(named))


@dataclass(frozen=True, slots=True)
class Approval:
    """One person's yes to one plan: the name given, the account and host it came from, when, for which stages.

    `plan` is the plan's fingerprint, `content` the sum of all that the reviewer read (`Plan.content`).
    `stages` empty: every stage that asks this reviewer.  `signature` is base64 (Ed25519) or what ssh-keygen wrote,
    empty where it is not signed.
    """

    plan: str
    content: str
    reviewer: str
    account: str
    host: str
    time: float
    stages: tuple[str, ...] = ()
    comment: str = ""
    signature: str = ""

    def signed_bytes(self) -> bytes:
        """What a signature is made over: everything but the signature."""
        body = {
            "format": APPROVAL_FORMAT,
            "plan": self.plan,
            "content": self.content,
            "reviewer": self.reviewer,
            "account": self.account,
            "host": self.host,
            "time": round(self.time, 3),
            "stages": list(self.stages),
            "comment": self.comment,
        }
        return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


@dataclass(frozen=True, slots=True)
class Judged:
    """An approval with what its signature is worth: `proven`, or `fault` says why it counts for nothing."""

    approval: Approval
    proven: bool
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Approved:
    """Enough persons said yes; each with whether the name is proven, until when it holds (seconds since the epoch)."""

    by: tuple[str, ...]
    until: float


@dataclass(frozen=True, slots=True)
class NotApproved:
    """What is missing, and why what is there does not count."""

    missing: str
    because: tuple[str, ...]


def public_key(line: str) -> str:
    """`TYPE BLOB` of a public key's line, without its comment (pure).  ValueError says what is wrong with it."""
    kind, _, rest = line.strip().partition(" ")
    blob = rest.split(" ")[0]
    try:
        fields = _fields(base64.b64decode(blob, validate=True))
    except ValueError as error:
        raise ValueError(EXPECTED_KEY) from error
    lengths = KEY_FIELDS.get(kind)
    if lengths is None or not fields or fields[0] != kind.encode() or len(fields) != len(lengths) + 1:
        raise ValueError(EXPECTED_KEY)
    if any(length not in (0, len(field)) for length, field in zip(lengths, fields[1:], strict=True)):
        raise ValueError(EXPECTED_KEY)
    if "ed25519" in kind and small_order(fields[1]):
        raise ValueError(
            "this key is a point of small order: anybody can sign for it, and its private key does not exist"
        )
    return f"{kind} {blob}"


def _fields(raw: bytes) -> list[bytes]:
    """Of a key's blob, each behind its length in four bytes."""
    found = []
    while raw:
        end = 4 + int.from_bytes(raw[:4], "big")
        if len(raw) < max(end, 4):
            raise ValueError("it ends inside a field")
        found.append(raw[4:end])
        raw = raw[end:]
    return found


def small_order(public: bytes) -> bool:
    """Is this Ed25519 public key (32 bytes, RFC 8032) a point of order 1, 2, 4 or 8?

    Whoever knows such a key can sign for it without a private key: signatures are checked against a multiple of the
    key, and that is the identity for one message in eight or more.  Encodings that are not canonical count too.
    """
    return int.from_bytes(public, "little") & (2**255 - 1) in SMALL_ORDER


def decide(
    policy: ApprovalPolicy, stage: str, plan: Plan, found: Sequence[Judged], now: float
) -> Approved | NotApproved | None:
    """Is the stage approved for that plan?  None where it asks for no approval."""
    rule = policy.rules.get(stage)
    if rule is None:
        return None
    reviewers = policy.reviewers(rule)
    good: list[Judged] = []
    because: list[str] = []
    for judged in sorted(found, key=lambda entry: entry.approval.time):
        reason = next(_against(policy, rule, stage, plan, judged, reviewers, now), "")
        if not reason and rule.distinct:
            reason = _same_person(judged, good)
        if reason:
            because.append(f"{judged.approval.reviewer}: {reason}")
        else:
            good.append(judged)
    if len(good) < rule.minimum:
        missing = f"{len(good)} of {rule.minimum} approvals of {', '.join(rule.reviewers)}"
        return NotApproved(missing, tuple(because))
    until = sorted((entry.approval.time + rule.expires for entry in good), reverse=True)[rule.minimum - 1]
    worth = {True: "signed", False: "recorded, not proven"}
    return Approved(tuple(f"{entry.approval.reviewer} ({worth[entry.proven]})" for entry in good), until)


def _against(
    policy: ApprovalPolicy,
    rule: ApprovalRule,
    stage: str,
    plan: Plan,
    judged: Judged,
    reviewers: tuple[str, ...],
    now: float,
) -> Iterator[str]:
    """Why an approval does not count, the first reason first."""
    approval = judged.approval
    if approval.plan != plan.fingerprint:
        yield f"it is of plan {approval.plan[:8]}, this is {plan.short}"
    if approval.content != plan.content:
        yield other_content(approval, plan.content)
    if judged.fault:
        yield judged.fault
    if approval.reviewer not in reviewers:
        yield f"no reviewer of stage {stage}"
    if approval.stages and stage not in approval.stages:
        yield f"given for {', '.join(approval.stages)} only"
    if not judged.proven and (policy.signed or approval.reviewer in policy.keys):
        yield "it is not signed, and the playbook has a key for that name or wants all signed"
    if approval.time > now + CLOCKS_DIFFER:
        yield f"it was given {approval.time - now:.0f} s in the future: one of the clocks is wrong"
    if now - approval.time > rule.expires:
        yield f"it expired {now - approval.time - rule.expires:.0f} s ago"


def other_content(approval: Approval, content: str) -> str:
    return (
        f"it approves the content {approval.content[:8]} of the plan, this is {content[:8]}: "
        "the plan was made again or edited since"
    )


def _same_person(judged: Judged, good: Sequence[Judged]) -> str:
    """Is that the same person as one before?  Unproven names of one account on one host are one person."""
    mine = judged.approval
    for other in good:
        if other.approval.reviewer == mine.reviewer:
            return "the same person twice"
        unproven = not (judged.proven and other.proven)
        if unproven and (other.approval.account, other.approval.host) == (mine.account, mine.host):
            return f"the same account as {other.approval.reviewer}'s ({mine.account} on {mine.host}): one person"
    return ""
