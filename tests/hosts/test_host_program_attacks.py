"""What the login account and Kafka's user try through the host program, with real sudo: nothing beyond what it is for.

The account may give any words; Kafka's user owns the folder of a broker's configuration and of a metadata directory.
What must not change or be seen: files of root's, and units of nobody's configuration.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from migrate.hosts import host_program, host_setup
from migrate.hosts.runner import Completed
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode
from tests.hosts.test_host_setup import inventory
from tests.testing.run_commands import refusals
from tests.testing.sudo_room import KAFKA, Room, missing, room

pytestmark = pytest.mark.skipif(missing() != "", reason=missing() or "-")

HOST = "kafka-1"
OWNED = "/srv/owned"  # a folder of Kafka's user
CONFIG = f"{OWNED}/server.properties"
METADATA = f"{OWNED}/deep/metadata"
SECRET = "only-root-reads-this"
CANARY = "/etc/canary"
SHA = hashlib.sha256(b"x").hexdigest()
LOCK = f"{CONFIG}.kraft-migrate-lock"
BACKUP = f"{CONFIG}.kraft-migrate-backup"
FIELDS = """
rm -rf /srv/owned /srv/roots /etc/canary /etc/canaries
mkdir -p /srv/owned/deep /srv/roots /etc/canaries/deep/metadata; chmod 700 /etc/canaries; chmod 755 /srv
echo only-root-reads-this >/etc/canary; chmod 600 /etc/canary; cp -p /etc/canary /etc/canaries/server.properties
cp -p /etc/canary /etc/canaries/deep/metadata/inside
cp -p /etc/canary /srv/roots/inside
printf 'broker.id=1\\n' >/srv/owned/server.properties; chgrp kafka /srv/owned/server.properties
chmod 640 /srv/owned/server.properties
chown kafka:kafka /srv/owned /srv/owned/deep
"""


@pytest.fixture(scope="module")
def real() -> Iterator[Room]:
    """A host that was set up by the script."""
    with room() as found:
        for unit in ("kafka.service", "kafka-controller.service"):
            place = f"{found.folder}/units/{unit}"
            found.must(f"printf 'LoadState=loaded\\nUser=kafka\\nMainPID=0\\n' >{place}; chmod 644 {place}")
        given = replace(
            inventory(METADATA),
            brokers=(BrokerNode(NodeId(1), HOST, "kafka-1:9092", CONFIG, unit="kafka.service"),),
            controllers=(
                ControllerNode(
                    NodeId(3000), HOST, "kafka-1:9093", "/etc/kafka/controller.properties", METADATA,
                    "kafka-controller.service",
                ),
            ),
        )  # fmt: skip
        done = found.run_as(0, ("sh", "-s"), host_setup.set_up(given, HOST, "ops").encode())
        assert done.code == 0, done
        yield found


@pytest.fixture
def fields(real: Room) -> Iterator[Room]:
    """With fresh folders; afterwards everything of root's is as it was."""
    real.must(FIELDS)
    before = canaries(real)
    yield real
    assert canaries(real) == before


def canaries(real: Room) -> str:
    """What must not change: content, owner, mode and number of names of root's files and folders, sudo's rights."""
    kept = "/etc/canary /etc/canaries /srv/roots /etc/shadow /etc/passwd /etc/sudoers /etc/sudoers.d"
    return real.must(
        f"find {kept} -printf '%u:%g %m %s %T@ %p\\n' | sort;"
        " cat /etc/canary /etc/canaries/server.properties /srv/roots/inside"
    )


def call(real: Room, words: Sequence[str], stdin: bytes = b"") -> Completed:
    """The program through sudo, as the account; no answer ever shows a secret of root's."""
    done = real.run(("sudo", "-n", "--", host_setup.PROGRAM, *words), stdin=stdin)
    assert SECRET not in done.output.decode(errors="replace") + done.errors
    return done


def refused(real: Room, lists: Sequence[Sequence[str]]) -> list[str]:
    """Why the installed program refuses each of these, "" where it does not; nothing is done."""
    return refusals(host_setup.PROGRAM, lists, lambda words, given: real.run_as(0, words, given).output)


