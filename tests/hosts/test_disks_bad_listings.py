"""Listings of directories that are torn, odd, closed or vanishing: told with the path, and never *fine*."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from migrate.hosts import collect_disks
from migrate.model.facts import build
from migrate.model.ids import NodeId
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import BrokerDisks, Directory
from migrate.report.directories import DirectoryRow, directories_lines
from migrate.report.lines import text
from tests.testing.clusters import topic_id
from tests.testing.ensembles import file, v0
from tests.testing.this_host import disks_here
from tests.testing.worlds import world_at, zk

NOBODY = 65534
REPO = Path(__file__).parents[2]


def replica(directory: Path, name: str, metadata: bytes | None) -> Path:
    """A folder with a segment."""
    folder = directory / name
    folder.mkdir()
    (folder / f"{0:020d}.log").write_bytes(b"x" * 10)
    if metadata is not None:
        (folder / "partition.metadata").write_bytes(metadata)
    return folder


def look(path: Path) -> Directory:
    """That directory, as the audit sees it."""
    found = disks_here().look(NodeId(0), [str(path)], None)
    assert isinstance(found, BrokerDisks)
    return found.directories[0]


def after(count: int, happens: Callable[[], object]) -> Callable[[str, int, int], dict[str, Any]]:
    """The collector's look at a folder; before the `count`th one something happens to the disk."""
    seen = 0
    real = collect_disks.replica

    def replica_of(name: str, parent: int, owner: int) -> dict[str, Any]:
        nonlocal seen
        seen += 1
        if seen == count:
            happens()
        return real(name, parent, owner)

    return replica_of


def listing(tmp_path: Path, replicas: int = 20) -> Path:
    """A healthy directory."""
    file(v0())(tmp_path / "d0")
    for number in range(replicas):
        replica(tmp_path / "d0", f"t-{number:02d}", None)
    return tmp_path / "d0"


def test_a_directory_that_is_moved_away_while_it_is_listed_is_not_healthy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its listing would be that of another place by then."""
    path = listing(tmp_path)
    monkeypatch.setattr(collect_disks, "replica", after(10, lambda: path.rename(tmp_path / "gone")))
    found = look(path)
    assert found.problem == "went away while it was looked at: No such file or directory"
    assert not found.healthy


def test_a_directory_that_is_replaced_while_it_is_listed_is_not_healthy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another disk was mounted there, or a new folder made."""
    path = listing(tmp_path)

    def swap() -> None:
        path.rename(tmp_path / "gone")
        path.mkdir()

    monkeypatch.setattr(collect_disks, "replica", after(10, swap))
    assert look(path).problem == "was replaced while it was looked at"


