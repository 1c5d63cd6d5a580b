"""A fleet's file names each cluster once, by exactly one thing."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.errors import DocumentInvalid
from migrate.model.inventory import Member, Target
from migrate.playbook.load import load_fleet

HEAD = "apiVersion: kraft-migrate/v1\nkind: Fleet\nmetadata: {name: all}\nspec:\n  clusters:\n"


def written(folder: Path, *clusters: str) -> Path:
    """A file with those clusters."""
    path = folder / "fleet.yaml"
    path.write_text(HEAD + "".join(f"    - {cluster}\n" for cluster in clusters))
    return path


def test_paths_are_beside_the_file_and_a_zookeeper_stays_as_it_is(tmp_path: Path) -> None:
    """In the file's order."""
    path = written(
        tmp_path,
        "{name: a, inventory: a/inventory.yaml}",
        "{name: b, inventory: ../b.yaml}",
        "{name: c, zookeeper: 'zk1:2181,zk2:2181/kafka'}",
        "{name: d, bundle: /kept/d.bundle}",
        "{name: e, bundle: 's3://kept/e.bundle?region=eu-west-1'}",
    )
    fleet = load_fleet(path)
    assert (fleet.name, fleet.path) == ("all", str(path))
    assert fleet.members == (
        Member("a", Target.INVENTORY, str(tmp_path / "a" / "inventory.yaml")),
        Member("b", Target.INVENTORY, str(tmp_path.parent / "b.yaml")),
        Member("c", Target.ZOOKEEPER, "zk1:2181,zk2:2181/kafka"),
        Member("d", Target.BUNDLE, "/kept/d.bundle"),
        Member("e", Target.BUNDLE, "s3://kept/e.bundle?region=eu-west-1"),
    )


@pytest.mark.parametrize(
    ("clusters", "line", "said"),
    [
        (("{name: a}",), 6, "'a' is named by nothing"),
        (("{name: a, inventory: i, bundle: b}",), 6, "'a' is named by inventory and bundle"),
        (("{name: a, bundle: b}", "{name: a, bundle: c}"), 7, "'a' appears twice"),
        (("{name: a, zookeeper: no_where:0}",), 6, "has no port from 1 to 65535"),
        (("{bundle: b}",), 6, "name is missing"),
        (("{name: a, files: {zookeeper: z, metadata: m}}",), 6, "files"),
        (("{name: a, bundel: b}",), 6, "bundel"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(clusters: tuple[str, ...], line: int, said: str, tmp_path: Path) -> None:
    """And nothing is guessed."""
    with pytest.raises(DocumentInvalid) as caught:
        load_fleet(written(tmp_path, *clusters))
    assert any(said in str(problem) for problem in caught.value.problems), caught.value.problems
    assert f"fleet.yaml:{line}:" in caught.value.where


def test_a_fleet_of_none_is_refused(tmp_path: Path) -> None:
    """An answer about no cluster would look like a good one."""
    path = tmp_path / "fleet.yaml"
    path.write_text(HEAD.rstrip() + " []\n")
    with pytest.raises(DocumentInvalid):
        load_fleet(path)


def test_the_container_of_a_storage_account_is_no_user(tmp_path: Path) -> None:
    """Azure writes it before the host."""
    uri = "abfss://container@account.dfs.core.windows.net/a.bundle?credential_kind=default"
    (member,) = load_fleet(written(tmp_path, f"{{name: a, bundle: '{uri}'}}")).members
    assert member.where == uri


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ("{name: a, inventory: 's3://kept/a.yaml'}", "a path is expected, not a URI"),
        ("{name: a, bundle: 's3://key:secret@kept/a'}", "a URI names a user"),
        ("{name: a, bundle: 'abfs://c:secret@account.net/a'}", "a URI names a user"),
        ("{name: a, bundle: 'abfs://c@h/a?client_secret=x'}", "a URI has a secret"),
    ],
)
def test_a_uri_elsewhere_and_one_with_credentials_are_refused(tmp_path: Path, cluster: str, words: str) -> None:
    """Bundles alone are copied from a store, and a fleet's file is handed around."""
    with pytest.raises(DocumentInvalid) as raised:
        load_fleet(written(tmp_path, cluster))
    assert words in str(raised.value)