# -- sudo -----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("dd", f"if={BACKUP}-", "if=/etc/shadow", "iflag=nofollow,nonblock", "bs=1M", "count=9", "status=none"),
        ("dd", f"if={BACKUP}-", "if=/etc/passwd", "of=/etc/sudoers.d/evil", "iflag=nofollow,nonblock", "bs=1M"),
        ("chown", f"--reference={CONFIG}", "--", "/etc/canary"),
        ("rm", "-f", "--", f"{CONFIG}.kraft-migrate-x", "/etc/canary"),
        ("mv", "-T", "--", "/etc/canary", CONFIG),
        ("tee", "/etc/sudoers.d/evil"),
        ("systemctl", "stop", "--", "kafka.service"),
        ("sh", "-c", "id"),
        ("python3", "-IS", host_setup.PROGRAM, "about"),
        (f"{host_setup.PROGRAM}/../host", "about"),
        ("/usr/local/libexec/kraft-migrate/../kraft-migrate/host", "about"),
        ("-u", "kafka", host_setup.PROGRAM, "about"),
        ("-E", host_setup.PROGRAM, "about"),
        ("PYTHONPATH=/tmp", host_setup.PROGRAM, "about"),
        ("-i", host_setup.PROGRAM, "about"),
        ("-D", "/tmp", host_setup.PROGRAM, "about"),
        ("-R", "/srv/owned", host_setup.PROGRAM, "about"),
        ("-e", "/etc/kraft-migrate/host.json"),
    ],
    ids=" ".join,
)
def test_sudo_runs_the_program_for_root_and_nothing_else(fields: Room, words: tuple[str, ...]) -> None:
    """Commands that an earlier release's lines let through, other users, other environments, other spellings."""
    done = fields.run(("sudo", "-n", *words))
    spelled = words[0].endswith("/host")  # sudo compares files by inode, too: it is the same program
    assert done.code != 0 or (spelled and json.loads(done.output)["uid"] == 0), done
    assert SECRET not in done.output.decode(errors="replace")


def test_the_environment_of_the_caller_does_not_reach_the_program(fields: Room) -> None:
    """Python's, the loader's, the shell's: a module or library of the caller's is not loaded."""
    fields.must("mkdir -p /srv/evil; echo 'import os; os.system(\"touch /srv/roots/was-here\")' >/srv/evil/os.py")
    fields.must("cp /srv/evil/os.py /srv/evil/ast.py; cp /srv/evil/os.py /srv/evil/sitecustomize.py")
    evil = (
        "PYTHONPATH=/srv/evil PYTHONHOME=/srv/evil PYTHONSTARTUP=/srv/evil/os.py LD_PRELOAD=/srv/evil/x.so "
        "PATH=/srv/evil:$PATH HOME=/srv/evil SUDO_UID=0 BASH_ENV=/srv/evil/os.py"
    )
    done = fields.run(("sh", "-c", f"cd /srv/evil; {evil} sudo -n -- {host_setup.PROGRAM} about"))
    assert done.code == 0, done
    fields.must("test ! -e /srv/roots/was-here")


@pytest.mark.slow
def test_a_unit_of_roots_is_not_worked_through_sudo(fields: Room) -> None:
    """Who writes the configuration of a process of root's is root; the environment does not say who calls."""
    place = f"{fields.folder}/units/kafka.service"
    fields.must(f"sed -i s/User=.*/User=/ {place}")
    try:
        for verb, more in (("read", ["/etc/canary"]), ("names", ["/etc/canaries"]), ("write", [CONFIG, SHA])):
            words = ("env", "SUDO_UID=0", "sudo", "-n", "--", host_setup.PROGRAM, verb, "1", *more)
            done = fields.run(words, stdin=b"x")
            assert done.code == host_program.NOT_CONFIGURED, done
    finally:
        fields.must(f"sed -i s/User=.*/User=kafka/ {place}")


