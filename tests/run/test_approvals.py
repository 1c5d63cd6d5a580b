"""Approvals on disk: bound, signed, read strictly; any byte of a signed one that changes is noticed."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from migrate.errors import ApprovalRefused, KeyUnusable
from migrate.model.approvals import (
    Approval,
    ApprovalPolicy,
    ApprovalRule,
    Approved,
    Judged,
    NotApproved,
    decide,
    small_order,
)
from migrate.run import approvals
from tests.report import story
from tests.testing.no_room import no_room

PLAN = story.plan()
NOW = 1_796_000_000.0
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
RULE = ApprovalRule(("@oncall", "carol"), minimum=2, expires=3600.0)
POLICY = ApprovalPolicy(
    rules={"finalize": RULE}, keys={"alice": approvals.public_line(KEY)}, groups={"@oncall": ("alice", "bob")}
)


def yes(reviewer: str = "bob", **changes: object) -> Approval:
    """An approval of that plan, a minute ago, from the reviewer's own account."""
    given = Approval(PLAN.fingerprint, PLAN.content, reviewer, reviewer, "desk", NOW - 60)
    return replace(given, **changes)  # type: ignore[arg-type]


def signed(approval: Approval, key: Ed25519PrivateKey = KEY) -> Approval:
    """The same, signed."""
    return replace(approval, signature=approvals.sign(key, approval.signed_bytes()))


def decided(*found: Approval, policy: ApprovalPolicy = POLICY, now: float = NOW) -> Approved | NotApproved | None:
    """What these approvals come to for stage finalize."""
    return decide(policy, "finalize", PLAN, approvals.judged(policy, found), now)


# -- what counts -----------------------------------------------------------------------------------------------------
def test_two_persons_one_of_them_proven_are_enough() -> None:
    """Names are told with what they are worth; it holds until the first of them expires."""
    found = decided(signed(yes("alice")), yes("carol", time=NOW - 600))
    assert found == Approved(("carol (recorded, not proven)", "alice (signed)"), NOW - 600 + 3600.0)


def test_a_stage_without_a_rule_asks_for_nothing() -> None:
    """No rule, no answer."""
    assert decide(POLICY, "prepare", PLAN, [], NOW) is None


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (yes("alice"), "not signed"),
        (signed(yes("alice"), OTHER), "its signature does not fit"),
        (replace(signed(yes("alice")), comment="and more"), "its signature does not fit"),
        (replace(signed(yes("alice")), time=NOW - 59), "its signature does not fit"),
        (replace(yes("alice"), signature="no base64!"), "its signature does not fit"),
        (signed(yes("bob")), "the playbook has no key for that name"),
        (yes("bob", plan="cd" * 32), f"it is of plan cdcdcdcd, this is {PLAN.short}"),
        (yes("bob", content="cd" * 32), "it approves the content cdcdcdcd of the plan"),
        (signed(yes("alice", content="cd" * 32)), "made again or edited since"),
        (replace(signed(yes("alice", content="cd" * 32)), content=PLAN.content), "its signature does not fit"),
        (yes("mallory"), "no reviewer of stage finalize"),
        (yes("bob", time=NOW - 3601), "it expired 1 s ago"),
        (yes("bob", time=NOW + 301), "in the future"),
        (yes("bob", stages=("kraft-mode",)), "given for kraft-mode only"),
    ],
)
def test_what_does_not_count_is_told_why(bad: Approval, why: str) -> None:
    """One good one beside it is not two."""
    found = decided(yes("carol"), bad)
    assert isinstance(found, NotApproved)
    assert found.missing == "1 of 2 approvals of @oncall, carol"
    assert why in found.because[0]


def test_one_account_under_two_names_is_one_person_unless_both_are_proven() -> None:
    """A shared jump host's account proves nothing; two keys do."""
    assert isinstance(decided(yes("bob"), yes("carol", account="bob")), NotApproved)
    both = replace(POLICY, keys={**POLICY.keys, "carol": approvals.public_line(OTHER)})
    found = (signed(yes("alice", account="ops")), signed(yes("carol", account="ops"), OTHER))
    assert isinstance(decided(*found, policy=both), Approved)


