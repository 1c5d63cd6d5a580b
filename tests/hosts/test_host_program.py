"""The host program does what its configuration says, as who it says, and nothing else: run as root on real files."""

from __future__ import annotations

import ast
import errno
import hashlib
import io
import json
import os
import re
import stat
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate.hosts import host_program, host_setup, leftovers
from migrate.hosts.leftovers import ASIDE_SUFFIX, BACKUP_SUFFIX
from migrate.hosts.remote_files import LOCK_SUFFIX
from migrate.hosts.runner import Completed
from tests.testing.host_installation import PYTHON, Installation, broker, controller, install
from tests.testing.run_commands import refusals

KAFKA = 65534
OTHER = 65533
STAMP = "20260102T030405"
MINIMAL = Path(__file__).parents[1] / "data/python3-minimal.txt"
needs_root = [
    pytest.mark.skipif(os.geteuid() != 0, reason="acting as another user needs root"),
    pytest.mark.skipif(not PYTHON.exists(), reason="no python3 of the system"),
]
pytestmark = needs_root


@dataclass(frozen=True)
class Field:
    """A host: /etc of root's, disks of Kafka's user."""

    root: Path
    installed: Installation

    @property
    def etc(self) -> Path:
        """The configuration's folder."""
        return self.root / "etc"

    @property
    def config(self) -> Path:
        """The broker's file."""
        return self.etc / "server.properties"

    @property
    def metadata(self) -> Path:
        """The controller's metadata directory, not there at first; its parent is root's."""
        return self.root / "srv" / "metadata"

    @property
    def owned(self) -> Path:
        """A folder of Kafka's user, and a broker's configuration in it (node 2)."""
        return self.root / "owned"


@pytest.fixture
def field() -> Iterator[Field]:
    """One host; its folders can be entered by every user."""
    with tempfile.TemporaryDirectory(prefix="kraft-migrate-host-") as folder:
        root = Path(folder).resolve()
        root.chmod(0o755)
        for name in ("etc", "srv", "owned"):
            (root / name).mkdir(mode=0o755)
        os.chown(root / "owned", KAFKA, KAFKA)
        for path in (root / "etc/server.properties", root / "owned/server.properties"):
            path.write_text("broker.id=1\npassword=x\n")
            os.chown(path, 0, KAFKA)
            path.chmod(0o640)
        nodes = [
            broker(root / "etc/server.properties"),
            broker(root / "owned/server.properties", 2, "other.service"),
            controller(root / "etc/controller.properties", root / "srv/metadata"),
            controller(root / "owned/controller.properties", root / "owned/deep/metadata", 3001, "second.service"),
        ]
        installed = install(root / "installed", nodes, str(root / "kafka"))
        for unit in ("kafka.service", "other.service", "kafka-controller.service", "second.service"):
            installed.unit(unit, "nobody")
        yield Field(root, installed)


def owner(path: Path) -> tuple[int, int, int]:
    """uid, gid, mode of what is there, a link itself."""
    found = path.lstat()
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


def keep(path: Path, copy: Path | None = None) -> list[str]:
    """The words that copy a file of node 1, as it is now."""
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return ["keep", "1", str(path), str(copy or f"{path}{BACKUP_SUFFIX}"), sha256]


def listed(folder: Path) -> list[str]:
    """The names in a folder."""
    return sorted(entry.name for entry in folder.iterdir())


# -- files ----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_file_is_replaced_whole_with_its_owner_and_mode(field: Field) -> None:
    """Bytes as they are; nothing is left beside it."""
    content = bytes(range(256)) * 1000
    done = field.installed.write("1", field.config, content)
    assert done.code == 0, done
    assert field.config.read_bytes() == content
    assert owner(field.config) == (0, KAFKA, 0o640)
    assert field.installed.must("read", "1", str(field.config)) == content
    assert listed(field.etc) == ["server.properties"]
    assert done.output == field.installed.must("status", "1", str(field.config))


