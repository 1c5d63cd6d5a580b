"""`fleet`: every cluster has its own answer, and one that was not read is never a good one."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.cli.answers import answer_schema
from migrate.cli.fleet_looks import assess_all
from migrate.diff.fleet import ClusterAnswer
from migrate.model.difference import DiffReport, SparkWhere
from migrate.model.ids import NodeId
from migrate.model.inventory import Target
from migrate.model.ledger import LedgerRow, LedgerSummary, ReplicaState
from migrate.model.stage import Stage
from migrate.model.world import World
from migrate.observe.bundle import write_bundle
from migrate.report.fleet import fleet_lines
from tests.cli.commands import Ended, kraft_migrate, process
from tests.playbook.test_load_fleet import written
from tests.steps.looks import WRONG, whole
from tests.testing import worlds

EQUAL = DiffReport(500, 3, {"topic": {"EQUAL": 6}}, (), ())


def kept(folder: Path, name: str, world: World) -> str:
    """A cluster of a fleet's file, known by its bundle."""
    write_bundle(str(folder / f"{name}.bundle"), world, 1_700_000_000)
    return f"{{name: {name}, bundle: {name}.bundle}}"


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """A healthy cluster, one with a blocker, and one whose bundle is not there."""
    sick = worlds.with_zk(whole(Stage.ASSESS), topics_without_id=("orders",))
    return written(
        tmp_path,
        kept(tmp_path, "healthy", whole(Stage.ASSESS)),
        kept(tmp_path, "sick", sick),
        "{name: gone, bundle: gone.bundle}",
    )


# -- assess ----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_every_cluster_has_a_row_and_the_worst_decides_the_code(three: Path) -> None:
    """Counted, in the file's order, with the blocker's own line and the error's."""
    answer = kraft_migrate("fleet", "assess", three)
    assert answer.code == 3
    lines = answer.out.splitlines()
    assert lines[1].strip() == "3 clusters: 1 BLOCKED, 1 NOT READ, 1 READY WITH WARNINGS"
    table = lines[4 : lines.index("", 4)]
    rows = [line.split()[0] for line in table if line[2] != " "]  # a line with more blanks goes on with a cell
    assert rows == ["healthy", "sick", "gone"]
    assert "B-ZKN-03" in answer.out
    assert "gone: not read" in answer.out
    assert str(three.parent / "gone.bundle") in "".join(answer.out.split())
    assert sorted(line.split("] ")[1].split(":")[0] for line in answer.err.splitlines()) == ["gone", "healthy", "sick"]


@pytest.mark.slow
def test_columns_stand_in_one_order_whatever_comes_first(tmp_path: Path) -> None:
    """A cluster that was not read has few of them."""
    path = written(tmp_path, "{name: gone, bundle: gone.bundle}", kept(tmp_path, "healthy", whole(Stage.ASSESS)))
    header = kraft_migrate("fleet", "assess", path).out.splitlines()[3].split()
    assert (header[:3], header[-2:]) == (["cluster", "verdict", "checks"], ["found", "took"])


@pytest.mark.slow
@pytest.mark.parametrize("width", [72, 80, 110, 140])
def test_the_table_fits_the_terminal(three: Path, width: int) -> None:
    """What does not fit is in JSON and in the page."""
    fleet, answers = assess_all(three)
    table = [line.text for line in fleet_lines(fleet, answers, width)[3:8]]
    assert max(map(len, table)) <= width
    assert ("partitions" in table[0]) == (width >= 110)


@pytest.mark.slow
def test_without_a_blocker_the_exit_code_is_that_of_the_cluster_that_cannot_be_read(tmp_path: Path) -> None:
    """A healthy one alone ends in 0."""
    healthy = kept(tmp_path, "healthy", whole(Stage.ASSESS))
    assert kraft_migrate("fleet", "assess", written(tmp_path, healthy)).code == 0
    assert kraft_migrate("fleet", "assess", written(tmp_path, healthy, "{name: gone, bundle: gone}")).code == 1


