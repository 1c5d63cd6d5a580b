"""Archives of ours, and what looks like them."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.model.plain_tar import BLOCK, NotPlainTar, pack, unpack

MEMBERS = {"a.json": b"", "approvals/b.json": b"x" * 513}


def other(**fields: object) -> bytes:
    """The same members with other header fields."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=fields.pop("format", tarfile.USTAR_FORMAT)) as archive:  # type: ignore[call-overload]
        for name, content in MEMBERS.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o600
            for key, value in fields.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


@given(
    st.dictionaries(st.from_regex(r"[a-z/.]{1,99}", fullmatch=True), st.binary(max_size=2000)),
    st.integers(0, 8**11 - 1),
)
def test_what_was_packed_is_unpacked(members: dict[str, bytes], mtime: int) -> None:
    """Content, names and order."""
    assert list(unpack(pack(members, mtime)).items()) == list(members.items())


def test_tar_itself_reads_it() -> None:
    """A person may look into it with any tar."""
    with tarfile.open(fileobj=io.BytesIO(pack(MEMBERS))) as archive:
        assert archive.getnames() == list(MEMBERS)


@pytest.mark.parametrize(
    "fields",
    [
        {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"},
        {"type": tarfile.LNKTYPE, "linkname": "a.json"},
        {"type": tarfile.DIRTYPE},
        {"type": tarfile.CHRTYPE},
        {"type": tarfile.CONTTYPE},
        {"type": tarfile.GNUTYPE_SPARSE},
        {"mode": 0o644},
        {"uid": 1},
        {"uname": "root"},
        {"format": tarfile.PAX_FORMAT, "pax_headers": {"size": "99999999999999999999"}},
        {"format": tarfile.PAX_FORMAT, "pax_headers": {"GNU.sparse.major": "1", "GNU.sparse.realsize": "9999999999"}},
        {"format": tarfile.GNU_FORMAT},
    ],
)
def test_every_other_header_is_refused(fields: dict[str, object]) -> None:
    """Sparse members and extended headers claim sizes that are nowhere."""
    with pytest.raises(NotPlainTar):
        unpack(other(**fields))


def test_a_size_is_believed_only_where_the_bytes_are_there() -> None:
    """A header that claims three gigabytes costs nothing."""
    info = tarfile.TarInfo("a.json")
    info.size, info.mode = 3 * 2**30, 0o600
    with pytest.raises(NotPlainTar, match="cut off"):
        unpack(info.tobuf(tarfile.USTAR_FORMAT) + bytes(BLOCK))


def test_names_stand_once_and_are_known() -> None:
    """What a file of this kind does not hold is refused; so is something behind the end."""
    with pytest.raises(NotPlainTar, match="belongs in no file"):
        unpack(pack(MEMBERS), {"a.json"})
    raw = pack({"a.json": b""})
    with pytest.raises(NotPlainTar, match="stands twice"):
        unpack(raw[:BLOCK] + raw)
    with pytest.raises(NotPlainTar, match="more behind"):
        unpack(raw + b"x")


@settings(max_examples=200)
@given(st.data())
def test_damage_is_refused_or_changes_no_name(data: st.DataObject) -> None:
    """Never another error."""
    raw = bytearray(pack(MEMBERS))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert list(unpack(bytes(raw))) == list(MEMBERS)
    except NotPlainTar:
        return
