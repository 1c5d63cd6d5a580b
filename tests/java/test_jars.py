"""Jars: nothing reaches a class path that the lock list does not name, and two runs do not disturb each other."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.errors import JarSumWrong, JarsUnavailable, KafkaHomeUnusable
from migrate.java import jars
from migrate.java.find import Java
from migrate.java.jars import kafka_jars, lock_list, parse_lock_list
from tests.testing.newer_kafka import KAFKAS, NEWER

JAVA = Java("/nonexistent/java", 17, "PATH")
CONTENT = {"kafka_2.13-3.9.2.jar": b"broker", "zookeeper-3.8.4.jar": b"zookeeper", "slf4j-api-1.7.36.jar": b"log"}
SUMS = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENT.items()}
# a run whose Ivy is replaced by one that writes our three files
RUN = """
import json, os, sys
from pathlib import Path
from migrate.java import jars
from migrate.java.find import Java
sums, content, die = json.loads(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
def fetch(java, work, expected, lock, *_):
    print('fetching', flush=True)
    if die == 'wait':
        sys.stdin.readline()
    folder = work / 'jars'
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in content.items():
        (folder / name).write_text(text)
        if die == 'fetch':
            os.kill(os.getpid(), 9)
    return folder
def die_at_rename(self, target, real=Path.rename):
    if die == 'stage' and self.suffix == '.jar':
        os.kill(os.getpid(), 9)
    return real(self, target)
Path.rename = die_at_rename
jars.fetch = fetch
jars.lock_list = lambda *_: sums
print(len(jars.kafka_jars(java=Java('/none', 17, 'PATH')).classpath), flush=True)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "kraft-migrate"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Three jars instead of a hundred, from an Ivy of the test's own; counts its calls."""
    calls: list[int] = []

    def fetch(_java: Java, work: Path, expected: int, *_: object) -> Path:
        calls.append(expected)
        return lay(work / "jars")

    monkeypatch.setattr(jars, "fetch", fetch)
    monkeypatch.setattr(jars, "lock_list", lambda *_: SUMS)
    return calls


def lay(folder: Path, **changes: bytes) -> Path:
    """The three jars as files; `changes` by the part of the name before the first dash or underscore."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in CONTENT.items():
        (folder / name).write_bytes(changes.get(re.split("[-_]", name)[0], content))
    return folder


def start(how: str) -> subprocess.Popen[str]:
    """Another run, with the same cache."""
    content = {name: raw.decode() for name, raw in CONTENT.items()}
    argv = [sys.executable, "-c", RUN, json.dumps(SUMS), json.dumps(content), how]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ))


# -- the lock list -----------------------------------------------------------------------------------------------
def test_the_lock_list_names_every_jar_once_with_its_sum() -> None:
    """Kafka, its tools, ZooKeeper and a logging binding are among them."""
    sums = lock_list()
    assert len(sums) == 105
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in sums.values())
    for name in ("kafka_2.13-3.9.2.jar", "kafka-tools-3.9.2.jar", "zookeeper-3.8.4.jar", "slf4j-reload4j-1.7.36.jar"):
        assert name in sums


def test_the_lock_list_is_what_sha256sum_writes() -> None:
    """So that a person can check the cache without us."""
    assert parse_lock_list("aa  one.jar\n\nbb  two.jar\n") == {"one.jar": "aa", "two.jar": "bb"}


# -- fetched and cached ------------------------------------------------------------------------------------------
def test_jars_are_fetched_once_and_cached(small: list[int], cache: Path) -> None:
    """The second call finds them; nothing of the fetch stays beside them."""
    first = kafka_jars(java=JAVA)
    assert kafka_jars(java=JAVA) == first
    assert small == [3]
    assert [Path(path).name for path in first.classpath] == sorted(SUMS)
    assert first.version == "3.9.2"
    assert {path.name for path in cache.iterdir()} == {Path(first.classpath[0]).parent.name, "jars.lock"}
    assert jars.cached_jars() == first


def test_nothing_is_cached_at_first(small: list[int]) -> None:
    """`doctor` asks without fetching."""
    assert jars.cached_jars() is None
    assert small == []


def test_another_lock_list_never_finds_the_old_jars(small: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder's name hangs on the list."""
    first = kafka_jars(java=JAVA)
    fewer = {name: digest for name, digest in SUMS.items() if name.startswith("kafka")}
    monkeypatch.setattr(jars, "lock_list", lambda *_: fewer)
    second = kafka_jars(java=JAVA)
    assert Path(first.classpath[0]).parent != Path(second.classpath[0]).parent
    assert len(second.classpath) == 1


def test_a_fetched_jar_with_a_wrong_sum_is_refused_by_name(
    small: list[int], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not installed, and not kept: the next run fetches anew."""
    monkeypatch.setattr(jars, "fetch", lambda _java, work, *_: lay(work / "jars", zookeeper=b"changed"))
    with pytest.raises(JarSumWrong, match=r"zookeeper-3\.8\.4\.jar has a wrong SHA-256") as caught:
        kafka_jars(java=JAVA)
    assert SUMS["zookeeper-3.8.4.jar"] in caught.value.why
    assert [path.name for path in cache.iterdir()] == ["jars.lock"]


def test_a_jar_that_was_not_found_is_told_by_name(small: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A mirror may lack one."""

    def fetch(_java: Java, work: Path, *_: object) -> Path:
        folder = lay(work / "jars")
        (folder / "slf4j-api-1.7.36.jar").unlink()
        return folder

    monkeypatch.setattr(jars, "fetch", fetch)
    with pytest.raises(JarsUnavailable, match=r"slf4j-api-1\.7\.36\.jar"):
        kafka_jars(java=JAVA)


def test_a_jar_that_nobody_asked_for_reaches_no_class_path(small: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the list does not name is left behind."""

    def fetch(_java: Java, work: Path, *_: object) -> Path:
        folder = lay(work / "jars")
        (folder / "extra.jar").write_bytes(b"?")
        return folder

    monkeypatch.setattr(jars, "fetch", fetch)
    found = kafka_jars(java=JAVA)
    assert "extra.jar" not in [path.name for path in Path(found.classpath[0]).parent.iterdir()]


@pytest.mark.parametrize("damage", ["changed", "gone"])
def test_a_cached_jar_that_was_damaged_is_refused_by_name(small: list[int], damage: str) -> None:
    """Every use reads the sums again: a cache is a file system, not a proof."""
    broken = Path(kafka_jars(java=JAVA).classpath[0])
    broken.unlink() if damage == "gone" else broken.write_bytes(b"x")
    with pytest.raises(JarSumWrong, match=re.escape(broken.name)) as caught:
        kafka_jars(java=JAVA)
    assert caught.value.where == str(broken.parent)


# -- several runs ------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_two_runs_at_once_fetch_once(cache: Path) -> None:
    """The second waits for the first and finds what it brought."""
    with start("wait") as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "fetching\n"
        with start("no") as second:
            assert second.poll() is None
            first.communicate("go\n", timeout=30)
            said, _ = second.communicate(timeout=30)
    assert (first.returncode, second.returncode) == (0, 0)
    assert said == "3\n"
    assert len([path for path in cache.iterdir() if path.is_dir()]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["fetch", "stage"])
def test_a_run_that_was_killed_half_way_leaves_nothing_that_is_believed(moment: str) -> None:
    """The next run starts over, and ends with the whole set."""
    with start(moment) as killed:
        killed.communicate(timeout=30)
    assert killed.returncode == -signal.SIGKILL
    with start("no") as after:
        said, _ = after.communicate(timeout=30)
    assert said == "fetching\n3\n"


# -- the operator's own distribution -----------------------------------------------------------------------------
def test_a_kafka_home_is_taken_as_it_is(tmp_path: Path) -> None:
    """All jars of libs/, sorted; nothing is fetched."""
    lay(tmp_path / "libs")
    found = kafka_jars(str(tmp_path))
    assert found.version == "3.9.2"
    assert [Path(path).name for path in found.classpath] == sorted(CONTENT)


@pytest.mark.parametrize("release", NEWER)
def test_each_release_has_a_lock_list_and_a_folder_of_its_own(release: str) -> None:
    """Kafka, its tools, a logging binding; no ZooKeeper."""
    kafka = KAFKAS[release]
    sums = lock_list(kafka)
    wanted = {f"{name}-{version}.jar" for _, name, version in jars.modules(kafka)}
    assert wanted <= sums.keys()
    assert not [name for name in sums if name.startswith("zookeeper")]
    assert jars.jars_directory(sums, kafka).name.startswith(f"kafka-{release}-")


def test_a_kafka_home_of_the_wanted_line_is_taken(tmp_path: Path) -> None:
    """Any 4.3 where 4.3.1 is wanted, and no other."""
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / "kafka_2.13-4.3.0.jar").touch()
    assert kafka_jars(str(tmp_path), release=KAFKAS["4.3.1"]).version == "4.3.0"
    with pytest.raises(KafkaHomeUnusable, match=re.escape("4.3.0")):
        kafka_jars(str(tmp_path), release=KAFKAS["4.4.0"])


@pytest.mark.parametrize("version", ["4.1.0", "3.8.1"])
def test_a_kafka_that_cannot_migrate_is_refused(tmp_path: Path, version: str) -> None:
    """Only 3.9 takes brokers with several log directories to KRaft."""
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / f"kafka_2.13-{version}.jar").touch()
    with pytest.raises(KafkaHomeUnusable, match=re.escape(version)):
        kafka_jars(str(tmp_path))


def test_a_folder_without_kafka_is_refused(tmp_path: Path) -> None:
    """The message names where its jars were looked for."""
    with pytest.raises(KafkaHomeUnusable) as caught:
        kafka_jars(str(tmp_path))
    assert caught.value.where == str(tmp_path / "libs")


@pytest.mark.parametrize("place", ["folder", "jar"])
def test_jars_that_others_may_change_are_not_run(small: list[int], cache: Path, place: str) -> None:
    """Their sums are compared before the JVM opens them."""
    found = kafka_jars(java=JAVA)
    jar = Path(found.classpath[0])
    (jar if place == "jar" else jar.parent).chmod(0o777)
    with pytest.raises(KafkaHomeUnusable, match="everybody may write it"):
        kafka_jars(java=JAVA)
    with pytest.raises(KafkaHomeUnusable, match="everybody may write it"):
        jars.cached_jars()
