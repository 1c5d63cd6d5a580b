"""What hosts, the people at them and the system answer."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from migrate.hosts import (
    collect_disks,
    commands,
    disks,
    jaas,
    launches,
    meta_properties,
    properties,
    sockets,
    systemd,
)
from migrate.hosts.about import _answer
from migrate.hosts.collected import read_all
from migrate.hosts.disks import CollectorDisks
from migrate.hosts.manual.reports import read_answer
from migrate.hosts.properties import log_dirs, metadata_log_dir
from migrate.hosts.remote_files import RemoteMetadata
from migrate.hosts.runner import Completed
from migrate.hosts.systemd import access_of, parse_unit, patience
from migrate.lab import units
from migrate.model.columns import ReplicaColumns
from migrate.model.difference import names_from_text
from migrate.model.ids import NodeId
from migrate.model.views import BrokerDisks, ConfigFile, Directory, MetaMissing
from migrate.playbook.load import dump_inventory
from tests.fuzz.damage import Parts
from tests.fuzz.parts import dumped
from tests.fuzz.trial import command
from tests.kraft.logs import captured_log
from tests.testing import worlds
from tests.testing.person import bench

NODE: Final = NodeId(0)


def collected(folder: Path) -> Parts:
    """The collector's answer of one directory, a file and the processes."""
    for place in ("disk/orders-0", "disk/__cluster_metadata-0"):
        (folder / place).mkdir(parents=True)
    (folder / "disk/orders-0/partition.metadata").write_text("version: 0\ntopic_id: b1X1a2lVTUuEZKTmypRKzw\n")
    (folder / "disk/meta.properties").write_text("version=0\nbroker.id=0\ncluster.id=REh233dFSJKhrlnVHSnalQ\n")
    config = folder / "b0.properties"
    config.write_text(f"broker.id=0\nlog.dirs={folder}/disk\nzookeeper.connect=zk:2181\n")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert collect_disks.main(["--node", "0", "--probe", "--properties", str(config)]) == 0
    return {"answer.json": out.getvalue().encode()}


def sealed_answer(raw: bytes) -> bytes:
    """The sum of its body anew."""
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        document = json.loads(raw)
        if isinstance(document, dict) and "body" in document and isinstance(document.get("sha256"), str):
            document["sha256"] = collect_disks.body_sha256(document["body"])
            return json.dumps(document).encode()
    return raw


def read_collected(_: Path, path: Path) -> None:
    """As disks of a broker, and as a person's answer."""
    read_all([str(path)], [NODE])
    read_answer(str(path))


def instruction(name: str) -> Callable[[Path], Parts]:
    """A file of an open instruction in a manual executor's folder."""

    def parts(folder: Path) -> Parts:
        found = bench(folder / "m")
        found.look()
        found.act = lambda _: (_ for _ in ()).throw(KeyboardInterrupt)
        with contextlib.suppress(KeyboardInterrupt):
            found.files.write(NODE, found.config, found.files.read(NODE, found.config) + b"x=1\n")
        (record,) = (folder / "m/runs").rglob("instruction.json")
        (record.parent / "closed.json").write_bytes(dumped({"how": "could not", "reason": "r"}))
        inventory = replace(found.desk.inventory, path=str(folder / "inventory.yaml"), runs="m/runs",
                            executor_options={"inbox": "m/inbox"})  # fmt: skip
        (folder / "inventory.yaml").write_text(dump_inventory(inventory))
        (folder / "m/open").symlink_to(record.parent.relative_to(folder / "m"))
        return {name: (record.parent / name).read_bytes()}

    return parts


def read_manual(place: Path, _: Path) -> None:
    """What is waited for."""
    command("manual", "could-not", "--inventory", place / "inventory.yaml", "--reason", "x")


class Answering:
    """A host that answers every command with that."""

    host = "there"

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    def run(self, words: object, *, stdin: bytes = b"", seconds: float = 0.0) -> Completed:
        """As told."""
        return Completed(0, self.raw, "")


FACTS: Final = {
    "user": "kafka",
    "java": "/usr/bin/java",
    "config": {"exists": True, "path_readable_by_user": True, "readable_by_user": True},
    "metadata_directory": {"exists": True, "can_be_made": True, "writable_by_user": True},
    "kafka_home": {"storage_tool": "/k/bin/kafka-storage.sh", "exists": True, "executable_by_user": True},
}


def read_facts(_: Path, path: Path) -> None:
    """What a unit's user may do, and what the host program is."""
    runner = Answering(path.read_bytes())
    known = worlds.inventory()
    for node in (known.brokers[0], known.controllers[0]):
        access_of(runner.run(commands.facts(node.id)), node)
    _answer(runner)


class Healthy(CollectorDisks):
    """Disks that are as they should be; where paths lead to, the host says."""

    def look(self, broker: NodeId, log_dirs: Sequence[str], metadata_dir: str | None) -> BrokerDisks:
        """Empty ones."""
        return BrokerDisks(
            broker, tuple(Directory(path, "", MetaMissing(), ReplicaColumns(), False) for path in log_dirs), None
        )


def read_places(_: Path, path: Path) -> None:
    """Where new directories lead to, and whose they are."""
    known = worlds.inventory()
    node = replace(known.brokers[0], id=NODE)
    known = replace(known, brokers=(node,), controllers=())
    configs = {NODE: ConfigFile(NODE, "/s", b"", "", {"log.dirs": "/b"})}
    disks.inspect_new_directories(Healthy({NODE: Answering(path.read_bytes())}), known, configs, {NODE: ("/a",)})


