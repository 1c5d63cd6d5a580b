"""Properties: read as Java does, edited byte for byte, shown without secrets."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import BadProperties, ConfigUnreadable, DuplicateProperty
from migrate.hosts import properties
from migrate.hosts.properties import log_dirs, log_line, metadata_log_dir, read_config
from migrate.model.ids import NodeId
from migrate.model.kafka_values import trim
from migrate.model.secrets import hidden
from migrate.model.views import ConfigFile, NoFile
from tests.testing.this_host import LocalFiles

BROKER = b"""# the broker of rack 1
broker.id=0
  log.dirs = /d0,\\
             /d1,/d2

! zookeeper
zookeeper.connect:zk1:2181/kafka
inter.broker.protocol.version=3.9
listener.name.client.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
    username="admin" password="canary-1";
"""


# -- parsing -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"a=1\na=2\n", {"a": "2"}),
        (b"a = 1 \n", {"a": "1 "}),
        (b"a:1\nb 2\nc\n", {"a": "1", "b": "2", "c": ""}),
        (b"a=1\\\n   2\n", {"a": "12"}),
        (b"a=1\\\n#2\n", {"a": "1#2"}),
        (b"a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        (b"a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        (b"a=C\\:\\\\x\\t\\u00e9\n", {"a": "C:\\x\té"}),
        (b"\xe9=\xff\n", {"\xe9": "\xff"}),
        (b"a\\ b=1\n\\#c=2\n", {"a b": "1", "#c": "2"}),
        (b"  # no\n!no=1\n\n\\\n", {}),
        (b"a=1\\", {"a": "1"}),
        (b"= 5\n", {"": "5"}),
        (b"", {}),
    ],
)
def test_values_are_those_that_java_util_properties_would_give(raw: bytes, expected: dict[str, str]) -> None:
    """Duplicates, separators, continuations, escapes and Latin-1, as in java.util.Properties."""
    assert properties.load(raw) == expected


def test_values_of_a_configuration_are_trimmed_as_kafka_trims_them() -> None:
    """Blanks and tabs at either end go, those inside stay, and so does a no-break space, which Java does not trim."""
    raw = b"a=kafka.Authorizer \nb=\\ true\t\nc= x , y \nd=z\xa0\ne= \n"
    assert properties.parse(raw) == {"a": "kafka.Authorizer", "b": "true", "c": "x , y", "d": "z\xa0", "e": ""}
    assert properties.load(raw)["a"] == "kafka.Authorizer "


def test_a_bad_escape_is_a_typed_error_that_names_the_file() -> None:
    """Java throws on a malformed escape, so Kafka would not start on this file."""
    with pytest.raises(BadProperties, match="malformed escape") as caught:
        properties.parse(b"a=\\u12x4\n", "/etc/kafka/b0.properties")
    assert caught.value.where == "/etc/kafka/b0.properties"


def test_duplicate_keys_are_named() -> None:
    """Each once, however often it stands there."""
    assert properties.duplicates(b"a=1\nb=1\nb=2\na=1\na=3\nc=1\n") == ("b", "a")


# -- editing -----------------------------------------------------------------------------------------------------
def test_an_edit_leaves_every_other_byte_as_it_was() -> None:
    """Comments, blanks, odd separators and continuations stay; new keys come last, in their order."""
    after = properties.edit(
        BROKER,
        {"zookeeper.metadata.migration.enable": "true", "broker.id": "7", "controller.listener.names": "CTL"},
        ["inter.broker.protocol.version", "never.there"],
    )
    expected = (
        BROKER.replace(b"broker.id=0\n", b"broker.id=7\n").replace(b"inter.broker.protocol.version=3.9\n", b"")
        + b"zookeeper.metadata.migration.enable=true\ncontroller.listener.names=CTL\n"
    )
    assert after == expected


def test_a_value_that_is_right_already_keeps_its_line() -> None:
    """Nothing to change means the same bytes, whatever the spelling."""
    assert properties.edit(BROKER, {"log.dirs": "/d0,/d1,/d2", "zookeeper.connect": "zk1:2181/kafka"}) == BROKER
    assert properties.edit(b"a=1 \nb=2", {"a": "1"}) == b"a=1 \nb=2"


def test_line_ends_of_windows_stay() -> None:
    """No mixture of line ends comes out of a file that had one kind."""
    raw = b"# c\r\na=1\r\n\r\nb=2\r\n"
    assert properties.edit(raw, {"b": "3", "c": "4"}, ["a"]) == b"# c\r\n\r\nb=3\r\nc=4\r\n"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"a=1", b"a=1\nn=2\n"),
        (b"a=1\\", b"a=1\nn=2\n"),
        (b"a=1\\\n", b"a=1\nn=2\n"),
        (b"a=1\\\n\n", b"a=1\\\n\nn=2\n"),
        (b"a=1\\\r\n", b"a=1\r\nn=2\r\n"),
        (b"a=1\\\n\\", b"a=1\nn=2\n"),
        (b"a=1\\\\", b"a=1\\\\\nn=2\n"),
        (b"# c", b"# c\nn=2\n"),
        (b"", b"n=2\n"),
        (b"a=1\n\n\n", b"a=1\n\n\nn=2\n"),
    ],
)
def test_a_new_key_never_melts_into_the_last_line(raw: bytes, expected: bytes) -> None:
    """A missing line end or a dangling continuation at the end of the file is closed first."""
    assert properties.edit(raw, {"n": "2"}) == expected


def test_the_last_line_stays_without_end_when_it_is_changed() -> None:
    """A changed value changes the value alone."""
    assert properties.edit(b"a=1\nb=2", {"b": "3"}) == b"a=1\nb=3"


def test_values_are_written_so_that_java_reads_them_back() -> None:
    """Leading blanks, backslashes, separators and characters beyond Latin-1."""
    wanted = {"a": "  x\\y\tz", "b": "Ж=:#!", "c": "ü", "k e:y": "v"}
    assert properties.load(properties.edit(b"", wanted)) == wanted


@pytest.mark.parametrize(
    ("raw", "value", "expected"),
    [
        (b"m=INTERNAL:PLAINTEXT\n", "INTERNAL:PLAINTEXT,CTL:SSL", b"m=INTERNAL:PLAINTEXT,CTL:SSL\n"),
        (b"m = A:B\r\n", "C:D", b"m = C:D\r\n"),
        (b"  m: A\n", "x=y", b"  m: x=y\n"),
        (b"m A\n", "=b", b"m==b\n"),
        (b"m=A:B,\\\n  C:D  \nk=v\n", "A:B,C:D,E:F", b"m=A:B,\\\n  C:D,E:F\nk=v\n"),
        (b"m=A:B,\\\n  C:D\nk=v\n", "A:B,E:F", b"m=A:B,E:F\nk=v\n"),
        (b"m=A\\:B\n", "A:B,C:D", b"m=A\\:B,C:D\n"),
        (b"m=A\\", "A,B", b"m=A,B"),
        (b"m=\n", "a b#!", b"m=a b#!\n"),
        (b"", "D:\\x", b"m=D:\\\\x\n"),
    ],
)
def test_a_change_looks_as_its_owner_would_have_written_it(raw: bytes, value: str, expected: bytes) -> None:
    """No escape that Java does not need; the owner's separator, blanks, line ends and continuation lines stay."""
    assert properties.edit(raw, {"m": value}) == expected
    assert properties.parse(expected)["m"] == value


