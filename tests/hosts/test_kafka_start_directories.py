"""The look behind a start's verdict: nothing is changed, nothing hangs, what we may not see is an error."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.errors import NotVisible
from migrate.hosts.kafka_start import inspect_place, look_for_start
from migrate.model.broker_modes import Mode
from migrate.model.disk_trouble import strange_folders
from migrate.model.kafka_start import Asked, decide_start
from migrate.model.views import MetaBroken, MetaMissing, MetaProperties
from tests.cli.commands import tree
from tests.testing.ensembles import CLUSTER, ENSEMBLES, NODE, bare, file, v0

NOBODY = 65534
REPO = Path(__file__).parents[2]


def as_nobody(program: str) -> str:
    """What a program says that runs as a user without any rights (root alone can ask for that)."""
    if os.geteuid() != 0:
        pytest.skip("only root may become another user")
    code = (
        "import os, sys\n"
        f"os.setgid({NOBODY}); os.setgroups([]); os.setuid({NOBODY})\n"
        "from pathlib import Path\n"
        "from migrate.errors import NotVisible\n"
        "from migrate.hosts.kafka_start import inspect_place\n" + program
    )
    program_ = f"import sys; sys.path[:0] = {[str(REPO), *sys.path]!r}\nimport json, migrate.hosts.kafka_start\n{code}"
    done = subprocess.run([sys.executable, "-c", program_], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def open_path(tmp_path: Path) -> Path:
    """A folder that another user reaches."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    return tmp_path


@pytest.mark.slow
def test_a_look_changes_nothing_at_all(tmp_path: Path) -> None:
    """Not a byte, not a name: a broker may be living on it."""
    for number, ensemble in enumerate(ENSEMBLES):
        log_dirs, metadata_dir = ensemble.make(tmp_path / str(number))
        before = tree(tmp_path / str(number)) if not (tmp_path / str(number) / "d1").is_symlink() else {}
        names = sorted(os.walk(tmp_path / str(number)))
        look_for_start(Asked(Mode.MIGRATION, CLUSTER, NODE, tuple(log_dirs), metadata_dir))
        assert sorted(os.walk(tmp_path / str(number))) == names
        if before:
            assert tree(tmp_path / str(number)) == before


def test_a_fifo_in_the_place_of_the_file_is_told_and_not_waited_for(tmp_path: Path) -> None:
    """Kafka would open it and wait for ever."""
    bare(tmp_path / "d0")
    os.mkfifo(tmp_path / "d0" / "meta.properties")
    asked = Asked(Mode.ZOOKEEPER, CLUSTER, NODE, (str(tmp_path / "d0"),), str(tmp_path / "d0"))
    found = decide_start(asked, look_for_start(asked))
    assert not found.starts
    assert f"{tmp_path}/d0/meta.properties is no regular file" in found.reason


def test_a_file_of_many_megabytes_is_an_error_with_its_path(tmp_path: Path) -> None:
    """We do not say what we did not read."""
    file(b"#" * (2 << 20))(tmp_path / "d0")
    with pytest.raises(NotVisible) as caught:
        inspect_place(str(tmp_path / "d0"))
    assert caught.value.where == f"{tmp_path}/d0/meta.properties"


