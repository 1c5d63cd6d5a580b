"""Log directories of every kind that a start may meet: made in a folder, asked of us and of Kafka's own classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

CLUSTER = "REh233dFSJKhrlnVHSnalQ"
OTHER_CLUSTER = "-ther233dFSJKhrlnVHSna"
NODE = 1
IDS = ("fLUdTjFFJ_w2ms3XPW9eXg", "b2Jd1lZ3R9q0m1n2o3p4qA", "Zk5tU2hWQ3mXh8kqkq0aBQ")
STAMP = "#\n#Sat Nov 21 02:45:45 UTC 2026\n"

Maker = Callable[[Path], None]


def v0(index: int = 0, *, cluster: str | None = CLUSTER, node: str | None = str(NODE), id_: str | None = "") -> bytes:
    """A broker's own file; `id_` "" is that directory's usual id, None is none."""
    lines = {"broker.id": node, "directory.id": IDS[index] if id_ == "" else id_, "version": "0", "cluster.id": cluster}
    return (STAMP + "".join(f"{key}={value}\n" for key, value in lines.items() if value is not None)).encode()


def v1(index: int = 0, *, cluster: str | None = CLUSTER, node: str | None = str(NODE), id_: str | None = "") -> bytes:
    """What kafka-storage format writes."""
    lines = {"node.id": node, "directory.id": IDS[index] if id_ == "" else id_, "version": "1", "cluster.id": cluster}
    return (STAMP + "".join(f"{key}={value}\n" for key, value in lines.items() if value is not None)).encode()


def file(raw: bytes) -> Maker:
    """A directory with that meta.properties."""

    def make(path: Path) -> None:
        path.mkdir()
        (path / "meta.properties").write_bytes(raw)

    return make


def bare(path: Path) -> None:
    """A directory without the file."""
    path.mkdir()


def nothing(path: Path) -> None:
    """No directory at all."""


def a_file(path: Path) -> None:
    """A file in the directory's place."""
    path.write_bytes(b"I am no folder\n")


def below_a_file(path: Path) -> None:
    """The directory's parent is a file: it is not there, and cannot be made."""
    (path.parent / "in-the-way").write_bytes(b"")
    path.symlink_to(path.parent / "in-the-way" / "below")


def folder_in_place(path: Path) -> None:
    """meta.properties is a folder."""
    (path / "meta.properties").mkdir(parents=True)


def link(target: str) -> Maker:
    """A link to another directory of the ensemble."""
    return lambda path: path.symlink_to(path.parent / target)


def moved(raw: bytes) -> Maker:
    """The directory is a link to a folder elsewhere."""

    def make(path: Path) -> None:
        file(raw)(path.parent / f"moved-{path.name}")
        path.symlink_to(path.parent / f"moved-{path.name}")

    return make


def file_link(raw: bytes) -> Maker:
    """meta.properties is a link to a file elsewhere."""

    def make(path: Path) -> None:
        path.mkdir()
        (path.parent / f"kept-{path.name}").write_bytes(raw)
        (path / "meta.properties").symlink_to(path.parent / f"kept-{path.name}")

    return make


def dangling(path: Path) -> None:
    """meta.properties is a link to nothing."""
    path.mkdir()
    (path / "meta.properties").symlink_to(path / "gone")


