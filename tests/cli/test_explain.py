"""`explain` answers for every code, in words and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrate import checks
from migrate.checks import stuck
from migrate.checks.pages import error_docs, find
from migrate.cli.explain import explain
from migrate.errors import UnknownCode
from tests.cli.commands import kraft_migrate

DOCS = Path(__file__).parents[2] / "docs"


def run(*arguments: str) -> str:
    """The command's output; it must end with 0."""
    result = CliRunner().invoke(explain, arguments, standalone_mode=False, catch_exceptions=False)
    assert result.return_value == 0
    return result.output


def test_a_finding_is_explained_with_its_stages_reason_and_fix() -> None:
    """All that a person needs at night."""
    text = run("b-mig-07")
    for part in ("B-MIG-07: a running controller", "blocks  migration-mode and later", "why", "fix", "KAFKA-20960"):
        assert part in text


def test_an_error_is_explained_with_its_exit_code_and_next_step() -> None:
    """Errors and findings are asked for in one way."""
    text = run("E-PLAY-02", "W-DIR-07")
    assert "YamlRefused" in text
    assert "kraft-migrate playbook lint" in " ".join(text.split())
    assert "W-DIR-07: " in text
    assert "blocks  no stage" in text


def test_a_wait_is_explained_with_the_drivers_state_its_line_and_what_comes_by_itself() -> None:
    """So that a line of Kafka's log is found again."""
    text = " ".join(run("s-stuck-33").split())
    for part in (
        "S-STUCK-33: a broker's",
        "state WAIT_FOR_BROKERS",
        "log Still waiting for ZK brokers [N]",
        "waiting nothing",
    ):
        assert part in text
    (wait,) = json.loads(kraft_migrate("explain", "S-STUCK-33", "--output", "json").out)["result"]
    assert wait["by_itself"] == stuck.CODES["S-STUCK-33"].by_itself
    assert wait["blocks"] == ""


def test_json_holds_every_field() -> None:
    """For tools that show our codes."""
    (finding, error) = json.loads(kraft_migrate("explain", "B-ZKN-01", "E-JAVA-01", "-o", "json").out)["result"]
    assert finding["fix"] == checks.CODES["B-ZKN-01"].fix
    assert finding["blocks"] == "prepare and later"
    assert (error["code"], error["exit_code"], error["blocks"]) == ("E-JAVA-01", 1, "")


def test_all_lists_every_code_in_one_line_each() -> None:
    """The list that an unknown code's message points at."""
    lines = run().splitlines()
    assert [line.split()[0] for line in lines] == [*error_docs(), *checks.CODES, *stuck.CODES]


def test_an_unknown_code_is_a_typed_error() -> None:
    """With the nearest codes."""
    with pytest.raises(UnknownCode):
        run("B-ZKM-01")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("MIGRATING",), "as it must be from the copy until its broker's second restart"),
        (("not", "on", "disk"), "no healthy directory of the broker has it"),
        (("hybrid",), "compared, field by field"),
        (("finalize",), "no rollback is possible: point of no return"),
        (("3",), "there is a problem"),
        (("exit", "code", "7"), "another run holds the lock"),
        (("exit_parked",), "parked at a safe point"),
        (("B-DIR",), "findings that block about log directories"),
        (("dir",), "B-DIR-01"),
        (("S-STUCK",), "S-STUCK-33"),
        (("E-RUN",), "E-RUN-03"),
        (("ledger",), "one row per replica"),
        (("blind spot", "roll"), "a restart of every broker"),
    ],
)
def test_words_are_explained_as_codes_are(words: tuple[str, ...], part: str) -> None:
    """What an operator reads on the screen is what can be asked."""
    assert part in " ".join(run(*words).split())


def test_every_word_of_the_pages_is_known() -> None:
    """The glossary's words for users, and the stages of the first page."""
    glossary = (DOCS / "glossary.md").read_text().partition("## Words in the code")[0]
    stages = (DOCS / "index.md").read_text().partition("## The stages")[2].replace("`", "")
    rows = re.findall(r"^\| ([^|]+?) \| [^|]+?(?: \| [^|]*)?\|$", glossary + stages, flags=re.MULTILINE)
    known = [word for row in rows if row not in ("word", "stage", "---") for word in row.split(", ")]
    assert len(known) > 60
    for word in known:
        assert find(word).code


@pytest.mark.parametrize(("word", "near"), [("hybird", "hybrid"), ("migratng", "MIGRATING"), ("B-ZKM", "B-ZKN")])
def test_a_mistyped_word_names_the_one_that_was_meant(word: str, near: str) -> None:
    """Before the codes that look like it."""
    with pytest.raises(UnknownCode) as refused:
        find(word)
    assert refused.value.next_step.startswith(f"did you mean {near}")
