"""The files of a release say what they are for; a whole one is made by test_whole_release.py."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from docs.generate import every_command
from docs.man import man_pages
from migrate import __version__
from migrate.cli.main import COMMANDS
from tests.lowest import declared
from tests.release import LOCKS, LicenceUnknownError, licence_of, packed, requirements, run, sha256, write_sums

ROOT = Path(__file__).parents[2]


def test_every_command_has_a_man_page() -> None:
    """And the program has one, which names them all."""
    pages = man_pages()
    names = {f"kraft-migrate-{path.replace(' ', '-')}" for path, _ in every_command()}
    assert {"kraft-migrate.1"} | {f"{name}.1" for name in names} == set(pages)
    whole = pages["kraft-migrate.1"].replace("\\-", "-")
    assert {name for name in names if f"{name}(1)" not in whole} == set()
    assert {name for name in COMMANDS if f"\n.B {name}\n" not in whole} == set()
    assert all(f'"kraft-migrate {__version__}"' in text.splitlines()[0] for text in pages.values())


def test_a_man_page_has_what_the_help_has() -> None:
    """Synopsis, options, examples, files and exit codes."""
    page = man_pages()["kraft-migrate-rollback-apply.1"]
    titles = re.findall(r"^\.SH (.+)$", page, re.MULTILINE)
    ends = ["EXAMPLES", "FILES", "EXIT STATUS", "SEE ALSO"]
    assert titles == ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", *ends]
    assert ".B \\-\\-confirm FINGERPRINT\nThe plan's whole fingerprint" in page
    assert "\nkraft\\-migrate rollback apply back.json" in page


def test_no_text_of_a_man_page_is_an_instruction() -> None:
    """Only requests begin with a full stop, and only our escapes have a backslash."""
    for name, text in man_pages().items():
        for line in text.splitlines():
            assert re.match(r"\.(TH|SH|PP|TP|B|BR|ad|nf|fi)\b", line) or line[:1] not in (".", "'"), (name, line)
            assert re.sub(r"\\[-e&]", "", line).count("\\") == 0, (name, line)


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
@pytest.mark.parametrize("name", ["kraft-migrate.1", "kraft-migrate-apply.1"])
def test_man_shows_a_page_without_a_warning(name: str, tmp_path: Path) -> None:
    """As a reader sees it."""
    (tmp_path / name).write_text(man_pages()[name], encoding="utf-8")
    shown = subprocess.run(
        ["man", "--warnings", "--local-file", tmp_path / name], capture_output=True, text=True, check=True
    )
    assert shown.stderr == ""
    assert "SYNOPSIS" in shown.stdout


@pytest.mark.slow
def test_the_program_writes_the_pages(tmp_path: Path) -> None:
    """As the release does."""
    subprocess.run([sys.executable, ROOT / "docs" / "man.py", tmp_path / "man1"], check=True, cwd=tmp_path)
    assert {path.name for path in (tmp_path / "man1").iterdir()} == set(man_pages())


def test_a_lock_has_what_a_plain_installation_needs(tmp_path: Path) -> None:
    """The small one leaves out Spark and Arrow, which are requirements; extras are in none."""
    wheel = tmp_path / "some-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        lines = ("click>=8.1", "pyspark<5,>=4.0", 'asyncssh>=2.18; extra == "lab"')
        archive.writestr("some-1.dist-info/METADATA", "".join(f"Requires-Dist: {line}\n" for line in lines))
    assert list(requirements(wheel)) == ["click>=8.1", "pyspark<5,>=4.0"]
    names = {re.split(r"[^\w-]", line)[0] for line in declared()["install_requires"]}
    assert [name for left_out in LOCKS.values() for name in left_out if name not in names] == []


def test_an_archive_that_is_packed_again_has_the_same_bytes_whoever_packs_it_when(tmp_path: Path) -> None:
    """Names, modes and contents stay; times, owners and the order of the members do not."""
    found = []
    for name, when, order in (("a", 1, ("x/b.sh", "x/a.py")), ("b", 2, ("x/a.py", "x/b.sh"))):
        archive = tmp_path / f"{name}.tar.gz"
        with tarfile.open(archive, "w:gz") as file:
            for path in order:
                member = tarfile.TarInfo(path)
                member.size, member.mtime, member.uid, member.mode = 2, when, when, 0o775 if "sh" in path else 0o640
                file.addfile(member, io.BytesIO(b"hi"))
        packed(archive, 1700000000)
        found.append(archive.read_bytes())
    assert found[0] == found[1]
    with tarfile.open(tmp_path / "a.tar.gz") as file:
        read = [(one.name, one.mode, one.mtime, one.uid) for one in file]
        assert read == [("x/a.py", 0o644, 1700000000, 0), ("x/b.sh", 0o755, 1700000000, 0)]
        assert [content.read() for one in file if (content := file.extractfile(one))] == [b"hi", b"hi"]


def test_a_package_without_a_licence_is_not_shipped() -> None:
    """One that brings no text is named with its licence."""
    said = {"Name": "py4j", "Version": "0.10", "License": "BSD", "URL": "UNKNOWN", "NoticeText": "UNKNOWN"}
    assert licence_of({**said, "LicenseText": "May be used."}) == "py4j, 0.10, BSD\n\nMay be used."
    assert "brings no text" in licence_of({**said, "LicenseText": "UNKNOWN"})
    with pytest.raises(LicenceUnknownError, match=r"py4j 0\.10 names no licence"):
        licence_of({**said, "License": "UNKNOWN", "LicenseText": "May be used."})


def test_the_checksums_are_read_by_sha256sum(tmp_path: Path) -> None:
    """One line a file; a changed file is named."""
    (tmp_path / "a.whl").write_bytes(b"wheel")
    (tmp_path / "b.pex").write_bytes(b"pex")
    write_sums(tmp_path)
    write_sums(tmp_path)  # its own sum is not among them
    assert (tmp_path / "SHA256SUMS").read_text().splitlines()[0] == f"{sha256(tmp_path / 'a.whl')}  a.whl"
    check = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    assert subprocess.run(check, cwd=tmp_path, check=False, capture_output=True).returncode == 0
    (tmp_path / "b.pex").write_bytes(b"other")
    changed = subprocess.run(check, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert (changed.returncode, "b.pex: FAILED" in changed.stdout) == (1, True)


def test_a_tool_that_is_missing_ends_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its exit code, its words, and no checksums."""
    monkeypatch.setattr("tests.release.exported", lambda _: 0)
    monkeypatch.setattr("tests.release.sys.executable", "false")
    assert run([str(tmp_path / "out")]) == 1
    assert "failed with exit code 1: false -m build" in capsys.readouterr().err
    assert list((tmp_path / "out").iterdir()) == []


def test_the_container_file_copies_what_a_release_has() -> None:
    """The wheel and the locks, and it is built from a Debian whose Python and Java were tried."""
    text = (ROOT / "docs" / "Containerfile").read_text(encoding="utf-8")
    assert re.findall(r"^ARG LOCK=(.+)$", text, re.MULTILINE)[0] in LOCKS
    assert "COPY kafka_kraft_migrate-*.whl requirements*.txt " in text
    assert "--require-hashes" in text


def test_the_page_on_releases_names_every_file() -> None:
    """In the table of what is made."""
    page = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
    for name in (
        *LOCKS,
        "Containerfile",
        "SHA256SUMS",
        ".whl",
        ".tar.gz",
        ".pex",
        ".cdx.json",
        "-man.tar.gz",
        "-licences.txt",
    ):
        assert f"{name}`" in page, name