@pytest.mark.slow
def test_the_same_findings_as_the_clusters_own_command(three: Path) -> None:
    """Field by field, as JSON."""
    found = json.loads(kraft_migrate("fleet", "assess", three, "--output", "json").out)
    assert found["schema"] == "kraft-migrate/fleet/v2"
    healthy, sick, gone = found["clusters"]
    for row in (healthy, sick):
        alone = json.loads(kraft_migrate("assess", "--from-bundle", row["bundle"], "--output", "json").out)
        assert row["findings"] == alone["findings"]
        assert row["counts"] == alone["counts"]
        assert (row["verdict"], row["checks"]) == (alone["verdict"], alone["checks"])
    assert gone["verdict"] == "NOT READ"
    assert gone["error"]["id"].startswith("E-")
    assert "findings" not in gone


@pytest.mark.slow
def test_a_row_names_release_brokers_partitions_and_the_last_look(three: Path, tmp_path: Path) -> None:
    """On the terminal, in JSON and in the page; of a cluster that was not read nothing is known."""
    page = tmp_path / "fleet.html"
    answer = kraft_migrate("fleet", "assess", three, "--html", page)
    for name in ("release", "brokers", "partitions", "last look"):
        assert name in answer.out.splitlines()[3]
    healthy, _, gone = json.loads(kraft_migrate("fleet", "assess", three, "--output", "json").out)["clusters"]
    assert (healthy["release"], healthy["brokers"], healthy["partitions"]) == ("3.9", 3, 6)
    assert healthy["looked"] == "2023-11-14 22:13:20 UTC"
    assert "release" not in gone
    words = " ".join(page.read_text().split())
    assert '<td class="keep" data-name="last look">2023-11-14 22:13:20 UTC</td>' in words
    assert len(re.findall(r'<td class="keep" data-name="[a-z ]+">unknown</td>', words)) == 4


@pytest.mark.slow
def test_a_map_shows_the_stage_of_each_cluster(tmp_path: Path) -> None:
    """A letter per stage within 80 columns, on the page too; what is not known is a question mark, never to come."""
    worlds = {
        "before": whole(Stage.ASSESS),
        "half": whole(Stage.MIGRATION_MODE),
        "dark": World(inventory=whole(Stage.ASSESS).inventory),
    }
    bundles = [kept(tmp_path, name, world) for name, world in worlds.items()]
    path, page = written(tmp_path, *bundles, "{name: gone, bundle: gone.bundle}"), tmp_path / "fleet.html"
    said = [line.text for line in fleet_lines(*assess_all(path), 80)]
    at = said.index("Stages, from assess to cleanup")
    assert [line.split()[:2] for line in said[at + 2 : at + 6]] == [
        ["before", "d........."],
        ["half", "dddh......"],
        ["dark", "??????????"],
        ["gone", "??????????"],
    ]
    assert said[at + 6] == "d done  h half done  . to come  ? unknown"
    assert max(map(len, said[at : at + 7])) <= 80
    answer = kraft_migrate("fleet", "assess", path, "--html", page, "--output", "json")
    rows = json.loads(answer.out)["clusters"]
    assert [(row.get("stage"), row.get("half_done")) for row in rows] == [
        ("assess", None),
        ("controllers", "migration-mode"),
        (None, None),
        (None, None),
    ]
    text = page.read_text()
    assert text.count('title="cleanup: unknown"') == 2
    assert text.count('title="migration-mode: half done"') == 1


@pytest.mark.slow
def test_one_page_shows_them_all(three: Path, tmp_path: Path) -> None:
    """A map with a number for each area, and each cluster's findings below; written for its owner alone."""
    page = tmp_path / "fleet.html"
    kraft_migrate("fleet", "assess", three, "--html", page)
    text = page.read_text()
    assert page.stat().st_mode & 0o777 == 0o600
    assert 'class="tick bad-cell" data-name="ZKN">2</td>' in text
    assert text.count("<details id=") == 3
    assert text.count(" open>") == 2, "what needs somebody is unfolded"
    assert "<script" not in text
    assert "http" not in text.split("</style>")[1]


@pytest.mark.slow
def test_a_zookeeper_that_does_not_answer_is_one_row(tmp_path: Path) -> None:
    """The others are looked at all the same."""
    path = written(tmp_path, "{name: far, zookeeper: '127.0.0.1:1'}", kept(tmp_path, "healthy", whole(Stage.ASSESS)))
    answer = kraft_migrate("fleet", "assess", path)
    assert answer.code == 1
    assert "1 NOT READ, 1 READY" in answer.out


