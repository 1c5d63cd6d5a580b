"""The collector tells what a look at this host tells, never a secret; its answer is believed only when it is whole."""

from __future__ import annotations

import ast
import base64
import hmac
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import CollectedDamaged, CollectedForNobody, CollectedOtherVersion
from migrate.hosts import collect_disks, host_program, properties
from migrate.hosts.collect_disks import DIGEST, HIDDEN, as_json, body_sha256, is_sensitive, key_and_value, keyed, redact
from migrate.hosts.collected import NOT_PROBED, Collected, decode_collected, read_all, read_collected
from migrate.hosts.manual.witness import REFUSES
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.secrets import PASSWORD_CONFIGS
from migrate.model.views import BrokerDisks, ConfigFile, Directory
from tests.hosts.test_disks import UNIQUE, log_dir, replica
from tests.testing.denied import denied
from tests.testing.person import Bench, bench, like_kafka
from tests.testing.this_host import disks_here

SOURCE = Path(collect_disks.__file__)
MINIMAL = Path(__file__).parents[1] / "data" / "python3-minimal.txt"
CANARY = "canary-Xy7"
SECRETS = f"""\
# the admin's password is {CANARY}0
#ssl.keystore.key={CANARY}1
broker.id=4
password.encoder.secret={CANARY}2
ssl.keystore.pass\\u0077ord : {CANARY}3
listener.name.client.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
   username="admin" \\
   password="{CANARY}4" user_admin="{CANARY}5";
listener.name.x.plain.sasl.jaas.config={CANARY}6 what is this
metric.reporter.url=https://user:{CANARY}7@host/
schema.registry.api.key {CANARY}8
some.client=a=b;password={CANARY}9
delegation.token.secret.key=
ssl.key.password=${{file:/etc/secrets:key}}
delegation.token.max.lifetime.ms=1000
listeners=PLAINTEXT://b4:9092
ssl.truststore.certificates=-----BEGIN {CANARY}10
"""


def run(*words: object, text: bool = True) -> subprocess.CompletedProcess[str]:
    """The collector as an operator runs it: by itself, outside of the package."""
    return subprocess.run(
        [sys.executable, "-I", "-S", str(SOURCE), *map(str, words)], capture_output=True, check=False, text=text
    )


