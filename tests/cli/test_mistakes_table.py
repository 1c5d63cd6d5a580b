"""Mistakes of a tired operator, a row each: what was typed, where, and what the answer must name.

The first rows are those of an operator who tried the tool for an hour, with the numbers of his list; the others are of
the same kinds: typos, wrong files, wrong order, wrong flags, stale plans.  Each runs through the command line itself.
An answer names what is wrong, and what to do next; none sends anybody to `--help` for what it could say itself.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate.cli.planning import save_plan
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.playbook.load import load_inventory
from tests.cli.commands import dead_port, inventory_in, kraft_migrate, playbook_in
from tests.cli.test_apply import make

HEAD = "apiVersion: kraft-migrate/v1\nkind: MigrationPlaybook\nmetadata: {name: p}\nspec:\n"
CLUSTER = "  cluster: {inventory: FILE}\n"
STAGES = ("assess", "prepare", "controllers", "migration-mode", "copy", "hybrid")


def playbook(text: str, file: str = "inventory.yaml") -> str:
    """A playbook with that under its spec."""
    return HEAD + CLUSTER.replace("FILE", file) + text


def stages(*names: str) -> str:
    """A playbook of those stages."""
    return playbook("  stages:\n" + "".join(f"    - name: {name}\n" for name in names))


FILES = {
    "tab.yaml": playbook("  policy:\n\thybrid_max_age: 24h\n"),
    "indent.yaml": playbook("  policy:\n    hybrid_max_age: 24h\n   canary: 2\n"),
    "deeper.yaml": playbook("  policy:\n      hybrid_max_age: 24h\n    no_progress_timeout: 2m\n"),
    "ids.yaml": playbook("  controllers: {ids: [0, 1, 2]}\n"),
    "two.yaml": playbook("  controllers: {ids: [3000, 3001]}\n"),
    "broker9.yaml": playbook("  policy:\n    directories: {brokers: {9: drive}}\n"),
    "swapped.yaml": stages("assess", "prepare", "controllers", "copy", "migration-mode"),
    "twice.yaml": stages(*STAGES[:5], "copy"),
    "alone.yaml": playbook("", "gone.yaml"),
    "kind.yaml": playbook("").replace("MigrationPlaybook", "MigrationPlaybok"),
    "version.yaml": playbook("").replace("/v1", "/v2"),
    "key.yaml": playbook("  polcy: {}\n"),
    "number.yaml": playbook("  policy: {no_progress_timeout: 3}\n"),
    "week.yaml": playbook("  policy: {hybrid_max_age: one week}\n"),
    "zone.yaml": playbook("  windows: {w: {timezone: Europe/Berlinn, allow: [Mon 21:00-22:00]}}\n"),
    "days.yaml": playbook("  windows: {w: {timezone: UTC, allow: [Mo-Do 21:00-22:00]}}\n"),
    "hours.yaml": playbook("  windows: {w: {timezone: UTC, allow: [Mon 21-05]}}\n"),
    "long.yaml": playbook("  windows: {w: {timezone: UTC, allow: [Mon 22:00-21:00, Fri 20:00-08:00]}}\n"),
    "nowindow.yaml": playbook("  stages:\n    - {name: assess, window: night}\n"),
    "empty.yaml": "",
}


@dataclass(frozen=True, slots=True)
class Place:
    """The folder `look` of a lab that is down, with two saved plans; nothing answers."""

    plan: Plan
    whole: Plan

    def filled(self, word: str) -> str:
        """The word with RUN, WHOLE and PORT put in."""
        for name, plan in (("WHOLE", self.whole), ("RUN", self.plan)):
            word = word.replace(f"{name}-FINGERPRINT", plan.fingerprint).replace(name, plan.short)
        return word


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Place]]:
    """Made once: no row changes it."""
    top = tmp_path_factory.mktemp("tired")
    look = top / "look"
    look.mkdir()
    with dead_port() as port:
        playbook_in(look)
        inventory_in(look, zookeeper=f"127.0.0.1:{port}/kafka")
        plans = []
        for stage in (Stage.CONTROLLERS, Stage.CLEANUP):
            plan, loose = make(look, stage)
            loose.unlink()
            save_plan(load_inventory(look / "inventory.yaml"), plan)
            plans.append(plan)
        for name, text in FILES.items():
            (look / name).write_text(text)
        (top / "cut.tar.gz").write_bytes(b"\x1f\x8b\x08")
        tree = gzip.compress(b'{"format":"kraft-migrate/zookeeper-tree/v1","connect":"x"}\n')
        kept = look / "runs" / plans[1].short / "backup" / "zookeeper.jsonl.gz"
        kept.parent.mkdir()
        for place in (kept, top / "tree.gz"):
            place.write_bytes(tree)
        yield top, Place(plans[0], plans[1])


PB, INV, PLAN = "look/playbook.yaml", "look/inventory.yaml", "look/runs/RUN/plan.json"
WHOLE = "look/runs/WHOLE/plan.json"
Row = tuple[str, str, int, tuple[str, ...]]

HIS: tuple[Row, ...] = (
    ("1", f"statsu {PB}", 64, ("No such command 'statsu'", "did you mean `kraft-migrate status`?")),
    ("2", "stauts", 64, ("did you mean `kraft-migrate status`?",)),
    ("3", "status", 64, ("neither a playbook nor an inventory was given", "--inventory FILE")),
    ("4", "status look/playbok.yaml", 1, ("No such file", "did you mean look/playbook.yaml?")),
    ("5", f"status -i {PB}", 64, ("this is a playbook, not an inventory", f"kraft-migrate status {PB}")),
    ("7", "status look", 64, ("a folder, and none of a run", f"did you mean {PB}?")),
    ("8", "plan", 64, ("name a playbook", f"kraft-migrate plan {PB}")),
    ("10", f"plan {PB} --stage hybird", 64, ("no stage 'hybird'", "did you mean hybrid?")),
    ("13", f"plan {PB} --to kraft", 64, ("no stage 'kraft'", "did you mean kraft-mode?")),
    ("14", "apply", 64, ("name a plan", PLAN, WHOLE)),
    ("15", f"apply {PB}", 64, ("2 plans of it are not carried out", "up to controllers, not begun", WHOLE)),
    ("16", "apply look/runs", 64, ("none of a run", "did you mean look/runs/", "look/runs/RUN")),
    ("17", "apply look/runs/deadbeef/plan.json", 1, ("No such file", PLAN)),
    ("19", f"rollback {PB}", 64, ("this is a playbook", f"kraft-migrate rollback plan {PB}")),
    ("20", f"rollback apply {PB}", 64, ("no plan of it as it is now is left", f"kraft-migrate rollback plan {PB}")),
    ("21", f"apply {WHOLE} --confirm WHOLE", 4, ("only the beginning of this plan's fingerprint", "read this plan")),
    ("22", f"rollback apply {PLAN}", 64, ("this plan goes forward", f"next kraft-migrate apply {PLAN}")),
    ("24", f"apply {WHOLE}", 4, ("the point of no return", "was not confirmed", "plan.txt")),
    ("25", f"apply {WHOLE} --confirm deadbeef", 4, ("another fingerprint than this plan's: 'deadbeef'",)),
    ("26", f"apply {WHOLE} --confirm WHOLE-FINGERPRINT", 4, ("the cluster's name was not given", "--confirm-cluster")),
    (
        "27",
        f"apply {WHOLE} --confirm WHOLE-FINGERPRINT --confirm-cluster prod",
        4,
        ("'prod' is not this cluster's name", "--confirm-cluster NAME"),
    ),
    ("31", "assess --zookeeper 127.0.0.1:1/kafka", 1, ("127.0.0.1:1 refuses connections: nothing listens",)),
    ("32", "assess --zookeeper zk.invalid:2181", 1, ("zk.invalid:2181 does not resolve",)),
    ("34", "assess --zookeeper http://zk1:2181", 1, ("is no zookeeper.connect", "host:port,host:port/chroot")),
    (
        "35",
        f"inventory init --zookeeper 127.0.0.1:1 --out {INV}",
        64,
        ("a file of that name is there", "it stays as it is", "give --out another name"),
    ),
    ("38", "playbook lint look/key.yaml", 1, ("unknown key spec.polcy", "did you mean `policy`?")),
    ("40", "playbook lint look/number.yaml", 1, ("look/number.yaml:6:12", "such as 15m or 24h")),
    ("41", "playbook lint look/week.yaml", 1, ("'one week'", "such as 15m or 24h")),
    ("43", "playbook lint look/tab.yaml", 1, ("look/tab.yaml:7:1", "a tab", "write spaces in place of the tab")),
    ("44", "playbook lint look/indent.yaml", 1, ("look/indent.yaml:8:4", "indented otherwise", "move the line")),
    ("44b", "playbook lint look/deeper.yaml", 1, ("look/deeper.yaml:8:5", "indented otherwise", "move the line")),
    ("45", "playbook lint look/ids.yaml", 1, ("ids [0, 1, 2] are not those of the inventory", "[3000, 3001, 3002]")),
    ("46", "playbook lint look/two.yaml", 1, ("ids [3000, 3001] are not those of the inventory",)),
    ("47", "playbook lint look/broker9.yaml", 1, ("broker 9 is not in the inventory", "has [0, 1, 2]")),
    ("48", "playbook lint look/swapped.yaml", 1, ("stage copy cannot follow controllers", "comes migration-mode")),
    ("49", "playbook lint look/twice.yaml", 1, ("stage copy is there twice",)),
    ("50", "playbook lint look/alone.yaml", 0, ("not compared with its inventory, which is missing", "gone.yaml")),
    ("51", "playbook lint look/kind.yaml", 1, ("kind is 'MigrationPlaybok'", "MigrationPlaybook")),
    ("52", "playbook lint look/version.yaml", 1, ("kraft-migrate/v1",)),
    ("54", "playbook lint look/zone.yaml", 1, ("Europe/Berlinn", "Europe/Berlin")),
    ("55", "playbook lint look/days.yaml", 1, ("look/days.yaml:6", "Mo")),
    ("56", "playbook lint look/hours.yaml", 1, ("look/hours.yaml:6", "21-05")),
    ("57", "playbook lint look/empty.yaml", 1, ("the file is empty", "start from one of playbooks/")),
    ("64", "lab demo --dir /proc/x", 1, ("/proc/x", "that can be made")),
    ("65", "lab status", 1, ("there is no lab here", "lab up --dir DIR")),
    ("66", "report write look", 64, ("none of a run",)),
    ("67", f"report changes {PLAN} --out {PB}", 64, ("a file is in its way", PB)),
    ("68", f"bundle show {PB}", 1, ("this is a playbook, not a bundle", f"bundle create NAME.tar.gz {PB}")),
    ("69", "bundle show no.tar.gz", 1, ("No such file", "bundle create")),
    ("70", f"unlock {PB} --id abc", 64, ("the lock's number, and 'abc' is none", "kraft-migrate unlock PLAYBOOK")),
    ("80", f"directories assign 9 {PB}", 64, ("there is no broker 9", "its brokers are 0, 1, 2")),
    ("92", f"status {PB}", 3, ("ZooKeeper cannot be read", "(2 more like it)", "next bring ZooKeeper back")),
    ("93", f"apply {PLAN}", 1, ("refuses connections", "check that ZooKeeper runs")),
    ("94", f"diff {PB}", 1, ("ZooKeeper cannot be read", "give the same command again")),
    ("94b", f"directories verify {PB}", 1, ("no session within", "give the same command again")),
    ("95", f"rollback plan {PB}", 3, ("ZooKeeper cannot be read", "bring ZooKeeper back")),
    ("96", f"plan {PB}", 1, ("ZooKeeper cannot be read", "make ZooKeeper answer")),
    ("104", f"plan {PB} --dry-run", 64, ("`kraft-migrate plan` is the dry run",)),
    ("104b", f"status {PB} -o yaml", 64, ("'yaml' is not one of 'text', 'json'",)),
    ("105", f"assess {PB} --zookeeper 127.0.0.1:1", 64, ("give --zookeeper alone", "take one of the two out")),
    ("106", "explain MIGRATING", 0, ("second restart", "directories verify")),
)
MORE: tuple[Row, ...] = (
    (
        "other order",
        f"rollback aply {PLAN}",
        64,
        ("No such command 'aply'", "did you mean `kraft-migrate rollback apply`?"),
    ),
    ("help typo", "help aplly", 64, ("did you mean `kraft-migrate apply`?",)),
    ("a folder", "plan look", 64, ("none of a run", PB)),
    ("the text", "apply look/runs/RUN/plan.txt", 64, ("the plan as text", f"kraft-migrate apply {PLAN}")),
    ("the page", "apply look/runs/RUN/plan.html", 64, ("the plan's page", f"kraft-migrate apply {PLAN}")),
    ("an id that is none", "apply deadbeef", 64, ("no run of that id", "RUN")),
    ("the same for report", "report deadbeef", 64, ("no run of that id", "RUN")),
    ("the same for status", "status deadbeef", 64, ("no run of that id", "RUN")),
    ("never carried out", f"report {PLAN}", 1, ("never carried out", "kraft-migrate apply", PLAN)),
    ("no run yet", f"report {PB}", 64, ("no run", "kraft-migrate apply")),
    ("an address", "status zk1:2181", 64, ("this is an address, not a file", "assess --zookeeper zk1:2181")),
    ("addresses", "assess zk1:2181,zk2:2181/kafka", 64, ("this is an address", "--zookeeper zk1:2181,zk2:2181/kafka")),
    ("until a typo", f"apply {PLAN} --until hybird", 64, ("no stage and no step 'hybird'", "its stages: discover")),
    ("until too far", f"apply {PLAN} --until finalize", 64, ("no stage and no step 'finalize'", "controllers")),
    ("both", f"plan {PB} --stage copy --to hybrid", 64, ("give one of them",)),
    ("out is a folder", f"plan {PB} --out look", 64, ("no file can be written there", "look")),
    ("out is another", f"plan {PB} --out {INV}", 1, ("there is another file", "stays as it is", "another name")),
    ("page nowhere", f"assess {PB} --html nope/x.html", 64, ("there is no folder", "nope")),
    ("parquet a file", f"diff {PB} --parquet {PB}", 64, ("a file is in its way",)),
    ("no such code", "explain B-DIR-99", 1, ("no code or word 'B-DIR-99'", "did you mean B-DIR-")),
    ("word typo", "explain MIGRATNG", 1, ("did you mean MIGRATING?",)),
    ("unlock whose", "unlock", 64, ("neither a playbook nor an inventory was given",)),
    ("swapped words", f"directories assign {PB} 4", 64, ("BROKER is a broker's id", "assign 4 playbook.yaml")),
    ("backup over it", f"backup create {PB}", 64, ("the name of a new file comes first", f"create NAME.jsonl.gz {PB}")),
    (
        "backup of what",
        f"backup restore {PB}",
        1,
        ("a playbook, not a backup", f"look/runs/WHOLE/backup/zookeeper.jsonl.gz {PB} --path PATH"),
    ),
    ("backup of nothing", f"backup restore {INV}", 1, ("an inventory, not a backup", "zookeeper.jsonl.gz")),
    ("no path", f"backup restore tree.gz {PB}", 64, ("--path is missing", f"restore tree.gz {PB} --path PATH")),
    ("bundle over it", f"bundle create {PB}", 64, ("the name of a new file comes first", f"create NAME.tar.gz {PB}")),
    ("fleet of one", f"fleet assess {PB}", 1, ("this is a playbook, not a fleet", "fleet-example.yaml")),
    ("fleet of an inventory", f"fleet assess {INV}", 1, ("this is an inventory, not a fleet",)),
    ("show a plan", f"playbook show {PLAN}", 64, ("a saved plan, not a playbook", "playbook show ", PB, "plan.txt")),
    ("lint a plan", f"playbook lint {PLAN}", 1, ("a saved plan, not a playbook", f"kraft-migrate status {PLAN}")),
    ("inventory of a plan", f"status -i {PLAN}", 1, ("a saved plan, not a playbook or an inventory",)),
    ("bundle of a plan", f"bundle show {PLAN}", 1, ("this is a saved plan, not a bundle", "plan.txt")),
    ("plan of a backup", "apply tree.gz", 1, ("this is a backup of ZooKeeper, not a saved plan", "backup restore")),
    ("no such schema", "playbook schema Playbook", 64, ("no kind 'Playbook'", "MigrationPlaybook")),
    ("no lab", "lab down", 1, ("there is no lab here", "lab up --dir DIR")),
    ("a folder in use", "lab up --dir look", 1, ("the folder is not empty and holds no lab", "empty or new folder")),
    ("no address", "inventory init", 64, ("Missing option '--zookeeper'",)),
    ("hosts of what", "doctor --hosts", 64, ("need --inventory FILE",)),
    ("event quote", f"apply {PLAN} --on-event 'x", 64, ("No closing quotation", "quote its words")),
    ("bundle of what", f"plan {PB} --from-bundle {PB}", 1, ("this is a playbook, not a bundle",)),
    ("cut bundle", "bundle show cut.tar.gz", 1, ("E-BUNDLE-01", "copy the bundle again")),
    ("one too many", f"status {PB} extra", 64, ("unexpected extra argument (extra)",)),
    ("no such story", "lab demo --rollback-from hybird --dir x", 64, ("'hybird' is none of", "hybrid")),
    ("window of nobody", "playbook lint look/nowindow.yaml", 1, ("night",)),
    ("hours mixed up", "playbook lint look/long.yaml", 0, ("ok; window w: Mon 22:00-21:00 is 23 hours of each",)),
    ("Spark's words", f"diff {INV} --spark-conf spark.executor.memory", 64, ("spark.NAME=VALUE",)),
    ("unlock of what is down", f"unlock {PB} --id 5", 1, ("refuses connections",)),
)


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "code", "parts"), [pytest.param(*row[1:], id=row[0]) for row in (*HIS, *MORE)])
def test_the_answer_names_what_is_wrong_and_what_to_do(
    typed: str, code: int, parts: tuple[str, ...], made: tuple[Path, Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What, where, what next."""
    top, place = made
    monkeypatch.chdir(top)
    for journal in top.glob("look/runs/*/journal.jsonl"):  # of the row that began a run
        journal.unlink()
    ended = kraft_migrate(*place.filled(typed).split())
    said = " ".join((ended.out + ended.err).split())
    assert ended.code == code, said
    for part in parts:
        assert place.filled(part) in said
    assert "Errno" not in ended.err
    assert "--help" not in ended.err or ended.err.startswith("Usage:"), "it says itself what to do"
    assert "make the plan again" not in said
    assert place.whole.fingerprint not in said.replace(place.filled(typed), "")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["playbook.yaml", "inventory.yaml"])
def test_a_plan_whose_files_were_edited_is_stale(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named by the file that changed; by the playbook no plan of it is left."""
    plan, loose = make(tmp_path)
    loose.unlink()
    path = save_plan(load_inventory(tmp_path / "inventory.yaml"), plan)
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text((tmp_path / name).read_text() + "# edited\n")
    ended = kraft_migrate("apply", path)
    assert ended.code == 6
    assert f"{tmp_path / name}" in ended.err
    assert f"kraft-migrate plan {tmp_path / 'playbook.yaml'} --to controllers" in ended.err
    ended = kraft_migrate("apply", "playbook.yaml")
    assert (ended.code, "next   kraft-migrate plan playbook.yaml" in ended.err) == (64, True)
