"""What a wrong command line meant: one line that says what does it here, for each usage error of click's.

Loaded once a command line is wrong.  Words of other tools are in MEANT; all else is found in the commands themselves.
"""

from __future__ import annotations

import difflib
import pathlib
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

import click

from migrate.playbook.document import BACKUP, BUNDLE, FLEET, INVENTORY, PLAYBOOK, SAVED_PLAN, read_kind

ADDRESS: Final = "as `zookeeper.connect` of a broker's file says it"
INIT: Final = "`kraft-migrate inventory init --zookeeper HOST:PORT/CHROOT` writes one"
RESUMED: Final = "`kraft-migrate apply` continues a run: `kraft-migrate status PLAYBOOK` has its command"
PARKED: Final = "Ctrl-C in its terminal, or SIGTERM to its process, parks a run at the next safe point"
NO_PART: Final = (
    "a rollback has no stages of its own: `kraft-migrate rollback plan PLAYBOOK` always plans it to ZooKeeper mode; "
    "a run forward is parked by `kraft-migrate apply PLAN --until STAGE`"
)
MEANT: Final = {  # of a command, and then of every one: words that others have -> what does that here
    "apply": {
        "--stage --from --to --target": "a plan has its stages: `kraft-migrate plan PLAYBOOK --stage STAGE` makes "
        "another, and `kraft-migrate apply PLAN --until STAGE` parks behind one",
        "--inventory -i": "the argument may be an inventory: `kraft-migrate apply FILE`",
    },
    "bundle": {"verify check validate": "`kraft-migrate bundle show FILE` checks every part of a bundle"},
    "diff": {
        "--topic --topics --partition": "everything is compared: `kraft-migrate diff -o json` has a row for each "
        "difference, with its topic",
    },
    "directories": {"list ls status": "`kraft-migrate directories show PLAYBOOK` lists them"},
    "directories show": {"--zookeeper": f"an inventory names ZooKeeper and the brokers' hosts: {INIT}"},
    "fleet": {"status list show plan": "`kraft-migrate fleet assess FLEET` says where each cluster stands"},
    "inventory": {
        "lint validate check": "`kraft-migrate playbook lint FILE` checks an inventory",
        "show list": "`kraft-migrate playbook show FILE` shows an inventory with its defaults",
    },
    "inventory init": {"--bootstrap-server": f"`--zookeeper HOST:PORT/CHROOT`, {ADDRESS}"},
    "lab": {
        "start run create": "`kraft-migrate lab up` starts a cluster, `kraft-migrate lab demo` migrates one",
        "stop destroy delete kill": "`kraft-migrate lab down` stops it",
        "list ls ps": "`kraft-migrate lab status` shows what runs",
    },
    "lab demo": {"--stage --to": "`--until STAGE` stops it there"},
    "manual": {
        "done confirm ok finished next": "nothing is confirmed by hand: put the collector's answer into the inbox that "
        "the instruction names, and the run goes on",
        "list status": "`kraft-migrate manual look --inventory FILE` lists the nodes and the answers that are missing",
    },
    "metadata": {"show print list read": "`kraft-migrate metadata dump PATH` prints each record"},
    "playbook": {"init new create generate": "copy one of playbooks/, such as playbooks/production-example.yaml"},
    "plan": {
        "--from": "a plan begins where the cluster stands; `--to STAGE` says where it ends",
        "--target": "`--to STAGE` says where a plan ends",
    },
    "report": {"verify check": "`kraft-migrate report write RUN` reads the journal, checks each line and writes it"},
    "rollback": {
        "status check": "`kraft-migrate status PLAYBOOK` says under `rollback` whether one is possible",
        "run start execute": "`kraft-migrate rollback apply PLAN` carries out a plan of `kraft-migrate rollback plan`",
    },
    "rollback apply": {"--until --stage --to --from": NO_PART},
    "rollback plan": {"--until --stage --to --from": NO_PART},
    "status": {"-f": "`watch kraft-migrate status PLAYBOOK` looks again every two seconds"},
    "unlock": {
        "--force": "`kraft-migrate unlock PLAYBOOK` shows the lock with its owner and id; with `--id ID` it removes "
        "that of a dead owner",
    },
    "": {
        "resume continue retry --resume": RESUMED,
        "pause stop abort cancel kill control": PARKED,
        "undo revert back --undo": "`kraft-migrate rollback plan PLAYBOOK` plans the rollback",
        "--dry-run --check": "`kraft-migrate plan` is the dry run: it changes nothing",
        "--force --skip-checks --ignore --no-checks": "nothing is forced: what may differ is accepted by name, with "
        "an end (`kraft-migrate explain accepted difference`)",
        "--yes -y": "the end of the plan has the command that applies it; where nothing leads back, with its "
        "fingerprint",
        "--playbook --file -f -p": "a file is given without an option, such as `kraft-migrate plan FILE`",
        "--watch --follow": "`watch kraft-migrate status PLAYBOOK` looks again every two seconds",
        "init": "`kraft-migrate inventory init --zookeeper HOST:PORT/CHROOT` writes an inventory",
        "validate lint": "`kraft-migrate playbook lint FILE` checks a playbook or an inventory",
        "verify": "`kraft-migrate directories verify` proves every replica's directory, `kraft-migrate diff` compares",
        "migrate start run execute": "`kraft-migrate plan PLAYBOOK` makes the plan; its end has the command that "
        "applies it",
        "describe health logs history": "`kraft-migrate status PLAYBOOK` shows cluster and run, `kraft-migrate report "
        "write RUN` what a run did",
        "finalise": "`kraft-migrate plan PLAYBOOK --stage finalize` plans that stage",
        "approve": "there are no approvals: the end of a plan has the command, where needed with its fingerprint",
        "retire-zookeeper": "`kraft-migrate plan PLAYBOOK --stage cleanup`; docs/after-the-migration.md has what "
        "follows",
        "version": "`kraft-migrate --version` shows it",
        "--json": "`-o json` prints the answer for programs",
        "--broker --node": "all brokers are looked at: no command takes one alone by an option",
        "--bootstrap-server": "a playbook or `--inventory FILE` names the cluster; for `assess` alone `--zookeeper "
        "HOST:PORT/CHROOT` is enough",
    },
}
FILES_OF: Final = {  # of a group, a file where a command belongs -> the command that takes it
    "rollback": {PLAYBOOK: "plan", SAVED_PLAN: "plan"},
    "bundle": {PLAYBOOK: "create NAME.tar.gz", INVENTORY: "create NAME.tar.gz --inventory", BUNDLE: "show"},
    "backup": {PLAYBOOK: "create NAME.jsonl.gz", INVENTORY: "create NAME.jsonl.gz --inventory", BACKUP: "restore"},
    "directories": {PLAYBOOK: "show", INVENTORY: "show --inventory"},
    "fleet": {FLEET: "assess"},
}


