"""An operator's evening on a bed: there by half, back, there to the end, power off; by the README's commands."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from migrate.playbook.load import load_inventory
from tests.bed.bed import Bed
from tests.bed.operator import Operator

COPY: Final = ".kraft-migrate-"  # backups, and what was set aside
HALF: Final = r"kraft-mode/1: Verified"  # the second roll has two more brokers before it
DOCTOR: Final = ("doctor", "--inventory", "inventory.yaml", "--hosts")


def there_and_back_and_there(bed: Bed, folder: Path) -> None:
    """A run that is killed in the second roll, rolled back, migrated; then no host has power, and each boots again."""
    begun = time.monotonic()

    def seen(what: str) -> None:
        print(f"[{time.monotonic() - begun:6.1f}] {what}", flush=True)

    operator = begin(bed, folder)
    a_login_file_that_prints_is_named(operator)
    seen("seeded, rights installed; doctor and assess find nothing against it")
    files = {host: configuration(bed, host) for host in bed.hosts}

    plan, _ = operator.plan("--to", "kraft-mode")
    both = "/etc/kafka/server.properties -> /opt/kafka/config/broker.properties"
    assert (both in plan.with_suffix(".txt").read_text()) == bool(bed.shape.linked_file)
    operator.apply_until(HALF, str(plan))
    seen("killed in the second roll")
    plan, fingerprint = operator.plan(command=("rollback", "plan"))
    operator.apply("rollback", "apply", str(plan), "--confirm", fingerprint)
    operator.serving()
    seen("rolled back")
    assert {host: configuration(bed, host) for host in bed.hosts} == files
    assert "ZooKeeper" in operator.tool("status", "--inventory", "inventory.yaml").stdout
    operator.client("write", "between", "500")

    plan, fingerprint = operator.plan()
    operator.apply("apply", str(plan), "--confirm", fingerprint, "--confirm-cluster", "prod")
    seen("migrated")
    zookeeper_is_stopped_by_hand(operator)
    seen("ZooKeeper stopped for good")
    serves_after_a_power_cut(operator, {"before": 2000, "between": 500})
    assert bed.must("h1", "systemctl is-active zookeeper || true") == "inactive\n"
    seen("all hosts powered off and booted; the cluster serves, and no boot starts ZooKeeper")


def begin(bed: Bed, folder: Path) -> Operator:
    """A seeded cluster, an inventory, the printed rights on every host, and nobody who finds anything against it."""
    operator = Operator(bed, folder)
    operator.seed()
    operator.inventory()
    operator.rights()
    operator.tool(*DOCTOR)
    operator.look("assess", "playbook.yaml", expect=0)
    return operator


def a_login_file_that_prints_is_named(operator: Operator) -> None:
    """Each answer of that host would begin with it."""
    files = " ".join(f"/home/{operator.bed.shape.login}/{name}" for name in (".bashrc", ".cshrc"))
    operator.bed.must("h2", f"for file in {files}; do echo echo Welcome >$file; done")
    assert "E-HOST-29" in operator.tool(*DOCTOR, expect=(1,)).stdout
    operator.bed.must("h2", f"rm {files}")


def zookeeper_is_stopped_by_hand(operator: Operator) -> None:
    """By the page's commands, once nobody uses it; its data is where it was."""
    status = operator.tool("status", "playbook.yaml").stdout
    assert "nobody uses it any more" in status
    assert "Next comes Kafka 4" in status
    operator.bed.must("h1", "systemctl disable --now zookeeper.service && systemctl mask zookeeper.service")
    assert operator.bed.must("h1", "systemctl is-enabled zookeeper || true") == "masked\n"
    assert operator.bed.must("h1", "ls -d /srv/zookeeper/version-2")
    assert "all of its servers are stopped" in operator.tool("status", "playbook.yaml").stdout


def serves_after_a_power_cut(operator: Operator, written: dict[str, int]) -> None:
    """No file speaks of ZooKeeper; each unit comes up by itself; every record is there, and more are taken."""
    bed = operator.bed
    for node in load_inventory(operator.folder / "inventory.yaml").nodes:
        assert "zookeeper" not in bed.must(str(node.host), f"cat {node.config}")
    bed.power_off()
    bed.boot()
    operator.serving()
    operator.client("write", "after", "500")
    records = operator.client("read").split()
    expected = [f"{word}-{n}" for word, count in {**written, "after": 500}.items() for n in range(count)]
    assert sorted(records) == sorted(expected)


def configuration(bed: Bed, host: str) -> str:
    """Owner, group, mode and content of each file in /etc/kafka/, without copies of ours; what links lead to, too."""
    found = f"find -L /etc/kafka/ -type f ! -name '*{COPY}*' | sort | while read -r file"
    return bed.must(host, f"{found}; do stat -c '%N %U:%G' $file; stat -L -c '%U:%G %a' $file; base64 $file; done")
