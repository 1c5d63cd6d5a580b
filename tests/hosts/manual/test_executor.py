"""Hosts that only people may touch: nothing counts that was not seen, and an instruction is given once."""

from __future__ import annotations

import itertools
import json
import stat
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate.errors import CannotBeInstructed, InstructionDamaged, NotTold, PersonCouldNot
from migrate.hosts import leftovers
from migrate.hosts.collected import read_raw
from migrate.hosts.leftovers import BACKUP_SUFFIX
from migrate.hosts.manual import reports
from migrate.hosts.manual.desk import Desk, Instruction
from migrate.hosts.manual.witness import Witness
from migrate.hosts.properties import parse
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import BrokerDisks, MetadataAnswer
from tests.testing import worlds
from tests.testing.person import Bench, NeverSeenError, again, bench, once

BROKER, CONTROLLER = NodeId(0), NodeId(3000)


@pytest.fixture
def hosts(tmp_path: Path) -> Bench:
    """Both hosts, looked at once."""
    found = bench(tmp_path)
    found.look()
    return found


def edited(hosts: Bench) -> bytes:
    """The broker's file as a step would have it."""
    return hosts.files.read(BROKER, hosts.config) + b"controller.quorum.voters=3000@c0:9090\n"


# -- reading -----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_file_is_read_without_its_secrets(hosts: Bench) -> None:
    """Values that are no secrets are whole; the secret is a digest, a comment is left out."""
    raw = hosts.files.read(BROKER, hosts.config)
    values = parse(raw, hosts.config)
    assert b"canary" not in raw
    assert b"token-in" not in raw
    assert values["zookeeper.connect"] == "zk:2181"
    assert values["password.encoder.secret"].startswith("hmac-")


@pytest.mark.slow
def test_no_secret_is_in_any_file_of_ours(hosts: Bench) -> None:
    """Neither in the inbox nor in an instruction, also after a write."""
    hosts.files.write(BROKER, hosts.config, edited(hosts))
    ours = [path for top in ("inbox", "runs") for path in (hosts.root / top).rglob("*") if path.is_file()]
    assert len(ours) > 10
    assert not [path for path in ours if b"canary" in path.read_bytes()]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in ours if hosts.root / "runs" in path.parents)


@pytest.mark.slow
def test_what_was_not_told_is_no_answer(tmp_path: Path) -> None:
    """Before the collector ran nothing is known, and that nothing is there is not known either."""
    found = bench(tmp_path)
    assert isinstance(found.disks.look(BROKER, [str(tmp_path / "d0")], None), Unknown)
    assert isinstance(found.services.state(CONTROLLER), Unknown)
    with pytest.raises(NotTold, match="no answer"):
        found.files.read(BROKER, found.config)
    found.look()
    with pytest.raises(NotTold, match="does not include it"):
        found.files.exists(BROKER, "/somewhere/else")


@pytest.mark.slow
def test_a_file_that_is_not_there_is_told_as_such(hosts: Bench) -> None:
    """The planned controller's."""
    with pytest.raises(FileNotFoundError):
        hosts.files.read(CONTROLLER, str(hosts.root / "conf/c0.properties"))
    assert not hosts.files.exists(BROKER, hosts.config + BACKUP_SUFFIX)
    with pytest.raises(FileNotFoundError):
        hosts.files.read(BROKER, hosts.config + BACKUP_SUFFIX)


@pytest.mark.slow
def test_disks_are_those_of_the_collector(hosts: Bench) -> None:
    """Probed, with their replicas; a directory that it was not asked for makes all of it unknown."""
    places = [str(hosts.root / "d0"), str(hosts.root / "d1")]
    found = hosts.disks.look(BROKER, places, None)
    assert isinstance(found, BrokerDisks)
    assert list(found.directories[0].replicas.topic) == ["t"]
    assert not found.unproven
    assert isinstance(hosts.disks.look(BROKER, [*places, "/elsewhere"], None), Unknown)


# -- writing -----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_an_edit_keeps_what_we_cannot_see(hosts: Bench) -> None:
    """Secret and comment stay byte by byte; the text as planned is what is read afterwards."""
    before = Path(hosts.config).read_bytes()
    content = edited(hosts)
    hosts.files.write(BROKER, hosts.config, content)
    assert Path(hosts.config).read_bytes() == before + b"controller.quorum.voters=3000@c0:9090\n"
    assert hosts.files.read(BROKER, hosts.config) == content