def test_where_all_must_be_signed_a_recorded_name_does_not_count() -> None:
    """Whatever its reviewer says."""
    strict = replace(POLICY, signed=True)
    found = decided(signed(yes("alice")), yes("bob"), policy=strict)
    assert isinstance(found, NotApproved)


# -- files -----------------------------------------------------------------------------------------------------------
def test_an_approval_reads_back_equal_and_is_never_overwritten(tmp_path: Path) -> None:
    """One file each; a second one of that second is refused."""
    given = signed(yes("alice", comment="größer", stages=("finalize",)))
    path = approvals.save(tmp_path, given)
    assert approvals.load(tmp_path) == [given]
    before = path.read_bytes()
    with pytest.raises(ApprovalRefused):
        approvals.save(tmp_path, replace(given, comment="another"))
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_an_approval_without_room_leaves_no_draft(tmp_path: Path) -> None:
    """Nothing that a later look would have to explain."""
    with no_room(), pytest.raises(OSError, match="File too large"):
        approvals.save(tmp_path, yes())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_reviewers_name_is_no_path(tmp_path: Path) -> None:
    """It ends up in the folder, whatever it is."""
    path = approvals.save(tmp_path, yes("../../etc/passwd"))
    assert path.parent == tmp_path / "approvals"


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000, b"null", b" " * 70_000])
def test_a_file_that_is_no_approval_is_refused_by_name(tmp_path: Path, raw: bytes) -> None:
    """Never skipped: it lies where approvals lie."""
    (tmp_path / "approvals").mkdir()
    (tmp_path / "approvals" / "x.json").write_bytes(raw)
    with pytest.raises(ApprovalRefused) as caught:
        approvals.load(tmp_path)
    assert "x.json" in caught.value.where


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("time", "soon"),
        ("time", True),
        ("time", float("nan")),
        ("time", float("inf")),
        ("time", 10**400),
        ("stages", "finalize"),
        ("stages", [1]),
        ("plan", 7),
        ("content", 7),
        ("x", "y"),
    ],
    ids=itertools.count(),
)
def test_a_field_of_another_kind_is_refused(key: str, value: object) -> None:
    """Nothing is converted."""
    body = {**json.loads(approvals.to_json(yes())), key: value}
    with pytest.raises(ApprovalRefused):
        approvals.from_json(json.dumps(body), "here")


def test_an_approval_of_an_older_release_is_refused_and_says_what_to_do() -> None:
    """It names no sum of the plan's content: what its reviewer read is not known."""
    body = {**json.loads(approvals.to_json(yes())), "format": "kraft-migrate/approval/v1"}
    del body["content"]
    with pytest.raises(ApprovalRefused, match="approval/v2") as caught:
        approvals.from_json(json.dumps(body), "here")
    assert "approve the plan again" in caught.value.next_step


def test_every_changed_byte_of_a_signed_approval_is_noticed(tmp_path: Path) -> None:
    """It is refused as a file, or its signature does not fit; white space is no content."""
    path = approvals.save(tmp_path, signed(yes("alice")))
    raw = path.read_bytes()
    blind = []
    for at in range(len(raw)):
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        try:
            found = approvals.judged(POLICY, approvals.load(tmp_path))
        except ApprovalRefused:
            continue
        if found[0].proven:
            blind.append(raw[at : at + 1])
    assert set(blind) <= {b" ", b"\n"}


def test_a_strange_approval_in_the_folder_refuses_the_run(tmp_path: Path) -> None:
    """Of another plan, or with a signature that does not fit; a missing one does not."""
    assert approvals.refuse_strange(POLICY, PLAN.fingerprint, tmp_path) == []
    good = signed(yes("alice"))
    approvals.save(tmp_path, good)
    assert approvals.refuse_strange(POLICY, PLAN.fingerprint, tmp_path) == [Judged(good, proven=True)]
    with pytest.raises(ApprovalRefused, match=f"approves plan {PLAN.short}"):
        approvals.refuse_strange(POLICY, "00" * 32, tmp_path)
    approvals.save(tmp_path, replace(good, time=NOW - 10))
    with pytest.raises(ApprovalRefused, match="does not fit"):
        approvals.refuse_strange(POLICY, PLAN.fingerprint, tmp_path)


