"""Which bytes a file goes back to: a copy that leads to the file as it is, or its keys where that was edited since."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given, strategies

from migrate.errors import RestoreRefused
from migrate.hosts.properties import edit, parse, restore_keys
from migrate.model.ids import NodeId
from migrate.model.inventory import KraftAuthorizer
from migrate.model.outcome import Refused, Unknown
from migrate.model.stage import Stage
from migrate.model.views import HostFile, KeptFiles
from migrate.model.world import World
from migrate.steps import configuration
from migrate.steps.restore import (
    Restored,
    Written,
    bytes_of,
    to_flagged,
    to_migration,
    to_protocol,
    to_zookeeper,
)
from tests.testing import worlds

KNOWN: Final = worlds.inventory()
NODE: Final = KNOWN.brokers[1]
ORIGINAL: Final = worlds.BROKER_FILE.format(id=1).encode()
ROLLED: Final = configuration.migration_mode(ORIGINAL, KNOWN)
KRAFT: Final = configuration.kraft_mode(ROLLED, KNOWN, NODE)
BESIDE: Final = "/conf/b1.properties.kraft-migrate-backup"


def copy(raw: bytes, path: str = BESIDE) -> HostFile:
    """A copy beside the file."""
    return HostFile(path, raw, hashlib.sha256(raw).hexdigest())


def world(*copies: HostFile) -> World:
    """A world in which broker 1 has these copies."""
    found = worlds.world_at(Stage.HYBRID)
    return replace(found, backups={NodeId(1): KeptFiles(copies, ())})


@pytest.mark.parametrize("lies", [ROLLED, KRAFT], ids=["migration", "kraft"])
def test_the_original_is_the_copy_that_leads_to_the_file(lies: bytes) -> None:
    """To the byte, whichever roll the file has been through."""
    found = to_zookeeper(world(copy(ORIGINAL)), 1, lies)
    assert isinstance(found, Restored)
    assert found.raw == ORIGINAL
    assert BESIDE in found.source


def test_a_file_that_is_of_the_mode_already_stays_as_it_is() -> None:
    """Without any copy: there is nothing to restore."""
    assert bytes_of(to_zookeeper(world(), 1, ORIGINAL), 1) == ORIGINAL
    assert bytes_of(to_migration(world(), 1, ROLLED), 1) == ROLLED


@pytest.mark.parametrize(
    ("lies", "gone", "says"),
    [
        (ROLLED, "zookeeper.metadata.migration.enable", "controller.listener.names is set"),
        (KRAFT, "process.roles", "controller.listener.names is set, zookeeper.connect is missing"),
    ],
)
def test_a_file_that_a_person_took_half_out_of_its_mode_is_none_to_start_with(
    lies: bytes, gone: str, says: str
) -> None:
    """Kafka's ZooKeeper mode does not start with it, so that the broker would be stopped for good."""
    half = edit(lies, {}, [gone])
    found = to_zookeeper(world(copy(ORIGINAL)), 1, half)
    assert isinstance(found, Refused)
    assert says in found.reason


def test_of_several_attempts_the_copy_of_this_one_is_found() -> None:
    """An earlier migration's original lies there too, and leads elsewhere."""
    earlier = copy(ORIGINAL.replace(b"min.insync.replicas=2", b"min.insync.replicas=1"))
    found = to_zookeeper(world(earlier, copy(ORIGINAL, BESIDE + "-12345678")), 1, KRAFT)
    assert bytes_of(found, 1) == ORIGINAL


def test_two_copies_that_lead_to_one_file_are_not_chosen_between() -> None:
    """They differ in what a KRaft file does not have: which of them was the original is nobody's guess."""
    other = ORIGINAL.replace(b"zk1:2181/kafka", b"zk2:2181/kafka")
    found = to_zookeeper(world(copy(ORIGINAL), copy(other, BESIDE + "-12345678")), 1, KRAFT)
    assert isinstance(found, Refused)
    assert BESIDE in found.reason
    assert "12345678" in found.reason