def meant(error: click.ClickException, words: Sequence[str]) -> str:
    """What to give instead, such as `kraft-migrate rollback plan playbook.yaml`; "" where nothing is known.

    `words` are those of the command line, behind the program's name.
    """
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return ""
    context = error.ctx
    path = context.command_path.partition(" ")[2]
    match error:
        case click.NoSuchOption():
            return _option(context, path, _as_typed(error.option_name, words))
        case click.MissingParameter(param=param) if param is not None:
            return _missing(context, param, words)
    if unknown := re.match(r"No such command '(.*?)'\.", error.format_message()):
        return _command(context, path, unknown[1])
    if "unexpected extra argument" in error.format_message():
        return _extra(context, words)
    return ""


def _known(path: str, word: str) -> str:
    """What MEANT says of the word, of that command or of every one."""
    for scope in (path, ""):
        for spoken, said in MEANT.get(scope, {}).items():
            if word in spoken.split():
                return said
    return ""


def _as_typed(option: str, words: Sequence[str]) -> str:
    """A long option that was given one dash is `-t` for click."""
    long = (word for word in words if re.match(rf"{re.escape(option)}[\w-]{{2}}", word))
    return option if option.startswith("--") else next((f"-{word.partition('=')[0]}" for word in long), option)


def _option(context: click.Context, path: str, option: str) -> str:
    if said := _known(path, option):
        return said
    if option in _options(context.command):
        return f"a name of more than one letter has two dashes: {option}"
    if isinstance(context.command, click.Group):
        inner = [name for name, command in _commands(context.command) if option in _options(command)]
        if inner:
            return f"it belongs behind a command: kraft-migrate {path} {'|'.join(inner)} {option}"
    own = [name for name, command in _all(context) if option in _options(command)]
    return f"it is an option of {_any(own[:4])}" if own else ""


def _any(commands: Sequence[str]) -> str:
    """Those commands, as a choice."""
    return " or ".join(f"`kraft-migrate {command}`" for command in commands)


def _command(context: click.Context, path: str, word: str) -> str:
    from migrate.model.stage import MIGRATION

    if said := _known(path, word):
        return said
    if word in [stage.label for stage in MIGRATION]:
        return f"`kraft-migrate plan PLAYBOOK --stage {word}` plans that stage"
    assert isinstance(context.command, click.Group)
    inside = context.command.list_commands(context)
    if alike := difflib.get_close_matches(word, inside):
        return f"did you mean {_any([f'{path} {name}'.strip() for name in alike])}?"
    elsewhere = [name for name, _ in _all(context) if name.split()[-1] == word]
    if elsewhere:
        return f"did you mean {_any(elsewhere[:3])}?"
    return f"it has {', '.join(inside)}" if path else ""


