"""Archives of ours, and what looks like them."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.model.plain_tar import BLOCK, Member, NotPlainTar, members, pack, unpack

MEMBERS = {"a.json": b"", "folder/b.json": b"x" * 513}


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


@pytest.mark.slow
@given(
    st.dictionaries(st.from_regex(r"[a-z]{1,45}(/[a-z.]{1,3}z){0,9}", fullmatch=True), st.binary(max_size=2000)),
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
        {"format": tarfile.PAX_FORMAT, "pax_headers": {"size": "99999999999999999999"}},
        {"format": tarfile.PAX_FORMAT, "pax_headers": {"GNU.sparse.major": "1", "GNU.sparse.realsize": "9999999999"}},
    ],
)
def test_every_other_kind_of_member_is_refused(fields: dict[str, object]) -> None:
    """Sparse members and extended headers claim sizes that are nowhere."""
    with pytest.raises(NotPlainTar):
        unpack(other(**fields))


def header(size: bytes, kind: bytes = b"0") -> bytes:
    """A header with that size field, its checksum right."""
    raw = bytearray(tarfile.TarInfo("a.json").tobuf(tarfile.USTAR_FORMAT))
    raw[124:136], raw[156:157], raw[148:156] = size, kind, b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw)


@pytest.mark.parametrize(
    "second",
    [header(b"\xff" + (2**88 - 512).to_bytes(11, "big")), header(b"%011o\0" % 20_480, b"x") + b"1" * 20_480],
    ids=["a negative size", "an extended header of digits"],
)
def test_what_pythons_own_reader_reads_without_end_is_refused_at_once(second: bytes) -> None:
    """The reason for these two readers: it goes back by such a size, and tries every digit of such a header."""
    raw = header(b"%011o\0" % 0) + second + bytes(2 * BLOCK)
    with pytest.raises(NotPlainTar):
        unpack(raw)
    with pytest.raises(NotPlainTar):
        read(raw)


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
    with pytest.raises(NotPlainTar, match="appears twice"):
        unpack(raw[:BLOCK] + raw)
    with pytest.raises(NotPlainTar, match="more behind"):
        unpack(raw + b"x")


@pytest.mark.slow
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


# -- archives of a host's tar ------------------------------------------------------------------------------------
def of_a_host(folder: Path, *words: str) -> bytes:
    """What this host's tar makes of a log's two parts."""
    (folder / "log").mkdir()
    (folder / "log" / "0.log").write_bytes(b"x" * 513)
    (folder / "meta").write_bytes(b"")
    given = ["tar", "-C", str(folder), *words, "-cf", "-", "--", "meta", "log"]
    return subprocess.run(given, capture_output=True, check=True).stdout


def read(raw: bytes) -> dict[str, bytes | None]:
    """Name to content; None for a folder."""
    archive, found = io.BytesIO(raw), dict[str, bytes | None]()
    for member in members(archive):
        content = io.BytesIO()
        member.copy(archive, content)
        found[member.name] = None if member.folder else content.getvalue()
    return found


@pytest.mark.parametrize("words", [(), ("--format=ustar",), ("--format=gnu", "--owner=4000000000")])
def test_what_tar_makes_of_plain_files_is_read(tmp_path: Path, words: tuple[str, ...]) -> None:
    """The default form, the POSIX one, and an owner that only a binary field can hold."""
    assert read(of_a_host(tmp_path, *words)) == {"meta": b"", "log": None, "log/0.log": b"x" * 513}


@pytest.mark.parametrize(
    "fields",
    [
        {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"},
        {"type": tarfile.LNKTYPE, "linkname": "a.json"},
        {"type": tarfile.CHRTYPE},
        {"type": tarfile.FIFOTYPE},
        {"type": tarfile.GNUTYPE_SPARSE},
        {"type": tarfile.DIRTYPE},  # with a size
        {"name": "../a"},
        {"name": "/a"},
        {"name": "a//b"},
        {"name": "same"},
        {"name": "n" * 120, "format": tarfile.GNU_FORMAT},
        {"size": 3 * 2**30},
        {"size": 2**70, "format": tarfile.GNU_FORMAT},
        {"format": tarfile.PAX_FORMAT, "pax_headers": {"size": "99999999999999999999"}},
        {"format": tarfile.PAX_FORMAT, "pax_headers": {"GNU.sparse.major": "1", "GNU.sparse.realsize": "9999999999"}},
    ],
)
def test_what_is_no_plain_file_in_an_archive_of_a_host_is_refused(fields: dict[str, object]) -> None:
    """Links, devices, sparse files, extended headers, names that lead out, sizes that are nowhere."""
    raw, form = b"", fields.pop("format", tarfile.USTAR_FORMAT)
    for index in range(2):
        info = tarfile.TarInfo(f"{index}.json")
        info.size = 1
        for key, value in fields.items():
            setattr(info, key, value)
        raw += info.tobuf(form) + b"x".ljust(BLOCK, b"\0")  # type: ignore[arg-type]
    with pytest.raises(NotPlainTar):
        read(raw + bytes(2 * BLOCK))


@pytest.mark.parametrize("cut", [0, 100, BLOCK, 2 * BLOCK, 3 * BLOCK])
def test_an_archive_of_a_host_without_its_end_is_refused(tmp_path: Path, cut: int) -> None:
    """Half of it would say that nothing else was there."""
    with pytest.raises(NotPlainTar, match="cut off"):
        read(of_a_host(tmp_path)[:cut])
    with pytest.raises(NotPlainTar, match="cut off"):
        Member("a", folder=False, at=0, size=2).copy(io.BytesIO(b"x"), io.BytesIO())


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damage_of_a_hosts_archive_is_refused_or_changes_content_alone(data: st.DataObject) -> None:
    """Never another error, and never more bytes than the archive has."""
    raw = bytearray(other(format=tarfile.GNU_FORMAT))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = read(bytes(raw))
    except NotPlainTar:
        return
    assert sum(len(content or b"") for content in found.values()) <= len(raw)