# -- keys ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("form", [PrivateFormat.OpenSSH, PrivateFormat.PKCS8])
@pytest.mark.parametrize("lock", [NoEncryption(), BestAvailableEncryption(b"secret words")], ids=["plain", "locked"])
def test_keys_in_both_forms_sign_locked_or_not(
    tmp_path: Path, form: PrivateFormat, lock: KeySerializationEncryption
) -> None:
    """As ssh-keygen and openssl write them; the passphrase is only asked for where there is one."""
    path = tmp_path / "key"
    path.write_bytes(KEY.private_bytes(Encoding.PEM, form, lock))
    asked: list[str] = []

    def passphrase() -> str:
        asked.append("asked")
        return "secret words"

    signer = approvals.signer(path, passphrase)
    assert signer.public == POLICY.keys["alice"]
    assert approvals.verify(signer.public, b"x", signer.sign(b"x"))
    assert len(asked) == (0 if isinstance(lock, NoEncryption) else 1)


def test_a_wrong_passphrase_another_algorithm_and_no_key_are_refused(tmp_path: Path) -> None:
    """By name, without a word of their content."""
    path = tmp_path / "key"
    elliptic = generate_private_key(SECP256R1())
    for raw in (
        KEY.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, BestAvailableEncryption(b"right")),
        elliptic.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        b"-----BEGIN NOTHING-----",
        b"",
    ):
        path.write_bytes(raw)
        with pytest.raises(KeyUnusable) as caught:
            approvals.signer(path, lambda: "wrong")
        assert "PRIVATE" not in str(caught.value)
    with pytest.raises(KeyUnusable):
        approvals.signer(tmp_path / "missing", lambda: "")


@pytest.mark.parametrize("public", ["ssh-ed25519 AAAA", "nonsense", ""])
def test_a_public_key_that_is_none_is_no_silent_no(public: str) -> None:
    """The playbook's own check refuses it earlier."""
    with pytest.raises(KeyUnusable):
        approvals.verify(public, b"x", "eA==")


# points of order 1, 2, 4 and 8, and further encodings of them: a sign without an x, and y not below 2^255 - 19
Y_OF_SMALL_ORDER = (
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
)
SMALL = tuple(
    bytes.fromhex(y)[:31] + bytes([bytes.fromhex(y)[31] | sign]) for y in Y_OF_SMALL_ORDER for sign in (0, 128)
)


def line_of(public: bytes) -> str:
    """A public key of these 32 bytes, as a playbook has it."""
    blob = b"\0\0\0\x0bssh-ed25519" + b"\0\0\0\x20" + public
    return f"ssh-ed25519 {base64.b64encode(blob).decode()}"


def forged(public: bytes) -> tuple[bytes, bytes] | None:
    """A message with a signature that fits, made without any private key; None where none was found."""
    signer = KEY.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    scalar = hashlib.sha512(signer).digest()[:32]
    clamped = bytearray(scalar)
    clamped[0] &= 248
    clamped[31] = clamped[31] & 127 | 64
    number = int.from_bytes(clamped, "little") % (2**252 + 27742317777372353535851937790883648493)
    of_that = KEY.public_key().public_bytes(
        Encoding.Raw, PublicFormat.Raw
    )  # S * B, so R = S * B where k * A is nothing
    for attempt in range(200):
        message = f"finalize {attempt}".encode()
        try:
            Ed25519PublicKey.from_public_bytes(public).verify(of_that + number.to_bytes(32, "little"), message)
        except InvalidSignature:
            continue
        return message, of_that + number.to_bytes(32, "little")
    return None


def test_signatures_for_a_key_of_small_order_can_be_forged_so_no_such_key_is_taken() -> None:
    """Whoever knows the key can sign; each of the 14 encodings is refused by the run, by lint and by report verify."""
    for public in SMALL:
        with pytest.raises(KeyUnusable, match="small order"):
            approvals.verify(line_of(public), b"x", base64.b64encode(bytes(64)).decode())
    assert len([public for public in SMALL if forged(public)]) >= 8, "the library believes them: our rule is needed"
    assert not small_order(KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