def test_a_replica_that_goes_away_while_it_is_listed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A living broker deletes and renames: the others are told, the directory is healthy."""
    path = listing(tmp_path)
    gone = path / "t-15"
    monkeypatch.setattr(collect_disks, "replica", after(10, lambda: gone.rename(tmp_path / "gone")))
    found = look(path)
    assert (found.problem, len(found.replicas)) == ("", 19)
    assert "t-15" not in found.replicas.folder


@pytest.mark.slow
def test_ten_thousand_odd_names_hide_no_replica_and_take_no_time(tmp_path: Path) -> None:
    """Bytes of no encoding, line ends, terminal codes, links: the first ones are told, all are counted."""
    file(v0())(tmp_path / "d0")
    root = os.fsencode(tmp_path / "d0")
    parts = (
        b"\xff\xfe",
        b"a\nb",
        b"\x1b[31m",
        "\u00fc\u202e".encode(),
        b" ",
        b"-0",
        b"t-",
        b"t-x",
        b"t-99999999999",
        b"t.u-stray",
    )
    for number in range(10_000):
        name = parts[number % len(parts)] + (b"%d" % number if number % len(parts) < 5 else b".%d" % number)
        if number % 7:
            os.mkdir(root + b"/" + name)  # noqa: PTH102 - names of no encoding
        else:
            os.symlink("/nowhere", root + b"/" + name)  # noqa: PTH211
    for number in range(30):
        replica(tmp_path / "d0", f"kept-{number}", f"version: 0\ntopic_id: {topic_id(0)}\n".encode())
    begun = time.monotonic()
    found = look(tmp_path / "d0")
    assert time.monotonic() - begun < 20
    assert found.replicas.topic.count("kept") == 30
    assert set(found.replicas.topic_id) == {str(topic_id(0))}
    assert found.oddities[-1].startswith("and ")
    told = text(directories_lines([DirectoryRow(1, "/d0", found.health, oddities=found.oddities)]))
    assert told.isprintable() or all(line.isprintable() for line in told.splitlines())
    assert told.encode("utf-8"), "what is told can be written to any terminal"


@pytest.mark.parametrize("length", range(0, 44, 4))
def test_a_partition_metadata_that_was_cut_makes_its_row_unknown(length: int, tmp_path: Path) -> None:
    """Not MISMATCH, not NOT ON DISK, and never VERIFIED: the replica may well be the right one."""
    whole = f"version: 0\ntopic_id: {topic_id(0)}\n".encode()
    file(v0())(tmp_path / "d0")
    replica(tmp_path / "d0", "t0-0", whole[:length])
    seen = BrokerDisks(NodeId(0), (look(tmp_path / "d0"),))
    ledger = build(
        zk(world_at(Stage.ASSESS)), Unknown("before the copy"), {NodeId(0): seen}, after_copy=False, finalized=False
    )
    (row,) = [row for row in ledger.rows if (row.topic, row.partition, row.broker) == ("t0", 0, 0)]
    assert row.state is (ReplicaState.UNKNOWN if length < len(whole) - 1 else ReplicaState.MIGRATING)


@pytest.mark.slow
def test_a_directory_that_our_user_may_not_see_is_unknown_with_its_path(tmp_path: Path) -> None:
    """With real rights, root as another user: the whole broker is Unknown, and every row of it."""
    root = os.geteuid() == 0
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    path = listing(tmp_path, 2)
    (path / "t-00").chmod(0o700 if root else 0)  # its owner may not look either
    path.chmod(0o777)
    drop = f"os.setgid({NOBODY}); os.setgroups([]); os.setuid({NOBODY})\n" if root else ""
    program = (
        f"import os, sys\nsys.path[:0] = {[str(REPO), *sys.path]!r}\n"
        "from tests.testing.this_host import disks_here\nimport secrets, encodings.idna\n"
        f"{drop}print(disks_here().look(0, [{str(path)!r}], None))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    (path / "t-00").chmod(0o700)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Unknown(reason=")
    assert f"{path}: " in done.stdout
    assert "Permission denied" in done.stdout
    unknown = Unknown(f"{path}: this user may not look into it")
    ledger = build(zk(world_at(Stage.ASSESS)), Unknown("-"), {NodeId(0): unknown}, after_copy=False, finalized=False)
    rows = [row for row in ledger.rows if row.broker == 0]
    assert rows
    assert {row.state for row in rows} == {ReplicaState.UNKNOWN}
    assert all(str(path) in row.why for row in rows)


def test_no_bytes_of_a_name_make_the_audit_raise(tmp_path: Path) -> None:
    """Names from chance alone."""
    file(v0())(tmp_path / "d0")
    root = os.fsencode(tmp_path / "d0")
    made = 0
    while made < 300:
        name = secrets.token_bytes(1 + made % 40).replace(b"/", b"-").replace(b"\0", b"-")
        if name not in (b".", b"..") and not os.path.lexists(root + b"/" + name):
            os.mkdir(root + b"/" + name)  # noqa: PTH102
            made += 1
    found = disks_here().look(NodeId(0), [str(tmp_path / "d0")], None)
    assert isinstance(found, BrokerDisks)
    assert found.directories[0].healthy
    assert found.directories[0].oddities
