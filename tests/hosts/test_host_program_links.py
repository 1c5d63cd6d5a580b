"""A node's file that is a link: known since root's script ran, followed while it leads there, and never else."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from migrate.errors import ConfigUnreadable
from migrate.hosts import leftovers
from migrate.hosts.about import rights_of
from migrate.hosts.commands import HostAccess
from migrate.hosts.leftovers import ASIDE_SUFFIX, BACKUP_SUFFIX
from migrate.hosts.properties import read_config
from migrate.hosts.remote_files import RemoteFiles
from migrate.hosts.runner import LocalRunner, ProgramHolder
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode
from migrate.model.rights import HostRights
from migrate.model.views import ConfigFile, KeptFiles
from tests.hosts.test_host_program import KAFKA, needs_root, owner
from tests.testing.host_installation import Installation, broker, controller, install
from tests.testing.host_program import installed
from tests.testing.run_commands import commands_of, refusals
from tests.testing.worlds import inventory

pytestmark = needs_root
TEXT = b"broker.id=1\n"


@dataclass(frozen=True)
class Linked:
    """A host whose broker's file, /etc/server.properties, leads to one of another name in another folder."""

    root: Path

    @property
    def config(self) -> Path:
        """The name that unit and inventory have."""
        return self.root / "etc/server.properties"

    @property
    def real(self) -> Path:
        """What it leads to."""
        return self.root / "opt/config/one.properties"

    def install(self) -> Installation:
        """What root's script leaves behind."""
        nodes = [broker(self.config), controller(self.root / "etc/controller.properties", self.root / "srv/metadata")]
        found = install(self.root / "installed", nodes)
        found.unit("kafka.service", "nobody")
        found.unit("kafka-controller.service", "nobody")
        return found


@pytest.fixture
def field() -> Iterator[Linked]:
    """Folders of root's, and one of Kafka's user."""
    with tempfile.TemporaryDirectory(prefix="kraft-migrate-host-") as folder:
        root = Path(folder).resolve()
        root.chmod(0o755)
        for name in ("etc", "opt", "opt/config", "srv", "owned"):
            (root / name).mkdir(mode=0o755)
        os.chown(root / "owned", KAFKA, KAFKA)
        found = Linked(root)
        found.real.write_bytes(TEXT)
        os.chown(found.real, 0, KAFKA)
        found.real.chmod(0o640)
        yield found


def seconds(nanos: int) -> str:
    """A time as `status` gives it."""
    return f"{nanos // 10**9}.{nanos % 10**9:09d}"


def link(field: Linked, target: str = "../opt/config/one.properties") -> Installation:
    """The file is that link, and then root's script runs."""
    field.config.symlink_to(target)
    return field.install()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["{root}/opt/config/one.properties", "../opt/config/one.properties", "../etc/again"])
def test_what_the_link_leads_to_is_replaced_and_the_link_stays(field: Linked, target: str) -> None:
    """An absolute one, a relative one, and one that leads to another link; owner and mode are those of the file."""
    (field.root / "etc/again").symlink_to("../opt/./config/../config/one.properties")
    host = link(field, target.format(root=field.root))
    before = field.config.readlink()
    assert host.must("read", "1", str(field.config)) == TEXT
    done = host.write("1", field.config, b"new\n")
    assert done.code == 0, done
    assert field.config.readlink() == before
    assert field.real.read_bytes() == b"new\n"
    assert owner(field.real) == (0, KAFKA, 0o640)
    assert sorted(entry.name for entry in field.real.parent.iterdir()) == ["one.properties"]
    assert host.must("target", "1") == f"{field.config}\0{field.real}".encode()
    assert host.must("target", "3000") == b""


@pytest.mark.slow
def test_copies_are_beside_what_the_link_leads_to(field: Linked) -> None:
    """There they are written, listed, renamed and removed; beside the link there is none of the node's to root."""
    host = link(field)
    copy, aside = f"{field.real}{BACKUP_SUFFIX}", f"{field.real}{ASIDE_SUFFIX}-20260102T030405"
    sha256 = hashlib.sha256(TEXT).hexdigest()
    host.must("keep", "1", str(field.config), copy, sha256)
    assert owner(Path(copy)) == (0, KAFKA, 0o640)
    listed = host.must("names", "1", str(field.real.parent)).split(b"\0")[:-1]
    assert sorted(listed) == [b"one.properties", Path(copy).name.encode()]
    assert host.run("keep", "1", str(field.config), f"{field.config}{BACKUP_SUFFIX}", sha256).code == 65
    host.must("rename", "1", str(field.config), aside)
    assert field.config.is_symlink()
    assert Path(aside).read_bytes() == TEXT
    assert host.write("1", field.config, b"again\n").code == 0  # the link led nowhere meanwhile
    assert field.real.read_bytes() == b"again\n"
    host.must("remove", "1", copy)
    assert not Path(copy).exists()


@pytest.mark.slow
@pytest.mark.parametrize("what", ["another file", "a file of its own", "nothing"])
def test_a_link_that_leads_elsewhere_since_is_refused(field: Linked, what: str) -> None:
    """Whoever changed it, both names are told, and neither file is touched."""
    host = link(field)
    other = field.root / "opt/other.properties"
    other.write_bytes(b"other\n")
    field.config.unlink()
    if what == "another file":
        field.config.symlink_to(other)
    elif what == "a file of its own":
        field.config.write_bytes(b"own\n")
    else:
        field.config.symlink_to(field.root / "nowhere/at/all")
    for done in (
        host.run("read", "1", str(field.config)),
        host.run("target", "1"),
        host.run("status", "1", str(field.config)),
    ):
        assert done.code == 1, done
        assert what == "nothing" or f"the link led to {field.real}" in done.errors
    assert host.write("1", field.config, b"x").code == 1
    assert (field.real.read_bytes(), other.read_bytes()) == (TEXT, b"other\n")