@pytest.mark.slow
def test_status_is_what_stat_says(field: Field) -> None:
    """The five lines are those of GNU stat, for files, folders, links and pipes."""
    os.mkfifo(field.etc / "server.properties.kraft-migrate-lock")
    paths = [(field.config, "1"), (field.etc / "server.properties.kraft-migrate-lock", "1"), (Path("/proc/self"), "1")]
    (field.root / "srv/metadata").mkdir(mode=0o750)
    for path, node in [*paths, (field.metadata, "3000")]:
        said = subprocess.run(
            ["stat", "--printf", r"%F\n%s\n%a\n%u:%g\n%.9Z\n", "--", str(path)], capture_output=True, check=True
        )
        if path != Path("/proc/self"):
            assert field.installed.must("status", node, str(path)) == said.stdout
        else:
            assert field.installed.must("status", node, str(path)).startswith(b"symbolic link\n")


@pytest.mark.slow
def test_content_that_did_not_arrive_whole_is_not_put_in_place(field: Field) -> None:
    """A connection that breaks ends the input early."""
    words = ["write", "1", str(field.config), hashlib.sha256(b"all of it").hexdigest()]
    done = field.installed.run(*words, stdin=b"all of")
    assert done.code == 1
    assert "did not arrive whole" in done.errors
    assert field.config.read_text().startswith("broker.id=1")
    assert listed(field.etc) == ["server.properties"]


@pytest.mark.slow
def test_a_new_controllers_file_is_like_the_brokers(field: Field) -> None:
    """Owner, group and mode: the unit's user could not read root's file of mode 0600."""
    path = field.etc / "controller.properties"
    assert field.installed.write("3000", path, b"node.id=3000\n").code == 0
    assert owner(path) == (0, KAFKA, 0o640)


@pytest.mark.slow
def test_a_new_file_can_be_read_by_its_own_unit(field: Field) -> None:
    """The broker's user is another one, and its file is nobody else's: the controller's file is for its own group."""
    field.installed.unit("kafka-controller.service", str(OTHER), Group=str(OTHER))
    field.config.chmod(0o600)
    path = field.etc / "controller.properties"
    assert field.installed.write("3000", path, b"node.id=3000\n").code == 0
    assert owner(path) == (0, OTHER, 0o640)


@pytest.mark.slow
def test_a_copy_is_as_closed_as_its_file(field: Field) -> None:
    """It holds the same passwords."""
    field.config.chmod(0o600)
    copy = Path(f"{field.config}{BACKUP_SUFFIX}-0123abcd")
    assert field.installed.run(*keep(field.config, copy)).code == 0
    assert owner(copy) == (0, KAFKA, 0o600)
    assert copy.read_bytes() == field.config.read_bytes()


@pytest.mark.slow
def test_files_of_both_owners_are_copied_by_one_command(field: Field) -> None:
    """A log directory's is its user's, whatever their order; the same command again changes nothing."""
    metas = [field.owned / name / "meta.properties" for name in ("d0", "d1")]
    for meta in metas:
        meta.parent.mkdir()
        meta.write_text(f"version=0\n# {meta}\n")
        for path in (meta.parent, meta):
            os.chown(path, KAFKA, KAFKA)
    (field.installed.folder / "bin/systemctl").chmod(0o700)  # who has become the user asks systemd nothing more
    files = [metas[0], field.config, metas[1]]
    words = ["keep", "1", *(word for path in files for word in keep(path)[2:])]
    assert field.installed.run(*words) == Completed(0, b"", "")
    copies = [Path(f"{path}{BACKUP_SUFFIX}") for path in files]
    assert [copy.read_bytes() for copy in copies] == [path.read_bytes() for path in files]
    assert [owner(copy) for copy in copies] == [(KAFKA, KAFKA, 0o600), (0, KAFKA, 0o640), (KAFKA, KAFKA, 0o600)]
    found = [copy.stat() for copy in copies]
    assert field.installed.run(*words).code == 0
    assert [copy.stat().st_ctime_ns for copy in copies] == [entry.st_ctime_ns for entry in found]


