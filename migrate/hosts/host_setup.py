"""What is installed on a host: the program, its configuration, one line for sudo, and the script that root runs there.

Everything here is pure: text from an inventory.  One configuration holds all nodes of a host.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import re
import shlex
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from migrate.errors import UsageWrong
from migrate.model.inventory import BrokerNode, ControllerNode, Inventory

PROGRAM: Final = "/usr/local/libexec/kraft-migrate/host"
CONFIGURATION: Final = "/etc/kraft-migrate/host.json"
SUDOERS: Final = "/etc/sudoers.d/kraft-migrate"
SOURCE: Final = "host_program.py"
COLLECTOR: Final = "collect_disks.py"
FORMAT: Final = 2
# sudoers(5): a name in capitals is an alias, and % # + begin other things than users; others are quoted
ACCOUNT: Final = re.compile(r"(?=.*[a-z0-9._@-])[A-Za-z_][A-Za-z0-9_.@-]{0,63}")
# a metadata directory is renamed by a rollback: none of these is anybody's metadata directory
NEVER_METADATA: Final = re.compile(r"/|/[^/]+|/(etc|usr|var|lib|lib64|boot|dev|proc|run|sys|bin|sbin|root)(/[^/]+)?")


def released(name: str) -> bytes:
    """The text of one of the stand-alone programs, as this release has it."""
    return importlib.resources.files("migrate.hosts").joinpath(name).read_bytes()


def sums() -> dict[str, str]:
    """SHA-256 of each program of this release, as `about` tells them."""
    sources = {"host": SOURCE, COLLECTOR: COLLECTOR}
    return {name: hashlib.sha256(released(source)).hexdigest() for name, source in sources.items()}


def installed_text(python: str, configuration: str) -> bytes:
    """The program as it is installed: for that interpreter, with that configuration (pure)."""
    _, _, rest = released(SOURCE).partition(b"\n")
    place = f"CONFIGURATION = {json.dumps(configuration)}".encode()
    text = re.sub(rb'(?m)^CONFIGURATION = ".*"$', lambda _line: place, rest, count=1)
    return f"#!{python} -IS\n".encode() + text


def nodes_of(inventory: Inventory, host: str) -> tuple[BrokerNode | ControllerNode, ...]:
    """The nodes on that host, named as the inventory does; UsageWrong where none is."""
    found = tuple(node for node in inventory.nodes if node.host == host)
    if not found:
        known = ", ".join(dict.fromkeys(node.host for node in inventory.nodes))
        raise UsageWrong(f"no node is on a host {host!r}", next_step=f"name a host of the inventory: {known}")
    return found


def configuration(inventory: Inventory, host: str, account: str = "") -> dict[str, Any]:
    """What host.json says (pure).  Raises UsageWrong: no node is on that host, or what it names cannot be acted on."""
    return {
        "format": FORMAT,
        "account": account,
        "nodes": [_entry(node, inventory.kafka_home_of(node)) for node in nodes_of(inventory, host)],
        "programs": sums(),
    }


def _entry(node: BrokerNode | ControllerNode, kafka_home: str) -> dict[str, Any]:
    metadata = node.metadata_directory if isinstance(node, ControllerNode) else ""
    if metadata and NEVER_METADATA.fullmatch(metadata):
        raise UsageWrong(
            f"{metadata} is no place for a metadata directory",
            where=f"node {int(node.id)}",
            why="a rollback renames the metadata directory",
            next_step="give the controller a folder of its own, such as /srv/kafka/metadata",
        )
    role = "controller" if isinstance(node, ControllerNode) else "broker"
    service: dict[str, Any] = {}
    if node.service is not None:
        values = asdict(node.service) | {"timeout": int(node.service.timeout)}
        lists = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
        service = {"service": lists}  # as `about` answers it
    return {
        "id": int(node.id),
        "role": role,
        "unit": node.unit,
        "config": node.config,
        "metadata_directory": metadata,
        **service,
        "kafka_home": kafka_home,
    }


def install(prefix: Path, found: dict[str, Any], python: str) -> str:
    """Put the program and its configuration into a folder of ours, without root and sudo.

    Returns why it refuses to run there, "" if it runs.

    `found` may have a key `path`: a folder where stand-ins of systemctl and journalctl are looked for first.
    """
    prefix.mkdir(parents=True, exist_ok=True)
    contents = {
        "host": (installed_text(python, str(prefix / "host.json")), 0o755),
        "host.json": ((json.dumps(found, indent=1) + "\n").encode(), 0o644),
        COLLECTOR: (released(COLLECTOR), 0o644),
    }
    for name, (content, mode) in contents.items():
        (prefix / name).write_bytes(content)
        (prefix / name).chmod(mode)
    prefix.chmod(0o755)
    done = subprocess.run([prefix / "host", "links"], capture_output=True, check=False)
    if done.returncode:
        return done.stderr.decode(errors="replace").strip()
    (prefix / "host.json").write_bytes(done.stdout)
    return ""


def sudo_line(account: str) -> str:
    """The sudoers line (pure): one program, which checks its arguments itself.  UsageWrong for an odd account."""
    if not ACCOUNT.fullmatch(account):
        raise UsageWrong(f"{account!r} is no account that sudo can be given", next_step="log in as another user")
    quoted = account.replace("@", "\\@")
    return f"Defaults!{PROGRAM} !requiretty, !use_pty, env_reset, !setenv\n{quoted} ALL=(root) NOPASSWD: {PROGRAM}\n"


# The scripts are POSIX shell, for dash, bash and busybox.  Everything that they write is in them; they open no network
# connection.  Files get owner and mode before they get their names.  They can be run again, and report what they did.
END: Final = "END-OF-KRAFT-MIGRATE-FILE"
MODULES: Final = (  # what the two programs import: a Python of fewer modules is refused, and not found out in a run
    "argparse, ast, base64, contextlib, errno, fcntl, grp, hashlib, os, pwd, re, selectors, signal, socket, stat, "
    "subprocess, sys, threading, time, typing"
)
_BEGIN: Final = """\
#!/bin/sh
# kraft-migrate: {purpose}
# For host {host}. Run it as root on that host: sh FILE. It can be run again.
main() {{  # read whole before any of it is run
set -eu
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
umask 077
programs={programs}
settings={settings}
sudoers={sudoers}
root=yes
fail() {{ printf 'kraft-migrate: %s\\n' "$*" >&2; exit 1; }}
if [ -n "${{PREFIX:-}}" ]; then  # a trial in a folder of its own: no root, no sudo
    case $PREFIX in
    *[!A-Za-z0-9/._-]*) fail "PREFIX may consist of letters, digits, / . _ and -" ;;
    /*) ;;
    *) fail "PREFIX must be an absolute path" ;;
    esac
    programs=$PREFIX settings=$PREFIX sudoers='' root=''
elif [ "$(id -u)" -ne 0 ]; then
    fail "run this as root"
fi
"""
_SET_UP: Final = """\
account={account}
modules={modules}

usable() {{
    [ -x "$1" ] && "$1" -IS -c "import os, sys
s = os.stat(sys.executable)
sys.exit(sys.version_info < (3, 6) or s.st_uid not in (0, os.geteuid()) or s.st_mode & 0o022)" 2>/dev/null &&
        "$1" -IS -c "import $modules" 2>/dev/null
}}
python=''
known='/usr/bin/python3 /usr/libexec/platform-python /usr/local/bin/python3'
known="$known /usr/bin/python3.[0-9]* /usr/local/bin/python3.[0-9]*"
for each in ${{PYTHON:-$known}}; do
    if usable "$each"; then python=$each; break; fi
done
[ -n "$python" ] || fail "no Python 3.6 or later of root's was found. Nothing was changed. Install one (Debian," \\
    "Ubuntu: apt-get install python3-minimal; RHEL, Rocky: dnf install python3; SUSE: zypper install python3)," \\
    "or name another one: PYTHON=/path/to/python3 sh FILE"
case $python in
/*[!A-Za-z0-9/._+-]*) fail "the path of this Python cannot be used: $python" ;;
/*) ;;
*) fail "PYTHON must be an absolute path" ;;
esac
if [ -n "$sudoers" ]; then
    id "$account" >/dev/null 2>&1 || fail "there is no account $account on this host. Nothing was changed." \\
        "Make it, or name the account that logs in here in your ssh configuration, and print this script again"
    command -v sudo >/dev/null || fail "sudo is not installed. Nothing was changed."
    [ -d "${{sudoers%/*}}" ] || fail "there is no folder ${{sudoers%/*}}. Nothing was changed."
fi

folder() {{  # made where it is not there; a link is refused
    [ ! -L "$1" ] || fail "$1 is a link; a folder is wanted"
    [ -d "$1" ] || mkdir -m 755 "$1"
}}
put() {{  # put MODE PATH: stdin becomes that file, owned as we are
    [ ! -d "$2" ] || fail "$2 is a folder; a file is wanted"
    new=$(mktemp "${{2%/*}}/.kraft-migrate.XXXXXX")
    cat >"$new"
    chmod "$1" "$new"
    mv -f "$new" "$2"
}}
if [ -n "$root" ]; then
    folder "${{programs%/*}}"
    chown 0:0 "${{programs%/*}}"
fi
folder "$programs"
folder "$settings"
if [ -n "$root" ]; then chown 0:0 "$programs" "$settings"; fi
chmod 755 "$programs" "$settings"
put 644 "$settings/host.json" <<'{end}'
{json}{end}
"""
_FILE: Final = """\
put 644 "$programs/{name}" <<'{end}'
{text}{end}
"""
_PROGRAM: Final = """\
sed -e "1s|.*|#!$python -IS|" -e "s|^CONFIGURATION = .*|CONFIGURATION = \\"$settings/host.json\\"|" \\
    <<'{end}' | put 755 "$programs/host"
{text}{end}
known=$("$programs/host" links) || fail "the program was installed, and refuses to run; the sudo rule was not added"
printf '%s\\n' "$known" | put 644 "$settings/host.json"  # with what each node's file that is a link leads to
"$programs/host" about >/dev/null || fail "the program does not take its own configuration; the sudo rule was not added"
"""
_SUDO: Final = """\
if [ -n "$sudoers" ]; then
    put 440 "$settings/sudoers.new" <<'{end}'
{line}{end}
    if command -v visudo >/dev/null && ! visudo -cqf "$settings/sudoers.new"; then
        rm -f "$settings/sudoers.new"
        fail "visudo does not accept the line for sudo; the sudo rule was not added"
    fi
    put 440 "$sudoers" <"$settings/sudoers.new"
    rm -f "$settings/sudoers.new"
    if command -v visudo >/dev/null && ! visudo -cq; then
        rm -f "$sudoers"
        fail "with $sudoers visudo does not accept the whole of /etc/sudoers; it was removed again"
    fi
    said=$(su -s /bin/sh "$account" -c "sudo -n -- $programs/host about" 2>&1 >/dev/null </dev/null) ||
        printf '%s\\n' \\
        "WARNING: sudo does not let $account run it: $said" \\
        "         Does /etc/sudoers have the line @includedir ${{sudoers%/*}} ?"
fi
"""
_TOLD: Final = """\
for node in {nodes}; do
    "$programs/host" facts "$node" >/dev/null || echo "WARNING: node $node cannot be worked yet: see the line above"
done
printf '%s\\n' "Installed with $python:" "  $programs/host  (also {beside})" "  $settings/host.json"
[ -z "$sudoers" ] || printf '%s\\n' "  $sudoers: $account may run $programs/host as root, and nothing else by this file"
echo {undo}
}}
main
"""
_UNDO: Final = """\
copies() {{  # beside the file that a link leads to
    for file in {files}; do
        real=$(readlink -f "$file") || real=$file
        for each in "$real".kraft-migrate-*; do if [ -e "$each" ]; then echo "  $each"; fi; done
    done
}}
[ -z "$sudoers" ] || rm -f "$sudoers"
rm -f "$programs/host" "$programs/{collector}" "$settings/host.json"
for each in "$programs" "$settings"; do
    if [ -d "$each" ]; then rmdir "$each" 2>/dev/null || echo "left, for it is not empty: $each"; fi
done
echo "The program, its configuration and the line for sudo are gone."
echo "Left as they are: the nodes' files, units and metadata directories, and every copy that a run kept:"
copies
}}
main
"""


def set_up(inventory: Inventory, host: str, account: str, *, sudo: bool = True) -> str:
    """The script for a host (pure); UsageWrong where no node is on it, or where it cannot be worked."""
    found = json.dumps(configuration(inventory, host, account), indent=1) + "\n"
    parts = [
        _begin("install the host program and its one right", host, sudo=sudo),
        _SET_UP.format(account=shlex.quote(account), modules=shlex.quote(MODULES), end=END, json=found),
        _FILE.format(name=COLLECTOR, end=END, text=released(COLLECTOR).decode()),
        _PROGRAM.format(end=END, text=released(SOURCE).decode()),
        *([_SUDO.format(end=END, line=sudo_line(account))] if sudo else []),
        _TOLD.format(
            nodes=" ".join(str(int(node.id)) for node in nodes_of(inventory, host)),
            beside=COLLECTOR,
            undo=shlex.quote(f"To undo: kraft-migrate doctor --inventory FILE --host-setup {host} --undo"),
        ),
    ]
    return "".join(parts)


def undo(inventory: Inventory, host: str) -> str:
    """The reverse (pure); what runs made on the host is left, and told."""
    files = [shlex.quote(node.config) for node in nodes_of(inventory, host)]
    begin = _begin("remove the host program and its right", host, sudo=True)
    return begin + _UNDO.format(collector=COLLECTOR, files=" ".join(dict.fromkeys(files)))


def _begin(purpose: str, host: str, *, sudo: bool) -> str:
    return _BEGIN.format(
        purpose=purpose,
        host=host,
        programs=PROGRAM.rpartition("/")[0],
        settings=CONFIGURATION.rpartition("/")[0],
        sudoers=SUDOERS if sudo else "''",
    )