# -- words ----------------------------------------------------------------------------------------------------------
PATHS = [
    "/etc/shadow",
    "/etc/canary",
    f"{OWNED}/../../etc/canary",
    f"{OWNED}/./server.properties",
    f"{OWNED}//server.properties",
    f"{CONFIG}/",
    "etc/canary",
    "",
    "/",
    f"{CONFIG} /etc/canary",
    f"{CONFIG}\n/etc/canary",
    f"{CONFIG}\t",
    f"{BACKUP}-0123abcd /etc/canary",
    f"{BACKUP}-0123abcd/../../../etc/canary",
    f"{BACKUP}-*",
    f"{BACKUP}-0123ABCD",
    f"{BACKUP}-0123abcde",
    f"{BACKUP}-0123abcd\n",
    f"{CONFIG}.kraft-migrate-set-aside-20260101T000000/../../../etc/canary",
    f"{CONFIG}.kraft-migrate-set-aside-2026010\u0661T000000",
    f"{METADATA}/../../../../etc/canary",
    "--help",
    "-",
    "/etc/sudoers.d/evil",
    "/etc/kraft-migrate/host.json",
    host_setup.PROGRAM,
    "/proc/self/mem",
    "/dev/sda",
    "a" * 5000,
]


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["write", "rename", "remove", "make-directory", "lock", "try-lock"])
def test_what_changes_files_takes_no_path_but_the_nodes_own(fields: Room, verb: str) -> None:
    """Each odd path, in each place, with each node: refused before anything is opened."""
    more = {"write": [SHA], "rename": [f"{CONFIG}.kraft-migrate-set-aside-20260101T000000"]}.get(verb, [])
    lists = [[verb, node, path, *more] for node in ("1", "3000") for path in PATHS]
    lists += [[verb, "1", CONFIG, *more, "/etc/canary"], [verb, "1"], [verb], [verb, "2", CONFIG, *more]]
    lists += [[verb, odd, CONFIG, *more] for odd in ("01", "-1", "1 ", "1\n", "", "1;id", "\u0661")]
    if verb == "rename":
        lists += [["rename", "1", CONFIG, path] for path in PATHS] + [["rename", "1", "/etc/canary", BACKUP]]
    answers = refused(fields, lists)
    assert all(answers), [words for words, why in zip(lists, answers, strict=True) if not why]
    for words in (*lists[:3], lists[-1]):
        assert call(fields, words, b"x").code in (host_program.NOT_CONFIGURED, host_program.NOT_UNDERSTOOD)


@pytest.mark.slow
def test_other_paths_are_read_with_the_rights_of_kafkas_user(fields: Room) -> None:
    """Not with root's: what Kafka may not read, the account does not see."""
    for verb in ("read", "names"):
        for path in ("/etc/shadow", "/etc/canary", "/etc/canaries", "/etc/canaries/server.properties", "/root/x"):
            assert call(fields, [verb, "1", path]).code == host_program.FAILED
    assert call(fields, ["read", "1", "/proc/1/environ"]).code == host_program.FAILED
    assert call(fields, ["write", "1", "/srv/roots/meta.properties", SHA], b"x").code == host_program.FAILED
    for words in (["collect", "1", "/srv/roots"], ["places", "1", "/etc/canaries"]):
        done = call(fields, words)
        assert b"server.properties" not in done.output
    assert call(fields, ["collect", "1", "--key-file"]).code == host_program.NOT_CONFIGURED


@pytest.mark.slow
def test_no_other_unit_is_touched(fields: Room) -> None:
    """Starting, stopping, enabling, its journal, its process."""
    odd = (
        "sshd.service",
        "kafka.service sshd.service",
        "kafka*",
        "--now",
        "kafka.service\n",
        "../kafka.service",
        "kafka",
    )
    verbs = ("unit-show", "unit-start", "unit-stop", "unit-is-enabled")
    lists = [[verb, unit] for verb in verbs for unit in odd]
    lists += [["unit-log", unit, "10"] for unit in odd] + [["process", unit, "1"] for unit in odd]
    lists += [["unit-log", "kafka.service", "10 -u sshd.service"], ["unit-log", "kafka.service", "-10"]]
    assert all(refused(fields, lists))
    for words in (["unit-stop", "sshd.service"], ["unit-stop", "--now"], ["process", "kafka.service", "1"]):
        assert call(fields, words).code == host_program.NOT_CONFIGURED