@pytest.mark.slow
def test_a_copy_and_its_rollback_are_byte_by_byte(hosts: Bench) -> None:
    """A backup is a copy on the host; written back, the operator's own bytes are there again."""
    original = Path(hosts.config).read_bytes()
    before = hosts.files.read(BROKER, hosts.config)
    beside = hosts.config + BACKUP_SUFFIX
    hosts.files.write(BROKER, beside, before)
    hosts.files.write(BROKER, hosts.config, edited(hosts))
    assert hosts.files.read(BROKER, beside) == before
    assert Path(beside).name in hosts.files.names(BROKER, str(hosts.root / "conf"))
    hosts.files.write(BROKER, hosts.config, before)
    assert Path(hosts.config).read_bytes() == original


@pytest.mark.slow
def test_a_copy_of_meta_properties_is_one_of_the_hosts_own_file(hosts: Bench) -> None:
    """Its bytes are no secret, and are told as they are."""
    path = str(hosts.root / "d0/meta.properties")
    raw = hosts.files.read(BROKER, path)
    assert raw == Path(path).read_bytes()
    assert not hosts.files.exists(BROKER, path + BACKUP_SUFFIX)
    hosts.files.write(BROKER, path + BACKUP_SUFFIX, raw)
    assert Path(path + BACKUP_SUFFIX).read_bytes() == raw == hosts.files.read(BROKER, path + BACKUP_SUFFIX)


@pytest.mark.slow
def test_lines_are_taken_away_and_changed_where_they_stand(hosts: Bench) -> None:
    """Not only added at the end."""
    raw = hosts.files.read(BROKER, hosts.config)
    content = raw.replace(b"zookeeper.connect=zk:2181\n", b"").replace(
        b"broker.id=0\n", b"node.id=0\nprocess.roles=b\n"
    )
    hosts.files.write(BROKER, hosts.config, content)
    text = Path(hosts.config).read_text()
    assert "zookeeper.connect" not in text
    assert text.splitlines()[1:3] == ["node.id=0", "process.roles=b"]
    assert "canary-1" in text


@pytest.mark.slow
def test_a_secret_is_never_moved_by_a_line_of_ours(hosts: Bench) -> None:
    """A changed line that would hold a digest is refused before anybody is instructed."""
    raw = hosts.files.read(BROKER, hosts.config)
    with pytest.raises(CannotBeInstructed):
        hosts.files.write(BROKER, hosts.config, raw.replace(b"password.encoder.secret", b"other.secret"))
    assert hosts.desk.open() is None


@pytest.mark.slow
@pytest.mark.parametrize("colon", [":", "\\:"], ids=["plain", "escaped"])
def test_a_new_file_takes_secrets_from_the_persons_hand(hosts: Bench, colon: str) -> None:
    """The digest proves that it is the broker's secret, also where it is spelled as java.util.Properties stores it."""
    secret = parse(hosts.files.read(BROKER, hosts.config), "")["password.encoder.secret"].replace(":", colon)
    content = f"node.id=3000\npassword.encoder.secret={secret}\n".encode()
    path = str(hosts.root / "conf/c0.properties")
    hosts.files.write(CONTROLLER, path, content)
    assert Path(path).read_text() == "node.id=3000\npassword.encoder.secret=canary-1\n"
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    assert hosts.files.read(CONTROLLER, path) == content


@pytest.mark.slow
def test_a_file_with_a_placeholder_in_it_is_not_read(hosts: Bench) -> None:
    """It would look like one that holds the right secret."""
    raw = hosts.files.read(BROKER, hosts.config).replace(b":", b"\\:")
    (hosts.root / "conf/c0.properties").write_bytes(raw)
    hosts.look()
    with pytest.raises(NotTold, match="placeholders for secrets"):
        hosts.files.read(CONTROLLER, str(hosts.root / "conf/c0.properties"))