@pytest.mark.slow
def test_a_cluster_that_cannot_be_seen_is_incomplete_and_never_0(tmp_path: Path) -> None:
    """In the row, the headline, JSON and HTML, with its share of checks; within 110 columns."""
    dark = World(inventory=whole(Stage.ASSESS).inventory)
    path = written(tmp_path, kept(tmp_path, "healthy", whole(Stage.ASSESS)), kept(tmp_path, "dark", dark))
    page = tmp_path / "fleet.html"
    answer = kraft_migrate("fleet", "assess", path, "--html", page)
    assert answer.code == 1
    lines = answer.out.splitlines()
    assert lines[1].strip() == "2 clusters: 1 INCOMPLETE, 1 READY WITH WARNINGS"
    assert max(map(len, lines)) <= 110
    found = json.loads(kraft_migrate("fleet", "assess", path, "--output", "json").out)["clusters"][1]
    assert found["verdict"] == "INCOMPLETE"
    share = f"{found['checks']['made']}/{found['checks']['asked']}"
    assert any(line.split()[:3] == ["dark", "INCOMPLETE", share] for line in lines)
    assert share in page.read_text()
    assert "not seen: ZooKeeper; " in answer.out


@pytest.mark.parametrize("command", ["fleet-assess", "fleet-diff"])
def test_the_schema_names_what_a_cluster_is_known_by(command: str) -> None:
    """Each row has one of them, with its place."""
    schema = answer_schema(command)
    rows = schema["properties"]["result"]["properties"]["clusters"]["items"]["anyOf"]
    for row in rows:
        found = schema["$defs"][row["$ref"].removeprefix("#/$defs/")]["properties"]
        assert {str(target) for target in Target} <= found.keys()
    assert len(rows) > 1


# -- diff ------------------------------------------------------------------------------------------------------------
def diffed(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reports: dict[str, DiffReport],
    *words: object,
    ledger: LedgerSummary | None = None,
    asked: list[SparkWhere] | None = None,
) -> Ended:
    """`fleet diff`, each cluster's comparison ending in that report; `asked` gets the place of its session."""

    def session(where: SparkWhere) -> nullcontext[object]:
        if asked is not None:
            asked.append(where)
        return nullcontext(object())

    monkeypatch.setattr("migrate.cli.fleet_looks.spark_session", session)
    monkeypatch.setattr(
        "migrate.cli.fleet_looks.compare_members",
        lambda _handle, members, _today: [(0.5, ClusterAnswer(reports[member.name], ledger)) for member in members],
    )
    return kraft_migrate("fleet", "diff", path, *words)


def copied(name: str) -> World:
    """A copied cluster of that name."""
    world = whole(Stage.COPY)
    return replace(world, inventory=replace(world.inventory, name=name))


@pytest.mark.parametrize(("words", "master"), [((), "local[3]"), (("--spark-master", "local[2]"), "local[2]")])
def test_a_task_a_core_unless_a_master_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], master: str
) -> None:
    """Who names two threads wants two clusters in memory, not one a core."""
    asked: list[SparkWhere] = []
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    path = written(tmp_path, *(kept(tmp_path, name, copied(name)) for name in "abc"))
    reports = dict.fromkeys("abc", EQUAL)
    assert diffed(path, monkeypatch, reports, *words, asked=asked).code == 0
    assert [where.master for where in asked] == [master]