def _missing(context: click.Context, param: click.Parameter, words: Sequence[str]) -> str:
    """The command with what is here, or with what was given in another place."""
    given = [word for word in words if not word.startswith("-")]
    begun = context.command_path
    match param.human_readable_name:
        case "--zookeeper" | "zookeeper":
            address = next((word for word in given if re.search(r":\d+", word)), "HOST:PORT/CHROOT")
            return f"{begun} --zookeeper {shlex.quote(address)}, {ADDRESS}"
        case "--inventory" | "inventory":
            named = next((path for word in given if read_kind(path := pathlib.Path(word)) == PLAYBOOK), None)
            found = [_inventory_of(named)] if named is not None else _here("inventory")
            return f"{begun} --inventory {found[0] if found else 'FILE'}"
        case "BROKER":
            return f"{begun} 1 {(_here('playbook') or ['PLAYBOOK'])[0]}: BROKER is a broker's id"
        case "DIR...":
            return f"{begun} /srv/kafka/disk1: a log directory, or a copy of one, of this host"
        case "RUN":
            return f"{begun} RUN: a run's folder or id, or its playbook"
        case "PATH...":
            return f"{begun} PATH: a .log, a .checkpoint or a metadata directory of a controller"
        case "FILE" if context.command.name == "restore":
            return f"{begun} FILE PLAYBOOK --path PATH: FILE is a backup, such as runs/RUN/backup/zookeeper.jsonl.gz"
        case "FILE" if "bundle show" in begun:
            return f"{begun} FILE: a bundle that `kraft-migrate bundle create` wrote"
        case "FILE" if context.command.name == "create":
            folder = f"NAME.{'jsonl.gz' if 'backup' in begun else 'tar.gz'}"
            return f"{begun} {folder} {(_here('playbook') or ['PLAYBOOK'])[0]}"
    wanted = {"FLEET": ("fleet",), "PLAYBOOK": ("playbook",)}.get(param.human_readable_name, ("playbook", "inventory"))
    found = [path for kind in wanted for path in _here(kind)]
    if len(found) == 1:
        return f"{begun} {found[0]}"
    return f"{begun}, with one of {', '.join(found)}" if found else ""


def _extra(context: click.Context, words: Sequence[str]) -> str:
    """A word in a place that no word has: a stage, a broker, a folder or a file that an option takes."""
    from migrate.model.stage import MIGRATION

    options, begun = _options(context.command), context.command_path
    takes = any(isinstance(param, click.Argument) for param in context.command.params)
    given = [word for word in words if not word.startswith("-")][len(begun.split()) - 1 :]
    files = {word: read_kind(pathlib.Path(word)) for word in given}
    playbooks = [word for word, kind in files.items() if kind == PLAYBOOK]
    playbook = " ".join(map(shlex.quote, playbooks[:1]))
    for word in given:
        if word in [stage.label for stage in MIGRATION]:
            named = next((option for option in ("--stage", "--until") if option in options), "")
            return f"{begun} {playbook} {named} {word}".replace("  ", " ") if named else ""
    number = next((word for word in given if word.isdecimal()), "")
    if number and "--id" in options:
        return f"{begun} {playbook or 'PLAYBOOK'} --id {number}"
    if number:
        named = f" {playbook or 'PLAYBOOK'}" if takes else " --inventory FILE" * ("--inventory" in options)
        return f"all brokers are looked at: {begun}{named}"
    if not takes and "--inventory" in options:
        found = next((shlex.quote(word) for word, kind in files.items() if kind == INVENTORY), "")
        return f"{begun} --inventory {found or (_inventory_of(pathlib.Path(playbooks[0])) if playbooks else 'FILE')}"
    if not takes and "--dir" in options:
        return f"{begun} --dir {shlex.quote(given[0])}"
    if playbook and INVENTORY in files.values():
        return f"a playbook names its inventory: {begun} {playbook}"
    pieces = " ".join(context.command.collect_usage_pieces(context))
    return f"{begun} {pieces}"


def _inventory_of(playbook: pathlib.Path) -> str:
    """The inventory that the playbook names, as a shell takes it."""
    from migrate.errors import InputError
    from migrate.playbook.document import inventory_named, read_document

    try:
        return inventory_named(read_document(playbook)) or "FILE"
    except InputError:
        return "FILE"


def _here(kind: str) -> list[str]:
    """The files of that kind in the present folder, as a shell takes them."""
    found = sorted(pathlib.Path().glob("*.yaml"))[:50]
    return [
        shlex.quote(str(path)) for path in found if (of := read_kind(path)) is not None and of.name.endswith(f" {kind}")
    ]


def _options(command: click.Command) -> set[str]:
    return {name for param in command.params if isinstance(param, click.Option) for name in param.opts}


def _commands(group: click.Group) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        if (command := group.get_command(context, name)) is not None:
            yield name, command


def _all(context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Every command by its whole name, such as `directories show`."""
    root = context.find_root().command
    assert isinstance(root, click.Group)
    for name, command in _commands(root):
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", one) for inner, one in _commands(command))
        else:
            yield name, command