def test_the_same_copy_twice_is_one() -> None:
    """The same content under two names is no question."""
    assert bytes_of(to_zookeeper(world(copy(ORIGINAL), copy(ORIGINAL, BESIDE + "-1")), 1, KRAFT), 1) == ORIGINAL


@pytest.mark.parametrize("made", [ROLLED, KRAFT], ids=["migration", "kraft"])
def test_a_file_that_was_edited_since_goes_back_key_by_key_and_keeps_what_was_edited(made: bytes) -> None:
    """A comment, an added key, a changed one and a removed one; what the migration set and removed goes back."""
    edited = made.replace(b"min.insync.replicas=2\n", b"# by hand\nlog.cleaner.threads=2\n")
    edited = edited.replace(b"a-secret-of-the-lab", b"another-secret")
    found = to_zookeeper(world(copy(ORIGINAL)), 1, edited)
    assert isinstance(found, Restored)
    assert found.raw == ORIGINAL.replace(b"min.insync.replicas=2\n", b"# by hand\nlog.cleaner.threads=2\n").replace(
        b"a-secret-of-the-lab", b"another-secret"
    )
    assert found.edited == ("log.cleaner.threads", "min.insync.replicas", "password.encoder.secret")
    assert "key by key: " in found.source
    assert "zookeeper.metadata.migration.enable" in found.source or made is KRAFT
    assert "log.cleaner.threads" in found.note
    shown = "\n".join(found.kept)
    assert "+log.cleaner.threads=2" in shown
    assert "-min.insync.replicas=2" in shown
    assert "secret-of-the-lab" not in shown
    assert "another-secret" not in shown


def test_a_comment_alone_is_kept_too() -> None:
    """And the plan says that no key differs."""
    found = to_zookeeper(world(copy(ORIGINAL)), 1, KRAFT + b"# mine\n")
    assert isinstance(found, Restored)
    assert found.raw == ORIGINAL + b"# mine\n"
    assert found.edited == ()
    assert "comments or order alone" in found.note


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        (b"CTL:PLAINTEXT", b"CTL:SSL", "listener.security.protocol.map"),
        (b"metadata.authorizer.StandardAuthorizer", b"metadata.authorizer.OtherAuthorizer", "authorizer.class.name"),
        (b"node.id=1", b"node.id=7", "node.id"),
    ],
)
def test_a_key_of_the_migrations_own_with_a_third_value_is_refused_by_name(
    before: bytes, after: bytes, named: str
) -> None:
    """Neither the value from before nor the one that was written: nobody knows what ZooKeeper mode is to have."""
    assert before in KRAFT
    found = to_zookeeper(world(copy(ORIGINAL)), 1, KRAFT.replace(before, after) + b"num.io.threads=9\n")
    assert isinstance(found, Refused)
    assert f"and {named} has neither" in found.reason
    assert "num.io.threads" not in found.reason
    with pytest.raises(RestoreRefused, match="broker 1"):
        bytes_of(found, 1)


def test_a_key_that_a_person_set_back_already_stays_so() -> None:
    """The value from before is where it goes anyway."""
    edited = KRAFT.replace(b"metadata.authorizer.StandardAuthorizer", b"security.authorizer.AclAuthorizer").replace(
        b"org.apache.kafka.security", b"kafka.security"
    )
    assert edited != KRAFT
    assert bytes_of(to_zookeeper(world(copy(ORIGINAL)), 1, edited), 1) == ORIGINAL


@pytest.mark.parametrize("made", [ROLLED, KRAFT], ids=["migration", "kraft"])
def test_other_controllers_in_the_inventory_are_no_dead_end(made: bytes) -> None:
    """Keys that mean nothing in ZooKeeper mode are taken out, whoever the controllers are today."""
    moved = replace(KNOWN, controllers=(*KNOWN.controllers[:2], replace(KNOWN.controllers[2], address="c9:9090")))
    found = to_zookeeper(replace(world(copy(ORIGINAL)), inventory=moved), 1, made)
    assert bytes_of(found, 1) == ORIGINAL
    assert isinstance(found, Restored)
    assert found.edited == ("controller.quorum.voters",)