@pytest.mark.slow
@pytest.mark.parametrize("put", ["placeholder", "escaped", "another"])
def test_a_placeholder_or_another_secret_is_no_proof(hosts: Bench, put: str) -> None:
    """The person forgot it, or took the wrong one: the run does not go on."""
    secret = parse(hosts.files.read(BROKER, hosts.config), "")["password.encoder.secret"]
    path = hosts.root / "conf/c0.properties"

    def badly(waiting: Instruction) -> None:
        if hosts.waits > 1:
            return
        once(hosts, waiting)
        written = {"placeholder": secret, "escaped": secret.replace(":", "\\:"), "another": "canary-2"}[put]
        path.write_text(f"password.encoder.secret={written}\n")
        again(hosts, waiting)

    hosts.act = badly
    with pytest.raises(NeverSeenError):
        hosts.files.write(CONTROLLER, str(path), f"password.encoder.secret={secret}\n".encode())
    assert hosts.desk.open() is not None


@pytest.mark.slow
def test_a_file_that_changed_meanwhile_is_not_overwritten(hosts: Bench) -> None:
    """The first command checks what lies there; nothing behind it is run."""
    content = edited(hosts)
    Path(hosts.config).write_text("broker.id=0\nchanged=by somebody\n")
    with pytest.raises(AssertionError, match="sha256sum"):
        hosts.files.write(BROKER, hosts.config, content)
    assert Path(hosts.config).read_text() == "broker.id=0\nchanged=by somebody\n"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["whole", "copy"])
def test_a_file_that_is_replaced_whole_must_be_the_one_that_was_looked_at(hosts: Bench, how: str) -> None:
    """By a text of ours, or by the copy beside it: hours may pass until a person comes, and another hand be first."""
    node, path, content = CONTROLLER, str(hosts.root / "conf/c0.properties"), b"node.id=3001\n"
    if how == "copy":
        node, path, content = BROKER, hosts.config, hosts.files.read(BROKER, hosts.config)
        hosts.files.write(node, path + BACKUP_SUFFIX, content)
    hosts.files.write(node, path, edited(hosts) if how == "copy" else b"node.id=3000\n")
    bent = Path(path).read_bytes() + b"changed=by somebody\n"
    Path(path).write_bytes(bent)
    with pytest.raises(AssertionError, match="sha256sum"):
        hosts.files.write(node, path, content)
    assert Path(path).read_bytes() == bent


@pytest.mark.slow
def test_what_is_neither_file_nor_nothing_is_not_replaced(hosts: Bench) -> None:
    """A folder of that name, or something that the answer does not tell of: nobody is instructed."""
    path = str(hosts.root / "conf/c0.properties")
    Path(path).mkdir()
    Path(path + ".other").write_text("x\n")
    hosts.look()
    with pytest.raises(CannotBeInstructed, match="a folder is there"):
        hosts.files.write(CONTROLLER, path, b"node.id=1\n")
    with pytest.raises(NotTold, match="does not say what it is"):
        hosts.files.write(CONTROLLER, path + ".other", b"node.id=1\n")
    assert hosts.desk.open() is None


