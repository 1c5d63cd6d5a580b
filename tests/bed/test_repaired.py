"""Brokers that do not start, on real hosts: what is printed is typed by root as it stands.

The first is a unit that stays down, and the run's journal is lost; the second is runit's, and its file is gone.
"""

from __future__ import annotations

import re
import shlex
import time
from pathlib import Path
from typing import Final

import pytest

from tests.bed.bed import Bed
from tests.bed.conftest import hosts_or_skip
from tests.bed.operator import PLAYBOOK, Operator
from tests.bed.shape import SHAPES

pytestmark = [pytest.mark.hosts, pytest.mark.kafka, pytest.mark.long]
FILE: Final = "/etc/kafka/server.properties"
FAULT: Final = "max.connections.per.ip.overrides=no-such-host.invalid:1"  # see tests/lab/test_repaired_files.py
REPAIR: Final = "max.connections.per.ip.overrides=127.0.0.9:1"
TYPED: Final = re.compile(r"on (h\d): ((?:systemctl|/usr/bin/sv|cp) [^;)`]+)")
PLAN: Final = re.compile(r"make a new plan: `kraft-migrate ([^`]+)`")
SAID: Final = {  # its log; of what runit starts again there is none
    1: "UnknownHostException: no-such-host.invalid",
    2: "waiting for broker 2 to stay up (its process on h2 ends, and is started again)",
}


class Root:
    """Types on hosts, and gives the same command."""

    def __init__(self, bed: Bed, folder: Path) -> None:
        self.bed = bed
        self.operator = Operator(bed, folder)
        self.plan = Path()
        self._begun = time.monotonic()

    def repairs(self, node: int) -> None:
        """The file of a node, wherever it leads."""
        self.bed.must(f"h{node}", f"sed -i s/{FAULT}/{REPAIR}/ $(readlink -f {FILE})")

    def plans(self, *words: str) -> None:
        """To the end of the first roll."""
        self.plan, _ = self.operator.plan(*words)

    def applies(self) -> tuple[int, str]:
        """The same command: exit code, and what it said in one line."""
        code, said = self.operator.apply_through({}, str(self.plan))
        print(f"[{time.monotonic() - self._begun:6.1f}] exit code {code}: {said[-1500:]}", flush=True)
        return code, " ".join(said.split())

    def types(self, said: str) -> list[str]:
        """Each command that is printed for a host."""
        typed = dict.fromkeys(TYPED.findall(said))
        for host, command in typed:
            self.bed.must(host, command)
        return [command for _, command in typed]


def test_of_brokers_that_do_not_start_what_is_printed_is_typed(tmp_path: Path) -> None:
    """The roll passes the first one by a new plan, and the second one gets its file back."""
    with hosts_or_skip(SHAPES["mixed"]) as bed:
        root = Root(bed, tmp_path)
        operator = root.operator
        operator.seed()
        operator.inventory()
        operator.rights()
        (tmp_path / "playbook.yaml").write_text(PLAYBOOK.replace("no_progress_timeout: 5m", "no_progress_timeout: 60s"))
        root.plans("--to", "controllers")
        operator.apply("apply", str(root.plan))
        stays_down = "[Service]\\nRestartPreventExitStatus=1\\n"  # as W-OPS-11 prints it
        bed.must("h1", f"printf '{stays_down}' >/etc/systemd/system/kafka.service.d/disk.conf; systemctl daemon-reload")
        for node in (1, 2):
            bed.must(f"h{node}", f"echo {FAULT} >>{FILE}")
        operator.serving()
        root.plans("--to", "migration-mode")
        for node, judge in ((1, the_journal_is_lost), (2, the_file_is_gone)):
            _, said = root.applies()
            assert re.findall(r"step migration-mode/(\d)", said)[-1] == str(node)
            assert SAID[node] in said
            judge(root)


def the_journal_is_lost(root: Root) -> None:
    """The unit stays down: its start is printed, and the command of a new plan."""
    root.repairs(1)
    (root.plan.parent / "journal.jsonl").unlink()
    code, said = root.applies()
    assert code == 6, said
    assert root.types(said) == ["systemctl start kafka.service"]
    root.operator.serving()
    command = PLAN.search(said)
    assert command is not None, said
    verb, playbook, *words = shlex.split(command[1])
    assert (verb, Path(playbook).name) == ("plan", "playbook.yaml")
    root.plans(*words)


def the_file_is_gone(root: Root) -> None:
    """The copy is named, with the owner and mode that the file had."""
    was = root.bed.must("h2", f"stat -c '%U %G %a' {FILE}; rm {FILE}")
    code, said = root.applies()
    assert code == 6, said
    assert f"{FILE} of broker 2 on h2 is gone" in said
    [typed] = root.types(said)
    assert re.fullmatch(rf"cp -p {FILE}\.kraft-migrate-backup-[0-9a-f]{{8}} {FILE}", typed)
    assert root.bed.must("h2", f"stat -c '%U %G %a' {FILE}") == was
