"""A journal with one changed line, its checksum right: nothing is resumed or concluded from it, and `status` says so.

Its report is in `test_report`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrate.cli.status import unended, with_run
from migrate.errors import JournalDamaged
from migrate.report.status import as_text
from migrate.run import journal as journals
from migrate.run.journal import HEAD, Journal
from migrate.run.past_runs import readable
from tests.cli.test_status_run import half_rolled
from tests.run.gated import parked_behind_broker_0

CHANGED = 3
SAID = f"line {CHANGED + 1}: it does not follow the line before it"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder of runs with one that parked, and whose third line somebody wrote anew, with its length and CRC."""
    parked_behind_broker_0(tmp_path / "run")
    path = tmp_path / "run" / "journal.jsonl"
    path.write_bytes(changed(path.read_bytes()))
    return tmp_path


def changed(raw: bytes) -> bytes:
    """The journal with that line another second, and its length and CRC right."""
    lines = raw.splitlines(keepends=True)
    body = json.loads(lines[CHANGED - 1][HEAD:])
    lines[CHANGED - 1] = journals._line(body["n"], body["t"] + 1.0, body["event"], body["data"], body["prev"])
    return b"".join(lines)


@pytest.mark.slow
def test_a_run_is_not_resumed_from_it(runs: Path) -> None:
    """`apply` opens it, and changes nothing."""
    path = runs / "run" / "journal.jsonl"
    before = path.read_bytes()
    with pytest.raises(JournalDamaged, match=SAID):
        Journal.opened(path, 1.0, {})
    assert path.read_bytes() == before


@pytest.mark.slow
def test_status_says_that_it_proves_nothing(runs: Path) -> None:
    """The next command stays the cluster's own; a rollback's facts come from other journals alone."""
    run = unended(runs)
    assert run == {"unreadable": f"E-RUN-01: {SAID} ({runs}/run/journal.jsonl)"}
    answer = with_run(half_rolled(), run)
    assert answer["next"] == half_rolled()["next"]
    assert f"the journal of the newest run proves nothing: E-RUN-01: {SAID}" in " ".join(
        as_text({**answer, "waiting": []}).split()
    )
    assert list(readable(runs)) == []
