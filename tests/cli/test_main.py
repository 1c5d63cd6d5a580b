"""The entry point: help for every command, quick and without heavy imports; usage errors end with 64."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import migrate
from migrate import __version__
from migrate.cli.main import COMMANDS, EXIT_CODES, cli
from migrate.errors import PythonTooOld
from tests.cli.commands import kraft_migrate, process

HEAVY = (
    "pyspark",
    "pyarrow",
    "pandas",
    "numpy",
    "kazoo",
    "confluent_kafka",
    "cryptography",
    "py4j",
    "jinja2",
    "rich",
    "pydantic",
    "yaml",
)


def commands(group: click.Group, *words: str) -> list[tuple[str, ...]]:
    """Every command and group, by its words."""
    found: list[tuple[str, ...]] = []
    for name in group.list_commands(click.Context(group)):
        inner = group.get_command(click.Context(group), name)
        assert inner is not None
        found.append((*words, name))
        if isinstance(inner, click.Group):
            found += commands(inner, *words, name)
    return found


ALL = commands(cli)


def flat(text: str) -> str:
    """Without the line breaks that help texts get."""
    return " ".join(text.split())


def test_every_command_of_the_product_is_there() -> None:
    """As the documentation names them."""
    assert {words for words in ALL if len(words) == 1} == {(name,) for name in COMMANDS}
    assert {words[1] for words in ALL if words[0] == "lab" and len(words) == 2} == {
        "up",
        "seed",
        "status",
        "down",
        "demo",
    }
    assert {words[1] for words in ALL if words[0] == "directories" and len(words) == 2} == {
        "inspect",
        "show",
        "verify",
        "assign",
        "rescue",
        "collector",
    }
    assert ("metadata", "dump") in ALL
    assert {("playbook", "lint"), ("playbook", "schema")} <= set(ALL)


@pytest.mark.parametrize("words", [(), *ALL], ids=" ".join)
def test_every_command_has_a_help_text_with_its_exit_codes(words: tuple[str, ...]) -> None:
    """In one or more sentences; every option says what it does."""
    for flag in ("--help", "-h"):
        answer = kraft_migrate(*words, flag)
        assert (answer.code, answer.err) == (0, "")
        assert EXIT_CODES in flat(answer.out)
    about = flat(answer.out.split("\n\n")[1])
    assert about.endswith(".")
    assert len(about) > 15
    for line in answer.out.splitlines():
        if option := re.match(r"  (-\w, )?--[\w/ -]+?( [A-Z]+| \[[\w|]+\])?$", line):
            following = answer.out.splitlines()[answer.out.splitlines().index(line) + 1]
            assert following.startswith("     "), option.group()


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        (("plan",), "023"),
        (("apply",), "034567"),
        (("assess",), "03"),
        (("status",), "0"),
        (("diff",), "02"),
        (("directories", "verify"), "2"),
        (("directories", "assign"), "7"),
        (("playbook", "lint"), "1"),
        (("doctor",), "1"),
    ],
    ids=" ".join,
)
def test_a_command_names_the_exit_codes_that_are_its_own(words: tuple[str, ...], codes: str) -> None:
    """Beside those that all have."""
    own = flat(kraft_migrate(*words, "--help").out).split("Options:")[0]
    for code in codes:
        assert re.search(rf"(Exit code|exits with|; )[^.]*\b{code}\b", own), code


@pytest.mark.slow
def test_help_imports_nothing_heavy() -> None:
    """Of any command: commands import what they use when they run."""
    code = f"""
import json, sys
from migrate.cli.main import main
found = {{}}
for words in json.loads(sys.argv[1]):
    sys.argv = ["kraft-migrate", *words, "--help"]
    try:
        main()
    except SystemExit:
        pass
    found[" ".join(words)] = [name for name in {HEAVY!r} if name in sys.modules]
