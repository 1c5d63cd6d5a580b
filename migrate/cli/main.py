"""The command `kraft-migrate`: finds the subcommand's module, and turns every error into one clear message."""

from __future__ import annotations

import importlib
import inspect
import logging
import os
import pathlib
import re
import shlex
import sys
from typing import Final

import click

from migrate import __version__
from migrate.cli.answers import print_answer
from migrate.cli.errors import EXIT_USAGE, INDENT, ended_by, error_handler
from migrate.cli.examples import epilog
from migrate.cli.screen import ProgressLine, say_text
from migrate.errors import UsageWrong
from migrate.report.lines import WIDEST
from migrate.report.wording import hanging

GROUPS: Final = {  # in the order of use
    "Look": ("doctor", "inventory", "playbook", "assess", "fleet", "status", "diff", "directories", "metadata"),
    "Change": ("plan", "apply", "manual", "rollback", "unlock"),
    "Records": ("report", "bundle", "backup"),
    "Help": ("explain", "help", "lab"),
}
# name -> (module, attribute, one line of help): nothing is imported until a command runs, so that --help is quick
COMMANDS: Final = {
    "doctor": ("migrate.cli.doctor", "doctor", "Check this host's prerequisites."),
    "inventory": ("migrate.cli.inventory", "inventory", "Write an inventory of a running cluster: init."),
    "playbook": ("migrate.cli.playbook", "playbook", "Playbooks: lint, schema, show."),
    "assess": ("migrate.cli.assess", "assess", "Assess a cluster, read-only: findings, with causes and fixes."),
    "fleet": ("migrate.cli.fleet", "fleet", "Assess or compare many clusters at once: assess, diff."),
    "status": ("migrate.cli.status", "status", "Show how far the migration is, and the next command."),
    "diff": ("migrate.cli.diff", "diff", "Compare ZooKeeper with KRaft, field by field."),
    "directories": ("migrate.cli.directories", "directories", "Log directories: show, verify, rescue, ..."),
    "metadata": ("migrate.cli.metadata", "metadata", "Read KRaft metadata files: dump."),
    "plan": ("migrate.cli.plan", "plan", "Plan every change without making any."),
    "apply": ("migrate.cli.apply", "apply", "Apply a saved plan, with a proof after every step."),
    "manual": ("migrate.cli.manual", "manual", "Manual executor: look, could-not."),
    "rollback": (
        "migrate.cli.rollback",
        "rollback",
        "Roll back to ZooKeeper mode, or remove added directories: plan, apply.",
    ),
    "unlock": ("migrate.cli.unlock", "unlock", "Show the lock's owner; remove the lock of a dead owner by its id."),
    "report": ("migrate.cli.report", "report", "Write a run's report, and what it changed in files."),
    "bundle": ("migrate.cli.bundle", "bundle", "Save all that was observed in one file, without secrets."),
    "backup": ("migrate.cli.backup", "backup", "Back up the ZooKeeper tree: create, restore."),
    "explain": ("migrate.cli.explain", "explain", "Explain a code, a state, a stage, an exit code or a term."),
    "help": ("migrate.cli.show_help", "show_help", "Show the help of a command."),
    "lab": ("migrate.cli.lab", "lab", "Run a real test cluster on this host: up, seed, demo, status, down."),
}
OURS_ALONE: Final = 0o077
WORDS: Final = "migrate.cli.main.words"
HELP_NAMES: Final = ["-h", "--help"]
EXIT_CODES: Final = "Exit codes of every command: 0 done, 1 error, 64 wrong usage, 130 interrupted."


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command, imported now; None for a name that is none."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        _dress(command, cmd_name)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words of the command line, which name the command where an answer or an error is printed."""
        ctx.meta[WORDS] = tuple(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command, then print its answer for programs, or the error as one."""
        words: tuple[str, ...] = ctx.meta[WORDS]
        try:
            self._refuse_files(ctx, words)
            code = super().invoke(ctx)
        except BaseException as error:
            if isinstance(error, UsageWrong) and error.next_step == UsageWrong.hint:
                error.next_step = f"kraft-migrate {self._path(ctx, words)} --help".replace("  ", " ")
            print_answer(ctx, self._path(ctx, words), words, *ended_by(error))
            raise
        print_answer(ctx, self._path(ctx, words), words, code if isinstance(code, int) else 0)
        return code

    def _path(self, ctx: click.Context, words: tuple[str, ...]) -> str:
        """The command that the words name, such as `directories verify`; "" where they name none."""
        found: list[str] = []
        group: click.Command | None = self
        for word in words:
            if isinstance(group, click.Group) and (inner := group.get_command(ctx, word)) is not None:
                found.append(word)
                group = inner
        return " ".join(found)

    def _refuse_files(self, ctx: click.Context, words: tuple[str, ...]) -> None:
        """UsageWrong where a file of a known kind stands in the place of a command."""
        group: click.Command | None = self
        for number, word in enumerate(words):
            if not isinstance(group, click.Group) or hasattr(group, "default"):  # that one takes what is no command
                return
            if (inner := group.get_command(ctx, word)) is not None:
                group = inner
            elif not word.startswith("-"):  # a mistyped command hides no file behind it
                from migrate.cli.mistakes import FILES_OF
                from migrate.playbook.document import read_kind

                path = pathlib.Path(word)
                if path.is_file() and (kind := read_kind(path)) is not None:
                    inside, use = " ".join(words[:number]), kind.used(path)
                    if group is not self:
                        use = f"kraft-migrate {inside} {'|'.join(group.list_commands(ctx))}, with what it takes"
                    if kind in FILES_OF.get(inside, {}):
                        use = f"kraft-migrate {inside} {FILES_OF[inside][kind]} {shlex.quote(word)}"
                    raise UsageWrong(f"this is {kind.name}, not a command", where=word, why=kind.why, next_step=use)
                return

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """The list of commands, without importing them."""
        for group, names in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(f"{name:<11}", COMMANDS[name][2]) for name in names])


def _dress(command: click.Command, path: str) -> None:
    """End each help text with examples, files and the exit codes that all commands share; -h asks for it, too."""
    command.context_settings.setdefault("help_option_names", HELP_NAMES)
    command.epilog = epilog(path, EXIT_CODES)
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            _dress(inner, f"{path} {name}")
    if not command.short_help:  # whole: click would cut it
        sentence = re.split(r"(?<=\.)\s", inspect.cleandoc(command.help or ""), maxsplit=1)[0]
        command.short_help = " ".join(sentence.split())


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": HELP_NAMES, "max_content_width": WIDEST}, epilog=EXIT_CODES
)
@click.version_option(__version__, prog_name="kraft-migrate")
@click.option("--verbose", "-v", is_flag=True, help="Verbose output, with tracebacks of errors.")
def cli(verbose: bool) -> None:
    """Migrate a ZooKeeper-mode Apache Kafka 3.9 cluster with multiple log directories per broker (JBOD) to KRaft.

    Plans every change, verifies every step, and can roll back until finalize.
    """
    _say_more("migrate" if verbose else "migrate.manual", logging.DEBUG if verbose else logging.INFO)


class _Printable(logging.Formatter):
    """Names in a message come from whoever could write into the cluster: no line of them passes for one of ours."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, its own later ones indented, in the place of the line of progress."""
        ProgressLine.clear()
        return hanging(super().format(record), " " * 9)


def _say_more(part: str, level: int) -> None:
    """What a part logs goes to stderr; instructions for people always do."""
    listener = logging.StreamHandler()
    listener.setFormatter(_Printable("%(asctime)s %(name)s: %(message)s", "%H:%M:%S"))
    log = logging.getLogger(part)
    log.handlers[:] = [listener]
    log.setLevel(level)


def main() -> None:
    """Entry point of the console script; the exit codes are listed in docs/exit-codes.md.

    What is written is its owner's alone: files that Kafka reads have their owner and mode set by those who write them.
    """
    os.umask(OURS_ALONE)
    with error_handler(verbose=sys.argv[1:2] in (["-v"], ["--verbose"])):
        try:
            code = cli.main(prog_name="kraft-migrate", standalone_mode=False)
        except click.UsageError as error:
            from migrate.cli.mistakes import meant

            if said := meant(error, sys.argv[1:]):  # in the place of what is alike by its letters alone
                click.UsageError(error.message or error.format_message(), error.ctx).show()
                say_text(hanging(f"  next   {said}", INDENT), err=True)
            else:
                error.show()
            sys.exit(EXIT_USAGE)
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        except click.exceptions.Abort:
            raise KeyboardInterrupt from None
        sys.exit(code if isinstance(code, int) else 0)