def read_disks(_: Path, path: Path) -> None:
    """A host's disks through the host program."""
    CollectorDisks({NODE: Answering(path.read_bytes())}).look(NODE, ["/a"], None)


def archive_parts(_: Path) -> Parts:
    """A stopped controller's log."""
    return {"meta.properties": b"node.id=3000\n", "log.bin": captured_log()[:600]}


def archive_members(parts: Parts) -> list[tuple[str, bytes]]:
    """As the host program sends it."""
    return [
        ("meta.properties", parts["meta.properties"]),
        ("__cluster_metadata-0/00000000000000000000.log", parts["log.bin"]),
    ]


def read_archive(_: Path, path: Path) -> None:
    """Copied into a folder of ours."""
    with RemoteMetadata({NODE: Answering(path.read_bytes())}).folders({NODE: "/meta"}):
        pass


PROPERTIES: Final = rb"""# by hand
broker.id=0
log.dirs = /d0, /d1
listeners=PLAINTEXT://:9092,\
  CONTROLLER://:9093
node.id: 1
sasl.jaas.config=a.B required user="x" password="y";
ssl.keystore.password=z
caf\u00e9 = x
"""


def read_properties(_: Path, path: Path) -> None:
    """Parsed, edited, put back and shown."""
    raw = path.read_bytes()
    values = properties.parse(raw, str(path))
    log_dirs(values), metadata_log_dir(values)
    properties.duplicates(raw)
    changed = properties.edit(raw, {"node.id": "7", "x": "y"}, ["broker.id"])
    properties.restore_keys(changed, raw, ["node.id", "broker.id"])
    properties.diff(raw, changed, str(path))


META: Final = (
    b"#\n#Thu Jan 01\nversion=1\nnode.id=0\ncluster.id=REh233dFSJKhrlnVHSnalQ\ndirectory.id=b1X1a2lVTUuEZKTmypRKzw\n"
)


def meta_parts(folder: Path) -> Parts:
    """A log directory's."""
    (folder / "disk").mkdir()
    return {"meta.properties": META}


def read_meta(place: Path, path: Path) -> None:
    """What Kafka would do with it at a start, in each mode."""
    raw = path.read_bytes()
    meta_properties.decode(raw)
    meta_properties.as_version_0(raw)
    for mode in ("zookeeper", "migration", "kraft"):
        command("directories", "inspect", place / "disk", "--mode", mode, "--node-id", 0,
                "--cluster-id=REh233dFSJKhrlnVHSnalQ")  # fmt: skip


UNIT: Final = b"""LoadState=loaded
ActiveState=active
SubState=running
MainPID=77
ExecMainStartTimestampMonotonic=123456
ExecMainStatus=0
TimeoutStopUSec=1min 30s
EnvironmentFiles=/etc/default/kafka (ignore_errors=yes)
DropInPaths=/etc/systemd/system/kafka.service.d/a.conf
ExecStart={ path=/k/bin/kafka-server-start.sh ; argv[]=/k/bin/kafka-server-start.sh /etc/kafka/s.properties ; }
User=kafka
Restart=on-failure
WantedBy=multi-user.target
"""


def read_unit(_: Path, path: Path) -> None:
    """What systemd says of a unit, as far as the program understands it."""
    with contextlib.suppress(ValueError):  # what `parse_unit` raises for no answer, and its caller takes
        unit = parse_unit(path.read_bytes())
        patience(unit)
        launches.decode_unit(unit.properties)
        list(systemd.find_faults(unit.properties, "/etc/kafka/s.properties", [1]))
        systemd.restarts_halted(unit.properties), systemd.reload_due(unit.properties)
        systemd.user_of(unit.properties)


COMMAND_LINE: Final = b"\0".join(
    b"java -Xmx1g -Djute.maxbuffer=0x400000 -Djava.security.auth.login.config=/j -Dzookeeper.x=1 -cp"
    b" /k/kafka-clients-3.9.2.jar kafka.Kafka /etc/s.properties --override a=b --override=c=d".split()
)


def read_process(_: Path, path: Path) -> None:
    """A process's words."""
    raw = path.read_bytes()
    launches.decode_command_line(raw)
    text = raw.decode(errors="replace")
    with contextlib.suppress(ValueError):
        units.parse_stat(text)
    with contextlib.suppress(ValueError):
        units.parse_record(text)


JAAS: Final = b"""KafkaServer { org.apache.kafka.common.security.scram.ScramLoginModule required
  username="admin" password="a\\"b"; };
// c
Client { a.B required x=y; /* d */ c.D sufficient; };
"""
LISTENING: Final = Path("/proc/net/tcp")
TCP: Final = (
    b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    b"   0: 0100007F:2382 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n"
    b"   1: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 2 1 0\n"
)


def read_system(_: Path, path: Path) -> None:
    """JAAS files, tables of the kernel, names of folders."""
    raw = path.read_bytes()
    text = raw.decode(errors="replace")
    for line in text.splitlines():
        collect_disks.unquoted(line)
        meta_properties.decode_folder(line)
    with contextlib.suppress(ValueError):
        jaas.sections(text)
    with contextlib.suppress(ValueError):
        sockets.parse_listening(text)
    meta_properties.decode_partition_metadata(raw)


def read_names(_: Path, path: Path) -> None:
    """Differences that a plan gives up."""
    with contextlib.suppress(ValueError, TypeError):  # what it says it raises
        names_from_text(path.read_text(encoding="utf-8", errors="replace"))