print(json.dumps(found), file=sys.stderr)
"""
    answer = process(json.dumps([[], *map(list, ALL)]), code=code)
    assert answer.code == 0
    assert {words: loaded for words, loaded in json.loads(answer.err).items() if loaded} == {}


@pytest.mark.slow
def test_the_first_help_loads_little_of_ours() -> None:
    """Errors and the screen, and no value of a cluster."""
    code = "import sys, migrate.cli.main; print(*sys.modules)"
    ours = [name for name in process(code=code).out.split() if name.startswith("migrate.")]
    assert [name for name in ours if name.startswith("migrate.model.")] == ["migrate.model.words"]
    assert len(ours) <= 17


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_of_a_group_names_commands_that_it_has(name: str) -> None:
    """Written out, so that the list of commands needs no import; a command that went is named no more."""
    command = cli.get_command(click.Context(cli), name)
    _, colon, listed = COMMANDS[name][2].partition(": ")
    if isinstance(command, click.Group) and colon:
        named = re.findall(r"[a-z-]+", listed)
        assert set(named) <= set(command.commands), named


NEEDLESS = (
    *("migrate.plan", "migrate.steps", "migrate.lab", "migrate.diff", "migrate.run"),
    *("pyspark", "pyarrow", "numpy", "cryptography", "bcrypt", "confluent_kafka"),
    *("jinja2", "rich", "pydantic"),
)


@pytest.mark.slow
def test_assess_loads_no_plan_no_run_and_no_templates_and_of_steps_what_files_become() -> None:
    """Its first answer is waited for; the clock of a run is all that it takes of one, and only a page is rendered."""
    code = "import sys, migrate.cli.assess, migrate.cli.assessing, migrate.observe.world; print(*sys.modules)"
    loaded = process(code=code).out.split()
    found = {name for name in loaded if name.startswith(NEEDLESS)}
    files = {"migrate.steps", *(f"migrate.steps.{name}" for name in ("configuration", "facts", "foreseen"))}
    assert found <= {"migrate.run", "migrate.run.clock", *files}
    assert sum(name.startswith("migrate.") for name in loaded) <= 175


@pytest.mark.parametrize(
    "words",
    [
        ["no-such-command"],
        ["--no-such-option"],
        ["lab"],
        ["lab", "no-such-command"],
        ["plan"],
        ["plan", "a.yaml", "b.yaml"],
        ["apply"],
        ["apply", "p.json", "--force"],
        ["apply", "p.json", "--confirm"],
        ["status"],
        ["status", "--output", "xml", "--inventory", "i.yaml"],
        ["assess"],
        ["assess", "p.yaml", "--zookeeper", "zk:2181"],
        ["assess", "--inventory", "i.yaml", "--zookeeper", "zk:2181"],
        ["diff"],
        ["directories", "show"],
        ["directories", "assign", "one", "--inventory", "i.yaml"],
        ["metadata", "dump"],
        ["report"],
        ["report", "/no/such/folder"],
        ["playbook", "lint"],
        ["playbook", "schema", "Deployment"],
        ["lab", "demo", "--until", "christmas"],
        ["doctor", "--output", "yaml"],
    ],
    ids=" ".join,
)
def test_wrong_words_end_with_64_and_say_what_is_wrong(words: list[str]) -> None:
    """Click's own 2 would collide with `changes pending`.  The message goes to stderr alone."""
    answer = kraft_migrate(*words)
    assert answer.code == 64
    assert answer.out == ""
    assert answer.err.startswith(("Usage:", "Error:", "E-USAGE"))
    assert "Traceback" not in answer.err


@pytest.mark.slow
def test_exit_codes_reach_the_shell() -> None:
    """From a process, as from the entry point."""
    answer = process("status")
    assert (answer.code, answer.out) == (64, "")
    assert answer.err.startswith("E-USAGE: neither a playbook nor an inventory was given\n  next   give one: ")
    assert process("--version").out == f"kraft-migrate, version {__version__}\n"


@pytest.mark.slow
def test_verbose_shows_what_the_parts_log_and_the_errors_traceback() -> None:
    """On stderr; without it the message stands alone."""
    words = ("assess", "--zookeeper", "127.0.0.1:99999")
    quiet, said = process(*words), process("-v", *words)
    assert quiet.code == said.code == 1
    assert "Traceback" not in quiet.err
    assert "Traceback" in said.err
    shown = "import logging; from migrate.cli.main import _say_more; "
    shown += "_say_more('migrate', logging.DEBUG); logging.getLogger('migrate.diff').debug('warm')"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    assert done.stderr.endswith(" migrate.diff: warm\n")


def test_a_python_that_is_too_old_is_named_and_ends_with_1() -> None:
    """Before anything is imported that it cannot read; the words are those of the error."""
    program = (
        "import sys; from collections import namedtuple\n"
        "sys.version_info = namedtuple('V', 'major minor micro')(3, 9, 2)\n"
        "import runpy; runpy.run_module('migrate', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (PythonTooOld.exit_code, "")
    assert done.stderr == (
        f"{PythonTooOld.id}: Python 3.9.2 runs kraft-migrate\n  where  {sys.executable}\n  next   {PythonTooOld.hint}\n"
    )


def test_what_checks_the_python_is_read_by_earlier_ones() -> None:
    """The parents of the command's module, as Python 3.4 would read them."""
    for name in ("__main__.py", "__init__.py", "cli/__init__.py"):
        ast.parse((Path(migrate.__file__).parent / name).read_text(), feature_version=(3, 4))