def test_a_duplicate_key_that_would_change_is_refused() -> None:
    """Which of two lines a person means is not ours to guess; others may stay."""
    raw = b"a=1\nb=1\na=2\n"
    with pytest.raises(DuplicateProperty, match="to be changed: a") as caught:
        properties.edit(raw, {"a": "3"}, where="/x")
    assert caught.value.where == "/x"
    with pytest.raises(DuplicateProperty):
        properties.edit(raw, {}, ["a"])
    assert properties.edit(raw, {"a": "2", "b": "2"}) == b"a=1\nb=2\na=2\n"


def test_setting_and_removing_one_key_is_a_bug() -> None:
    """A caller that wants both does not know what it wants."""
    with pytest.raises(ValueError, match="both set and removed"):
        properties.edit(b"", {"a": "1"}, ["a"])


TEXT = st.text(st.characters(codec="latin-1"), max_size=12)
LINE = st.sampled_from(
    [b"a=1", b"b : 2", b"c", b"# note", b"", b"d=1\\", b"e=\\\\", b"   ", b"\\", b"f\\=g=h", b"! x\\"]
)
FILE = st.builds(
    lambda lines, end, last: end.join(lines) + last,
    st.lists(LINE),
    st.sampled_from([b"\n", b"\r\n"]),
    st.sampled_from([b"", b"\n", b"\r\n"]),
)


