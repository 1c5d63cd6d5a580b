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
from migrate.cli.errors import EXIT_USAGE, ended_by, error_handler
from migrate.cli.examples import epilog
from migrate.cli.screen import ProgressLine, say
from migrate.errors import UsageWrong
from migrate.report.lines import WIDEST

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


RESUMED: Final = "`kraft-migrate apply` continues a run: `kraft-migrate status PLAYBOOK` has its command."
PARKED: Final = "Ctrl-C in its terminal, or SIGTERM to its process, parks a run at the next safe point."
TRIED: Final = {  # words of other tools -> what does that here
    "resume continue retry --resume": RESUMED,
    "pause stop abort cancel kill control": PARKED,
    "undo revert back --undo": "`kraft-migrate rollback plan PLAYBOOK` plans the rollback.",
    "--dry-run --check": "`kraft-migrate plan` is the dry run: it changes nothing.",
    "--force --skip-checks --ignore --no-checks": "Nothing is forced: what may differ is accepted by name, with "
    "an end (`kraft-migrate explain accepted difference`).",
    "--yes -y": "The end of the plan has the command that applies it; where nothing leads back, with its fingerprint.",
    "--watch --follow -f": "`watch kraft-migrate status PLAYBOOK` looks again every two seconds.",
    "init": "`kraft-migrate inventory init --zookeeper HOST:PORT/CHROOT` writes an inventory.",
    "validate lint": "`kraft-migrate playbook lint FILE` checks a playbook or an inventory.",
    "verify": "`kraft-migrate directories verify` proves every replica's directory, `kraft-migrate diff` compares.",
    "migrate start run execute": "`kraft-migrate plan PLAYBOOK` makes the plan; its end has the command to apply it.",
    "describe health logs history": "`kraft-migrate status PLAYBOOK` shows cluster and run, "
    "`kraft-migrate report write RUN` what a run did.",
    "finalise": "`kraft-migrate plan PLAYBOOK --stage finalize` plans that stage.",
    "approve": "There are no approvals: the end of a plan has the command, where needed with its fingerprint.",
    "retire-zookeeper": "`kraft-migrate plan PLAYBOOK --stage cleanup`; docs/after-the-migration.md has what follows.",
    "version": "`kraft-migrate --version` shows it.",
    "--json": "`-o json` prints the answer for programs.",
    "--broker --node": "All brokers are looked at: no command takes one alone by an option.",
    "--bootstrap-server": "A playbook or `--inventory FILE` names the cluster; for `assess` alone `--zookeeper "
    "HOST:PORT/CHROOT` is enough.",
}


def _tried(word: str) -> str:
    """What does that here; "" for a word that no other tool has."""
    from migrate.model.stage import MIGRATION

    if word in [stage.label for stage in MIGRATION]:
        return f"`kraft-migrate plan PLAYBOOK --stage {word}` plans that stage."
    return next((said for words, said in TRIED.items() if word in words.split()), "")


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
                from migrate.playbook.document import PLAYBOOK, read_kind

                path = pathlib.Path(word)
                if path.is_file() and (kind := read_kind(path)) is not None:
                    inside, use = " ".join(words[:number]), kind.used(path)
                    if group is not self:
                        use = f"kraft-migrate {inside} {'|'.join(group.list_commands(ctx))}, with what it takes"
                    if kind == PLAYBOOK and inside == "rollback":
                        use = f"kraft-migrate rollback plan {shlex.quote(word)}"
                    raise UsageWrong(f"this is {kind.name}, not a command", where=word, why=kind.why, next_step=use)
                return

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """The list of commands, without importing them."""
        for group, names in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(f"{name:<11}", COMMANDS[name][2]) for name in names])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; for a mistyped command, those that are like it are named."""
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS)
            hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
            hint = f" {said}" if (said := _tried(args[0])) else hint
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


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
        from migrate.report.wording import hanging

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
        except click.NoSuchOption as error:
            error.show()
            if said := _tried(error.option_name):
                say(said, err=True)
            sys.exit(EXIT_USAGE)
        except click.UsageError as error:
            error.show()
            sys.exit(EXIT_USAGE)
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        except click.exceptions.Abort:
            raise KeyboardInterrupt from None
        sys.exit(code if isinstance(code, int) else 0)
