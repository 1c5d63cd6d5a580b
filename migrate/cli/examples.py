"""What a manual page has besides synopsis and options: examples, and the files a command reads and writes.

Shown at the end of each `--help`, and in docs/commands.md; tests hold that each example is a line that is taken.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from migrate.report.lines import WIDEST, fold

PROGRAM: Final = "kraft-migrate"


@dataclass(frozen=True, slots=True)
class Manual:
    """`examples`: the words behind the program's name, and what they are for; `files`: a path, and what it is."""

    examples: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str], ...] = ()


RUN_FILES: Final = (
    ("RUNS/PLAN/plan.json", "the saved plan; RUNS is the inventory's `runs`, PLAN the fingerprint's beginning"),
    ("RUNS/PLAN/journal.jsonl", "every step, effect, wait and proof; never edited"),
    ("RUNS/PLAN/backup/", "ZooKeeper's tree and every previous file"),
    ("RUNS/PLAN/report.html, .json", "written however the run ends"),
    ("RUNS/lock", "held while a run acts"),
)
LAB_FILES: Final = (("DIR/", "the whole cluster: data, logs, inventory.yaml, playbook.yaml, runs/"),)
PLAYBOOK_READ: Final = (("PLAYBOOK", "read, with the inventory that it names; nothing is written"),)
FLEET_READ: Final = (("FLEET", "read, with the inventories and bundles that it names"),)
LOOK: Final = PLAYBOOK_READ