@pytest.mark.slow
def test_a_copy_is_of_the_content_that_was_seen_and_put_over_no_other(field: Field) -> None:
    """Somebody wrote the file since, or the copy is of another content: neither is touched."""
    words = keep(field.config)
    copy = Path(words[3])
    field.config.write_text("broker.id=2\n")
    assert "another hand wrote it since" in field.installed.run(*words).says
    copy.write_bytes(b"older")
    assert field.installed.run(*keep(field.config)).says.endswith(": File exists")
    assert copy.read_bytes() == b"older"
    copy.unlink()
    copy.symlink_to(field.root / "target")
    assert field.installed.run(*keep(field.config)).says.endswith(": Too many levels of symbolic links")
    assert listed(field.etc) == ["server.properties", copy.name]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "copy"),
    [
        ("/etc/shadow", "/etc/shadow.kraft-migrate-backup"),
        ("/srv/meta.properties", "/etc/meta.properties.kraft-migrate-backup"),
        ("/srv/meta.properties", "/srv/meta.properties"),
        ("/srv/meta.properties", "/srv/meta.properties.kraft-migrate-backup/../x"),
        ("/srv/../etc/meta.properties", "/srv/../etc/meta.properties.kraft-migrate-backup"),
    ],
)
def test_only_a_nodes_files_are_copied_and_only_beside_them(field: Field, path: str, copy: str) -> None:
    """To a name of a copy's."""
    done = field.installed.run("keep", "1", path, copy, "0" * 64)
    assert done.code == host_program.NOT_CONFIGURED
    for words in (("keep", "1", path), ("keep", "1", path, copy), ("keep", "1", path, copy, "0" * 64, path)):
        assert field.installed.run(*words).code == host_program.NOT_UNDERSTOOD


def let_read(path: Path, kind: str) -> bytes:
    """Give it an ACL of that kind by which Kafka's user reads."""
    entries = [(1, 6, 0xFFFFFFFF), (2, 4, KAFKA), (4, 0, 0xFFFFFFFF), (16, 4, 0xFFFFFFFF), (32, 0, 0xFFFFFFFF)]
    packed = b"\2\0\0\0" + b"".join(
        tag.to_bytes(2, "little") + rights.to_bytes(2, "little") + who.to_bytes(4, "little")
        for tag, rights, who in entries
    )
    try:
        os.setxattr(path, f"system.posix_acl_{kind}", packed)
    except OSError:
        pytest.skip("this file system knows no ACL")
    return packed


@pytest.mark.slow
def test_an_access_list_is_kept(field: Field) -> None:
    """A file that Kafka's user reads by an ACL alone is read by it afterwards."""
    os.chown(field.config, 0, 0)
    packed = let_read(field.config, "access")
    assert field.installed.write("1", field.config, b"new").code == 0
    assert os.getxattr(field.config, "system.posix_acl_access") == packed


@pytest.mark.slow
def test_a_folders_default_access_list_opens_no_file_that_was_closed(field: Field) -> None:
    """Neither the replaced file, which had none, nor its copy."""
    let_read(field.etc, "default")
    field.installed.must(*keep(field.config))
    assert field.installed.write("1", field.config, b"new").code == 0
    for file in (field.config, Path(f"{field.config}{BACKUP_SUFFIX}")):
        assert "system.posix_acl_access" not in os.listxattr(file), file
        assert owner(file) == (0, KAFKA, 0o640), file


@pytest.mark.slow
def test_a_folder_of_roots_that_was_moved_to_a_nodes_place_is_neither_shown_nor_changed(field: Field) -> None:
    """Kafka's user may rename what is in a folder of his own, a folder of root's too."""
    config, private = field.owned / "conf/server.properties", field.owned / "private"
    installed = install(field.root / "another", [broker(config)])
    installed.unit("kafka.service", "nobody")
    config.parent.mkdir()
    config.write_text("broker.id=1\n")  # which every user may read
    assert installed.must("read", "1", str(config)) == b"broker.id=1\n"
    config.parent.rename(field.owned / "moved")
    private.mkdir(mode=0o700)
    (private / config.name).write_text("only-root-reads-this")
    (private / config.name).chmod(0o600)
    private.rename(config.parent)
    for done in (installed.run("read", "1", str(config)), installed.write("1", config, b"new")):
        assert (done.code, done.output) == (host_program.NOT_CONFIGURED, b""), done
        assert "could have put it there" in done.errors
    assert config.read_text() == "only-root-reads-this"


@pytest.mark.slow
def test_what_a_killed_call_left_is_replaced(field: Field) -> None:
    """A link under the temporary name goes, and not what it leads to."""
    target = field.root / "target"
    target.write_text("root's")
    (field.etc / ".server.properties.kraft-migrate-new").symlink_to(target)
    assert field.installed.write("1", field.config, b"new").code == 0
    assert target.read_text() == "root's"
    assert listed(field.etc) == ["server.properties"]


