"""The command `kraft-migrate`: finds the subcommand's module, and turns every error into one clear message."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from typing import Final

import click

from migrate import __version__
from migrate.cli.errors import EXIT_USAGE, error_handler
from migrate.cli.manual import epilog

# name -> (module, attribute, one line of help): nothing is imported until a command runs, so that --help is quick
COMMANDS: Final = {
    "lab": ("migrate.cli.lab", "lab", "Run a real test cluster on this host: up, demo, break, mend, ..."),
    "inventory": ("migrate.cli.inventory", "inventory", "Write an inventory of a running cluster: init."),
    "assess": ("migrate.cli.assess", "assess", "Assess a cluster, read-only: findings, with causes and fixes."),
    "plan": ("migrate.cli.plan", "plan", "Plan every change without making any."),
    "apply": ("migrate.cli.apply", "apply", "Apply a saved plan, with a proof after every step."),
    "rollback": (
        "migrate.cli.rollback",
        "rollback",
        "Roll back to ZooKeeper mode, or remove added directories: plan, apply.",
    ),
    "approve": ("migrate.cli.approve", "approve", "Approve one saved plan, optionally with a signature."),
    "control": ("migrate.cli.control", "control", "Control a run in progress: pause, resume, hold-after, abort, show."),
    "manual": (
        "migrate.cli.instructions",
        "manual",
        "Manual executor: look, show, could-not.",
    ),
    "status": ("migrate.cli.status", "status", "Show how far the migration is, and the next command."),
    "diff": ("migrate.cli.diff", "diff", "Compare ZooKeeper with KRaft, field by field."),
    "fleet": ("migrate.cli.fleet", "fleet", "Assess or compare many clusters at once: assess, diff."),
    "directories": (
        "migrate.cli.directories",
        "directories",
        "Log directories: show, verify, rescue, ...",
    ),
    "metadata": ("migrate.cli.metadata", "metadata", "Read KRaft metadata files: dump, image, export."),
    "bundle": (
        "migrate.cli.bundle",
        "bundle",
        "Save all that was observed in one file, without secrets.",
    ),
    "backup": ("migrate.cli.backup", "backup", "Back up the ZooKeeper tree: create, show, diff, restore."),
    "report": ("migrate.cli.report", "report", "Write a run's report, and export and verify its evidence."),
    "playbook": ("migrate.cli.playbook", "playbook", "Playbooks: lint, schema, show."),
    "explain": ("migrate.cli.explain", "explain", "Explain a finding or an error by its code."),
    "completion": ("migrate.cli.completion", "completion", "Print a shell completion script."),
    "unlock": ("migrate.cli.unlock", "unlock", "Show the lock's owner; remove the lock of a dead owner by its id."),
    "doctor": ("migrate.cli.doctor", "doctor", "Check this host's prerequisites."),
}
OURS_ALONE: Final = 0o077
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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """The list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])


def _dress(command: click.Command, path: str) -> None:
    """End each help text with examples, files and the exit codes that all commands share; -h asks for it, too."""
    command.context_settings.setdefault("help_option_names", HELP_NAMES)
    command.epilog = epilog(path, EXIT_CODES)
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            _dress(inner, f"{path} {name}")


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": HELP_NAMES, "max_content_width": 110}, epilog=EXIT_CODES
)
@click.version_option(__version__, prog_name="kraft-migrate")
@click.option("--verbose", "-v", is_flag=True, help="Verbose output, with tracebacks of errors.")
@click.option("--no-kernels", is_flag=True, help="Plain Python only, no compiled loops (KRAFT_MIGRATE_KERNELS=off).")
@click.option(
    "--no-class-archive", is_flag=True, help="Start Spark without its class archive (KRAFT_MIGRATE_CLASS_ARCHIVE=off)."
)
@click.option(
    "--limit",
    "raised",
    metavar="KIND=SIZE",
    multiple=True,
    help="Raise the limit for a kind of file (docs/limits.md).",
)
@click.pass_context
def cli(ctx: click.Context, verbose: bool, no_kernels: bool, no_class_archive: bool, raised: tuple[str, ...]) -> None:
    """Migrate a ZooKeeper-mode Apache Kafka 3.9 cluster with multiple log directories per broker (JBOD) to KRaft.

    Plans every change, verifies every step, and can roll back until finalize.
    """
    ctx.obj = {"verbose": verbose}
    _say_more("migrate" if verbose else "migrate.manual", logging.DEBUG if verbose else logging.INFO)
    _raise_limits(raised)
    if no_kernels:
        os.environ["KRAFT_MIGRATE_KERNELS"] = "off"  # for the processes that it starts, too
    if no_class_archive:
        from migrate.java.archive import use_no_archive

        use_no_archive()


def _raise_limits(raised: tuple[str, ...]) -> None:
    """For this command; UsageWrong for a kind or size that is none."""
    if not raised:
        return
    from migrate.errors import UsageWrong
    from migrate.model import limits

    for text in raised:
        kind, _, size = text.partition("=")
        try:
            limits.ask(kind, size)
        except ValueError as error:
            raise UsageWrong(f"--limit takes KIND=SIZE: {error}", next_step="docs/limits.md has the kinds") from error


class _Printable(logging.Formatter):
    """Names in a message come from whoever could write into the cluster: no line of them passes for one of ours."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, its own later ones indented."""
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
    with error_handler(verbose="-v" in sys.argv[1:] or "--verbose" in sys.argv[1:]):
        try:
            code = cli.main(standalone_mode=False)
        except click.UsageError as error:
            error.show()
            sys.exit(EXIT_USAGE)
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        except click.exceptions.Abort:
            raise KeyboardInterrupt from None
        sys.exit(code if isinstance(code, int) else 0)
