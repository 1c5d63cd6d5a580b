"""The runbook has a section for everything that can be printed, and every command line of every page can be given."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import migrate.errors
from migrate.checks.stuck import codes
from migrate.cli import errors as cli_errors
from migrate.cli.main import cli
from migrate.errors import MigrateError
from migrate.model import detect
from migrate.model.rollback_readiness import RollbackWord
from migrate.model.stage import MIGRATION, Stage
from tests.report import pages

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = (DOCS / "night.md").read_text(encoding="utf-8")
TITLES = re.findall(r"^#{2,3} (.+)$", PAGE, flags=re.MULTILINE)
HAND_WRITTEN = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
COMMAND = re.compile(r"`(kraft-migrate [^`]+)`")


def half_done() -> set[str]:
    """Each stage with a half-done one that `detect` can answer, as `status` prints it; read from its source."""
    pairs = re.findall(r"Detected\(Stage\.(\w+), Stage\.(\w+)", inspect.getsource(detect))
    assert pairs
    return {f"stage {Stage[stage].label}, {Stage[half].label} half done" for stage, half in pairs}


def endings() -> dict[int, set[str]]:
    """Ids of errors by their exit code; those that end with 1 are too many for a night, and stand in errors.md."""
    found: dict[int, set[str]] = {}
    for value in vars(migrate.errors).values():
        if inspect.isclass(value) and issubclass(value, MigrateError) and hasattr(value, "id"):
            found.setdefault(value.exit_code, set()).add(value.id)
    found.pop(cli_errors.EXIT_ERROR)
    return found


def section(title: str) -> str:
    """A section's text, up to the next title."""
    return re.split(r"^#{2,3} ", PAGE.split(f"# {title}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def command_lines(page: Path) -> Iterator[str]:
    """What a reader would copy: lines of shell blocks and code in the text; placeholders stay as they are."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL):
        for line in block.splitlines():
            yield from re.findall(r"(?:^|&& )(?:\.venv/bin/)?(kraft-migrate .*)$", line)
    yield from re.findall(r"^\s*\$ (kraft-migrate .*)$", text, flags=re.MULTILINE)
    for found in COMMAND.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        yield re.sub(r"\s+", " ", found)


def fault_of(line: str) -> str:
    """What click would say against that line; "" where the command, its options and its arguments are right."""
    variants = re.sub(r"\[[^\]]*\]|\.\.\.|…", "", line.partition(" > ")[0].partition(" | ")[0])
    words = shlex.split(variants, comments=True)[1:]
    if "COMMAND" in words[:2]:
        return ""  # any of them
    choices = [word.split("|") for word in words]
    most = max(map(len, choices), default=1)
    for at in range(most):
        given = [choice[min(at, len(choice) - 1)] for choice in choices]
        if said := _refused(given):
            return said
    return ""


def _refused(words: list[str]) -> str:
    command: click.Command = cli
    context = click.Context(cli, info_name="kraft-migrate", **cli.context_settings)
    while isinstance(command, click.Group) and words:
        if words[0] in ("--help", "--version", "-h"):
            return ""
        inner = command.get_command(context, words[0])
        if inner is None:
            return f"{words[0]} is no command"
        command, words = inner, words[1:]
        context = click.Context(command, info_name=command.name, parent=context, **command.context_settings)
    if isinstance(command, click.Group) or not words:
        return ""  # the name of a command, told in a sentence
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    unknown = [word for word in words if word.startswith("-") and word.split("=")[0] not in options | {"--help", "-h"}]
    if unknown or "--help" in words:
        return f"no such option: {unknown}" if unknown else ""
    try:
        parser = command.make_parser(context)
        parser.parse_args(list(words))
    except click.UsageError as error:
        return error.format_message()
    arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    return "" if arguments or not _loose(command, words) else f"takes no argument: {words}"


def _loose(command: click.Command, words: list[str]) -> list[str]:
    """Words that are neither options nor their values."""
    context = click.Context(command, **command.context_settings)
    _, loose, _ = command.make_parser(context).parse_args(list(words))
    return loose


@pytest.mark.parametrize("stage", Stage, ids=lambda stage: stage.label)
def test_every_stage_has_its_section(stage: Stage) -> None:
    """By its name as `status` prints it."""
    assert f"stage {stage.label}" in TITLES
    assert len(section(f"stage {stage.label}").strip()) > 40


def test_every_half_done_stage_and_the_unknown_one_have_theirs() -> None:
    """Those that `detect` can answer, and no others."""
    assert {title for title in TITLES if title.endswith("half done") and title.startswith("stage ")} == half_done()
    assert "stage unknown" in TITLES


@pytest.mark.parametrize("word", RollbackWord, ids=str)
def test_every_word_of_readiness_has_its_section(word: RollbackWord) -> None:
    """As the line `rollback` begins."""
    assert f"rollback {word.value}" in TITLES


def test_every_exit_code_has_its_section_with_the_ids_that_end_so() -> None:
    """Derived from the constants, and from the classes of errors."""
    numbers = {value for name, value in vars(cli_errors).items() if name.startswith("EXIT_")}
    assert {int(title.split()[1]) for title in TITLES if title.startswith("exit ")} == numbers
    missing = {
        code: left for code, ids in endings().items() if (left := {i for i in ids if i not in section(f"exit {code}")})
    }
    assert missing == {}


def test_codes_that_it_names_are_codes() -> None:
    """S-STUCK codes and error ids; none is made up, and what ends in an emptied ZooKeeper is among them."""
    known = set(re.findall(r"S-STUCK-\d+", inspect.getsource(codes)))
    assert set(re.findall(r"S-STUCK-\d\d", PAGE)) <= known
    heads = re.findall(r"^### (S-STUCK-\d+): (.*)$", (DOCS / "stuck.md").read_text(encoding="utf-8"), re.MULTILINE)
    stops = {code for code, text in heads if text.startswith("STOP")}
    assert stops
    assert all(code in section("waits S-STUCK") for code in stops)
    ids = {value.id for value in vars(migrate.errors).values() if inspect.isclass(value) and hasattr(value, "id")}
    assert set(re.findall(r"E-[A-Z]+-\d\d", PAGE)) <= ids


def test_links_inside_the_page_lead_somewhere() -> None:
    """As a forge makes anchors of titles."""
    anchors = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in TITLES}
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= anchors


def test_its_picture_is_whole_and_shows_the_stages() -> None:
    """A plain drawing that fetches nothing."""
    figure = (DOCS / "runbook.svg").read_text(encoding="utf-8")
    assert [fault for fault in pages.read(figure).faults if "http://www.w3.org/2000/svg" not in fault] == []
    assert all(f">{stage.label}<" in figure for stage in MIGRATION if stage is not Stage.DISCOVER)


@pytest.mark.parametrize("page", HAND_WRITTEN, ids=lambda page: page.name)
def test_every_command_line_can_be_given(page: Path) -> None:
    """The command exists, and each of its options."""
    faults = {line: said for line in command_lines(page) if (said := fault_of(line))}
    assert faults == {}


def test_every_command_line_that_the_package_tells_can_be_given() -> None:
    """In hints, next steps and help texts: what stands between backticks, pieced together where it is wrapped."""
    found = []
    for path in sorted((ROOT / "migrate").rglob("*.py")):
        text = re.sub(r'"\s*\n\s*f?"', "", path.read_text(encoding="utf-8"))
        found += [re.sub(r"\s+", " ", line) for line in COMMAND.findall(text) if "{command}" not in line]
    assert len(found) > 20
    assert {line: said for line in found if (said := fault_of(line))} == {}


@pytest.mark.parametrize(
    "line",
    [
        "kraft-migrate aply PLAN",
        "kraft-migrate apply --yes PLAN",
        "kraft-migrate control stop RUN",
        "kraft-migrate rollback plan PLAYBOOK --stage hybrid",
    ],
)
def test_a_line_that_cannot_be_given_is_found(line: str) -> None:
    """Or the test above would hold nothing."""
    assert fault_of(line)


def test_lines_are_found_at_all() -> None:
    """In blocks and in sentences."""
    assert len(list(command_lines(DOCS / "night.md"))) > 30
    assert any("lab demo" in line for line in command_lines(ROOT / "README.md"))
