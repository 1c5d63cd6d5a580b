"""A bundle holds a whole world without its secrets, and is believed only when it is whole."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import stat
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from migrate import checks
from migrate.errors import BundleDamaged, BundleExists, BundleOtherVersion
from migrate.hosts.properties import parse
from migrate.model import limits, plain_tar
from migrate.model.facts import pure_ledger
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, PartlyRead, Running, ZnodeAcl
from migrate.model.world import World
from migrate.observe import bundle as bundles
from migrate.observe.bundle import MANIFEST, PARTS, Bundle, read_bundle, without_secrets, write_bundle
from migrate.observe.bundled import BundledSources
from tests.testing import worlds

CANARY = "canary-Xy7"


def kept(folder: Path, world: World) -> Bundle:
    """The world, through a bundle."""
    path = folder / "cluster.bundle"
    path.unlink(missing_ok=True)
    write_bundle(str(path), world, 1_700_000_000)
    return read_bundle(str(path))


def file_of(world: World, node: int) -> ConfigFile:
    """A node's file, known to be there."""
    assert not isinstance(world.configs, Unknown)
    found = world.configs[NodeId(node)]
    assert isinstance(found, ConfigFile)
    return found


def with_file(world: World, node: int, raw: bytes) -> World:
    """With another file of that node."""
    assert not isinstance(world.configs, Unknown)
    file = worlds.config_file(NodeId(node), file_of(world, node).path, raw)
    return replace(world, configs={**world.configs, NodeId(node): file})


# -- the same answers ----------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("stage", Stage)
def test_it_gives_the_same_findings_and_ledger_at_every_stage(stage: Stage, tmp_path: Path) -> None:
    """And the very same views: only files with secrets differ, and sums; command lines and ports are not in it."""
    world = worlds.world_at(stage)
    found = kept(tmp_path, world).world
    for part in set(PARTS) - {"configs", "services"}:
        assert getattr(found, part) == getattr(world, part), part
    assert pure_ledger(found) == pure_ledger(world)
    before = replace(world, ledger=pure_ledger(world), launches=found.launches, ports=found.ports)
    after = replace(found, ledger=pure_ledger(found))
    assert checks.run(after, target=Stage.PREPARE) == checks.run(before, target=Stage.PREPARE)


def test_sources_of_a_bundle_answer_for_the_nodes_of_the_inventory(tmp_path: Path) -> None:
    """A node that the bundle does not have is unknown, never absent; nothing is opened."""
    world = worlds.world_at(Stage.KRAFT_MODE)
    found = kept(tmp_path, world)
    inventory = replace(
        world.inventory, brokers=(*world.inventory.brokers, replace(world.inventory.brokers[0], id=NodeId(9)))
    )
    sources = BundledSources(inventory, world.playbook, None, found)
    disks = sources.disks(sources.configs())
    assert disks[NodeId(1)] == found.world.disks[NodeId(1)]  # type: ignore[index]
    assert isinstance(disks[NodeId(9)], Unknown)
    assert isinstance(sources.configs()[NodeId(9)], Unknown)
    assert (sources.kraft(), sources.live()) == (found.world.kraft, found.world.live)
    assert sources.dual_write_offset() == worlds.OFFSET
    assert sources.spark() is None


def test_a_bundle_does_not_look_at_directories_of_this_host(tmp_path: Path) -> None:
    """Those that a DirectoryPlaybook names are of the cluster's hosts, as they were."""
    world = worlds.world_at(Stage.KRAFT_MODE)
    playbook = replace(worlds.playbook(), new_directories={NodeId(0): (str(tmp_path),)})
    sources = BundledSources(world.inventory, playbook, None, kept(tmp_path, world))
    assert isinstance(sources.new_directories(sources.configs()), Unknown)