def test_the_copy_that_proves_the_keys_is_taken_and_another_one_does_not_matter() -> None:
    """An earlier migration's original has another super user; both have the same keys where they are compared."""
    earlier = copy(ORIGINAL.replace(b"User:admin", b"User:nobody"))
    found = to_zookeeper(world(earlier, copy(ORIGINAL, BESIDE + "-12345678")), 1, KRAFT + b"num.io.threads=9\n")
    assert bytes_of(found, 1) == ORIGINAL + b"num.io.threads=9\n"


def test_two_copies_that_give_the_keys_other_values_are_not_chosen_between() -> None:
    """The KRaft file does not have the key: either may be the original's."""
    other = ORIGINAL.replace(b"zk1:2181/kafka", b"zk2:2181/kafka")
    copies = (copy(ORIGINAL), copy(other, BESIDE + "-12345678"))
    found = to_zookeeper(world(*copies), 1, KRAFT + b"num.io.threads=9\n")
    assert isinstance(found, Refused)
    assert "all lead" in found.reason


def test_a_flag_that_was_written_into_a_kraft_file_is_no_way_to_zookeeper_mode() -> None:
    """The migration has no such key there, so it would stay, and the broker would start in migration mode."""
    found = to_zookeeper(world(copy(ORIGINAL)), 1, KRAFT + b"zookeeper.metadata.migration.enable=true\n")
    assert isinstance(found, Refused)
    assert "is no file of zookeeper mode" in found.reason


def test_a_key_that_the_original_had_itself_is_refused_with_a_third_value() -> None:
    """The original's controllers were somebody's: the value of neither is not ours to replace."""
    own = ORIGINAL + b"controller.quorum.voters=1@other:9090\n"
    rolled = configuration.migration_mode(own, KNOWN)
    voters = KNOWN.voters.encode()
    assert voters in rolled
    found = to_zookeeper(world(copy(own)), 1, rolled.replace(voters, b"2@third:9090"))
    assert isinstance(found, Refused)
    assert "and controller.quorum.voters has neither" in found.reason


def test_the_class_that_decides_about_rights_goes_back_with_the_file() -> None:
    """By the playbook that wrote it; by another one the file is not guessed at, also where it was edited since."""
    own = edit(ORIGINAL, {"authorizer.class.name": "org.example.Zookeepers"}, ())
    rolled = configuration.migration_mode(own, KNOWN)
    successor = KraftAuthorizer("org.example.Krafts", {"krafts.url": "u"})
    kraft = configuration.kraft_mode(rolled, KNOWN, NODE, successor)
    seen = world(copy(own), copy(rolled, BESIDE + "-12345678"))
    assert not isinstance(seen.playbook, Unknown)
    named = replace(seen, playbook=replace(seen.playbook, kraft_authorizer=successor))
    for lies in (kraft, kraft + b"log.cleaner.threads=2\n"):
        back, half = to_zookeeper(named, 1, lies), to_migration(named, 1, lies)
        assert parse(bytes_of(back, 1))["authorizer.class.name"] == "org.example.Zookeepers"
        assert parse(bytes_of(half, 1))["authorizer.class.name"] == "org.example.Zookeepers"
        assert b"krafts.url" not in bytes_of(back, 1) + bytes_of(half, 1)
        for other in (seen, replace(seen, playbook=Unknown("none was given"))):
            for found in (to_zookeeper(other, 1, lies), to_migration(other, 1, lies)):
                assert isinstance(found, Refused)
                assert "and authorizer.class.name has neither" in found.reason


def test_the_refusal_names_the_copy_that_is_closest() -> None:
    """With its keys alone: another copy has more of them, and says nothing of this file."""
    other = copy(ORIGINAL.replace(b"CLIENT:SASL_PLAINTEXT", b"CLIENT:SSL"), BESIDE + "-12345678")
    edited = KRAFT.replace(b"node.id=1", b"node.id=7")
    for copies in ((copy(ORIGINAL), other), (other, copy(ORIGINAL))):
        found = to_zookeeper(world(*copies), 1, edited)
        assert isinstance(found, Refused)
        assert f"wrote it from {BESIDE}, and node.id has neither" in found.reason