@pytest.mark.slow
def test_a_folder_that_could_not_be_listed_is_not_an_empty_one(hosts: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies in it would pass for none."""
    hosts.look()
    answer = hosts.desk.answer(BROKER)
    assert not isinstance(answer, Unknown)
    blind = {path: replace(file, near=None) for path, file in answer.watched.items()}
    monkeypatch.setattr(hosts.desk, "answer", lambda _node: replace(answer, watched=blind))
    with pytest.raises(NotTold):
        hosts.files.names(BROKER, str(hosts.root / "conf"))


@pytest.mark.slow
def test_an_answer_that_is_taken_away_while_it_is_read_is_none(hosts: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run does not end by it."""

    def vanishing(path: str) -> bytes:
        Path(path).unlink()
        return read_raw(path)

    monkeypatch.setattr(reports, "read_raw", vanishing)
    (hosts.root / "inbox/answer-3000.json").touch()
    found = hosts.desk.answer(CONTROLLER)
    assert isinstance(found, Unknown)
    assert "cannot be read" in found.reason


@pytest.mark.slow
def test_an_older_answer_proves_nothing(hosts: Bench) -> None:
    """One that does not echo the instruction's id, however new its file is."""
    hosts.act = lambda _: hosts.look() if hosts.waits == 1 else None
    with pytest.raises(NeverSeenError):
        hosts.files.write(BROKER, hosts.config, edited(hosts))
    with pytest.raises(NotTold, match="no answer"):
        hosts.files.read(BROKER, hosts.config)


@pytest.mark.slow
def test_an_edited_answer_proves_nothing(hosts: Bench) -> None:
    """Its own sum holds it together; the reason is told."""

    def forged(waiting: Instruction) -> None:
        copy = json.loads((hosts.root / "inbox/answer-0.json").read_text())
        copy["body"]["told"]["instruction"] = waiting.id
        (hosts.root / f"inbox/answer-{waiting.id}.json").write_text(json.dumps(copy))

    hosts.act = forged
    with pytest.raises(NeverSeenError):
        hosts.files.write(BROKER, hosts.config, edited(hosts))
    waiting = hosts.desk.open()
    assert waiting is not None
    assert "SHA-256" in hosts.desk.seen(waiting, waiting.proofs[0])


@pytest.mark.slow
def test_setting_aside_and_making_folders_are_seen(hosts: Bench) -> None:
    """By the collector, at both names."""
    meta = hosts.root / "meta"
    hosts.files.make_directory(CONTROLLER, str(meta))
    assert meta.is_dir()
    count = len(hosts.done)
    hosts.files.make_directory(CONTROLLER, str(meta))
    assert len(hosts.done) == count, "what is there is not asked for again"
    for name in ("meta.properties", "bootstrap.checkpoint"):
        (meta / name).write_text("x")
    (meta / "__cluster_metadata-0").mkdir()
    (meta / "lost+found").mkdir()
    new = f"{meta}/kraft-migrate-aside-20260101T000000"
    leftovers.set_metadata_aside(hosts.files, CONTROLLER, str(meta), new, lambda _: None)
    assert len(hosts.done) == count + 1, "one instruction for all of it"
    assert sorted(entry.name for entry in Path(new).iterdir()) == [
        "__cluster_metadata-0",
        "bootstrap.checkpoint",
        "meta.properties",
    ]
    assert sorted(entry.name for entry in meta.iterdir()) == ["kraft-migrate-aside-20260101T000000", "lost+found"]
    hosts.files.rename(CONTROLLER, new, f"{meta}/other")
    assert not hosts.files.exists(CONTROLLER, new)
    assert hosts.files.exists(CONTROLLER, f"{meta}/other")


# -- refusals and kills ------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_person_may_say_could_not(hosts: Bench) -> None:
    """The run stops with the reason; the same effect is instructed anew, and what is there is unknown until told."""
    content = edited(hosts)
    hosts.act = refuses("the disk\nis full")
    with pytest.raises(PersonCouldNot, match="the disk is full") as caught:
        hosts.files.write(BROKER, hosts.config, content)
    assert caught.value.id == "E-MAN-01"
    assert "b0.example" in caught.value.where
    assert hosts.desk.open() is None
    with pytest.raises(NotTold, match="no answer"):
        hosts.files.read(BROKER, hosts.config)
    again_answered(hosts)
    hosts.act = lambda waiting: once(hosts, waiting)
    hosts.files.write(BROKER, hosts.config, content)
    assert [one.closed for one in hosts.desk.all()] == ["could-not", "observed"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"{", b"[]", b"{}", b"[" * 100_000, b"\xff"),
        *({"node": 2**40}, {"number": 1e30}, {"proofs": {}}, {"proofs": [{"x": "y"}]}, {"more": 1}, {"id": 7}),
        *({"number": 10**400}, {"answer": "yes"}, {"proofs": [{"kind": 3}]}),
    ],
    ids=itertools.count(),
)
def test_a_damaged_instruction_is_named(hosts: Bench, raw: bytes | dict[str, object]) -> None:
    """A file of ours that is not what was rendered: with its folder, before anything is asked of a person."""
    hosts.files.write(BROKER, hosts.config, edited(hosts))
    file = hosts.desk.all()[-1].folder / "instruction.json"
    file.write_bytes(raw if isinstance(raw, bytes) else json.dumps({**json.loads(file.read_bytes()), **raw}).encode())
    with pytest.raises(InstructionDamaged) as caught:
        hosts.desk.all()
    assert caught.value.where == str(file.parent)


@pytest.mark.slow
@pytest.mark.parametrize("raw", [b"", b"{}", b"[" * 100_000, b'{"how": 3}'])
def test_a_damaged_end_of_an_instruction_is_named(hosts: Bench, raw: bytes) -> None:
    """Whether it is open is not guessed."""
    hosts.files.write(BROKER, hosts.config, edited(hosts))
    (hosts.desk.all()[-1].folder / "closed.json").write_bytes(raw)
    with pytest.raises(InstructionDamaged):
        hosts.desk.open()