# -- secrets -------------------------------------------------------------------------------------------------------
def canaries(world: World) -> World:
    """Secrets wherever a world may have one."""
    raw = (
        file_of(world, 0).raw
        + (
            f"# {CANARY}0\nssl.key.password={CANARY}1\n"
            f'listener.name.x.plain.sasl.jaas.config=a.B required username="u" password="{CANARY}2";\n'
            f"metrics.api.key={CANARY}3\n"
        ).encode()
    )
    world = with_file(world, 0, raw)
    view = worlds.zk(world)
    world = worlds.with_entity(world, "broker-config", "0", "plugin.secret", f"{CANARY}4")
    world = worlds.with_zk(world, acls={"/config": (ZnodeAcl(31, "digest", f"kafka:{CANARY}5"),)})
    image = worlds.kraft(world)
    rows = image.entities
    world = worlds.with_kraft(
        world,
        entities=replace(
            rows,
            kind=[*rows.kind, "broker-config"],
            key=[*rows.key, "0"],
            name=[*rows.name, "plugin.secret"],
            value=[*rows.value, f"{CANARY}4"],
            where=[*rows.where, ""],
        ),
    )
    assert view.connect
    return world


@pytest.mark.slow
def test_no_secret_is_in_it_and_equal_ones_stay_equal(tmp_path: Path) -> None:
    """Not in its bytes, unpacked, or decoded; the same secret in two files has one digest, another has another."""
    world = with_file(canaries(worlds.world_at(Stage.KRAFT_MODE)), 1, f"password.encoder.secret={CANARY}9\n".encode())
    found = kept(tmp_path, world)
    unpacked = gzip.decompress(Path(found.path).read_bytes())
    shown = repr(found.world) + repr(found.world.configs)
    for node in range(3):
        shown += file_of(found.world, node).raw.decode() + str(file_of(found.world, node).values)
    assert CANARY not in shown
    assert CANARY.encode() not in unpacked
    assert b"a-secret-of-the-lab" not in unpacked
    secrets = [file_of(found.world, node).values["password.encoder.secret"] for node in range(3)]
    assert secrets[0] == secrets[2] != secrets[1]
    tree, image = worlds.zk(found.world).entities, worlds.kraft(found.world).entities
    assert tree.value[-1] == image.value[-1] != f"{CANARY}4"
    acls = worlds.zk(found.world).acls
    assert not isinstance(acls, Unknown)
    assert acls["/config"][0].identity.startswith("kafka:hmac-")


@pytest.mark.slow
def test_the_sum_of_a_file_with_a_secret_is_not_told(tmp_path: Path) -> None:
    """A short password could be guessed by it; that a process runs with its node's file is told all the same."""
    world = worlds.world_at(Stage.KRAFT_MODE)
    real = {node: file_of(world, node).sha256 for node in range(3)}
    states = {NodeId(node): Running(1, 1.0, real[node]) for node in (0, 1)}
    world = replace(world, services={**states, NodeId(2): Running(1, 1.0, real[0])})
    found = kept(tmp_path, world).world
    assert not isinstance(found.services, Unknown)
    raw = gzip.decompress((tmp_path / "cluster.bundle").read_bytes()).decode("latin-1")
    assert not [digest for digest in real.values() if digest in raw]
    sums = [state.config_sha256 for state in found.services.values() if isinstance(state, Running)]
    assert sums[:2] == [file_of(found, 0).sha256, file_of(found, 1).sha256]
    assert sums[2] not in (real[0], file_of(found, 2).sha256)
    assert file_of(found, 0).sha256 == hashlib.sha256(file_of(found, 0).raw).hexdigest()
    assert parse(file_of(found, 0).raw) == file_of(found, 0).values


@pytest.mark.slow
def test_two_bundles_of_one_cluster_have_different_digests(tmp_path: Path) -> None:
    """The key is thrown away: nobody can compare them, or try passwords."""
    world = worlds.world_at(Stage.ASSESS)
    digests = {file_of(kept(tmp_path, world).world, 0).values["password.encoder.secret"] for _ in range(3)}
    assert len(digests) == 3


def test_digests_are_not_digested_again_and_partly_read_trees_are_cleaned() -> None:
    """A collector's digest, and a view's, stay comparable with others of their key."""
    world = canaries(worlds.world_at(Stage.KRAFT_MODE))
    once = without_secrets(world, b"k" * 32)
    again = without_secrets(once, b"l" * 32)
    assert file_of(once, 0).values["ssl.key.password"] == file_of(again, 0).values["ssl.key.password"]
    cut = without_secrets(replace(world, zookeeper=PartlyRead("cut", worlds.zk(world))), b"k" * 32).zookeeper
    assert isinstance(cut, PartlyRead)
    assert CANARY not in repr(cut)
    hidden = without_secrets(replace(world, configs=Unknown("no"), services=Unknown("no")), b"k" * 32)
    assert (hidden.configs, hidden.services) == (Unknown("no"), Unknown("no"))


