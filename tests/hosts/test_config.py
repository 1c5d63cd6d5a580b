"""A node's configuration file as evidence."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from migrate.errors import BadProperties, ConfigUnreadable
from migrate.hosts.config import log_dirs, metadata_log_dir, read_config
from migrate.hosts.files import LocalFiles
from migrate.model.ids import NodeId
from migrate.model.views import ConfigFile, NoFile

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