@pytest.mark.slow
def test_errors_are_the_systems_own_words(field: Field) -> None:
    """The client reads them as errno."""
    etc, run = field.etc, field.installed.run
    assert run("status", "3000", str(etc / "controller.properties")).says.endswith(": No such file or directory")
    (etc / "controller.properties").symlink_to(field.config)
    for words in (("read",), ("write",)):
        more = ("0" * 64,) if words == ("write",) else ()
        stdin = b"" if not more else b"x"
        more = (hashlib.sha256(stdin).hexdigest(),) if more else ()
        done = run(*words, "3000", str(etc / "controller.properties"), *more, stdin=stdin)
        assert (done.code, done.says.rpartition(": ")[2]) == (1, "Too many levels of symbolic links")
    (etc / "controller.properties").unlink()
    (etc / "controller.properties").mkdir()
    assert run("read", "3000", str(etc / "controller.properties")).says.endswith(": Is a directory")
    os.mkfifo(f"{field.config}.kraft-migrate-backup")
    assert run("read", "1", f"{field.config}.kraft-migrate-backup").says.endswith(": Invalid argument")


@pytest.mark.slow
def test_a_large_file_is_read_to_the_limit_and_one_byte(field: Field) -> None:
    """The client refuses it by that byte."""
    with field.config.open("wb") as file:
        file.truncate(100 * 2**20)
    assert len(field.installed.must("read", "1", str(field.config))) == 8 * 2**20 + 1


@pytest.mark.slow
def test_a_configuration_below_a_link_of_roots_works(field: Field) -> None:
    """/etc/kafka -> /opt/kafka/config is a shape of the field."""
    (field.root / "opt").mkdir()
    field.etc.rename(field.root / "opt/config")
    field.etc.symlink_to("opt/config")
    assert field.installed.write("1", field.config, b"new").code == 0
    assert (field.root / "opt/config/server.properties").read_bytes() == b"new"


@pytest.mark.slow
def test_names_of_a_configurations_folder_are_its_copies(field: Field) -> None:
    """What else lies in /etc is nobody's business."""
    (field.etc / "other").touch()
    (field.etc / "server.properties.kraft-migrate-backup").touch()
    names = field.installed.must("names", "1", str(field.etc)).split(b"\0")
    assert sorted(names) == [b"", b"server.properties", b"server.properties.kraft-migrate-backup"]


@pytest.mark.slow
def test_setting_aside_never_replaces(field: Field) -> None:
    """File and folder; what is at the new name stays."""
    aside = f"{field.config}{ASIDE_SUFFIX}-{STAMP}"
    Path(aside).touch()
    assert field.installed.run("rename", "1", str(field.config), aside).says.endswith(": File exists")
    Path(aside).unlink()
    field.installed.must("rename", "1", str(field.config), aside)
    assert not field.config.exists()
    assert Path(aside).read_text().startswith("broker.id")
    field.installed.must("remove", "1", aside)
    assert listed(field.etc) == []
    field.config.write_text("x")
    assert field.installed.run("remove", "1", str(field.config)).code == host_program.NOT_CONFIGURED


