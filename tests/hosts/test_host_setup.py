"""The set-up script installs what it says, can be run again and undone: run by real shells, under real sudo."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import UsageWrong
from migrate.hosts import host_setup
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode, Inventory
from tests.testing import worlds
from tests.testing.host_installation import PYTHON, broker, controller
from tests.testing.host_installation import install as install_program
from tests.testing.sudo_room import KAFKA, OPS, Room, missing, room

HOST = "kafka-1"
SHELLS = [["dash"], ["bash"], ["busybox", "sh"]]
needs_room = pytest.mark.skipif(missing() != "", reason=missing() or "-")


def inventory(metadata: str = "/srv/kafka/metadata") -> Inventory:
    """A broker and a controller on one host."""
    return replace(
        worlds.inventory(),
        executor="ssh",
        executor_options={"kafka_home": "/opt/kafka"},
        brokers=(BrokerNode(NodeId(1), HOST, "kafka-1:9092", "/etc/kafka/server.properties", unit="kafka.service"),),
        controllers=(
            ControllerNode(
                NodeId(3000), HOST, "kafka-1:9093", "/etc/kafka/controller.properties", metadata,
                "kafka-controller.service",
            ),
        ),
    )  # fmt: skip


def modes(folder: Path) -> dict[str, str]:
    """Each file's mode and owner."""
    return {
        path.name: f"{stat.S_IMODE(path.stat().st_mode):o} {path.stat().st_uid}" for path in sorted(folder.iterdir())
    }


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS, ids=lambda words: str(words[0]))
@pytest.mark.skipif(not PYTHON.exists(), reason="no python3 of the system")
def test_any_posix_shell_installs_again_and_undoes(shell: list[str], tmp_path: Path) -> None:
    """With PREFIX everything goes into one folder, without root and sudo."""
    if shutil.which(shell[0]) is None:
        pytest.skip(f"no {shell[0]} on this machine")
    place = tmp_path / "place"
    environment = {"PREFIX": str(place), "PATH": os.environ["PATH"]}
    script = host_setup.set_up(inventory(), HOST, "ops")
    for _ in range(2):
        done = subprocess.run(shell, input=script, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert f"{place}/host" in done.stdout
        assert "To undo: kraft-migrate doctor --inventory FILE --host-setup kafka-1 --undo" in done.stdout
        uid = os.geteuid()
        assert modes(place) == {
            "host": f"755 {uid}", "host.json": f"644 {uid}", "collect_disks.py": f"644 {uid}",
        }  # fmt: skip
    told = json.loads(subprocess.run([place / "host", "about"], capture_output=True, check=True).stdout)
    expected = host_setup.configuration(inventory(), HOST, "ops")
    assert {key: told[key] for key in expected} == expected
    reverse = host_setup.undo(inventory(), HOST)
    done = subprocess.run(shell, input=reverse, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Left as they are" in done.stdout
    assert not place.exists()


def test_a_script_that_did_not_arrive_whole_does_nothing(tmp_path: Path) -> None:
    """It is read to its end before any of it is run."""
    script = host_setup.set_up(inventory(), HOST, "ops")
    for share in (0.2, 0.5, 0.9, 0.999):
        cut = script[: int(len(script) * share)]
        environment = {"PREFIX": str(tmp_path / "place"), "PATH": os.environ["PATH"]}
        subprocess.run(["sh"], input=cut, env=environment, capture_output=True, text=True, check=False)
        assert not (tmp_path / "place").exists()


def test_a_host_without_a_python_is_refused_with_what_to_install(tmp_path: Path) -> None:
    """Before anything is written."""
    script = host_setup.set_up(inventory(), HOST, "ops")
    for python in (tmp_path / "none", tmp_path / "old"):
        (tmp_path / "old").write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "old").chmod(0o755)
        environment = {"PREFIX": str(tmp_path / "place"), "PATH": os.environ["PATH"], "PYTHON": str(python)}
        done = subprocess.run(["sh"], input=script, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "apt-get install python3-minimal" in done.stderr
        assert not (tmp_path / "place").exists()


@pytest.mark.parametrize("account", ["ALL", "%wheel", "#0", "ops,root", "ops ALL=(ALL) ALL #", "", "ops\nroot", "-x"])
def test_an_account_that_sudo_reads_otherwise_is_refused(account: str) -> None:
    """Groups, numbers, aliases, lists and new lines are not accounts."""
    with pytest.raises(UsageWrong):
        host_setup.set_up(inventory(), HOST, account)


@pytest.mark.parametrize("metadata", ["/", "/etc", "/var/lib", "/dev/sda", "/srv", "/home"])
def test_a_folder_of_the_system_is_no_metadata_directory(metadata: str) -> None:
    """A rollback renames what is in it."""
    with pytest.raises(UsageWrong, match="no place for a metadata directory"):
        host_setup.set_up(inventory(metadata), HOST, "ops")


def test_a_host_that_the_inventory_does_not_name_is_refused() -> None:
    """With those that it names."""
    with pytest.raises(UsageWrong) as caught:
        host_setup.set_up(inventory(), "kafka-9", "ops")
    assert HOST in str(caught.value.next_step)


# -- as root, with real sudo ----------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def real() -> Iterator[Room]:
    """A namespace with sudo and an account."""
    with room() as found:
        yield found


@pytest.mark.slow
@needs_room
def test_root_installs_one_right_and_takes_it_away(real: Room) -> None:
    """Owners and modes as told; the account runs the program and nothing else; undone, nothing is left."""
    script = host_setup.set_up(inventory(), HOST, "ops").encode()
    for _ in range(2):
        done = real.run_as(0, ("sh", "-s"), script)
        assert done.code == 0, done
        assert "WARNING: sudo" not in done.output.decode()
    libexec, etc = "/usr/local/libexec", "/etc/kraft-migrate"
    seen = real.must(f"stat -c '%a %U:%G %n' {libexec} {libexec}/* {libexec}/*/* {etc} {etc}/* /etc/sudoers.d/*")
    assert seen.splitlines() == [
        "755 root:root /usr/local/libexec",
        "755 root:root /usr/local/libexec/kraft-migrate",
        "644 root:root /usr/local/libexec/kraft-migrate/collect_disks.py",
        "755 root:root /usr/local/libexec/kraft-migrate/host",
        "755 root:root /etc/kraft-migrate",
        "644 root:root /etc/kraft-migrate/host.json",
        "440 root:root /etc/sudoers.d/kraft-migrate",
    ]
    told = real.run(("sudo", "-n", "--", host_setup.PROGRAM, "about"))
    assert json.loads(told.output)["uid"] == 0
    for user in (KAFKA, OPS):
        words = ("sudo", "-n", "--", host_setup.PROGRAM, "about") if user == KAFKA else ("sudo", "-n", "id")
        assert real.run_as(user, words).code == 1
    assert real.run_as(0, ("sh", "-s"), host_setup.undo(inventory(), HOST).encode()).code == 0
    assert real.must("ls -A /usr/local/libexec /etc/sudoers.d; test ! -e /etc/kraft-migrate").split() == [
        "/etc/sudoers.d:", "/usr/local/libexec:",
    ]  # fmt: skip
    assert real.run(("sudo", "-n", "--", host_setup.PROGRAM, "about")).code == 1


@needs_room
def test_nobody_but_root_installs_and_an_unknown_account_is_refused(real: Room) -> None:
    """Nothing is written."""
    real.must("rm -f /etc/sudoers.d/*")
    done = real.run(("sh", "-s"), stdin=host_setup.set_up(inventory(), HOST, "ops").encode())
    assert (done.code, done.says) == (1, "kraft-migrate: run this as root")
    done = real.run_as(0, ("sh", "-s"), host_setup.set_up(inventory(), HOST, "stranger").encode())
    assert done.code == 1
    assert "there is no account stranger" in done.says
    assert real.must("ls -A /etc/sudoers.d") == ""


@pytest.mark.slow
@needs_room
def test_a_python_that_another_user_can_exchange_is_refused(real: Room) -> None:
    """It would run as root."""
    real.must("mkdir -p /usr/local/py; cp /usr/bin/python3 /usr/local/py/python3; chown kafka /usr/local/py/python3")
    script = "PYTHON=/usr/local/py/python3\n" + host_setup.set_up(inventory(), HOST, "ops")
    done = real.run_as(0, ("sh", "-s"), script.encode())
    assert done.code == 1
    assert "no Python 3.6 or later of root's was found" in done.says
    real.must("chown root /usr/local/py/python3")
    assert real.run_as(0, ("sh", "-s"), script.encode()).code == 0
    real.must("rm -r /usr/local/py /etc/sudoers.d/*")


@pytest.mark.slow
@needs_room
def test_a_sudo_that_reads_no_folder_is_told(real: Room) -> None:
    """A site may have taken the line away that includes /etc/sudoers.d."""
    script = host_setup.set_up(inventory(), HOST, "ops").encode()
    real.must("cp /etc/sudoers /etc/kept; sed -i /includedir/d /etc/sudoers")
    try:
        done = real.run_as(0, ("sh", "-s"), script)
    finally:
        real.must("mv /etc/kept /etc/sudoers")
    assert done.code == 0
    assert "sudo does not let ops run it" in done.output.decode()


@pytest.mark.slow
@needs_room
def test_a_folder_that_others_may_write_is_refused_before_sudo_is_told(real: Room) -> None:
    """/usr/local is of a group in older Debian systems: whoever is in it could replace the program."""
    real.must("rm -f /etc/sudoers.d/*; chmod 2775 /usr/local; chgrp kafka /usr/local")
    try:
        done = real.run_as(0, ("sh", "-s"), host_setup.set_up(inventory(), HOST, "ops").encode())
    finally:
        real.must("chmod 755 /usr/local; chgrp root /usr/local")
    assert done.code == 1
    assert "/usr/local: it must belong to root, and nobody else may write it" in done.says
    assert real.must("ls -A /etc/sudoers.d") == ""


@pytest.mark.slow
@needs_room
@pytest.mark.parametrize("setting", ["requiretty", "use_pty", "!env_reset", "setenv", "secure_path=/nowhere"])
def test_settings_of_a_site_do_not_stand_in_the_way(real: Room, setting: str) -> None:
    """Without a terminal, bytes as they are, with a clean environment."""
    assert real.run_as(0, ("sh", "-s"), host_setup.set_up(inventory(), HOST, "ops").encode()).code == 0
    real.must(f"cp /etc/sudoers /etc/kept; printf 'Defaults %s\\n' '{setting}' >>/etc/sudoers")
    try:
        done = real.run(("sudo", "-n", "--", host_setup.PROGRAM, "sockets", "tcp"))
        assert done.code == 0, done
        assert done.output.startswith(b"  sl  local_address")
        assert b"\r" not in done.output
    finally:
        real.must("mv /etc/kept /etc/sudoers")


@pytest.mark.slow
def test_nodes_of_one_host_may_have_kafka_in_different_folders(tmp_path: Path) -> None:
    """Each entry has its own; the program looks for the tool there, and runs that one."""
    base = inventory()
    other = replace(base, controllers=(replace(base.controllers[0], kafka_home="/srv/other"),))
    entries = host_setup.configuration(other, HOST)["nodes"]
    assert [entry["kafka_home"] for entry in entries] == ["/opt/kafka", "/srv/other"]
    homes = [tmp_path / "one", tmp_path / "two"]
    for home in homes:
        (home / "bin").mkdir(parents=True)
        (home / "bin" / "kafka-storage.sh").write_text(f"#!/bin/sh\necho {home.name}\n")
        (home / "bin" / "kafka-storage.sh").chmod(0o755)
    (tmp_path / "c").touch()
    place = tmp_path / "place"
    nodes = [
        {**broker(tmp_path / "c"), "kafka_home": str(homes[0])},
        {**controller(tmp_path / "c", tmp_path / "m"), "kafka_home": f"{homes[1]}/"},
    ]
    program = install_program(place, nodes)
    for node, unit in (("1", "kafka.service"), ("3000", "kafka-controller.service")):
        program.unit(unit, str(os.geteuid()))
        told = json.loads(program.run("facts", node).output)
        home = homes[node == "3000"]
        assert told["kafka_home"]["storage_tool"] == f"{home}/bin/kafka-storage.sh"
        assert told["kafka_home"]["exists"] is True
        assert program.run("format", node, "A" * 22, "3.9").output == f"{home.name}\n".encode()