# -- the file ------------------------------------------------------------------------------------------------------
def test_it_is_private_and_overwrites_nothing(tmp_path: Path) -> None:
    """Mode 0600, no leftovers, and what is there stays, be it a dangling link."""
    path = tmp_path / "cluster.bundle"
    write_bundle(str(path), worlds.world_at(Stage.ASSESS), 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["cluster.bundle"]
    before = path.read_bytes()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("cluster.bundle", "link"):
        with pytest.raises(BundleExists):
            write_bundle(str(tmp_path / name), worlds.world_at(Stage.ASSESS), 1)
    assert path.read_bytes() == before


def archive(path: Path, members: Mapping[str, bytes], **kind: object) -> str:
    """An archive with those members, of another type where `kind` says so."""
    with tarfile.open(path, "w:gz", format=tarfile.USTAR_FORMAT) as packed:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o600
            for key, value in kind.items():
                setattr(member, key, value)
            packed.addfile(member, io.BytesIO(content))
    return str(path)


def members_of(path: str) -> dict[str, bytes]:
    """What is in it."""
    with tarfile.open(path) as packed:
        return {entry.name: packed.extractfile(entry).read() for entry in packed}  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A bundle."""
    path = str(tmp_path_factory.mktemp("bundle") / "whole")
    write_bundle(path, worlds.world_at(Stage.HYBRID), 1)
    return path


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_flipped_bit_and_every_cut_is_damage(data: st.DataObject, whole: str, tmp_path: Path) -> None:
    """Or harmless: in gzip's own header a few bits mean nothing."""
    content = bytearray(Path(whole).read_bytes())
    place = data.draw(st.integers(0, len(content) * 8 - 1))
    if data.draw(st.booleans()):
        content[place // 8] ^= 1 << place % 8
    else:
        del content[place // 8 :]
    path = tmp_path / "damaged"
    path.write_bytes(content)
    try:
        found = read_bundle(str(path))
    except BundleDamaged:
        return
    assert found.world == read_bundle(whole).world
    assert place // 8 < 10


def test_members_with_other_names_or_types_are_refused(whole: str, tmp_path: Path) -> None:
    """Paths that lead out, absolute ones, links, folders, a name twice; nothing is ever written."""
    good = members_of(whole)
    for name in ("../kraft.json", "/etc/passwd", "./kraft.json", "kraft.json/", "other.json", "KRAFT.json"):
        with pytest.raises(BundleDamaged, match="no archive of ours"):
            read_bundle(archive(tmp_path / "odd", {**good, name: b""}))
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
        with pytest.raises(BundleDamaged):
            read_bundle(archive(tmp_path / "odd", good, type=kind, linkname="/etc/passwd"))
    with pytest.raises(BundleDamaged, match="parts that its manifest names"):
        read_bundle(archive(tmp_path / "odd", {name: raw for name, raw in good.items() if name != "live.json"}))
    assert {entry.name for entry in tmp_path.iterdir()} == {"odd"}


def test_what_is_no_bundle_is_refused(whole: str, tmp_path: Path) -> None:
    """No file, a folder, a link, no gzip, no tar, an empty one, a manifest that is none."""
    (tmp_path / "link").symlink_to(whole)
    (tmp_path / "text").write_text("hello")
    (tmp_path / "gz").write_bytes(gzip.compress(b"hello"))
    for path in ("none", ".", "link", "text", "gz"):
        with pytest.raises(BundleDamaged):
            read_bundle(str(tmp_path / path))
    good = members_of(whole)
    for manifest in (b"", b"[]", b"{", b"\xff", b'{"format": "x"}', b"[" * 100_000):
        with pytest.raises(BundleDamaged):
            read_bundle(archive(tmp_path / "odd", {**good, MANIFEST: manifest}))


def test_a_part_or_manifest_that_was_edited_is_damage_and_a_newer_one_is_said_to_be(whole: str, tmp_path: Path) -> None:
    """By their sums; the release that made it is named."""
    good = members_of(whole)
    edited = good["kraft.json"].replace(b"MIGRATION", b"POST_MIGRATION")
    with pytest.raises(BundleDamaged, match=r"kraft\.json"):
        read_bundle(archive(tmp_path / "odd", {**good, "kraft.json": edited}))
    manifest = json.loads(good[MANIFEST])
    newer = {**manifest, "version": bundles.VERSION + 1, "body": {**manifest["body"], "tool": "9.9"}}
    with pytest.raises(BundleOtherVersion, match=r"9\.9"):
        read_bundle(archive(tmp_path / "odd", {**good, MANIFEST: json.dumps(newer).encode()}))
    same = json.dumps({**newer, "version": bundles.VERSION})
    with pytest.raises(BundleDamaged, match="SHA-256 of its manifest"):
        read_bundle(archive(tmp_path / "odd", {**good, MANIFEST: same.encode()}))


def test_a_well_hashed_part_of_another_shape_is_damage(whole: str, tmp_path: Path) -> None:
    """Whoever edits a bundle and its sums is not believed blindly: the place is named."""
    good = members_of(whole)
    live = json.loads(good["live.json"])
    del live["quorum"]
    raw = json.dumps(live).encode()
    body = json.loads(good[MANIFEST])["body"]
    body["parts"]["live"]["sha256"] = hashlib.sha256(raw).hexdigest()
    sums = hashlib.sha256(bundles._bytes(body)).hexdigest()
    manifest = {"format": bundles.FORMAT, "version": bundles.VERSION, "sha256": sums, "body": body}
    with pytest.raises(BundleDamaged, match="live: missing or unknown: quorum") as refused:
        read_bundle(archive(tmp_path / "odd", {**good, "live.json": raw, MANIFEST: json.dumps(manifest).encode()}))
    assert "write it again with this release" in refused.value.next_step, "another release's is not damaged"


def test_a_pattern_that_cannot_be_read_is_damage_with_its_place(whole: str, tmp_path: Path) -> None:
    """A bundle's playbook was not seen by the reader of playbooks."""
    good = members_of(whole)
    (part,) = (name for name, raw in good.items() if b"accept_unavailable" in raw)
    raw = good[part].replace(b"single-.*", b"single-(")
    body = json.loads(good[MANIFEST])["body"]
    body["parts"][part.removesuffix(".json")]["sha256"] = hashlib.sha256(raw).hexdigest()
    body["parts"][part.removesuffix(".json")]["bytes"] = len(raw)
    sums = hashlib.sha256(bundles._bytes(body)).hexdigest()
    manifest = {"format": bundles.FORMAT, "version": bundles.VERSION, "sha256": sums, "body": body}
    with pytest.raises(BundleDamaged, match=r"missing [)]: "):
        read_bundle(archive(tmp_path / "odd", {**good, part: raw, MANIFEST: json.dumps(manifest).encode()}))


@pytest.mark.slow
def test_a_bomb_is_not_unpacked(whole: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading ends at the limit, of the archive and of what is in it."""
    monkeypatch.setitem(limits.LIMITS, "bundle-content", replace(limits.LIMITS["bundle-content"], most=4096))
    with pytest.raises(BundleDamaged, match="more than 4096"):
        read_bundle(whole)
    monkeypatch.undo()
    zeros = tmp_path / "zeros"
    zeros.write_bytes(gzip.compress(bytes(2**24)))
    with pytest.raises(BundleDamaged, match="does not begin with a manifest"):
        read_bundle(str(zeros))
    monkeypatch.setattr(bundles, "FREE_BYTES", 4096)
    zeros.write_bytes(gzip.compress(plain_tar.pack({MANIFEST: bytes(2**24)})))
    with pytest.raises(BundleDamaged, match="which no bundle does"):
        read_bundle(str(zeros))
    monkeypatch.setitem(limits.LIMITS, "bundle", replace(limits.LIMITS["bundle"], most=512))
    with pytest.raises(BundleDamaged, match="larger than 512"):
        read_bundle(whole)


def test_names_of_any_kind_survive(tmp_path: Path) -> None:
    """In entities of both views."""
    world = worlds.with_entity(worlds.world_at(Stage.COPY), "acl", "topic=\udc80'\"\n", "ü", "\0")
    assert kept(tmp_path, world).world.zookeeper == world.zookeeper