TWICE: Final = ORIGINAL + b"controller.listener.names=A\ncontroller.listener.names=B\n"  # neither roll can edit it
ROLLED_ONCE: Final = ORIGINAL + b"node.id=1\nnode.id=2\n"  # the first roll can, the second one cannot


def test_copies_that_no_roll_can_edit_prove_nothing_and_bar_nothing() -> None:
    """A key that appears twice: such a file never went forward."""
    found = to_zookeeper(world(copy(TWICE)), 1, KRAFT)
    assert isinstance(found, Refused)
    assert "can be rolled forward to the mode that it has now" in found.reason
    edited = KRAFT + b"num.io.threads=9\n"
    seen = world(copy(ORIGINAL), copy(TWICE, BESIDE + "-1"), copy(ROLLED_ONCE, BESIDE + "-2"))
    assert bytes_of(to_migration(seen, 1, edited), 1) == ROLLED + b"num.io.threads=9\n"


def test_an_edited_file_goes_to_migration_mode_only_where_that_rolls_keys_are_proven_too() -> None:
    """The flag has a value of neither mode: ZooKeeper mode takes it out, migration mode cannot tell."""
    edited = KRAFT + b"zookeeper.metadata.migration.enable=false\n"
    assert isinstance(to_zookeeper(world(copy(ORIGINAL)), 1, edited), Restored)
    found = to_migration(world(copy(ORIGINAL)), 1, edited)
    assert isinstance(found, Refused)
    assert "zookeeper.metadata.migration.enable has neither" in found.reason


def test_other_line_ends_count_as_an_edit() -> None:
    """No line differs in what is shown, and the file still is not the one that the migration wrote."""
    found = to_zookeeper(world(copy(ORIGINAL)), 1, KRAFT.replace(b"\n", b"\r\n"))
    assert isinstance(found, Restored)
    assert parse(found.raw) == parse(ORIGINAL)
    assert found.note == "edited since the migration wrote it, and kept: comments or order alone"


EARLIER: Final = ORIGINAL.replace(b"protocol.version=3.9", b"protocol.version=3.8")


def test_a_copy_of_an_earlier_protocol_version_is_no_original_of_a_migration() -> None:
    """Both would lead to the file of KRaft mode, which has no such key: B-VER-02 says with which one it began."""
    seen = world(copy(EARLIER), copy(ORIGINAL, BESIDE + "-1"))
    assert bytes_of(to_zookeeper(seen, 1, KRAFT), 1) == ORIGINAL
    assert bytes_of(to_migration(seen, 1, KRAFT), 1) == ROLLED
    assert isinstance(to_zookeeper(world(copy(EARLIER)), 1, KRAFT), Refused)


def test_the_file_from_before_the_protocol_was_raised_is_the_copy_that_leads_to_it() -> None:
    """To the byte; of one that was edited since the key alone; a file that never was raised stays as it is."""
    seen = world(copy(EARLIER), copy(ORIGINAL, BESIDE + "-1"))
    assert bytes_of(to_protocol(seen, 1, ORIGINAL), 1) == EARLIER
    assert bytes_of(to_protocol(seen, 1, EARLIER), 1) == EARLIER
    assert bytes_of(to_protocol(seen, 1, ORIGINAL + b"num.io.threads=9\n"), 1) == EARLIER + b"num.io.threads=9\n"
    assert bytes_of(to_protocol(world(copy(ORIGINAL)), 1, ORIGINAL), 1) == ORIGINAL


def test_without_the_one_copy_from_before_the_protocol_was_raised_nothing_is_restored() -> None:
    """None, two of them, or copies that were not seen."""
    older = copy(EARLIER.replace(b"3.8", b"3.7"), BESIDE + "-1")
    assert isinstance(to_protocol(world(), 1, ORIGINAL), Refused)
    found = to_protocol(world(copy(EARLIER), older), 1, ORIGINAL)
    assert isinstance(found, Refused)
    assert "move away those that are not the original" in found.reason
    assert isinstance(to_protocol(replace(world(), backups=Unknown("hidden")), 1, ORIGINAL), Unknown)


