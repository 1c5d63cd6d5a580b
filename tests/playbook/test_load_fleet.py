"""A fleet's file names each cluster once, by exactly one thing."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.errors import DocumentInvalid
from migrate.model.inventory import FilePair, Member, Target
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
        "{name: b, playbook: ../b.yaml}",
        "{name: c, zookeeper: 'zk1:2181,zk2:2181/kafka'}",
        "{name: d, bundle: /kept/d.bundle}",
        "{name: e, files: {zookeeper: e/data, metadata: /m}}",
        "{name: f, files: {zookeeper: d, zookeeperLog: /log, chroot: /kafka, metadata: m}}",
    )
    fleet = load_fleet(path)
    assert (fleet.name, fleet.path) == ("all", str(path))
    assert fleet.members == (
        Member("a", Target.INVENTORY, str(tmp_path / "a" / "inventory.yaml")),
        Member("b", Target.PLAYBOOK, str(tmp_path.parent / "b.yaml")),
        Member("c", Target.ZOOKEEPER, "zk1:2181,zk2:2181/kafka"),
        Member("d", Target.BUNDLE, "/kept/d.bundle"),
        Member("e", Target.FILES, "/m", FilePair((str(tmp_path / "e" / "data"),), "/m")),
        Member(
            "f",
            Target.FILES,
            str(tmp_path / "m"),
            FilePair((str(tmp_path / "d"), "/log"), str(tmp_path / "m"), "/kafka"),
        ),
    )


@pytest.mark.parametrize(
    ("clusters", "line", "said"),
    [
        (("{name: a}",), 6, "'a' is named by nothing"),
        (("{name: a, inventory: i, bundle: b}",), 6, "'a' is named by inventory and bundle"),
        (("{name: a, bundle: b}", "{name: a, bundle: c}"), 7, "'a' appears twice"),
        (("{name: a, zookeeper: nowhere}",), 6, "host:port is expected"),
        (("{bundle: b}",), 6, "name is missing"),
        (("{name: a, files: {zookeeper: z}}",), 6, "metadata is missing"),
        (("{name: a, bundle: b, files: {zookeeper: z, metadata: m}}",), 6, "named by bundle and files"),
        (("{name: a, files: {zookeeper: z, metadata: m, chroot: kafka}}",), 6, "chroot"),
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


def test_files_may_be_in_an_object_store_whose_uri_stays_as_it_is(tmp_path: Path) -> None:
    """Beside files of this host, too."""
    uri = "s3://kept/a/kraft?region=eu-west-1"
    path = written(tmp_path, f"{{name: a, files: {{zookeeper: data, metadata: '{uri}'}}}}")
    (member,) = load_fleet(path).members
    assert (member.where, member.files) == (uri, FilePair((str(tmp_path / "data"),), uri))


def test_the_container_of_a_storage_account_is_no_user(tmp_path: Path) -> None:
    """Azure writes it before the host."""
    uri = "abfss://container@account.dfs.core.windows.net/kraft?credential_kind=default"
    (member,) = load_fleet(written(tmp_path, f"{{name: a, files: {{zookeeper: '{uri}', metadata: '{uri}'}}}}")).members
    assert member.where == uri


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ("{name: a, bundle: 's3://kept/a.bundle'}", "a path is expected, not a URI"),
        ("{name: a, files: {zookeeper: 's3://key:secret@kept/a', metadata: m}}", "a URI names a user"),
        ("{name: a, files: {zookeeper: 'abfs://c:secret@account.net/a', metadata: m}}", "a URI names a user"),
        ("{name: a, files: {zookeeper: z, metadata: 'abfs://c@h/a?client_secret=x'}}", "a URI has a secret"),
    ],
)
def test_a_uri_elsewhere_and_one_with_credentials_are_refused(tmp_path: Path, cluster: str, words: str) -> None:
    """Only files of a cluster are copied from a store, and a fleet's file is handed around."""
    with pytest.raises(DocumentInvalid) as raised:
        load_fleet(written(tmp_path, cluster))
    assert words in str(raised.value)