MANUALS: Final[Mapping[str, Manual]] = {
    "lab up": Manual(
        (
            ("lab up --dir lab", "in ZooKeeper mode, three log directories per broker"),
            ("lab up --dir lab --from-bundle cluster.tar.gz --brokers 3", "in the shape of a cluster of yours"),
        ),
        LAB_FILES,
    ),
    "lab seed": Manual((("lab seed --dir lab", "topics, records, quotas, ACLs, SCRAM users, configs"),), LAB_FILES),
    "lab status": Manual((("lab status --dir lab", "each process: running or not, pid, ports"),), LAB_FILES),
    "lab down": Manual((("lab down --dir lab", "stop all of it; the folder stays"),), LAB_FILES),
    "lab demo": Manual(
        (
            ("lab demo", "the whole migration, in ./kraft-migrate-lab"),
            ("lab demo --dir look --until hybrid", "stop in the middle, the cluster runs on"),
            ("lab demo --rollback-from half-kraft-mode", "there, back, and there again"),
        ),
        LAB_FILES,
    ),
    "help": Manual((("help plan", "as `plan --help`"), ("help lab demo", "as `lab demo --help`"))),
    "inventory init": Manual(
        (("inventory init --zookeeper zk1:2181/kafka --out inventory.yaml", "then fill in what is marked"),),
        (("inventory.yaml", "written where there is no such file; it is never overwritten"),),
    ),
    "assess": Manual(
        (
            ("assess --zookeeper zk1:2181,zk2:2181/kafka", "a first look, from a connect string alone"),
            ("assess playbook.yaml --html assess.html", "everything that the inventory reaches, as a page too"),
            ("assess --from-bundle cluster.tar.gz", "far from the cluster, from what was kept of it"),
            ("assess playbook.yaml --target 4.3", "what a later upgrade to Kafka 4.3 meets here, too"),
        ),
        (("--html FILE", "written; nothing else is"), *PLAYBOOK_READ),
    ),
    "plan": Manual(
        (
            ("plan playbook.yaml", "every step up to the playbook's last stage"),
            ("plan playbook.yaml --to copy", "up to a stage"),
            ("plan playbook.yaml --stage finalize --output json", "one stage, for another program"),
        ),
        (RUN_FILES[0], ("--out FILE", "the plan once more")),
    ),
    "apply": Manual(
        (
            ("apply runs/1a2b3c4d/plan.json", "exactly that plan; the same command resumes after any stop"),
            ("apply 1a2b3c4d", "the same, by its id"),
            ("apply runs/1a2b3c4d/plan.json --until hybrid", "park after a stage, or a step such as kraft-mode/1"),
            ("apply runs/1a2b3c4d/plan.json --json-lines", "each event for a program, on stdout"),
            ("apply runs/1a2b3c4d/plan.json --on-event ./tell-mail", "each event to a command: docs/automation.md"),
        ),
        RUN_FILES,
    ),
    "rollback plan": Manual(
        (
            ("rollback plan playbook.yaml --out back.json", "the rollback from the cluster's current state"),
            ("rollback plan playbook.yaml --discard-differences", "the same, but discards what ZooKeeper lacks"),
        ),
        (RUN_FILES[0], ("--out FILE", "the plan once more")),
    ),
    "rollback apply": Manual(
        (("rollback apply back.json --confirm FINGERPRINT", "the plan's last line has the fingerprint"),), RUN_FILES
    ),
    "manual look": Manual(
        (("manual look -i inventory.yaml", "render how each node is looked at; bring the answers back"),),
        (("RUNS/manual/look-NODE/", "what goes to that node's host"),),
    ),
    "manual could-not": Manual(
        (('manual could-not -i inventory.yaml --reason "the disk is full"', "the run stops, with that reason"),),
        (("RUNS/manual/NN-NODE-EFFECT/could-not", "the reason, read by the run"),),
    ),
    "status": Manual(
        (("status playbook.yaml", "the stage of the cluster, what a wait is for, and the next command"),),
        PLAYBOOK_READ,
    ),
    "diff": Manual(
        (
            ("diff playbook.yaml", "now, at one metadata offset"),
            ("diff playbook.yaml --parquet rows", "with every row as Parquet, for a look of one's own"),
            ("diff playbook.yaml --spark-master spark://spark1:7077", "computed on another Spark (docs/comparison.md)"),
        ),
        (("--parquet FOLDER", "written; nothing else is"), *PLAYBOOK_READ),
    ),
    "fleet assess": Manual(
        (("fleet assess fleet.yaml --html fleet.html", "every cluster, on one page"),),
        (("--html FILE", "written; nothing else is"), *FLEET_READ),
    ),
    "fleet diff": Manual(
        (
            ("fleet diff fleet.yaml --output json", "every difference of every cluster"),
            ("fleet diff fleet.yaml --spark-master spark://spark1:7077", "bundles are read by that Spark"),
        ),
        (("--html FILE", "written; nothing else is"), *FLEET_READ),
    ),
    "directories show": Manual((("directories show playbook.yaml", "each one: id, state, replicas"),), LOOK),
    "directories inspect": Manual(
        (
            (
                "directories inspect /data/d1 /data/d2 --mode kraft --cluster-id ID --node-id 1",
                "would it start?",
            ),
        ),
        (("DIRECTORY/meta.properties", "read, as Kafka reads it when it starts"),),
    ),
    "directories verify": Manual((("directories verify playbook.yaml", "every replica against its disk"),), LOOK),
    "directories assign": Manual(
        (
            ("directories assign 4 playbook.yaml", "what would be sent for broker 4"),
            ("directories assign 4 playbook.yaml --yes", "send it"),
        ),
        (("RUNS/lock", "held while it is sent"), *PLAYBOOK_READ),
    ),
    "directories rescue": Manual(
        (
            ("directories rescue playbook.yaml", "dead directories, and what hangs on them"),
            ("directories rescue playbook.yaml --yes", "have Kafka fail over what hangs"),
        ),
        (("RUNS/lock", "held while it is sent"), *PLAYBOOK_READ),
    ),
    "directories collector": Manual(
        (("directories collector > collect_disks.py", "to be run on hosts that this one may not reach"),)
    ),
    "metadata dump": Manual((("metadata dump /var/lib/kafka-meta/__cluster_metadata-0", "each record a line"),)),
    "bundle create": Manual(
        (("bundle create cluster.tar.gz playbook.yaml", "everything that was seen, without secrets"),),
        (("FILE", "written with mode 0600; never overwritten"),),
    ),
    "bundle show": Manual((("bundle show cluster.tar.gz", "what is in it, and what could not be seen"),)),
    "backup create": Manual(
        (("backup create tree.jsonl.gz playbook.yaml", "ZooKeeper's tree: data, versions, ACLs"),),
        (("FILE", "written with mode 0600; it holds secrets as ZooKeeper does"),),
    ),
    "backup restore": Manual(
        (("backup restore tree.jsonl.gz playbook.yaml --path /config/topics/orders", "shown; --confirm does it"),),
        (("RUNS/restore-*/", "the journal of the restore"), ("RUNS/lock", "held while it writes")),
    ),
    "report write": Manual(
        (("report write runs/1a2b3c4d", "that run's report again, from its journal"),),
        (("RUN/report.html, report.json", "written"),),
    ),
    "report changes": Manual(
        (("report changes runs/1a2b3c4d --out changes", "what templates of Ansible or Puppet must have now"),),
        (("DIR/NODE.patch, DIR/NODE.yml", "written for each node whose file changed"),),
    ),
    "playbook lint": Manual((("playbook lint playbook.yaml inventory.yaml", "every problem, with line and column"),)),
    "playbook schema": Manual((("playbook schema > playbook.schema.json", "JSON Schema, for an editor"),)),
    "playbook show": Manual((("playbook show playbook.yaml", "every default, each window's next opening"),)),
    "explain": Manual(
        (
            ("explain B-ZKN-01 E-JAVA-01", "these codes"),
            ("explain MIGRATING", "a word"),
            ("explain", "every code in a line"),
        )
    ),
    "unlock": Manual(
        (
            ("unlock playbook.yaml", "who holds the lock, and does it live?"),
            ("unlock playbook.yaml --id LOCK", "remove exactly that one, of a dead owner"),
        ),
        PLAYBOOK_READ,
    ),
    "doctor": Manual(
        (
            ("doctor", "Java, Kafka's jars, memory, disk"),
            ("doctor --inventory inventory.yaml --hosts", "can a run work on each host?"),
            ("doctor --inventory inventory.yaml --rights", "what our identities lack"),
            ("doctor --inventory inventory.yaml --host-setup kafka-1 > setup.sh", "the script that root runs there"),
        ),
        (("~/.cache/kraft-migrate/", "Kafka's jars, fetched once and checked"),),
    ),
}


def examples(path: str) -> list[str]:
    """The examples of the command with that path, each with its comment above it."""
    known = MANUALS.get(path)
    found = () if known is None else known.examples
    return [text for line, what in found for text in (f"# {what}", f"{PROGRAM} {line}")]


def epilog(path: str, exit_codes: str) -> str:
    """The end of its help, in click's mark-up: examples, files, exit codes."""
    return "\n\n".join(filter(None, (*_sections(path), exit_codes)))


def _sections(path: str) -> Iterator[str]:
    known = MANUALS.get(path)
    if known is None:
        return
    yield _kept("Examples:", (f"  {line}" for line in examples(path)))
    if known.files:
        width = min(shutil.get_terminal_size().columns, WIDEST) - 4  # as click, and its indent
        rows = (row for name, what in known.files for row in (f"  {name}", f"      {what}"))
        yield _kept("Files:", (line for row in rows for line in fold(row, width)))


def _kept(title: str, lines: Iterator[str]) -> str:
    """A paragraph whose line ends click keeps."""
    return "\n".join(["\b", title, *lines])