@pytest.mark.slow
def test_what_is_refused_is_decided_before_anything_is_done(fields: Room) -> None:
    """A command is refused by its words, or carried out: no verb finds out half-way that it may not."""
    lists = [
        ["status", "1", CONFIG], ["read", "1", CONFIG], ["write", "1", CONFIG, SHA], ["write", "1", CONFIG, "x"],
        ["write", "1", CONFIG], ["write", "1", "/etc/canary", SHA], ["keep", "1", CONFIG, BACKUP, SHA],
        ["keep", "1", CONFIG, "/etc/canary", SHA], ["write", "1", BACKUP, SHA], ["names", "1", OWNED],
        ["lock", "1", LOCK], ["lock", "1", CONFIG], ["try-lock", "1", LOCK], ["remove", "1", BACKUP],
        ["remove", "1", CONFIG],
        ["make-directory", "3000", METADATA], ["make-directory", "1", METADATA], ["make-directory", "3000", "/srv/x"],
        ["unit-show", "kafka.service"], ["unit-show", "x.service"], ["unit-stop", "kafka.service"],
        ["unit-log", "kafka.service", "10"], ["unit-log", "kafka.service", "x"], ["boot-units"], ["clock"],
        ["clock", "x"],
        ["sockets", "tcp"], ["sockets", "udp"], ["facts", "1"], ["facts", "7"], ["archive", "3000"], ["archive", "1"],
        ["format", "3000", "A" * 22, "3.9"], ["format", "3000", "A" * 21, "3.9"], ["collect", "1", OWNED],
        ["collect", "1", "owned"], ["collect", "1"], ["places", "1", OWNED], ["about"], ["shell"],
        ["about", "--help"], ["allowed"],
    ]  # fmt: skip
    for words, why in zip(lists, refused(fields, lists), strict=True):
        code = call(fields, words, b"x").code
        assert (code in (host_program.NOT_CONFIGURED, host_program.NOT_UNDERSTOOD)) == bool(why), (words, why, code)


@pytest.mark.slow
def test_files_that_the_program_made_in_kafkas_folder_are_taken_again(fields: Room) -> None:
    """Read, copied, replaced and locked, twice each: with the owner and mode that they had."""
    seen = hashlib.sha256(b"broker.id=1\n").hexdigest()
    for _ in range(2):
        for words, stdin in (
            (["read", "1", CONFIG], b""),
            (["keep", "1", CONFIG, BACKUP, seen], b""),
            (["write", "1", CONFIG, seen], b"broker.id=1\n"),
            (["lock", "1", LOCK], b"held"),
            (["try-lock", "1", LOCK], b""),
            (["read", "1", LOCK], b""),
        ):
            done = call(fields, words, stdin)
            assert done.code == 0, (words, done)
    assert fields.must(f"stat -c '%U:%G %a' {CONFIG} {BACKUP}") == "root:kafka 640\n" * 2