def test_a_note_lists_eight_keys_and_counts_the_rest() -> None:
    """All of them up to that number."""
    names = tuple(f"key.{number}" for number in range(9))
    assert Restored(b"", "", names[:8], ("a line",)).note.endswith("key.6, key.7")
    assert Restored(b"", "", names, ("a line",)).note.endswith("key.7 and 1 more")


FLAGGED: Final = configuration.controller(parse(ORIGINAL), KNOWN, KNOWN.controllers[0])
FLAGLESS: Final = configuration.finalized_controller(FLAGGED)


def test_a_controllers_file_goes_back_to_the_one_copy_that_finalize_made_it_of() -> None:
    """Of two that lead to it neither is taken, and of none nothing is made up."""

    def with_copies(*copies: HostFile) -> World:
        return replace(world(), backups={NodeId(3000): KeptFiles(copies, ())})

    assert bytes_of(to_flagged(with_copies(copy(FLAGGED)), 3000, FLAGLESS), 3000) == FLAGGED
    other = copy(FLAGGED.replace(b"zk1", b"zk2"), BESIDE + "-1")
    two = to_flagged(with_copies(copy(FLAGGED), other), 3000, FLAGLESS)
    assert isinstance(two, Refused)
    assert "all lead to the current file" in two.reason
    none = to_flagged(with_copies(copy(FLAGGED + b"num.io.threads=9\n")), 3000, FLAGLESS)
    assert none == Refused("no copy of controller 3000's file with the flag leads to the one there")


def test_a_migrations_key_that_stands_twice_is_refused() -> None:
    """Which of the two a person meant is not ours to say."""
    found = to_zookeeper(world(copy(ORIGINAL)), 1, KRAFT + b"listener.security.protocol.map=A:PLAINTEXT\n")
    assert isinstance(found, Refused)


def test_an_edited_file_goes_back_to_migration_mode_and_from_there_on() -> None:
    """Both rolls of a rollback, with what was edited in each; ordinary keys stay, and the end is ZooKeeper mode."""
    edited = KRAFT + b"# by hand\nlog.cleaner.threads=2\n"
    seen = world(copy(ORIGINAL), copy(ROLLED, BESIDE + "-87654321"))
    first = to_migration(seen, 1, edited)
    assert isinstance(first, Restored)
    assert parse(first.raw) == {**parse(ROLLED), "log.cleaner.threads": "2"}
    assert first.edited == ("log.cleaner.threads",)
    second = to_zookeeper(seen, 1, first.raw)
    assert bytes_of(second, 1) == ORIGINAL + b"# by hand\nlog.cleaner.threads=2\n"
    refused = KRAFT.replace(b"node.id=1", b"node.id=7") + b"num.io.threads=9\n"
    assert isinstance(to_migration(seen, 1, refused), Refused)


ORDINARY: Final = ("log.cleaner.threads", "num.io.threads", "background.threads", "auto.create.topics.enable", "x.y")
WORDS: Final = strategies.text(alphabet="abcXYZ019 :=#!,;/-", max_size=12).map(str.strip)
LINES: Final = strategies.one_of(
    strategies.builds(lambda text: f"# {text}".encode(), WORDS),
    strategies.just(b""),
    strategies.builds(lambda text: b"  " + text.encode(), strategies.sampled_from(["spaced.a = 1", "spaced.b : x y"])),
)


@strategies.composite
def originals(draw: strategies.DrawFn) -> bytes:
    """A broker's file in any order, with ordinary keys, comments and blank lines, with or without a last line end."""
    lines = ORIGINAL.splitlines()
    lines += [f"{key}={draw(WORDS)}".encode() for key in draw(strategies.sets(strategies.sampled_from(ORDINARY)))]
    lines += draw(strategies.lists(LINES, max_size=5, unique_by=lambda line: line.strip()[:9]))
    end = draw(strategies.sampled_from([b"\n", b"\r\n"]))
    return end.join(draw(strategies.permutations(lines))) + (end if draw(strategies.booleans()) else b"")


