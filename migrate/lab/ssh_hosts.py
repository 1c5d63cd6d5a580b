"""An SSH server on loopback for the lab: several host names, one machine, sessions of the user who started it.

It is there so that a lab's nodes can be reached as an operator's are: by the real OpenSSH client, with a key, a known
host key, and a configuration file.  Programs in the folder's `bin` come first in PATH (see `units.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import asyncssh

from migrate.hosts.files import replace_file

ADDRESS: Final = "127.0.0.1"
CONFIG: Final = "ssh_config"
HOST_KEY: Final = "host_key"
USER_KEY: Final = "user_key"
KNOWN: Final = "known_hosts"
BIN: Final = "bin"
PART: Final = 1 << 16


def prepare(folder: Path, hosts: Iterable[str], port: int) -> Path:
    """Write keys, known hosts and the client's configuration for those host names; return the configuration's path."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / BIN).mkdir(exist_ok=True)
    public: dict[str, str] = {}
    for name in (HOST_KEY, USER_KEY):
        if not (folder / name).exists():
            key = asyncssh.generate_private_key("ssh-ed25519")
            replace_file(str(folder / name), key.export_private_key())
            replace_file(str(folder / f"{name}.pub"), key.export_public_key())
        public[name] = (folder / f"{name}.pub").read_text().strip()
    replace_file(str(folder / KNOWN), f"kraft-migrate-lab {public[HOST_KEY]}\n".encode())
    replace_file(str(folder / CONFIG), _configuration(folder, hosts, port).encode())
    return folder / CONFIG


def _configuration(folder: Path, hosts: Iterable[str], port: int) -> str:
    return "\n".join((
        f"Host {' '.join(hosts)}",
        f"  HostName {ADDRESS}",
        f"  Port {port}",
        "  HostKeyAlias kraft-migrate-lab",
        f'  UserKnownHostsFile "{folder / KNOWN}"',
        "  GlobalKnownHostsFile none",
        f'  IdentityFile "{folder / USER_KEY}"',
        "  IdentitiesOnly yes",
        "",
    ))  # fmt: skip


async def serve(folder: Path, port: int) -> None:
    async def session(process: asyncssh.SSHServerProcess[bytes]) -> None:
        process.exit(await _run(process, folder))

    server = await asyncssh.listen(
        ADDRESS,
        port,
        server_host_keys=[str(folder / HOST_KEY)],
        authorized_client_keys=str(folder / f"{USER_KEY}.pub"),
        process_factory=session,
        encoding=None,
        compression_algs=None,
    )
    await server.wait_closed()


async def _run(process: asyncssh.SSHServerProcess[bytes], folder: Path) -> int:
    """Run the session's command to its end and send all of its output; return its exit code as a shell does."""
    if process.command is None:
        return 1
    child = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        process.command,
        env={**os.environ, "PATH": f"{folder / BIN}:{os.environ.get('PATH', '')}", "LC_ALL": "C"},
        cwd="/",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    feeding = asyncio.create_task(_feed(process.stdin, child.stdin))
    try:
        await asyncio.gather(_copy(child.stdout, process.stdout), _copy(child.stderr, process.stderr))
        code = await child.wait()
    finally:
        feeding.cancel()
    return code if code >= 0 else 128 - code


async def _feed(source: asyncssh.SSHReader[bytes], target: asyncio.StreamWriter) -> None:
    """Forward the client's input; a command that has read enough closes its end."""
    with contextlib.suppress(ConnectionError):
        while part := await source.read(PART):
            target.write(part)
            await target.drain()
        target.close()


async def _copy(source: asyncio.StreamReader, target: asyncssh.SSHWriter[bytes]) -> None:
    while part := await source.read(PART):
        target.write(part)
        await target.drain()


def main() -> int:
    """`python -m migrate.lab.ssh_hosts FOLDER PORT`."""
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
