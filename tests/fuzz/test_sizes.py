"""What a hostile file or answer may take of memory: the real commands, each in a process of its own."""

from __future__ import annotations

import gzip
import os
import random  # noqa: TID251 - seeded
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from migrate.errors import HostAnswerTooLong
from migrate.hosts.runner import LocalRunner
from migrate.model import limits
from migrate.model.stage import Stage
from migrate.observe.bundle import write_bundle
from tests.cli.commands import playbook_in
from tests.testing import worlds
from tests.testing.clusters import Partition, columns_of, topic_id
from tests.testing.encoding import build

MOST = 256 * limits.MIB  # over the same command with an empty file
PEAK = """
import sys
def peak():  # of this program alone: ru_maxrss begins with what its parent had
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))
"""
MEASURED = f"""{PEAK}
from migrate.cli.main import main
try:
    main()
finally:
    print(peak(), file=sys.stderr)
"""


def taken(*words: str | Path) -> tuple[int, int, str]:
    """Exit code, bytes at the highest, and what it complained of."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, words)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said, _, peak = done.stderr.rstrip("\n").rpartition("\n")
    return done.returncode, int(peak) * 1024, said + done.stdout


def sparse_tar(claims: int) -> bytes:
    """One member that claims gigabytes of zeros (GNU)."""
    header = tarfile.TarInfo("manifest.json")
    header.type, header.size = tarfile.GNUTYPE_SPARSE, 0
    block = bytearray(header.tobuf(tarfile.GNU_FORMAT))
    block[483:495] = b"%011o\0" % claims
    block[148:156] = b"        "
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + bytes(1024)


def pax_tar(claims: int) -> bytes:
    """One member whose extended header claims a size."""
    out = BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("manifest.json")
        info.pax_headers = {"size": str(claims), "GNU.sparse.major": "1", "GNU.sparse.realsize": str(claims)}
        archive.addfile(info)
    return out.getvalue()


def tar_of(content: bytes) -> bytes:
    """A plain archive with one member."""
    out = BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        info = tarfile.TarInfo("manifest.json")
        info.size, info.mode = len(content), 0o600
        archive.addfile(info, BytesIO(content))
    return out.getvalue()


DEEP = b"[" * 60_000_000
EMPTY_OBJECTS = b"[" + b"{}," * 20_000_000 + b"{}]"
ONE_KEY = b"[" + b'{"":0},' * 4_000_000 + b"{}]"
HUGE_NUMBER = b"9" * 60_000_000
WIDE = '"\U0001f600'.encode() + b"a" * 60_000_000 + b'"'
JSON = {"deep": DEEP, "objects": EMPTY_OBJECTS, "one key": ONE_KEY, "digits": HUGE_NUMBER, "wide": WIDE}
TARS: dict[str, Callable[[], bytes]] = {
    "sparse": lambda: sparse_tar(2**33 - 1),
    "pax": lambda: pax_tar(2**40),
    **{name: (lambda raw=raw: tar_of(raw)) for name, raw in JSON.items()},  # type: ignore[misc]
}


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., int]:
    """What a command takes for an empty file."""
    empty = tmp_path_factory.mktemp("idle") / "empty"
    empty.write_bytes(b"")
    kept: dict[tuple[str | Path, ...], int] = {}

    def measured(*words: str | Path) -> int:
        if words not in kept:
            kept[words] = taken(*words, empty)[1]
        return kept[words]

    return measured


def refused(idle: Callable[..., int], path: Path, *words: str | Path) -> None:
    """It ends in an error with a code, within the memory that is allowed."""
    code, peak, said = taken(*words, path)
    assert code != 0
    assert re.search(r"\bE-[A-Z]+-[0-9]", said), said[-400:]
    assert "E-DEFECT" not in said
    assert peak - idle(*words) <= MOST, f"{(peak - idle(*words)) // limits.MIB} MiB over the idle process: {said[:200]}"


@pytest.mark.long
@pytest.mark.parametrize("name", TARS)
def test_no_archive_takes_more_than_it_may(tmp_path: Path, idle: Callable[..., int], name: str) -> None:
    """A bundle: sizes that are claimed, bombs of brackets, digits and wide characters."""
    raw = TARS[name]()
    (tmp_path / "bundle").write_bytes(gzip.compress(raw, 1))
    refused(idle, tmp_path / "bundle", "bundle", "show")


@pytest.mark.long
@pytest.mark.parametrize("name", JSON)
def test_no_text_takes_more_than_it_may(tmp_path: Path, idle: Callable[..., int], name: str) -> None:
    """A saved plan, a line of a backup, and a collector's answer."""
    plan = tmp_path / "plan.json"
    plan.write_bytes(JSON[name])
    refused(idle, plan, "apply")
    plan.write_bytes(JSON[name][: 31 * limits.MIB])
    refused(idle, plan, "apply")
    backup = tmp_path / "backup.gz"
    backup.write_bytes(gzip.compress(b'{"format": "x"}\n' + JSON[name] + b"\n", 1))
    inventory = playbook_in(tmp_path, "assess").with_name("inventory.yaml")
    restore = ("backup", "restore", "--inventory", inventory, "--path", "/")
    refused(idle, backup, *restore)
    backup.write_bytes(gzip.compress(os.urandom(2 * limits.MIB) + b"\n" + JSON[name][: 31 * limits.MIB] + b"\n", 1))
    refused(idle, backup, *restore)
    answer = tmp_path / "answer.json"
    answer.write_bytes(JSON[name])
    refused(idle, answer, "directories", "show", "--inventory", inventory, "--disks")