@pytest.mark.parametrize("look", ["is_dir", "iterdir"])
def test_a_folder_of_answers_that_may_not_be_read_is_told(
    look: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not one without answers."""
    monkeypatch.setattr(Path, look, denied)
    with pytest.raises(CollectedDamaged, match="Permission denied") as caught:
        read_all([str(tmp_path)], None)
    assert caught.value.where == str(tmp_path)


@pytest.fixture
def disks(tmp_path: Path) -> Path:
    """A broker's properties file, and two directories with most of what can lie in one."""
    first, second = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")
    (second / "meta.properties").write_text("version=0\n")
    replica(first, "orders-0", size=300)
    replica(first, "with-dash-11", topic_id=None)
    (replica(first, "torn-1") / "partition.metadata").write_text("version: 0\n")
    replica(first, f"orders-1.{UNIQUE}-future", size=10)
    replica(second, f"old-2.{UNIQUE}-delete", size=0)
    replica(second, "__cluster_metadata-0")
    (second / "lost+found").mkdir()
    (second / "remote-log-index-cache").mkdir()
    (second / "elsewhere-0").symlink_to(first)
    (replica(second, "linked-0") / "0.log").symlink_to(first / "meta.properties")
    (tmp_path / "d2").symlink_to(first)
    paths = ",".join(str(tmp_path / name) for name in ("d0", "d1", "d2", "gone"))
    file = tmp_path / "server.properties"
    file.write_text(f"{SECRETS}log.dirs={paths}\nmetadata.log.dir={tmp_path / 'apart'}\n")
    (tmp_path / "apart").mkdir()
    return file


def collected(folder: Path, *words: object) -> Collected:
    """What its reader makes of the collector's answer."""
    ended = run(*words)
    assert (ended.returncode, ended.stderr) == (0, "")
    path = folder / "answer.json"
    path.write_text(ended.stdout)
    return read_collected(str(path))


def at_rest(found: BrokerDisks) -> list[Directory | None]:
    """Its directories without their free space, which others use while we look."""
    whole = (*found.directories, found.metadata_directory)
    return [entry and replace(entry, free_bytes=0) for entry in whole]


# -- one file for any host -----------------------------------------------------------------------------------------
def test_it_is_one_file_for_python_3_6_with_the_standard_library_alone() -> None:
    """No newer syntax, no import of ours, and short enough to be read before it is run."""
    text = SOURCE.read_text()
    tree = ast.parse(text, feature_version=(3, 6))
    assert imported(tree) <= sys.stdlib_module_names - {"subprocess", "__future__"}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not attributes & {"isascii", "removeprefix", "removesuffix", "fromisoformat", "connect", "system"}
    assert len(text.splitlines()) < 765  # a hundred of them names of keys


def imported(tree: ast.AST) -> set[str]:
    """The modules that a program names."""
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize("script", [collect_disks, host_program])
def test_what_runs_on_hosts_imports_only_what_python3_minimal_has(script: ModuleType) -> None:
    """Debian's python3-minimal, as a list of its modules; hmac, json and secrets are not among them."""
    minimal = {line for line in MINIMAL.read_text().splitlines() if not line.startswith("#")}
    assert not minimal & {"hmac", "json", "secrets"}
    assert imported(ast.parse(Path(str(script.__file__)).read_text())) <= minimal


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@pytest.mark.slow
@given(VALUES)
def test_its_own_json_is_that_of_the_standard_library(value: object) -> None:
    """Compact for the hash, one entry a line for people; lone surrogates of odd file names, too."""
    for odd in (value, {"name": '\udcff\U0001f600\x7f"\\', "value": value}):
        assert as_json(odd) == json.dumps(odd, sort_keys=True, separators=(",", ":"))
        assert as_json(odd, "\n ") == json.dumps(odd, sort_keys=True, indent=1)
    if not isinstance(value, dict):
        texts = [str(value), "\udcff"]
        assert json.loads(host_program.as_json({"x": texts})) == {"x": texts}


@pytest.mark.slow
@given(st.binary(max_size=200), st.binary(max_size=200))
def test_its_own_hmac_is_that_of_the_standard_library(key: bytes, message: bytes) -> None:
    """Keys longer than a block of SHA-256 are hashed first."""
    assert collect_disks.hmac_sha256(key, message) == hmac.new(key, message, "sha256").hexdigest()


def test_it_answers_what_a_look_at_this_host_answers(disks: Path, tmp_path: Path) -> None:
    """Every field of every directory, healthy, odd and missing ones."""
    found = collected(tmp_path, "--properties", disks, "--probe")
    values = properties.parse(disks.read_bytes())
    here = disks_here().look(NodeId(4), values["log.dirs"].split(","), values["metadata.log.dir"])
    assert isinstance(here, BrokerDisks)
    assert isinstance(found.disks, BrokerDisks)
    assert all(entry.free_bytes > 0 for entry in found.disks.directories[:3])
    assert at_rest(found.disks) == at_rest(here)
    assert [entry.problem for entry in here.directories] == ["", "", "", "does not exist"]
    assert any("link, not followed" in oddity for oddity in here.directories[1].oddities)
    assert not list(tmp_path.glob("**/.kraft-migrate*"))


def test_without_a_probe_no_health_is_claimed(disks: Path, tmp_path: Path) -> None:
    """Neither healthy nor broken; what is known to be broken stays broken, and nothing was written."""
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    found = collected(tmp_path, "--properties", disks)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert isinstance(found.disks, BrokerDisks)
    assert [entry.healthy for entry in found.disks.directories] == [False] * 4
    assert [entry.unproven for entry in found.disks.directories] == [NOT_PROBED, NOT_PROBED, NOT_PROBED, ""]
    assert found.disks.directories[0].health.startswith("unknown: ")
    assert NOT_PROBED in found.disks.unproven
    assert len(found.disks.directories[0].replicas) == 4


@pytest.mark.slow
def test_directories_may_be_named_and_the_node_is_found_in_them(tmp_path: Path) -> None:
    """By meta.properties; where nothing says it, the operator must."""
    path = log_dir(tmp_path)
    found = collected(tmp_path, path)
    assert (found.node, found.config) == (4, None)
    (path / "meta.properties").unlink()
    with pytest.raises(CollectedForNobody, match="of which node"):
        collected(tmp_path, path)
    assert collected(tmp_path, "--node", "7", path).node == 7


@pytest.mark.slow
def test_a_directory_is_spelled_as_its_broker_tells_it(disks: Path, tmp_path: Path) -> None:
    """`DescribeLogDirs` knows no idle slashes: what a file spells with them is found by what the broker calls it."""
    plain = collected(tmp_path, "--properties", disks)
    disks.write_text(disks.read_text().replace(f"{tmp_path}/", f"/{tmp_path}//").replace("d1,", "d1/,"))
    odd = collected(tmp_path, "--properties", disks)
    assert isinstance(plain.disks, BrokerDisks)
    assert isinstance(odd.disks, BrokerDisks)
    assert at_rest(odd.disks) == at_rest(plain.disks)
    assert odd.disks.metadata_directory is not None


@pytest.mark.slow
def test_it_says_what_it_needs(tmp_path: Path) -> None:
    """No words, no such file, a key that is none: an error, and nothing on stdout."""
    short = tmp_path / "key"
    short.write_text("short")
    for words in ((), ("--properties", tmp_path / "none"), ("--key-file", short, tmp_path)):
        ended = run(*words)
        assert ended.returncode != 0
        assert (ended.stdout, "Traceback" in ended.stderr) == ("", False)


# -- secrets -------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("with_key", [True, False])
def test_no_secret_is_in_its_answer(disks: Path, tmp_path: Path, with_key: bool) -> None:
    """Values, comments, logins, URLs: none of them, not even in base64; what is no secret stays."""
    key = tmp_path / "key"
    key.write_bytes(os.urandom(32))
    ended = run("--properties", disks, *(["--key-file", key] if with_key else []))
    body = json.loads(ended.stdout)["body"]
    raw = base64.b64decode(body["config"]["raw"]).decode("latin-1")
    assert CANARY not in ended.stdout
    assert CANARY not in raw
    values = properties.parse(raw.encode("latin-1"))
    secret = values["password.encoder.secret"]
    assert DIGEST.fullmatch(secret) if with_key else secret == HIDDEN
    assert (values["broker.id"], values["listeners"]) == ("4", "PLAINTEXT://b4:9092")
    assert values["delegation.token.max.lifetime.ms"] == "1000"
    assert values["delegation.token.secret.key"] == ""
    assert values["ssl.key.password"] == "${file:/etc/secrets:key}"
    assert 'username="admin"' in values["listener.name.client.scram-sha-256.sasl.jaas.config"]
    assert set(values) == set(properties.parse(disks.read_bytes()))


def test_equal_secrets_of_one_key_are_equal_and_no_others() -> None:
    """So parity is checked without the secret; another key says so in its name."""
    one, other = keyed(b"k" * 32), keyed(b"l" * 32)
    assert one("a") == one("a") != one("b")
    assert one("a").partition(":")[0] == one("b").partition(":")[0] != other("a").partition(":")[0]
    again = redact(redact(b"ssl.key.password=x", one), other)
    assert again == redact(b"ssl.key.password=x", one)


def test_every_password_of_kafka_is_sensitive() -> None:
    """With any prefix; and the parameters that only sound like it are not."""
    for name in PASSWORD_CONFIGS:
        assert is_sensitive(name)
        assert is_sensitive(f"listener.name.x.{name}")
    for name in ("password.encoder.iterations", "delegation.token.expiry.time.ms", "ssl.keystore.location", "log.dirs"):
        assert not is_sensitive(name)


TEXT = st.text(st.characters(min_codepoint=9, max_codepoint=255), max_size=12)


@pytest.mark.slow
@given(st.lists(st.tuples(TEXT, TEXT), max_size=5), st.sampled_from(["\n", "\r\n", "\r"]))
def test_lines_are_read_as_java_reads_them(pairs: list[tuple[str, str]], end: str) -> None:
    """Whatever stands in keys and values: the collector's own small parser agrees with the package's."""
    text = "".join(javaproperties.join_key_value(name, value) + end for name, value in pairs)
    raw = text.encode("latin-1")
    assert collect_disks.properties_of(raw) == properties.load(raw)


@pytest.mark.slow
@given(st.text(st.sampled_from("ab=: \t\\#!\r\n"), max_size=30))
def test_odd_files_are_read_as_java_reads_them(text: str) -> None:
    """Continuations, empty keys, comments in the middle, a backslash at the end."""
    raw = text.encode("latin-1")
    assert collect_disks.properties_of(raw) == properties.load(raw)


@pytest.mark.slow
@given(TEXT, TEXT.filter(str.strip), TEXT)
def test_a_redacted_line_keeps_its_key_and_loses_its_value(before: str, value: str, after: str) -> None:
    """Read back by the package's parser; the other lines are untouched."""
    pairs = [("broker.rack", before), ("ssl.key.password", value), ("sasl.login.class", after)]
    raw = "".join(javaproperties.join_key_value(*pair) + "\n" for pair in pairs).encode("latin-1")
    found = properties.parse(redact(raw, lambda _value: HIDDEN))
    assert found["ssl.key.password"] == HIDDEN
    assert list(found) == ["broker.rack", "ssl.key.password", "sasl.login.class"]


def test_a_key_is_unescaped_before_it_is_judged() -> None:
    """Kafka would read it as a password, too."""
    assert key_and_value("ssl.key.pass\\u0077ord=x") == ("ssl.key.password", "x")
    assert key_and_value("  a\\ b \\\n   : c\\\n  d") == ("a b", "cd")


# -- damage --------------------------------------------------------------------------------------------------------
def changed(folder: Path, answer: Collected, change: Callable[[Any], object], *, resum: bool) -> str:
    """The answer with something changed in it, its hash created again or left."""
    document = json.loads(Path(answer.path).read_text())
    change(document)
    if resum:
        document["sha256"] = body_sha256(document["body"])
    path = folder / "changed.json"
    path.write_text(json.dumps(document))
    return str(path)


def taken_out(key: str) -> Callable[[Any], object]:
    """That key of the body is gone."""
    return lambda document: document["body"].pop(key)


def put(key: str, wrong: object, *, directory: bool = False) -> Callable[[Any], None]:
    """That key of the body, or of its first directory, holds something else."""

    def change(document: Any) -> None:
        (document["body"]["directories"][0] if directory else document["body"])[key] = wrong

    return change


@pytest.mark.slow
def test_damage_is_a_typed_error_that_names_the_file(disks: Path, tmp_path: Path) -> None:
    """Cut, edited, another format, another version, no file, a link."""
    answer = collected(tmp_path, "--properties", disks)
    whole = Path(answer.path).read_bytes()
    for number in range(0, len(whole) - 2, 97):
        Path(answer.path).write_bytes(whole[:number])
        with pytest.raises(CollectedDamaged):
            read_collected(answer.path)
    Path(answer.path).write_bytes(whole)
    edited = changed(tmp_path, answer, lambda document: document["body"].update(probed=True), resum=False)
    with pytest.raises(CollectedDamaged, match="SHA-256"):
        read_collected(edited)
    compact, in_place = collect_disks.document(json.loads(whole)["body"]).encode(), tmp_path / "in-place.json"
    assert decode_collected(compact, answer.path) == answer
    in_place.write_bytes(compact.replace(b'"probed":false', b'"probed":true'))
    with pytest.raises(CollectedDamaged, match="SHA-256"):
        read_collected(str(in_place))
    newer = changed(tmp_path, answer, lambda document: document.update(version=2), resum=False)
    with pytest.raises(CollectedOtherVersion, match="version 2"):
        read_collected(newer)
    (tmp_path / "link.json").symlink_to(answer.path)
    for path in (tmp_path / "none.json", tmp_path / "link.json"):
        with pytest.raises(CollectedDamaged) as caught:
            read_collected(str(path))
        assert caught.value.where == str(path)


@pytest.mark.slow
def test_a_well_hashed_answer_of_another_shape_is_a_typed_error_too(disks: Path, tmp_path: Path) -> None:
    """Each key of the body and of a directory, taken out or of another type."""
    answer = collected(tmp_path, "--properties", disks, "--probe")
    body = json.loads(Path(answer.path).read_text())["body"]
    for key in body.keys() - {"python", "probed"}:
        for change in (taken_out(key), put(key, 1.5)):
            with pytest.raises(CollectedDamaged):
                read_collected(changed(tmp_path, answer, change, resum=True))
    for key in body["directories"][0]:
        for wrong in (1.5, [None], {"raw": "?"}):
            with_wrong = changed(tmp_path, answer, put(key, wrong, directory=True), resum=True)
            try:
                read_collected(with_wrong)
            except CollectedDamaged:
                continue
            assert key in ("own", "is_folder", "meta", "link", "absolute")


def test_each_node_has_one_file_and_is_of_the_inventory(disks: Path, tmp_path: Path) -> None:
    """Two of one node, and a stranger's, are refused; a folder stands for the files in it."""
    answers = tmp_path / "answers"
    answers.mkdir()
    collected(answers, "--properties", disks)
    found = read_all([str(answers)], [NodeId(4)])
    assert set(found) == {4}
    with pytest.raises(CollectedForNobody, match="does not have"):
        read_all([str(answers)], [NodeId(5)])
    with pytest.raises(CollectedForNobody, match="too"):
        read_all([str(answers), str(answers)], [NodeId(4)])
    (tmp_path / "empty").mkdir()
    with pytest.raises(CollectedDamaged, match="without"):
        read_all([str(tmp_path / "empty")], [NodeId(4)])


def test_what_the_owner_of_the_other_directories_may_not_use_is_broken(disks: Path, tmp_path: Path) -> None:
    """A mount point without its disk is root's as a rule: the broker is denied what its own user is denied."""
    answer = collected(tmp_path, "--properties", disks, "--probe")

    def denied(document: Any) -> None:
        document["body"]["directories"][1].update(own=False, not_written=[13, "Permission denied"])

    found = read_collected(changed(tmp_path, answer, denied, resum=True))
    assert isinstance(found.disks, BrokerDisks)
    assert found.disks.directories[1].problem == "cannot be written: Permission denied"


@pytest.mark.slow
def test_a_directory_that_stores_a_block_and_no_segment_is_full(disks: Path, tmp_path: Path) -> None:
    """Bytes without root's share, and inodes, where the file system counts them; an older collector told of none."""
    answer = collected(tmp_path, "--properties", disks, "--probe")
    for told, problem in (
        ({"free_bytes": 2**20 - 1}, "is full (No space left on device): 1023 KiB are left, besides the"),
        ({"free_files": 1}, "is full (No space left on device): 1 inodes are left"),
        ({"free_files": -1}, ""),
    ):

        def little(document: Any, told: dict[str, int] = told) -> None:
            document["body"]["directories"][1].update(told)
            del document["body"]["directories"][0]["free_files"]

        found = read_collected(changed(tmp_path, answer, little, resum=True))
        assert isinstance(found.disks, BrokerDisks)
        assert found.disks.directories[1].problem.startswith(problem)
        assert bool(found.disks.directories[1].problem) is bool(problem)
        assert found.disks.directories[0].problem == ""


def test_a_disk_that_the_host_wants_mounted_and_is_not_is_told(tmp_path: Path) -> None:
    """By fstab(5) or a mount unit, at the directory or above it; a mount below the wanted one counts."""
    fstab, units = tmp_path / "fstab", tmp_path / "system"
    units.mkdir()
    fstab.write_text(
        "# /dev/sda1 /old ext4\nLABEL=k /data/a\\040b ext4 noatime 0 2\nnone swap swap sw 0 0\n/dev/r / ext4\n"
    )
    (units / "srv-kafka.mount").write_text("[Mount]\nWhat=/dev/sdb1\nWhere=/srv/kafka\n")
    tables = (str(fstab), str(units))
    for path, mount, wanted in (
        ("/data/a b/k1", "/", ["/data/a b", str(fstab)]),
        ("/data/a b", "/data/a b", []),
        ("/data/a b/k1", "/data/a b/k1", []),
        ("/data/a bc", "/", []),
        ("/srv/kafka/d1", "/srv", ["/srv/kafka", "srv-kafka.mount"]),
        ("/srv/kafka/d1", "/srv/kafka", []),
        ("/old/d1", "/", []),
        ("/srv/kafka/d1", "", []),  # a host without /proc/self/mountinfo
    ):
        assert collect_disks.unmounted(path, mount, tables) == wanted
    assert collect_disks.unmounted("/srv/kafka/d1", "/", (str(tmp_path / "none"), str(units))) == []


def test_what_lies_on_the_folder_under_a_mount_point_is_not_the_disk_s(disks: Path, tmp_path: Path) -> None:
    """A broker that took it for a new disk has written meta.properties and replicas there."""
    answer = collected(tmp_path, "--properties", disks, "--probe")

    def absent(document: Any) -> None:
        document["body"]["directories"][0]["unmounted"] = ["/data", "/etc/fstab"]

    found = read_collected(changed(tmp_path, answer, absent, resum=True))
    assert isinstance(found.disks, BrokerDisks)
    entry = found.disks.directories[0]
    assert entry.problem == "is not mounted: nothing is at /data (/etc/fstab has a file system there)"
    assert (entry.id, len(entry.replicas)) == (None, 0)


def test_what_the_collectors_user_may_not_see_is_unknown(disks: Path, tmp_path: Path) -> None:
    """A denial tells of the user, not of the disk."""
    answer = collected(tmp_path, "--properties", disks, "--probe")

    def denied(document: Any) -> None:
        for entry in document["body"]["directories"]:
            entry["own"] = False
        document["body"]["directories"][1].update(not_read=[13, "Permission denied"])

    found = read_collected(changed(tmp_path, answer, denied, resum=True))
    assert isinstance(found.disks, Unknown)
    assert "may not look" in found.disks.reason

    def dead(document: Any) -> None:
        document["body"]["directories"][1].update(not_written=[5, "Input/output error"])
        document["body"]["directories"][0] = {"path": document["body"]["log_dirs"][0], "late": True}

    found = read_collected(changed(tmp_path, answer, dead, resum=True))
    assert isinstance(found.disks, BrokerDisks)
    assert [entry.problem for entry in found.disks.directories[:2]] == [
        "did not store one block in time",
        "cannot be written: Input/output error",
    ]


@pytest.mark.slow
def test_a_file_that_kafka_would_not_load_is_unknown(tmp_path: Path) -> None:
    r"""A malformed \u: the directories are told all the same."""
    path = log_dir(tmp_path)
    file = tmp_path / "broken.properties"
    file.write_text(f"broker.id=4\nlog.dirs={path}\nx=\\u12\n")
    found = collected(tmp_path, "--properties", file)
    assert isinstance(found.config, Unknown)
    assert isinstance(found.disks, BrokerDisks)
    file.write_text(f"broker.id=4\nlog.dirs={path}\n")
    config = collected(tmp_path, "--properties", file).config
    assert isinstance(config, ConfigFile)
    assert config.raw == file.read_bytes()


BROKER = NodeId(0)
PYTHON = Path("/usr/bin/python3")  # one that every user may run


@pytest.fixture
def hosts(tmp_path: Path) -> Bench:
    """A broker's and a controller's host."""
    return bench(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("named", ["from its folder", "by a link"])
def test_a_process_is_found_however_its_file_is_named(hosts: Bench, named: str) -> None:
    """As kafka-server-start.sh was given it: a process that is not found would count as stopped."""
    file = Path(hosts.config)
    link = hosts.root / "server.properties"
    link.symlink_to(file)
    word, folder = (file.name, file.parent) if named == "from its folder" else (str(link), None)
    with like_kafka(word, "--override", "broker.rack=r1", folder=folder) as process:
        hosts.look()
        answer = hosts.desk.answer(BROKER)
    assert not isinstance(answer, Unknown)
    assert [(one.pid, one.more) for one in answer.processes or ()] == [(process.pid, 2)]


@pytest.mark.slow
def test_another_nodes_process_is_not_this_ones(hosts: Bench) -> None:
    """A file of the same name elsewhere, or named behind another word."""
    elsewhere = hosts.root / "other"
    elsewhere.mkdir()
    with like_kafka(Path(hosts.config).name, folder=elsewhere), like_kafka("/etc/x.properties", hosts.config):
        hosts.look()
        answer = hosts.desk.answer(BROKER)
    assert not isinstance(answer, Unknown)
    assert answer.processes == ()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or not PYTHON.exists(), reason="other users need root and a python3 of theirs")
def test_who_cannot_see_processes_does_not_say_that_there_is_none(hosts: Bench) -> None:
    """Another user's process, started with a relative name: from which folder, only that user sees."""
    source = Path(collect_disks.__file__).read_text()
    words = [str(PYTHON), "-", "--process", hosts.config, "--node", "0", "/"]
    with like_kafka("server.properties", folder=Path("/"), user=1):
        ran = subprocess.run(words, input=source, capture_output=True, text=True, check=True, user=2, cwd="/")
    assert json.loads(ran.stdout)["body"]["told"]["processes"] is None
    (hosts.root / "inbox/answer-0.json").write_text(ran.stdout)
    hosts.network.listening[0] = REFUSES
    state = hosts.services.state(BROKER)
    assert isinstance(state, Unknown)
    assert "no answer shows that its process has ended" in state.reason