@pytest.mark.slow
@given(
    raw=FILE,
    set_=st.dictionaries(st.sampled_from("abcdef") | TEXT, TEXT, max_size=3),
    remove=st.sets(st.sampled_from("abcdefg"), max_size=2),
)
def test_whatever_the_file_an_edit_reads_back_as_wanted_and_is_stable(
    raw: bytes, set_: dict[str, str], remove: set[str]
) -> None:
    """Reading back gives the wanted values and the old ones; the same edit again changes nothing."""
    remove -= set_.keys()
    try:
        after = properties.edit(raw, set_, remove)
    except DuplicateProperty:
        assert set(properties.duplicates(raw)) & (set_.keys() | remove)
        return
    kept = {key: value for key, value in properties.parse(raw).items() if key not in remove}
    assert properties.parse(after) == kept | {key: trim(value) for key, value in set_.items()}
    assert properties.edit(after, set_, remove) == after


# -- showing -----------------------------------------------------------------------------------------------------
def test_a_diff_shows_what_changes_and_no_secret() -> None:
    """A changed password has other digits, the same value the same ones; its old and new text are nowhere."""
    after = properties.edit(BROKER, {"broker.id": "1", "ssl.key.password": "canary-3"}).replace(
        b"canary-1", b"canary-2"
    )
    lines = properties.diff(BROKER, after, "/etc/b0.properties")
    assert lines[:2] == ["--- /etc/b0.properties (now)", "+++ /etc/b0.properties (then)"]
    assert "-broker.id=0" in lines
    assert "+broker.id=1" in lines
    assert f"+ssl.key.password={hidden('canary-3')}" in lines
    login = "listener.name.client.plain.sasl.jaas.config"
    old, new = ([line for line in lines if line.startswith(f"{sign}{login}=")] for sign in "-+")
    assert (len(old), hidden("canary-1") in old[0], hidden("canary-2") in new[0]) == (1, True, True)
    assert "canary" not in "\n".join(lines)


def test_equal_secrets_of_two_files_have_equal_digits() -> None:
    """Under whatever key, quoted or not; blanks at the end, which Kafka does not read, make no difference."""
    one = properties.diff(b"", b"ssl.key.password=canary \n", "/etc/b0.properties")[-1]
    text = b'sasl.jaas.config=Module required user_bob="canary";\npassword.encoder.secret : canary\n'
    two = properties.diff(b"", text, "/etc/b1.properties")
    assert one == f"+ssl.key.password={hidden('canary')}"
    login = f'+sasl.jaas.config=Module required user_bob="{hidden("canary")}";'
    assert two[-2:] == [login, f"+password.encoder.secret={hidden('canary')}"]


def test_a_hidden_key_forges_no_line() -> None:
    """An escaped line end in a key is shown as an escape."""
    assert properties.diff(b"", b"a\\nb.password=canary\n", "/f")[-1] == f"+a\\nb.password={hidden('canary')}"


@pytest.mark.parametrize(
    "line",
    [
        b"ssl.keystore.password=canary",
        b"listener.name.x.ssl.keystore.key=canary",
        b"password.encoder.secret=canary",
        b"my.plugin.passwd=canary",
        b"producer.sasl.jaas.config=x password=canary;",
        b"my.plugin.client.secret : canary",
        b"#ssl.keystore.password=canary",
        b'# user_alice="canary"',
        b'#   username="x" password="canary";',
        b"odd.key=Module required user_bob=\"canary\" user_eve='canary';",
        b'odd.key=Module required \\\n password = "canary";',
    ],
)
def test_secrets_are_shown_nowhere_not_even_in_comments(line: bytes) -> None:
    """Keys of type PASSWORD, keys named like one, JAAS texts, and lines that somebody commented out."""
    assert "canary" not in "\n".join(properties.diff(b"", line + b"\n", "/x"))
    assert "canary" not in "\n".join(properties.diff(line + b"\n", b"", "/x"))