def refuses(reason: str) -> Callable[[Instruction], None]:
    """A person who writes why it could not be done."""

    def refuse(waiting: Instruction) -> None:
        (waiting.folder / "could-not").write_text(reason)

    return refuse


def again_answered(hosts: Bench) -> None:
    """The person runs the collector of the refused instruction all the same."""
    refused = hosts.desk.all()[-1]
    copy = hosts.root / "host" / refused.folder.name
    subprocess.run(["cp", "-r", str(refused.folder), str(copy)], check=True)
    again(hosts, refused)


@pytest.mark.slow
def test_a_killed_run_goes_on_at_the_same_instruction(hosts: Bench) -> None:
    """Nothing is rendered twice, and what the person did meanwhile counts."""
    content = edited(hosts)

    def killed(_: Instruction) -> None:
        raise KeyboardInterrupt

    hosts.act = killed
    with pytest.raises(KeyboardInterrupt):
        hosts.files.write(BROKER, hosts.config, content)
    waiting = hosts.desk.open()
    assert waiting is not None
    hosts.follow(waiting.folder)
    later = Desk(hosts.desk.inventory, hosts.network, hosts.worked)
    later.resume()
    assert later.open() is None
    assert len(later.all()) == 1
    assert hosts.files.read(BROKER, hosts.config) == content


@pytest.mark.slow
def test_another_effect_waits_for_the_open_one_first(hosts: Bench) -> None:
    """At most one instruction is open: what a killed run left comes first, whatever is asked now."""

    def killed(_: Instruction) -> None:
        raise KeyboardInterrupt

    hosts.act = killed
    with pytest.raises(KeyboardInterrupt):
        hosts.files.make_directory(CONTROLLER, str(hosts.root / "meta"))
    hosts.act = refuses("no")
    with pytest.raises(PersonCouldNot):
        hosts.files.write(BROKER, hosts.config, edited(hosts))
    assert [one.effect for one in hosts.desk.all()] == ["make-directory"]


NODE = NodeId(0)
NAMING = MetadataAnswer((0,), (0, 1, 2), 6, ())
WITHOUT = MetadataAnswer((1,), (1, 2), 6, ())


@pytest.fixture
def witness(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Witness]:
    """A witness to whom brokers 1 and 2 say that."""

    def made(first: Any, second: Any) -> Witness:
        world = worlds.world_at(Stage.COPY)
        said = {NODE: NAMING, NodeId(1): first, NodeId(2): second}
        seen = replace(worlds.live(world), metadata=said)
        monkeypatch.setattr("migrate.hosts.manual.witness.live.look", lambda *_, **__: seen)
        return Witness(world.inventory)

    return made


def test_nobody_names_it(witness: Callable[..., Witness]) -> None:
    """What it says itself does not count; one that does not answer names nobody."""
    assert witness(WITHOUT, WITHOUT).named_by(NODE) == ""
    assert witness(WITHOUT, Unknown("refused")).named_by(NODE) == ""


def test_whoever_names_it_is_told(witness: Callable[..., Witness]) -> None:
    """And that no metadata says otherwise."""
    assert witness(NAMING, WITHOUT).named_by(NODE).startswith("brokers [1] still name it")


@pytest.mark.parametrize(("fenced", "gone"), [(True, True), (False, False), (Unknown("no controller answers"), False)])
def test_in_dual_write_a_fenced_registration_is_enough(
    witness: Callable[..., Witness], fenced: bool | Unknown, gone: bool
) -> None:
    """Brokers of ZooKeeper mode go on naming it there; what is unknown is no proof."""
    seen = witness(NAMING, NAMING)
    seen.fenced = lambda node: fenced if node == NODE else Unknown("another one was asked about")
    assert (seen.named_by(NODE) == "") is gone


def test_where_nobody_answers_nothing_is_proven(witness: Callable[..., Witness]) -> None:
    """Not even by the metadata: a network that is cut looks the same."""
    seen = witness(Unknown("refused"), Unknown("refused"))
    seen.fenced = lambda _: True
    assert "it is unknown whether it is registered" in seen.named_by(NODE)