def test_one_different_cluster_is_2_with_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are told to be equal."""
    path = written(tmp_path, kept(tmp_path, "one", copied("one")), kept(tmp_path, "two", copied("two")))
    other = replace(EQUAL, counts={"topic-config": {"DIFFERS": 1}}, differences=(WRONG,))
    answer = diffed(path, monkeypatch, {"one": EQUAL, "two": other})
    assert answer.code == 2
    assert "2 clusters: 1 DIFFERENT, 1 EQUAL" in answer.out
    assert "DIFFERS topic-config orders retention.ms: ZooKeeper 1, KRaft 2" in answer.out
    assert diffed(path, monkeypatch, {"one": EQUAL, "two": EQUAL}).code == 0


def test_replicas_that_are_not_proven_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the terminal, in JSON and on the page, where the disks were reported; equal stays equal."""
    path = written(tmp_path, kept(tmp_path, "one", copied("one")))
    lost = LedgerRow("orders", "T1", 3, 2, ReplicaState.LOST, "D2", "LOST")
    states = {
        NodeId(1): {ReplicaState.VERIFIED: 4},
        NodeId(2): {ReplicaState.VERIFIED: 3, ReplicaState.LOST: 1},
    }
    ledger = LedgerSummary(500, states, (lost,))
    page = tmp_path / "fleet.html"
    answer = diffed(path, monkeypatch, {"one": EQUAL}, "--html", page, ledger=ledger)
    assert answer.code == 0
    assert "1 of 8 not VERIFIED" in answer.out
    for text in (answer.out, page.read_text()):
        assert "broker 2: 1 LOST, 3 VERIFIED" in text
        assert "orders-3 on broker 2: LOST" in text
    said = diffed(path, monkeypatch, {"one": EQUAL}, "--output", "json", ledger=ledger)
    found = json.loads(said.out)["clusters"][0]["ledger"]
    assert (found["replicas"], found["not_verified"], found["rows"][0]["partition"]) == (8, 1, 3)
    proven = LedgerSummary(500, {NodeId(1): {ReplicaState.VERIFIED: 4}}, ())
    assert "4 VERIFIED" in diffed(path, monkeypatch, {"one": EQUAL}, ledger=proven).out


def test_what_is_not_listed_or_not_compared_is_counted_in_the_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list that was cut has fewer rows than there are differences; what was not seen is told of equal ones, too."""
    path = written(tmp_path, kept(tmp_path, "one", copied("one")), kept(tmp_path, "two", copied("two")))
    reports = {
        "one": replace(EQUAL, blind_spots=("/config/users/x: this identity may not read it",)),
        "two": replace(
            EQUAL,
            counts={"partition": {"EQUAL": 3, "ONLY_ZK": 20_000}, "topic-config": {"DIFFERS": 60}},
            differences=tuple(replace(WRONG, field=f"f{number:02}") for number in range(45)),
        ),
    }
    page = tmp_path / "fleet.html"
    answer = diffed(path, monkeypatch, reports, "--html", page)
    assert "0 differences; 1 blind spot" in answer.out
    assert "20,060 differences in partition, topic-config" in answer.out
    assert "and 5 more: see --output json\n" in answer.out
    assert 'data-name="partition">20000</td>' in page.read_text()
    states = {NodeId(1): {ReplicaState.LOST: 30_000}}
    rows = tuple(LedgerRow("orders", "T1", number, 1, ReplicaState.LOST, "D2", "LOST") for number in range(21))
    told = diffed(path, monkeypatch, reports, ledger=LedgerSummary(500, states, rows)).out
    assert "and 29,980 more; `--output json` has the first 21" in told


def test_what_never_stood_still_is_not_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """UNSETTLED, and 2."""
    path = written(tmp_path, kept(tmp_path, "one", copied("one")))
    answer = diffed(path, monkeypatch, {"one": replace(EQUAL, unsettled=(WRONG,), looks=6)})
    assert (answer.code, "1 cluster: 1 UNSETTLED" in answer.out) == (2, True)


def test_a_zookeeper_alone_has_nothing_to_be_compared_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said in its row, with what to name instead."""
    path = written(tmp_path, "{name: far, zookeeper: '127.0.0.1:1'}")
    answer = diffed(path, monkeypatch, {})
    assert answer.code == 64
    assert "name the cluster by its inventory" in answer.out


@pytest.mark.spark
def test_many_clusters_are_compared_in_one_session(tmp_path: Path) -> None:
    """On real Spark, side by side: four equal ones, and one in which ZooKeeper has another value."""
    clusters = [kept(tmp_path, f"c{number}", copied(f"c{number}")) for number in range(4)]
    other = worlds.with_entity(copied("other"), "topic-config", "orders", "segment.ms", "77")
    answer = process("fleet", "diff", written(tmp_path, *clusters, kept(tmp_path, "other", other)), "--output", "json")
    found = {row["name"]: row for row in json.loads(answer.out)["clusters"]}
    assert {name: row["verdict"] for name, row in found.items()} == {
        **{f"c{number}": "EQUAL" for number in range(4)},
        "other": "DIFFERENT",
    }
    assert [row["field"] for row in found["other"]["diff"]["differences"] if not row["rule"]] == ["segment.ms"]
    assert answer.code == 2