def test_ordinary_keys_are_shown() -> None:
    """Redaction that hides the change itself would be of no use."""
    raw = b"password.encoder.cipher.algorithm=AES\nssl.truststore.location=/t\nmy.plugin.limit=7\n"
    shown = properties.diff(b"", raw, "/x")
    assert shown[3:] == ["+" + line for line in raw.decode().splitlines()]


def test_control_characters_cannot_forge_lines() -> None:
    """A value with escapes of a terminal is shown as text."""
    assert properties.diff(b"", b"log.dir=\x1b[2J\x85+b=1\n", "/x")[3:] == ["+log.dir=\\x1b[2J\\x85+b=1"]


def test_a_tab_is_shown_as_it_is() -> None:
    """It forges nothing, and people align values with it."""
    assert "+log.dir=1\t2" in properties.diff(b"log.dir=1\n", b"log.dir=1\t2\n", "/x")


def test_equal_files_have_no_diff() -> None:
    """Nothing changes: nothing is printed."""
    assert properties.diff(BROKER, BROKER, "/x") == []


def test_an_edit_that_does_not_read_back_as_wanted_is_believed_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the reason: no such file is ever handed on."""
    monkeypatch.setattr(properties, "_edited", lambda *_: "a=3\n")
    with pytest.raises(AssertionError, match="do not read back as wanted"):
        properties.edit(b"a=1\n", {"a": "2"})


def test_a_comment_beside_a_change_is_left_out() -> None:
    """What somebody commented out may be a secret, however it is spelled."""
    shown = properties.diff(b"# kept: hunter2\na=1\n", b"# kept: hunter2\na=2\n", "/f")
    assert shown[3:] == [" # (left out)", "-a=1", "+a=2"]


# -- back to an earlier file -----------------------------------------------------------------------------------------
def test_a_long_file_goes_back_to_the_byte_however_often_its_comments_repeat() -> None:
    """As in the file that comes with Kafka, in which most comments are set off by lines with a # alone."""
    earlier = b"".join(b"#\n# key %d\n#\n\nkey.%d=%d\n" % (number, number, number) for number in range(100))
    made = properties.edit(earlier, {"key.3": "x", "new": "1"}, ["key.50", "key.99"])
    assert properties.restore_keys(made, earlier, ["key.3", "key.50", "key.99", "new"]) == earlier
    hashes = b"#\n" * 300
    earlier = b"a=1\n" + hashes + b"b=1\n" + hashes
    assert properties.restore_keys(hashes + hashes, earlier, ["a", "b"]) == earlier


@pytest.mark.parametrize("value", ["!a!", "~", "\xa0a\xa0"])
def test_only_control_characters_and_blanks_are_trimmed(value: str) -> None:
    """The first character that Java keeps follows the blank."""
    assert trim(f" \t\x01{value}\x1f ") == value


@pytest.mark.parametrize(
    ("raw", "earlier", "keys", "expected"),
    [
        (b"a=1\n", b"", ["a"], b""),
        (b"", b"a=1\n", ["a"], b"a=1\n"),
        (b"a=1\nb=2\n", b"b=1\n", ["a"], b"b=2\n"),
        (b"a=1", b"a=2\n# c\n", ["a"], b"a=2\n"),
        (b"b=3\n", b"a=1\nb=2", ["a"], b"a=1\nb=3\n"),
        (b"b=2\n", b"a=1\nb=2", ["a"], b"a=1\nb=2"),
        (b"b=3\r\n", b"b=2\na=1", ["a"], b"b=3\r\na=1"),
        (b"z=1\nb=2\n", b"z=1\na=1\nb=2\n", ["a"], b"z=1\na=1\nb=2\n"),
        (b"b=3\r\nc=1\r\n", b"b=2\na=1", ["a"], b"b=3\r\na=1\r\nc=1\r\n"),
    ],
    ids=["all goes", "all comes", "goes", "no comment comes", "edited", "not edited", "last", "its place", "line ends"],
)
def test_only_the_given_keys_go_back(raw: bytes, earlier: bytes, keys: list[str], expected: bytes) -> None:
    """What was edited since stays; a line that comes back before another one has an end of its own."""
    assert properties.restore_keys(raw, earlier, keys) == expected


NODE = NodeId(3)


