"""Which bytes a file goes back to: a copy that leads to what lies there, and nothing else."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Final

import pytest

from migrate.errors import RestoreRefused
from migrate.model.ids import NodeId
from migrate.model.outcome import Ready, Refused, Unknown
from migrate.model.stage import Stage
from migrate.model.views import HostFile, KeptFiles
from migrate.model.world import World
from migrate.steps import configuration
from migrate.steps.rollback.restore import Restored, bytes_of, restorable, to_migration, to_zookeeper
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
    assert restorable(found) == Ready()


def test_a_file_that_is_of_the_mode_already_stays_as_it_is() -> None:
    """Without any copy: there is nothing to restore."""
    assert bytes_of(to_zookeeper(world(), 1, ORIGINAL), 1) == ORIGINAL
    assert bytes_of(to_migration(world(), 1, ROLLED), 1) == ROLLED


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


def test_a_file_that_another_hand_changed_is_refused_with_the_keys_and_without_values() -> None:
    """What was written by nobody we know is not thrown away."""
    lies = KRAFT.replace(b"a-secret-of-the-lab", b"another-secret") + b"num.io.threads=9\n"
    found = to_zookeeper(world(copy(ORIGINAL)), 1, lies)
    assert isinstance(found, Refused)
    assert "num.io.threads" in found.reason
    assert "password.encoder.secret" in found.reason
    assert "another-secret" not in found.reason
    assert "a-secret" not in found.reason
    with pytest.raises(RestoreRefused, match="broker 1"):
        bytes_of(found, 1)


def test_a_comment_that_another_hand_changed_is_refused_too() -> None:
    """The promise is bytes."""
    found = to_zookeeper(world(copy(ORIGINAL)), 1, KRAFT + b"# mine\n")
    assert isinstance(found, Refused)
    assert "comments or order" in found.reason


def test_without_a_copy_nothing_is_made_up() -> None:
    """A file of before is never regenerated; damaged copies and copies of other modes are none."""
    found = to_zookeeper(world(copy(ROLLED), copy(b"\\u00zz=1\n", BESIDE + "-2")), 1, KRAFT)
    assert isinstance(found, Refused)
    assert "no copy of /conf/b1.properties" in found.reason


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
    """Half a way back is none."""
    assert isinstance(to_migration(world(copy(ROLLED)), 1, KRAFT), Refused)