@pytest.mark.long
def test_bombs_of_gzip_are_refused_by_what_they_hold(tmp_path: Path, idle: Callable[..., int]) -> None:
    """Of zeros and of one endless line."""
    inventory = playbook_in(tmp_path, "assess").with_name("inventory.yaml")
    for raw in (bytes(600 * limits.MIB), b'{"path": "' + b"a" * (600 * limits.MIB)):
        path = tmp_path / "bomb.gz"
        path.write_bytes(gzip.compress(raw, 1))
        refused(idle, path, "backup", "restore", "--inventory", inventory, "--path", "/")
        refused(idle, path, "bundle", "show")


@pytest.mark.long
def test_a_file_of_holes_is_refused_by_its_size(tmp_path: Path, idle: Callable[..., int]) -> None:
    """A terabyte that takes no room on the disk is not read."""
    path = tmp_path / "holes"
    with path.open("wb") as file:
        file.truncate(2**40)
    for words in (("bundle", "show"), ("apply",), ("playbook", "lint")):
        refused(idle, path, *words)


@pytest.mark.long
def test_a_batch_of_unknown_fields_is_refused(tmp_path: Path, idle: Callable[..., int]) -> None:
    """One record of 16 MiB that is nothing but tagged fields, and one of as many small records."""
    fields = bytearray()
    for tag in range(100, 4_000_000):
        fields += varint(tag) + b"\0"
        if len(fields) > 15 * limits.MIB:
            break
    record = b"\1\2\0" + b"\1a" + bytes(16) + varint(tag - 99) + bytes(fields)  # a TopicRecord
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(build(0, 1, [(None, record)]))
    refused(idle, path, "metadata", "dump")
    path.write_bytes(build(0, 1, [(None, b"")] * 2_000_000))
    refused(idle, path, "metadata", "dump")


def varint(number: int) -> bytes:
    """As Kafka writes an unsigned one."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


ANSWERS = f"""{PEAK}
from migrate.errors import HostAnswerTooLong
from migrate.hosts.runner import LocalRunner
before = peak()
try:
    LocalRunner().run([sys.executable, "-c", "import sys\\nfor _ in range(320): sys.stdout.buffer.write(bytes(2**20))"])
except HostAnswerTooLong as error:
    print(error.id, peak() - before)
"""


@pytest.mark.slow
def test_an_answer_of_320_mib_is_cut_while_it_comes() -> None:
    """By a real process that writes it; nothing of what is behind the limit is kept."""
    done = subprocess.run([sys.executable, "-c", ANSWERS], capture_output=True, text=True, check=True)
    code, taken_kib = done.stdout.split()
    assert code == "E-HOST-30"
    assert int(taken_kib) * 1024 <= limits.most("answer") + 64 * limits.MIB


def test_an_answer_is_cut_above_its_limit_and_whole_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """The byte that is one too many decides."""
    words = [sys.executable, "-c", "print('x' * 5000)"]
    monkeypatch.setitem(limits.LIMITS, "answer", replace(limits.LIMITS["answer"], most=5000))
    with pytest.raises(HostAnswerTooLong):
        LocalRunner().run(words)
    monkeypatch.setitem(limits.LIMITS, "answer", replace(limits.LIMITS["answer"], most=5001))
    assert len(LocalRunner().run(words).output) == 5001


@pytest.mark.slow
def test_input_and_complaints_of_a_command_pass_whatever_their_size() -> None:
    """A command that reads all, one that reads nothing, and the last words of one that complains at length."""
    words = [sys.executable, "-c", "import sys; sys.stdout.write(str(len(sys.stdin.buffer.read())))"]
    assert LocalRunner().run(words, stdin=bytes(3_000_000)).output == b"3000000"
    assert LocalRunner().run(["true"], stdin=bytes(3_000_000)).code == 0
    words = [sys.executable, "-c", "import sys; sys.stderr.write('x' * 300_000 + 'the end'); sys.exit(3)"]
    done = LocalRunner().run(words)
    assert (done.code, done.errors[-7:], len(done.errors)) == (3, "the end", 65536)


@pytest.mark.long
@pytest.mark.parametrize("alike", [True, False])
def test_a_bundle_of_200_000_partitions_passes(tmp_path: Path, alike: bool) -> None:
    """All alike, as a lab has them, and of drawn ids, replicas and directories: shown and assessed by the commands."""
    draw = random.Random(7)

    def identity(number: int) -> str:
        return topic_id(number + 1) if alike else draw.randbytes(11).hex()

    partitions = []
    for number in range(200_000):
        if not number % 20:
            topic, uuid = f"topic-{number // 20:05}", identity(number // 20)
        replicas = [0, 1, 2] if alike else draw.sample(range(3), 3)
        directories = [f"d{replica}" * 7 + identity(replica)[:8] for replica in replicas]
        partitions.append(Partition(topic, uuid, number % 20, replicas, directories))
    world = worlds.world_at(Stage.HYBRID)
    world = worlds.with_zk(world, partitions=columns_of(partitions))
    world = worlds.with_kraft(world, partitions=columns_of(partitions, directories=True))
    path = tmp_path / "large.bundle"
    write_bundle(str(path), world, 1_700_000_000)
    assert taken("bundle", "show", path)[0] == 0
    code, _, said = taken("assess", "--from-bundle", path)
    assert code in (1, 2, 3), said[-400:]
    assert not re.search(r"\bE-[A-Z]+-[0-9]", said), said[-400:]