@pytest.mark.slow
def test_a_link_that_was_made_since_is_not_followed(field: Linked) -> None:
    """Root's script has to run again."""
    field.config.write_bytes(TEXT)
    host = field.install()
    field.config.unlink()
    field.config.symlink_to(field.real)
    done = host.run("read", "1", str(field.config))
    assert done.code == 1
    assert "a link that was not there when root ran the setup script" in done.errors
    assert host.write("1", field.config, b"x").code == 1


@pytest.mark.slow
def test_a_link_that_others_could_have_made_is_never_known(field: Linked) -> None:
    """In a folder of Kafka's user: the script says so, and so does each later look."""
    (field.root / "owned/again").symlink_to(field.real)
    host = link(field, str(field.root / "owned/again"))
    said = host.run("links")
    assert said.code == 0
    assert "owned/again (a link in a folder that others may write)" in said.errors
    assert host.run("read", "1", str(field.config)).code == 1


@pytest.mark.slow
def test_a_folder_on_the_way_that_others_exchange_is_not_entered(field: Linked) -> None:
    """The file that it leads to may be in a folder of Kafka's user, as a file without a link may."""
    inner = field.root / "owned/config"
    inner.mkdir()
    (inner / "one.properties").write_bytes(TEXT)
    secret = field.root / "srv/one.properties"
    secret.write_bytes(b"secret\n")
    host = link(field, str(inner / "one.properties"))
    assert host.must("read", "1", str(field.config)) == TEXT
    inner.rename(field.root / "owned/was")
    inner.symlink_to(field.root / "srv")
    assert host.run("read", "1", str(field.config)).code == 1
    assert host.write("1", field.config, b"x").code == 1
    inner.unlink()
    inner.mkdir()
    (inner / "one.properties").symlink_to(secret)
    assert host.run("read", "1", str(field.config)).code == 1
    assert host.write("1", field.config, b"x").code == 1
    assert secret.read_bytes() == b"secret\n"


@pytest.mark.slow
def test_a_link_that_is_newer_than_its_file_gives_the_time(field: Linked) -> None:
    """A process that was started before it may have been started with another file."""
    host = link(field)
    os.utime(field.real)
    newest = max(field.real.stat().st_ctime_ns, field.config.lstat().st_ctime_ns)
    told = host.must("status", "1", str(field.config)).decode().split("\n")
    assert told[0] == "regular file"
    assert told[4] == seconds(newest)
    field.config.unlink()
    field.config.symlink_to(field.real)
    told = host.must("status", "1", str(field.config)).decode().split("\n")
    assert told[4] == seconds(field.config.lstat().st_ctime_ns)


def remote(field: Linked) -> tuple[RemoteFiles, ProgramHolder, BrokerNode, HostAccess]:
    """The files of that broker, as a run has them."""
    field.config.symlink_to(field.real)
    node = BrokerNode(NodeId(1), "kafka-1", "kafka-1:9092", str(field.config), unit="node-1.service")
    access = installed(field.root / "program", [node])
    holder = ProgramHolder(LocalRunner(), access)
    return RemoteFiles({NodeId(1): holder}), holder, node, access


@pytest.mark.slow
def test_a_run_keeps_and_finds_its_copies_there(field: Linked) -> None:
    """What is read says both names; a copy is written, found again and restored byte for byte."""
    files, _, node, _ = remote(field)
    file = read_config(files, node.id, node.config)
    assert isinstance(file, ConfigFile)
    assert file.shown == f"{field.config} -> {field.real}"
    copy = f"{field.real}{BACKUP_SUFFIX}"
    for _ in range(2):  # a copy of that content is there the second time
        assert leftovers.keep_copies(files, node.id, {node.config: file.raw}) == {node.config: copy}
    files.write(node.id, node.config, b"broker.id=1\nlog.dirs=/d\n")
    kept = leftovers.kept_files(files, node.id, file)
    assert isinstance(kept, KeptFiles)
    assert [(one.path, one.raw) for one in kept.configs] == [(copy, TEXT)]
    assert leftovers.leftovers(files, node) == (copy,)
    files.write(node.id, node.config, kept.configs[0].raw)
    assert field.real.read_bytes() == TEXT
    assert stat.S_ISLNK(field.config.lstat().st_mode)


@pytest.mark.slow
def test_every_command_of_a_run_is_allowed(field: Linked) -> None:
    """Asked beforehand with the names that a run uses."""
    _, holder, node, access = remote(field)
    options = {"kafka_home": "/opt/kafka", "host_program": access.program}
    wanted = replace(inventory(), executor="ssh", executor_options=options, brokers=(node,), controllers=())
    assert rights_of(wanted, {node.id: holder}) == {node.id: HostRights(node.host)}
    asked = sorted(commands_of(wanted, node, (), str(field.real)))
    assert any(str(field.real) in word for words in asked for word in words)
    assert not any(refusals(access.program, asked))


def test_a_run_says_why_it_does_not_read_a_link(field: Linked) -> None:
    """The reason of the host program reaches people."""
    files, _, node, _ = remote(field)
    assert files.target(node.id, node.config) == str(field.real)
    field.config.unlink()
    field.config.symlink_to(field.root / "etc/other")
    with pytest.raises(ConfigUnreadable, match=f"the link led to {field.real} when root ran the setup script"):
        read_config(files, node.id, node.config)
    with pytest.raises(OSError, match="led to") as caught:
        files.read(node.id, node.config)
    assert caught.value.errno == errno.ELOOP
