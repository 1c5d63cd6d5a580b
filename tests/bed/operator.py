"""The operator of a bed: fills in what `inventory init` leaves open, writes a playbook, calls the commands."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import yaml

from migrate.errors import NoProgress
from migrate.lab.kdc import principal
from tests.bed.bed import ROOT, Bed, Completed
from tests.bed.host_files import CHROOT, COMMANDS, DOMAIN, OPERATORS
from tests.testing.last_words import told_to_restart

PLAYBOOK: Final = """apiVersion: kraft-migrate/v1
kind: MigrationPlaybook
metadata: {name: real-hosts, change: CHG1}
spec:
  cluster: {inventory: inventory.yaml}
  controllers: {ids: [3000, 3001, 3002]}
  policy:
    availability: {accept_unavailable: ["single"]}
    health: {samples: 2, interval: 1s}
    no_progress_timeout: 5m
  stages:
    - {name: assess}
    - {name: prepare}
    - {name: controllers}
    - {name: migration-mode}
    - {name: copy}
    - {name: hybrid}
    - {name: kraft-mode}
    - {name: soak, duration: 5s}
    - {name: finalize}
    - {name: cleanup}
"""
SERVE_SECONDS: Final = 180
LOOKS: Final = 4


class Operator:
    """Works in a folder of their own, beside the hosts."""

    def __init__(self, bed: Bed, folder: Path) -> None:
        self.bed = bed
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def tool(self, *words: str, expect: tuple[int, ...] = (0,)) -> Completed:
        """`kraft-migrate WORDS`, which must end with one of these exit codes."""
        done = self.bed.tool(*words, folder=self.folder)
        said = f"kraft-migrate {' '.join(words)}: {done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
        assert done.returncode in expect, said
        return done

    def look(self, *words: str, expect: int) -> Completed:
        """`assess` or `plan`, which are INCOMPLETE (1) while a busy machine does not answer in time: then once more."""
        for _ in range(LOOKS):
            done = self.tool(*words, expect=(expect, 1))
            if done.returncode != 1:
                return done
        return self.tool(*words, expect=(expect,))

    def client(self, *words: str) -> str:
        """What the cluster's client says (`tests.bed.client`), which must succeed."""
        command = (sys.executable, "-m", "tests.bed.client", *words)
        done = self.bed.outside(*command, folder=ROOT, seconds=SERVE_SECONDS + 60)
        assert done.returncode == 0, f"client {' '.join(words)}: {done.stdout[-2000:]} {done.stderr[-2000:]}"
        return done.stdout

    def seed(self) -> None:
        """Topics, a configuration, a SCRAM user, 2,000 records."""
        self.serving()
        self.client("seed")
        self.client("write", "before", "2000")

    def serving(self) -> None:
        """Wait until every broker is there and every partition has its leader and its whole ISR."""
        self.client("whole", str(self.bed.shape.hosts), str(SERVE_SECONDS))

    def inventory(self) -> None:
        """`inventory init`, its gaps, and a playbook."""
        words = ("--zookeeper", f"kafka-1:2181{CHROOT}", "--executor", "ssh", "--name", "prod")
        self.tool("inventory", "init", *words, "--out", "inventory.yaml")
        path = self.folder / "inventory.yaml"
        told = yaml.safe_load(path.read_text())
        spec, shape = told["spec"], self.bed.shape
        spec["controller_listener"] = "CONTROLLER"
        spec["executor"] |= {"kafka_home": "/opt/kafka", "ssh_config": str(self.bed.folder / "ssh_config")}
        for kind in ("brokers", "controllers"):
            spec[kind]["access"] = self._by_kerberos(spec, kind) if shape.kerberos else {"protocol": "PLAINTEXT"}
        spec["brokers"]["defaults"] = {"config": "/etc/kafka/server.properties", "unit": shape.unit}
        for node in spec["brokers"]["nodes"]:
            n = node["id"]
            node |= {"host": f"h{n}", "address": f"kafka-{n}.{DOMAIN}:9092"}
            if not shape.is_unit(n):
                node["service"] = COMMANDS
            if shape.is_unlike(n):
                user, password = OPERATORS
                (self.folder / "ops.password").write_text(password)
                (self.folder / "ops.password").chmod(0o600)
                access = {"mechanism": "PLAIN", "username": user, "password": {"file": "ops.password"}}
                node["access"] = {"protocol": "SASL_PLAINTEXT", **access}
                node["kafka_home"] = shape.home(n)
        controllers = {"config": "/etc/kafka/controller.properties", "metadata_directory": shape.metadata_directory}
        spec["controllers"]["defaults"] = controllers | {"unit": "kafka-controller.service"}
        if shape.quorum == "dynamic":
            spec["controllers"]["quorum"] = shape.quorum
        for node in spec["controllers"]["nodes"]:
            n = shape.controllers[node["id"]]
            node |= {"host": f"h{n}", "address": f"kafka-{n}{f'.{DOMAIN}' if shape.kerberos else ''}:9094"}
            if shape.is_unlike(n):
                node["kafka_home"] = shape.home(n)
        text = yaml.safe_dump(told, sort_keys=False)
        assert "<fill in" not in text
        path.write_text(text)
        (self.folder / "playbook.yaml").write_text(PLAYBOOK)

    def _by_kerberos(self, spec: dict[str, Any], kind: str) -> dict[str, object]:
        """How those nodes are reached, and what is added to their files; at ZooKeeper the tool is what brokers are."""
        keytab = self.folder / "tool.keytab"
        shutil.copy(self.bed.folder / keytab.name, keytab)
        keytab.chmod(0o600)
        login = {"principal": principal("kafka/tool"), "keytab": keytab.name}
        spec["zookeeper_access"] = {"kerberos": login}
        spec[kind]["properties"] = {"sasl.mechanism.controller.protocol": "GSSAPI"}
        if kind == "controllers":
            spec[kind]["properties"]["listener.name.controller.sasl.enabled.mechanisms"] = "GSSAPI"
        return {
            "protocol": "SASL_PLAINTEXT", "mechanism": "GSSAPI", "kerberos": login | {"principal": principal("admin")},
        }  # fmt: skip

    def rights(self) -> None:
        """What `doctor --host-setup` prints is run by root on each host."""
        for host in self.bed.hosts:
            script = self.folder / f"setup-{host}.sh"
            script.write_text(self.tool("doctor", "--inventory", "inventory.yaml", "--host-setup", host).stdout)
            shell = "PYTHON=$(ls /usr/local/bin/python3.*) sh -s" if self.bed.shape.python == "local" else "sh -s"
            command = f"ssh -F {self.bed.folder}/ssh_config {host}-root '{shell}' <{script}"
            done = self.bed.outside("sh", "-c", command)
            assert done.returncode == 0, f"{script}: {done.stdout[-2000:]} {done.stderr[-2000:]}"

    def plan(self, *words: str, command: tuple[str, ...] = ("plan",)) -> tuple[Path, str]:
        """The saved plan and its fingerprint; changes must be planned."""
        number = len(list(self.folder.glob("plan-*.json"))) + 1
        out = self.folder / f"plan-{number}.json"
        done = self.look(*command, "playbook.yaml", *words, "--out", out.name, expect=2)
        fingerprint = str(json.loads(out.read_text())["fingerprint"])
        assert fingerprint[:8] in done.stdout
        kept = (self.folder / "runs" / fingerprint[:8]).glob("plan*.json")
        return next(path for path in kept if path.read_bytes() == out.read_bytes()), fingerprint

    def apply(self, *words: str) -> None:
        """`apply` or `rollback apply` with all its words, to its end."""
        code, said = self._restarting(lambda: self._finished(*words))
        assert code == 0, f"kraft-migrate {' '.join(words)}: {code}\n{said[-6000:]}"

    def apply_until(self, pattern: str, *words: str) -> None:
        """`apply`, killed by SIGKILL at the first line that has the pattern."""
        code, said = self._restarting(lambda: self.apply_through({pattern: None}, *words))
        assert code == -signal.SIGKILL, f"apply ended with {code} before {pattern}: {said[-6000:]}"

    def _restarting(self, run: Callable[[], tuple[int, str]]) -> tuple[int, str]:
        """Where a run stops for a broker that has lost its request, what is printed is done.

        It is a fault of Kafka's (`tests/lab/dead_channel.py`), and can hit each broker once as control changes hands.
        """
        code, said = run()
        for _ in self.bed.hosts:
            named = told_to_restart(said) if code == NoProgress.exit_code else []
            if not named:
                break
            for node in named:
                unit = self.bed.shape.is_unit(node)
                restart = f"systemctl restart {self.bed.shape.unit}" if unit else "sv -w 330 restart /etc/service/kafka"
                self.bed.must(f"h{node}", restart)
            code, said = run()
        return code, said

    def _finished(self, *words: str) -> tuple[int, str]:
        done = self.bed.tool(*words, folder=self.folder)
        return done.returncode, f"{done.stdout}\n{done.stderr}"

    def apply_through(self, faults: dict[str, Callable[[], None] | None], *words: str) -> tuple[int, str]:
        """`apply` to its end, and what it said; at the first line with a pattern its fault is done (None: SIGKILL)."""
        command = self.bed.room.outside([sys.executable, "-m", "migrate", "apply", *words], self.folder)
        said: list[str] = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
            assert running.stdout is not None
            for line in running.stdout:
                said.append(line)
                for pattern in [pattern for pattern in faults if re.search(pattern, line)]:
                    fault = faults.pop(pattern)
                    (fault or running.kill)()
        return running.returncode, "".join(said)