@pytest.mark.slow
@given(originals(), strategies.booleans())
def test_where_nothing_else_changed_key_by_key_is_the_copy_to_the_byte(original: bytes, kraft: bool) -> None:
    """The rule for edited files and the rule for untouched ones agree."""
    rolled = configuration.migration_mode(original, KNOWN)
    made = configuration.kraft_mode(rolled, KNOWN, NODE) if kraft else rolled
    owned = Written(copy(original), original, made).owned
    assert restore_keys(made, original, owned) == original
    assert bytes_of(to_zookeeper(world(copy(original)), 1, made), 1) == original


@pytest.mark.slow
@given(
    originals(), strategies.booleans(), strategies.dictionaries(strategies.sampled_from(ORDINARY), WORDS, min_size=1)
)
def test_ordinary_keys_that_were_edited_stay_and_all_others_go_back(
    original: bytes, kraft: bool, edits: dict[str, str]
) -> None:
    """By values, whatever was edited, over both rolls."""
    rolled = configuration.migration_mode(original, KNOWN)
    made = configuration.kraft_mode(rolled, KNOWN, NODE) if kraft else rolled
    edited = edit(made, edits, ())
    seen = world(copy(original))
    first = bytes_of(to_migration(seen, 1, edited), 1)
    assert parse(first) == {**parse(rolled), **edits}
    assert parse(bytes_of(to_zookeeper(seen, 1, first), 1)) == {**parse(original), **edits}


def test_without_a_copy_nothing_is_made_up() -> None:
    """A file of before is never regenerated; damaged copies and copies of other modes are none."""
    found = to_zookeeper(world(copy(ROLLED), copy(b"\\u00zz=1\n", BESIDE + "-2")), 1, KRAFT)
    assert isinstance(found, Refused)
    assert "no copy of /conf/b1.properties" in found.reason
    assert "Put the file of ZooKeeper mode from your own backup to" in found.reason


def test_copies_that_cannot_be_seen_are_unknown() -> None:
    """Not looked at, or not readable."""
    blind = replace(world(), backups=Unknown("not asked for"))
    hidden = replace(world(), backups={NodeId(1): Unknown("permission denied")})
    assert to_zookeeper(blind, 1, KRAFT) == Unknown("not asked for")
    assert to_zookeeper(hidden, 1, KRAFT) == Unknown("permission denied")
    assert isinstance(to_zookeeper(replace(world(), backups={}), 1, KRAFT), Unknown)


def test_back_to_migration_mode_the_copy_of_before_the_second_roll_is_taken() -> None:
    """It is the file itself; the original must lead to it, for the next step goes back to that one."""
    rolled = copy(ROLLED, BESIDE + "-87654321")
    found = to_migration(world(copy(ORIGINAL), rolled), 1, KRAFT)
    assert found == Restored(ROLLED, f"the copy {rolled.path} (SHA-256 {rolled.sha256[:12]})")


def test_without_that_copy_it_is_what_the_first_roll_made_of_the_original() -> None:
    """The same bytes, and the plan says where they come from."""
    found = to_migration(world(copy(ORIGINAL)), 1, KRAFT)
    assert isinstance(found, Restored)
    assert found.raw == ROLLED
    assert "with what migration mode adds" in found.source


def test_back_to_migration_mode_the_original_must_be_there() -> None:
    """Half a rollback is none."""
    assert isinstance(to_migration(world(copy(ROLLED)), 1, KRAFT), Refused)


def test_a_key_of_the_migration_that_a_person_wrote_in_another_way_has_the_same_value() -> None:
    """Kafka reads the same of it, so it is no third value; what is not the migration's stays as it was repaired."""
    rewritten = KRAFT.replace(b",CTL:PLAINTEXT", b", ctl:PLAINTEXT ,").replace(b"node.id=1", b"node.id=01")
    assert parse(rewritten)["node.id"] == "01"
    found = to_zookeeper(world(copy(ORIGINAL)), 1, rewritten + b"num.io.threads=9\n")
    assert isinstance(found, Restored), found
    assert parse(found.raw) == parse(ORIGINAL) | {"num.io.threads": "9"}