def test_a_file_is_read_with_its_fingerprint(tmp_path: Path) -> None:
    """Values as Kafka sees them, the sum of the very bytes, and no secret in its repr."""
    path = tmp_path / "b3.properties"
    raw = b"broker.id=3\nssl.key.password=canary\n"
    path.write_bytes(raw)
    found = read_config(LocalFiles(), NODE, str(path))
    assert isinstance(found, ConfigFile)
    assert found.values == {"broker.id": "3", "ssl.key.password": "canary"}
    assert (found.node, found.path, found.raw) == (3, str(path), raw)
    assert found.sha256 == hashlib.sha256(raw).hexdigest()
    assert "canary" not in repr(found)


def test_what_cannot_be_read_is_a_typed_error(tmp_path: Path) -> None:
    """A link, or no properties: never an empty configuration."""
    (tmp_path / "link").symlink_to("/etc/hostname")
    with pytest.raises(ConfigUnreadable, match=r"node 3 cannot be read: .* symbolic links") as caught:
        read_config(LocalFiles(), NODE, str(tmp_path / "link"))
    assert caught.value.where == str(tmp_path / "link")
    (tmp_path / "bad").write_bytes(b"a=\\uZZZZ")
    with pytest.raises(BadProperties):
        read_config(LocalFiles(), NODE, str(tmp_path / "bad"))


def test_a_missing_file_is_known_to_be_missing(tmp_path: Path) -> None:
    """A planned controller has none yet: that is an answer, and no empty file."""
    assert read_config(LocalFiles(), NODE, str(tmp_path / "none")) == NoFile(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"log.dirs": "/a, /b ,,/c"}, ("/a", "/b", "/c")),
        ({"log.dirs": "/a", "log.dir": "/b"}, ("/a",)),
        ({"log.dir": "/b"}, ("/b",)),
        ({"log.dir": "/b,/c"}, ("/b", "/c")),
        ({}, ("/tmp/kafka-logs",)),
        ({"log.dirs": "/a/, //b///c// ,/,/d/../e/.,f/"}, ("/a", "/b/c", "/", "/d/../e/.", "f")),
    ],
)
def test_log_dirs_are_those_that_kafka_takes(values: dict[str, str], expected: tuple[str, ...]) -> None:
    """log.dirs before log.dir before the default; blanks, empty parts and `java.io.File`'s idle slashes fall away."""
    assert log_dirs(values) == expected


def test_a_metadata_directory_counts_only_where_it_lies_apart() -> None:
    """The same folder in another spelling is one of log.dirs."""
    assert metadata_log_dir({"log.dirs": "/a,/b", "metadata.log.dir": "/m"}) == "/m"
    assert metadata_log_dir({"log.dirs": "/a,/b", "metadata.log.dir": "/b/"}) is None
    assert metadata_log_dir({"log.dirs": "/a,/b"}) is None


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("ssl.keystore.password = hunter2", "ssl.keystore.password = (sensitive)"),
        ('Bad option password="hunter2" of user="kafka"', 'Bad option password=(sensitive) of user="kafka"'),
        (
            "Invalid value hunter2 for configuration my.api.token: x",
            "Invalid value (sensitive) for configuration my.api.token: x",
        ),
        ("GET https://me:hunter2@proxy:3128 failed", "GET https://(sensitive)@proxy:3128 failed"),
        ("Authorization: Bearer aGVsbG8gd29ybGQ=", "Authorization: Bearer (sensitive)"),
        ('{"client_secret": "hunter2", "id": "kafka"}', '{"client_secret": (sensitive), "id": "kafka"}'),
    ],
)
def test_a_log_line_is_shown_without_its_secrets(line: str, shown: str) -> None:
    """Whatever form it has there."""
    assert log_line(line) == shown


@pytest.mark.parametrize(
    "line",
    [
        "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed during authentication",
        "Invalid value LOUD for configuration metrics.recording.level: String must be one of: INFO, DEBUG, TRACE",
        "InvalidACLException: KeeperErrorCode = InvalidACL for /brokers/ids",
        "log.dirs = /data/d1,/data/d2",
    ],
)
def test_a_log_line_without_secrets_is_shown_as_it_is(line: str) -> None:
    """Names of classes and of public keys are not secrets."""
    assert log_line(line) == line