def test_a_link_that_came_after_the_look_is_refused_by_the_open_itself(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at a name and its opening Kafka's user may exchange it: here the look always comes too early."""
    before = field.config.stat()
    link = field.etc / f"server.properties{LOCK_SUFFIX}"
    link.symlink_to(field.config)
    monkeypatch.setattr(host_program, "found", lambda _folder, _name: None)
    monkeypatch.setattr(host_program, "look", lambda _folder, _name: before)
    folder = host_program.open_folder(str(field.etc))
    node = host_program.Node(1, "broker", "kafka.service", str(field.config), "", "", None, "")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        host_program.lock_file(host_program.Host("ops", (), {}, ""), node, str(link), make=True)
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        host_program.open_file(folder, link.name, str(link), strict=True)
    os.close(folder)


def test_a_content_that_has_its_name_is_not_called_the_old_one(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails behind the rename leaves the new content, which may not last."""
    real = host_program.open_folder(str(field.etc))

    def fails(_folder: int) -> None:
        raise host_program.told(errno.EIO, "-")

    monkeypatch.setattr(host_program, "sync", fails)
    with pytest.raises(host_program.RefusedError) as caught:
        host_program.replace(real, field.config.name, str(field.config), b"new", (), None)
    os.close(real)
    assert (caught.value.code, caught.value.text) == (host_program.NOT_PROVEN, os.strerror(errno.EIO))
    assert field.config.read_bytes() == b"new"


# -- metadata directories -------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_directory_gets_its_name_with_its_owner(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is killed before makes none, and the next one does not take root's folder for the unit's."""
    user = host_program.User("nobody", KAFKA, KAFKA, (KAFKA,), "/", {})
    node = host_program.Node(3000, "controller", "kafka-controller.service", "/x", str(field.metadata), "", None, "")

    def killed(*_: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(host_program, "user_of", lambda _host, _node: user)
        patched.setattr(os, "fchown", killed)
        with pytest.raises(KeyboardInterrupt):
            host_program.make_directory(host_program.Host("ops", (), {}, ""), node, str(field.metadata))
    assert not field.metadata.exists()
    field.installed.must("make-directory", "3000", str(field.metadata))
    assert owner(field.metadata) == (KAFKA, KAFKA, 0o750)
    assert listed(field.metadata.parent) == ["metadata"]


@pytest.mark.slow
def test_a_metadata_directory_is_the_units_and_its_content_is_set_aside_as_its_user(field: Field) -> None:
    """Root makes it in a folder of root's; what is in it is the unit's user's."""
    field.installed.must("make-directory", "3000", str(field.metadata))
    assert owner(field.metadata) == (KAFKA, KAFKA, 0o750)
    field.installed.must("make-directory", "3000", str(field.metadata))  # it is there: nothing to do
    log = field.metadata / "__cluster_metadata-0"
    log.mkdir()
    os.chown(log, KAFKA, KAFKA)
    folder = f"{field.metadata}/kraft-migrate-aside-{STAMP}"
    field.installed.must("make-directory", "3000", folder)
    field.installed.must("rename", "3000", str(log), f"{folder}/__cluster_metadata-0")
    assert owner(Path(folder)) == (KAFKA, KAFKA, 0o750)
    assert field.installed.must("names", "3000", str(field.metadata)) == b"kraft-migrate-aside-20260102T030405\0"
    for old, new in (
        (folder, f"{folder}/x"),
        (f"{field.metadata}/x", f"{folder}/x"),
        (str(field.metadata), f"{folder}-1"),
    ):
        assert field.installed.run("rename", "3000", old, new).code == host_program.NOT_CONFIGURED


@pytest.mark.slow
def test_in_a_folder_of_kafkas_user_the_directory_is_made_by_that_user(field: Field) -> None:
    """Root makes nothing there that could be exchanged before it is given away."""
    path = field.owned / "deep/metadata"
    field.installed.must("make-directory", "3001", str(path))
    assert owner(path) == (KAFKA, KAFKA, 0o750)
    assert owner(path.parent) == (KAFKA, KAFKA, 0o755)


@pytest.mark.slow
def test_archive_is_a_tar_stream_of_the_log(field: Field) -> None:
    """As the unit's user; 3 is kept for a log that changed as it was read."""
    field.installed.must("make-directory", "3000", str(field.metadata))
    assert field.installed.run("archive", "3000").code == host_program.REFUSED_BY
    (field.metadata / "meta.properties").write_text("node.id=3000\n")
    (field.metadata / "__cluster_metadata-0").mkdir()
    (field.metadata / "__cluster_metadata-0/x.log").write_bytes(b"x" * 5000)
    with tarfile.open(fileobj=io.BytesIO(field.installed.must("archive", "3000"))) as found:
        names = sorted(found.getnames())
    assert names == ["__cluster_metadata-0", "__cluster_metadata-0/x.log", "meta.properties"]


# -- as the unit's user ---------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_every_other_path_is_read_as_the_units_user(field: Field) -> None:
    """meta.properties of a log directory, a keystore: what Kafka may read, and nothing more."""
    disk = field.owned / "disk"
    disk.mkdir()
    os.chown(disk, KAFKA, KAFKA)
    (disk / "meta.properties").write_text("version=0\n")
    assert field.installed.must("read", "1", str(disk / "meta.properties")) == b"version=0\n"
    assert field.installed.must("names", "1", str(disk)) == b"meta.properties\0"
    assert field.installed.run(*keep(disk / "meta.properties")).code == 0
    assert owner(disk / "meta.properties.kraft-migrate-backup")[:2] == (KAFKA, KAFKA)
    secret = field.root / "secret"
    secret.write_text("root's")
    secret.chmod(0o600)
    assert field.installed.run("read", "1", str(secret)).says.endswith(": Permission denied")
    assert field.installed.run("names", "1", "/root").says.endswith(": Permission denied")


@pytest.mark.slow
def test_the_collector_and_the_places_are_seen_by_the_units_user(field: Field) -> None:
    """Their text comes from the installation, on stdin: that folder may be closed to the user."""
    disk = field.owned / "disk"
    disk.mkdir()
    os.chown(disk, KAFKA, KAFKA)
    field.installed.folder.chmod(0o700)
    told = json.loads(field.installed.must("collect", "1", str(disk)))["body"]
    assert (told["node"], told["probed"]) == (1, True)
    assert told["directories"][0]["own"] is True
    assert json.loads(field.installed.must("places", "1", str(disk)))[str(disk)]["real"] == str(disk)


@pytest.mark.slow
def test_format_gets_the_nodes_file_and_the_units_java(field: Field) -> None:
    """What the tool says passes through; where it refuses the code is 2."""
    tool = field.root / "kafka/bin/kafka-storage.sh"
    tool.parent.mkdir(parents=True)
    tool.write_text('#!/bin/sh\nid -u\necho "$JAVA_HOME" "$HOME" "${EVIL-unset}"\necho "$@"\n[ "$6" != 4.0 ]\n')
    tool.chmod(0o755)
    (field.root / "environment").write_text("# comment's\nJAVA_HOME=/opt/java\nSECRET=1\n")
    field.installed.unit(
        "kafka-controller.service", "nobody", EnvironmentFiles=f"{field.root}/environment (ignore_errors=no)"
    )
    words = ["format", "3000", "A" * 22, "3.9"]
    done = field.installed.run(*words, EVIL="yes")
    said = done.output.decode().splitlines()
    assert (done.code, said[0], said[1].split()[0], said[1].split()[-1]) == (0, str(KAFKA), "/opt/java", "unset")
    config = field.etc / "controller.properties"
    assert said[2] == f"format --cluster-id={'A' * 22} -c {config} --release-version 3.9"
    assert field.installed.run(*words[:3], "4.0").code == host_program.REFUSED_BY
    assert field.installed.run(*words, "--standalone").code == host_program.NOT_UNDERSTOOD
    assert field.installed.run(*words[:2], "x;id", "3.9").code == host_program.NOT_CONFIGURED
    listed = f"3000@c0:9090:{'d' * 22},3001@c1:9090:{'e' * 22}"
    voters = ("--initial-controllers", listed)
    assert field.installed.must(*words, *voters).decode().splitlines()[2].endswith(" ".join(voters))
    for other in (listed.replace("3000", "3009"), listed.replace("e" * 22, "d" * 22), listed + ",x", "-c"):
        assert field.installed.run(*words, voters[0], other).code == host_program.NOT_CONFIGURED
    for reserved in ("A" * 22, "-" + "d" * 21):
        wrong = listed.replace("d" * 22, reserved)
        assert field.installed.run(*words, voters[0], wrong).code == host_program.NOT_CONFIGURED


@pytest.mark.parametrize(
    ("said", "java"),
    [
        ("CLASSPATH=/opt/x.jar LD_LIBRARY_PATH=/opt/lib -DPATH=/x", {}),
        ("PATH=/usr/bin:/bin CLASSPATH=/opt/x.jar", {"PATH": "/usr/bin:/bin"}),
        ('"JAVA_HOME=/opt/17" OLD_JAVA_HOME=/opt/8', {"JAVA_HOME": "/opt/17"}),
        ("A=1 JAVA_HOME='/opt/j dk'", {"JAVA_HOME": "/opt/j dk"}),
    ],
)
def test_only_the_variables_that_find_java_are_taken_of_a_unit(field: Field, said: str, java: dict[str, str]) -> None:
    """By their whole names, from the unit and from its files: with another PATH Kafka's tools find no program."""
    java = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **java}
    assert host_program.environment_of({"Environment": said}) == java
    file = field.root / "environment"
    file.write_text("# PATH=/a\n ; JAVA_HOME=/a\n" + "".join(f"{line}\n" for line in said.split(" ", 1)))
    assert host_program.environment_of({"EnvironmentFiles": f"{file} (ignore_errors=no)"}) == java


@pytest.mark.slow
def test_a_unit_that_runs_as_root_is_not_acted_as_through_sudo(field: Field) -> None:
    """Who writes the configuration of a process of root's is root; root itself may."""
    field.installed.unit("kafka.service", "")
    words = ("read", "1", "/etc/shadow")
    assert field.installed.run(*words).code == 0
    assert field.installed.run(*words, SUDO_UID="1000").code == host_program.NOT_CONFIGURED
    content = hashlib.sha256(b"x").hexdigest()
    done = field.installed.run("write", "1", str(field.config), content, stdin=b"x", SUDO_UID="1000")
    assert done.code == host_program.NOT_CONFIGURED
    assert "runs as root" in done.errors


@pytest.mark.slow
def test_facts_are_what_the_units_user_finds(field: Field) -> None:
    """Before anything is written: a file that cannot be read, a folder that cannot be entered or made."""
    facts = json.loads(field.installed.must("facts", "1"))
    assert facts["user"] == "nobody"
    assert facts["config"] == {"exists": True, "path_readable_by_user": True, "readable_by_user": True}
    field.config.chmod(0o600)
    field.etc.chmod(0o700)
    facts = json.loads(field.installed.must("facts", "1"))["config"]
    assert facts == {"exists": True, "path_readable_by_user": False, "readable_by_user": False}
    place = json.loads(field.installed.must("facts", "3000"))["metadata_directory"]
    assert place == {"exists": False, "writable_by_user": False, "can_be_made": True}


# -- units and locks ------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_only_units_of_the_configuration_are_given_to_systemd(field: Field) -> None:
    """By these words and no others."""
    for verb in ("unit-start", "unit-stop"):
        field.installed.must(verb, "kafka.service")
    field.installed.must("boot-units")
    assert field.installed.given == [
        "start --no-block -- kafka.service",
        "stop --no-block -- kafka.service",
        "list-dependencies --plain --no-pager -- default.target",
    ]
    for odd in ("sshd.service", "kafka.service sshd.service", "--force", "", "kafka.servic?"):
        assert field.installed.run("unit-stop", odd).code == host_program.NOT_CONFIGURED
    assert len(field.installed.given) == 3
    assert field.installed.must("unit-is-enabled", "kafka.service") == b"disabled\n"


@pytest.mark.slow
def test_a_process_is_shown_where_it_is_the_units(field: Field) -> None:
    """The words of another process are refused."""
    field.installed.unit("kafka.service", "nobody", MainPID=str(os.getpid()))
    own = Path("/proc/self/cmdline").read_bytes()
    assert field.installed.must("process", "kafka.service", str(os.getpid())) == own
    assert field.installed.run("process", "kafka.service", "1").code == host_program.NOT_CONFIGURED


@pytest.mark.slow
def test_a_lock_is_held_until_the_input_ends(field: Field) -> None:
    """What is sent is in the file before it comes back, and the kernel gives the lock back."""
    path = f"{field.config}{LOCK_SUFFIX}"
    with subprocess.Popen(
        [str(field.installed.program), "lock", "1", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as held:
        assert held.stdin is not None
        assert held.stdout is not None
        held.stdin.write(b"run 7 on host\n")
        held.stdin.flush()
        assert held.stdout.readline() == b"run 7 on host\n"
        assert field.installed.must("read", "1", path) == b"run 7 on host\n"
        assert field.installed.run("try-lock", "1", path).code == host_program.HELD
        assert field.installed.run("lock", "1", path).code == host_program.HELD
        held.stdin.close()
        assert held.wait(30) == 0
    field.installed.must("try-lock", "1", path)


@pytest.mark.slow
def test_clock_and_sockets_are_the_kernels(field: Field) -> None:
    """Seconds since 1970 with nine digits, seconds since the boot; the table as it is."""
    assert re.fullmatch(rb"\d+\.\d{9} \d+\.\d{9}\n", field.installed.must("clock"))
    assert b"local_address" in field.installed.must("sockets", "tcp6")
    assert field.installed.run("sockets", "../shadow").code == host_program.NOT_CONFIGURED


# -- the program itself ---------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_about_tells_the_release_by_its_text(field: Field) -> None:
    """The first line and the configuration's place are the host's; every other byte is the release's."""
    told = json.loads(field.installed.must("about"))
    assert told["programs"] == host_setup.sums()
    assert told["nodes"][0]["config"] == str(field.config)
    text = field.installed.program.read_bytes()
    field.installed.program.write_bytes(text.replace(b"LINES = 100000", b"LINES = 999999"))
    assert json.loads(field.installed.must("about"))["programs"]["host"] != host_setup.sums()["host"]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["host", "host.json", "."])
def test_an_installation_that_others_can_change_is_not_run(field: Field, what: str) -> None:
    """Owner or mode of the program, of its configuration or of a folder above: nothing is done."""
    place = field.installed.folder / what
    mode = stat.S_IMODE(place.stat().st_mode)
    place.chmod(mode | 0o020)
    done = field.installed.run("status", "1", str(field.config))
    assert (done.code, done.output) == (host_program.NOT_SOUND, b"")
    place.chmod(mode)
    os.chown(place, KAFKA, 0)
    done = field.installed.run("status", "1", str(field.config))
    assert (done.code, done.output) == (host_program.NOT_SOUND, b"")


@pytest.mark.slow
def test_what_is_refused_is_decided_before_anything_is_done(field: Field) -> None:
    """A verb is no right to any unit or file."""
    asked = [
        ["unit-stop", "kafka.service"],
        ["unit-stop", "sshd.service"],
        ["write", "1", str(field.config), "0" * 64],
        ["write", "1", "/etc/sudoers", "0" * 64],
        ["nothing"],
        [],
    ]
    answers = refusals(field.installed.program, asked)
    assert [bool(answer) for answer in answers] == [False, True, False, True, True, True]
    assert field.installed.given == []


@pytest.mark.parametrize("name", [host_setup.SOURCE, host_setup.COLLECTOR])
def test_programs_of_hosts_are_python_3_6_and_import_what_the_set_up_script_asks_for(name: str) -> None:
    """No more than Debian's python3-minimal has; the script refuses a Python that has less."""
    tree = ast.parse(host_setup.released(name).decode("ascii"), feature_version=(3, 6))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= set(MINIMAL.read_text().split("\n"))
    assert imported <= {module.strip() for module in host_setup.MODULES.split(",")}


@pytest.mark.parametrize("value", [{"a": ['x\n"\\/é\u2028🙂', 1, True, None, {}]}, [], "", {"\x7f": -1}])
def test_its_json_is_json(value: object) -> None:
    """Written for a reader that has the module, and read as that writes it."""
    assert json.loads(host_program.as_json(value)) == value
    assert host_program.from_json(json.dumps({"a": ["é\n\\", 1]}).encode()) == {"a": ["é\n\\", 1]}
    for bad in (b"", b"[", b"__import__('os')", b"[" * 100000, b"\xff", b"[true]"):
        with pytest.raises(ValueError, match="no JSON"):
            host_program.from_json(bad)


def test_suffixes_are_those_of_the_tool() -> None:
    """Names that a run makes are names that the program takes."""
    assert host_program.BACKUP.fullmatch(BACKUP_SUFFIX)
    assert host_program.BACKUP.fullmatch(f"{BACKUP_SUFFIX}-0123abcd")
    assert host_program.ASIDE.fullmatch(f"{ASIDE_SUFFIX}-{STAMP}")
    assert host_program.ASIDE.fullmatch(f"{ASIDE_SUFFIX}-{STAMP}-1")
    assert host_program.LOCK == LOCK_SUFFIX
    assert host_program.INNER_ASIDE.fullmatch(f"{leftovers.ASIDE_FOLDER}-{STAMP}")
    assert set(host_program.ENTRIES) == set(leftovers.ENTRIES)