def loop(path: Path) -> None:
    """meta.properties is a link to itself."""
    path.mkdir()
    (path / "meta.properties").symlink_to(path / "meta.properties")


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Directories by name, in the order of log.dirs; `metadata` is where the metadata lies, in log.dirs or apart.

    `logs` are directories with a __cluster_metadata-0.  `spelled` replaces log.dirs' spelling.
    """

    name: str
    dirs: dict[str, Maker]
    metadata: str = "d0"
    apart: bool = False
    logs: tuple[str, ...] = ()
    spelled: tuple[str, ...] = field(default=())

    def make(self, base: Path) -> tuple[list[str], str]:
        """Make it; log.dirs and metadata.log.dir as they stand in the configuration."""
        base.mkdir()
        for name, maker in self.dirs.items():
            maker(base / name)
        for name in self.logs:
            (base / name / "__cluster_metadata-0").mkdir()
        names = self.spelled or tuple(name for name in self.dirs if not (self.apart and name == self.metadata))
        return [f"{base}/{name}" for name in names], f"{base}/{self.metadata}"


def _one(name: str, raw: bytes) -> list[Ensemble]:
    """That file alone, as the second of two, and in both."""
    return [
        Ensemble(f"{name}, alone", {"d0": file(raw)}),
        Ensemble(f"{name}, as the second", {"d0": file(v0(0)), "d1": file(raw)}),
    ]


def _second(name: str, maker: Maker) -> Ensemble:
    return Ensemble(f"{name}, as the second", {"d0": file(v0(0)), "d1": maker})


_SECOND = v0(1)
FILES: dict[str, bytes] = {
    "version 0": _SECOND,
    "version 1": v1(1),
    "an empty file": b"",
    "blank lines": b"\n \n\t\n",
    "64 zero bytes": b"\0" * 64,
    "torn between two keys": _SECOND[: _SECOND.index(b"directory.id")],
    "torn after the directory.id": _SECOND[: _SECOND.index(b"version")],
    "torn in the directory.id": _SECOND[: _SECOND.index(b"version") - 9],
    "torn in the broker.id's key": STAMP.encode() + b"broker.i",
    "the version unknown": _SECOND.replace(b"version=0", b"version=2"),
    "the version no number": _SECOND.replace(b"version=0", b"version=zero"),
    "the version with blanks": _SECOND.replace(b"version=0", b"version=0  "),
    "the version signed": _SECOND.replace(b"version=0", b"version=+0"),
    "the version in other digits": _SECOND.replace(b"version=0", b"version=\\u0660"),
    "no version": _SECOND.replace(b"version=0\n", b""),
    "another cluster": v0(1, cluster=OTHER_CLUSTER),
    "another node": v0(1, node="2"),
    "a negative node": v0(1, node="-1"),
    "a node that is no number": v0(1, node="one"),
    "a node with a blank": v0(1, node="1 "),
    "a node beyond 32 bits": v0(1, node="2147483648"),
    "a node with zeros before": v0(1, node="000000000001"),
    "no node": v0(1, node=None),
    "no cluster": v0(1, cluster=None),
    "an empty cluster": v0(1, cluster=""),
    "no directory.id": v0(1, id_=None),
    "the zero id": v0(1, id_="AAAAAAAAAAAAAAAAAAAAAA"),
    "the last reserved id": v0(1, id_="AAAAAAAAAAAAAAAAAAAAYw"),
    "the first free id": v0(1, id_="AAAAAAAAAAAAAAAAAAAAZA"),
    "a short id": v0(1, id_=IDS[1][:-1]),
    "a padded id": v0(1, id_=IDS[1] + "=="),
    "a half padded id": v0(1, id_=IDS[1] + "="),
    "an id of another alphabet": v0(1, id_="+/Jd1lZ3R9q0m1n2o3p4qA"),
    "an empty id": v0(1, id_=""),
    "the same id otherwise spelled": v0(1, id_=IDS[0][:-1] + "h"),
    "duplicate keys, one value": _SECOND + b"broker.id=1\n",
    "duplicate keys, the last wrong": _SECOND + b"broker.id=2\n",
    "duplicate keys, the last right": b"broker.id=2\n" + _SECOND,
    "CRLF": _SECOND.replace(b"\n", b"\r\n"),
    "CR alone": _SECOND.replace(b"\n", b"\r"),
    "no UTF-8": _SECOND + b"comment=\xff\xfe\n",
    "a cluster of no ASCII": v0(1, cluster="cl\u00fcster"),
    "a byte order mark": b"\xef\xbb\xbf" + _SECOND.removeprefix(STAMP.encode()),
    "a bad escape": _SECOND + b"x=\\u12\n",
    "an escaped key": _SECOND.replace(b"broker.id", b"broker\\.id"),
    "a colon for the equals sign": _SECOND.replace(b"=", b" : "),
    "a continued line": _SECOND.replace(b"cluster.id=REh2", b"cluster.id=RE\\\n   h2"),
    "node.id in version 0": _SECOND.replace(b"broker.id", b"node.id"),
    "broker.id in version 1": v1(1).replace(b"node.id", b"broker.id"),
    "version 1 without cluster": v1(1, cluster=None),
    "version 1 without node": v1(1, node=None),
    "version 1 without directory.id": v1(1, id_=None),
    "version 1 of another cluster": v1(1, cluster=OTHER_CLUSTER),
}

ENSEMBLES: tuple[Ensemble, ...] = (
    *(ensemble for name, raw in FILES.items() for ensemble in _one(name, raw)),
    Ensemble("three good ones", {f"d{index}": file(v0(index)) for index in range(3)}),
    Ensemble("versions mixed", {"d0": file(v0(0)), "d1": file(v1(1))}),
    Ensemble("no file anywhere", {"d0": bare, "d1": bare}),
    Ensemble("no directory anywhere", {"d0": nothing, "d1": nothing}),
    Ensemble("nothing can be used", {"d0": a_file, "d1": below_a_file}),
    _second("no file", bare),
    _second("no directory", nothing),
    _second("a file in its place", a_file),
    _second("it cannot be made", below_a_file),
    _second("a folder as the file", folder_in_place),
    _second("a file that is a link", file_link(_SECOND)),
    _second("a file that links to nothing", dangling),
    _second("a file that links to itself", loop),
    _second("a directory that is a link", moved(_SECOND)),
    Ensemble("the first without file", {"d0": bare, "d1": file(_SECOND)}),
    Ensemble("the first broken", {"d0": file(b"version=7\n"), "d1": file(_SECOND)}),
    Ensemble("one copied", {"d0": file(v0(0)), "d1": file(v0(0))}),
    Ensemble("copied from another broker", {"d0": file(v0(0)), "d1": file(v0(0, node="2"))}),
    Ensemble("two names of one", {"d0": file(v0(0)), "d1": link("d0")}),
    Ensemble("two names of one without id", {"d0": file(v0(0, id_=None)), "d1": link("d0")}),
    Ensemble("one named twice", {"d0": file(v0(0))}, spelled=("d0", "d0")),
    Ensemble("one spelled in two ways", {"d0": file(v0(0)), "d1": file(_SECOND)}, spelled=("d0/", "d1")),
    Ensemble(
        "two clusters' disks, one each", {"d0": file(v0(0, cluster=OTHER_CLUSTER)), "d1": file(_SECOND)}, metadata="d1"
    ),
    Ensemble("all of another cluster", {f"d{n}": file(v0(n, cluster=OTHER_CLUSTER)) for n in range(2)}),
    Ensemble("all of another node", {f"d{n}": file(v0(n, node="7")) for n in range(2)}),
    Ensemble("metadata second", {"d0": file(v0(0)), "d1": file(_SECOND)}, metadata="d1"),
    Ensemble("metadata apart", {"d0": file(v0(0)), "m": file(v0(2))}, metadata="m", apart=True),
    Ensemble("metadata apart, with a copy's id", {"d0": file(v0(0)), "m": file(v0(0))}, metadata="m", apart=True),
    Ensemble("metadata apart, no file", {"d0": file(v0(0)), "m": bare}, metadata="m", apart=True),
    Ensemble("metadata apart, not there", {"d0": file(v0(0)), "m": nothing}, metadata="m", apart=True),
    Ensemble("metadata apart, broken", {"d0": file(v0(0)), "m": file(b"version=x\n")}, metadata="m", apart=True),
    Ensemble("metadata apart, cannot be made", {"d0": file(v0(0)), "m": below_a_file}, metadata="m", apart=True),
    Ensemble("metadata apart, all logs broken", {"d0": a_file, "m": file(v0(2))}, metadata="m", apart=True),
    Ensemble("the metadata log in its place", {"d0": file(v0(0)), "d1": file(_SECOND)}, logs=("d0",)),
    Ensemble("the metadata log in the wrong place", {"d0": file(v0(0)), "d1": file(_SECOND)}, logs=("d1",)),
    Ensemble("the metadata log in two places", {"d0": file(v0(0)), "d1": file(_SECOND)}, logs=("d0", "d1")),
    Ensemble(
        "the metadata log left in log.dirs",
        {"d0": file(v0(0)), "m": file(v0(2))},
        metadata="m",
        apart=True,
        logs=("d0",),
    ),
    Ensemble("the metadata log in a failed place", {"d0": file(v0(0)), "d1": file(b"version=x\n")}, logs=("d1",)),
    Ensemble("the metadata log in a bare place", {"d0": file(v0(0)), "d1": bare}, logs=("d1",)),
)
MODES = ("zookeeper", "migration", "kraft")