# -- links, hard links, pipes ---------------------------------------------------------------------------------------
ASIDE = f"{CONFIG}.kraft-migrate-set-aside-20260101T000000"
INNER = f"{METADATA}/kraft-migrate-aside-20260101T000000"
EXCHANGED = {
    "server.properties": (["read", "1", CONFIG], ["write", "1", CONFIG, SHA], ["rename", "1", CONFIG, ASIDE]),
    "server.properties.kraft-migrate-backup": (
        ["read", "1", BACKUP], ["keep", "1", CONFIG, BACKUP, SHA], ["remove", "1", BACKUP],
    ),
    "server.properties.kraft-migrate-lock": (["lock", "1", LOCK], ["try-lock", "1", LOCK], ["read", "1", LOCK]),
    ".server.properties.kraft-migrate-new": (["write", "1", CONFIG, SHA],),
    ".server.properties.kraft-migrate-backup.kraft-migrate-new": (["keep", "1", CONFIG, BACKUP, SHA],),
}  # fmt: skip
KINDS = {
    "link": "ln -s /etc/canary {}",
    "hard link": "ln /srv/roots/inside {}",
    "link to a folder": "ln -s /etc/canaries {}",
    "pipe": "mkfifo -m 666 {}",
    "dangling link": "ln -s /etc/canaries/made {}",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_kafkas_user_exchanged_leads_nowhere(fields: Room, kind: str) -> None:
    """The file, its copy, its lock and the temporary name, each a link, a second name or a pipe."""
    for name, lists in EXCHANGED.items():
        for words in lists:
            fields.must(f"cd {OWNED}; rm -f {name}; {KINDS[kind].format(name)}")
            done = call(fields, words, b"x")
            harmless = name.endswith("-new") or words[0] in ("rename", "remove")  # the name itself goes, and no more
            assert done.code == 1 or harmless, (name, words, done)


@pytest.mark.slow
def test_a_file_of_roots_in_kafkas_folder_is_neither_shown_nor_changed_under_a_nodes_name(fields: Room) -> None:
    """Kafka's user may give it another name there; he may not read it, and so the program does not."""
    for name, lists in EXCHANGED.items():
        for words in lists:
            if name.endswith("-new") or words[0] in ("rename", "remove"):
                continue  # nothing is read or written there that Kafka's user could not remove himself
            fields.must(f"cd {OWNED}; rm -f {name} keys; cp -p /etc/canary keys")
            moved = fields.run_as(KAFKA, ("mv", "-f", f"{OWNED}/keys", f"{OWNED}/{name}"))
            assert moved.code == 0, moved
            done = call(fields, words, b"x")
            assert done.code == host_program.NOT_CONFIGURED, (name, words, done)
            assert "kafka cannot read it" in done.errors, (name, words, done)
            assert fields.must(f"cat {OWNED}/{name}; stat -c '%U %a' {OWNED}/{name}") == f"{SECRET}\nroot 600\n"


@pytest.mark.slow
@pytest.mark.parametrize("component", [OWNED, f"{OWNED}/deep", METADATA])
def test_a_folder_that_kafkas_user_exchanged_for_a_link_is_not_entered(fields: Room, component: str) -> None:
    """At each place of the path that another user can write."""
    target = {OWNED: "/etc/canaries", METADATA: "/etc/canaries/deep/metadata"}.get(component, "/etc/canaries/deep")
    fields.must(f"rm -rf {component}; ln -s {target} {component}; chown -h kafka {component}; chmod 1777 /srv")
    through = (
        ["read", "1", CONFIG], ["write", "1", CONFIG, SHA], ["lock", "1", LOCK], ["names", "1", OWNED],
        ["archive", "3000"], ["make-directory", "3000", INNER], ["names", "3000", METADATA],
        ["rename", "3000", f"{METADATA}/inside", f"{INNER}/inside"],
    )  # fmt: skip
    for words in through[:4] if component == OWNED else through[4:]:
        assert call(fields, words, b"x").code != 0, words
    call(fields, ["make-directory", "3000", METADATA])


FLIP = """
cd /srv/owned
while :; do
  ln -sf /etc/canary .server.properties.kraft-migrate-new; rm -f .server.properties.kraft-migrate-new
  ln -sf /etc/canary server.properties.kraft-migrate-lock; rm -f server.properties.kraft-migrate-lock
  ln -s /etc/canary x; mv -f x server.properties; rm -f server.properties; echo kafkas >server.properties
  mkdir -p deep; rmdir deep/metadata deep 2>/dev/null; ln -sfn /srv/roots deep; rm -f deep
  mkdir deep; ln -s /srv/roots deep/metadata; rm -f deep/metadata
done
"""


@pytest.mark.slow
def test_names_that_change_all_the_time_give_nothing_of_roots_away(fields: Room) -> None:
    """Kafka's user exchanges file, lock, temporary name and folders for links, some hundred times a second."""
    argv = fields.argv(("sh", "-c", FLIP), KAFKA)
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as flips:
        codes = set()
        try:
            done = threading.Barrier(3)

            def work(words: Sequence[Sequence[str]]) -> None:
                done.wait()
                for _ in range(10):
                    for each in words:
                        codes.add(call(fields, each, b"x").code)

            lists = (
                [["write", "1", CONFIG, SHA], ["read", "1", CONFIG], ["rename", "1", CONFIG, ASIDE]],
                [["lock", "1", LOCK], ["keep", "1", CONFIG, BACKUP, SHA], ["remove", "1", BACKUP]],
                [["make-directory", "3000", METADATA], ["make-directory", "3000", INNER], ["names", "3000", METADATA]],
            )
            threads = [threading.Thread(target=work, args=(words,)) for words in lists]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            flips.kill()
    assert {0, 1} <= codes <= {0, 1, 2, 65, 75}
    assert fields.must("find /srv/roots /etc/canaries -user kafka -o -group kafka") == ""