def test_a_lock_that_a_process_holds_is_told(tmp_path: Path) -> None:
    """Kafka's .lock is a record lock of the whole file; asking does not take it."""
    file(v0())(tmp_path / "d0")
    (tmp_path / "d0" / ".lock").touch()
    assert inspect_place(str(tmp_path / "d0")).locked_by == ""
    program = (
        "import fcntl, sys\n"
        f"held = open({str(tmp_path / 'd0' / '.lock')!r}, 'r+b')\n"
        "fcntl.lockf(held, fcntl.LOCK_EX)\nprint('held', flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert inspect_place(str(tmp_path / "d0")).locked_by == f"pid {holder.pid}"
        asked = Asked(Mode.ZOOKEEPER, CLUSTER, NODE, (str(tmp_path / "d0"),), str(tmp_path / "d0"))
        (warning,) = decide_start(asked, look_for_start(asked)).warnings
        assert f"a living process (pid {holder.pid}) has it locked" in warning
        holder.communicate("")
    with (tmp_path / "d0" / ".lock").open("r+b") as free:
        fcntl.lockf(free, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_replicas_are_counted_and_nothing_else(tmp_path: Path) -> None:
    """Current folders; the metadata log is told apart; links, files and odd names are none."""
    file(v0())(tmp_path / "d0")
    for name in (
        "a-0",
        "a-1",
        "b-b-12",
        "__cluster_metadata-0",
        f"a-2.{'f' * 32}-delete",
        "odd",
        "remote-log-index-cache",
    ):
        (tmp_path / "d0" / name).mkdir()
    (tmp_path / "d0" / "c-0").write_bytes(b"")
    found = inspect_place(str(tmp_path / "d0"))
    assert (found.replicas, found.directory.holds_metadata_log) == (3, True)
    assert strange_folders(found.directory) == ("odd",)


@pytest.mark.slow
def test_a_denial_of_our_user_is_an_error_and_never_an_answer(open_path: Path) -> None:
    """Kafka's own user may read what we may not: to say *failed*, or *empty*, would be a guess."""
    for name in ("shut", "file"):
        file(v0())(open_path / name)
    (open_path / "shut").chmod(0o700)
    (open_path / "file" / "meta.properties").chmod(0o600)
    said = as_nobody(
        f"for name in ('shut', 'file'):\n"
        f"    try:\n        print(inspect_place({str(open_path)!r} + '/' + name))\n"
        f"    except NotVisible as error:\n        print(error.where, '|', error.next_step)\n"
    )
    assert said.splitlines() == [f"{open_path}/{name} | run it as Kafka's own user" for name in ("shut", "file")]


@pytest.mark.slow
def test_a_denial_in_our_own_directory_is_kafkas_too(open_path: Path) -> None:
    """The folder is that user's, the file in it is root's: Kafka, running as that user, fails the directory."""
    file(v0())(open_path / "d0")
    (open_path / "d0" / "meta.properties").chmod(0o600)
    shutil.chown(open_path / "d0", NOBODY, NOBODY) if os.geteuid() == 0 else None
    said = as_nobody(f"found = inspect_place({str(open_path / 'd0')!r})\nprint(found.directory.meta, found.writable)\n")
    assert said == "MetaBroken(reason='it cannot be read: Permission denied') True\n"


@pytest.mark.slow
def test_a_directory_that_cannot_be_written_fails(open_path: Path) -> None:
    """Asked of the rights of the user who asks; in migration mode one such directory is the whole broker."""
    for index in range(2):
        file(v0(index))(open_path / f"d{index}")
        (open_path / f"d{index}" / "meta.properties").chmod(0o644)
    (open_path / "d1").chmod(0o755)
    (open_path / "d0").chmod(0o777)
    said = as_nobody(
        "import json\nfrom dataclasses import asdict\n"
        "from migrate.model.kafka_start import Asked, decide_start\nfrom migrate.model.broker_modes import Mode\n"
        "from migrate.hosts.kafka_start import look_for_start\n"
        f"dirs = tuple({str(open_path)!r} + '/d' + str(n) for n in range(2))\n"
        "for mode in Mode:\n"
        f"    asked = Asked(mode, {CLUSTER!r}, {NODE}, dirs, dirs[0])\n"
        "    print(json.dumps(asdict(decide_start(asked, look_for_start(asked)))))\n"
    )
    zookeeper, migration, kraft = map(json.loads, said.splitlines())
    for found in (zookeeper, migration, kraft):
        assert found["failed"] == [f"{open_path}/d1"]
        assert any("cannot be written" in line for line in found["warnings"])
    assert (zookeeper["starts"], migration["starts"], kraft["starts"]) == (True, False, True)
    assert "halts the broker" in migration["reason"]


@pytest.mark.parametrize(
    ("make", "kind"), [(file(v0()), MetaProperties), (bare, MetaMissing), (file(b"version=9\n"), MetaBroken)]
)
def test_the_three_answers(make: object, kind: type, tmp_path: Path) -> None:
    """There, not there, not readable."""
    assert callable(make)
    make(tmp_path / "d0")
    assert isinstance(inspect_place(str(tmp_path / "d0")).directory.meta, kind)


def test_a_directory_that_goes_away_meanwhile_is_missing_and_raises_nothing(tmp_path: Path) -> None:
    """Between any two questions: the answers may disagree, and none of them is *fine*."""
    found = inspect_place(str(tmp_path / "gone"))
    assert (found.missing, found.directory.meta, found.replicas) == (True, MetaMissing(), 0)
    assert found.writable
    assert not inspect_place("/proc/gone/below").writable or os.geteuid() == 0
