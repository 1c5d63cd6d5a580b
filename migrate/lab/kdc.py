"""The KDC of a lab with Kerberos: files below one folder, one loopback port; made and run by Debian's own programs.

No service is touched: `krb5kdc` runs in the foreground with a configuration and a database of the lab's.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from migrate.errors import LabRefused
from migrate.hosts.files import replace_file
from migrate.hosts.runner import stream
from migrate.lab.supervisor import ProcessSpec
from migrate.lab.topology import HOST, KDC, Topology

REALM: Final = "LAB.TEST"
MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
NAME: Final = "localhost"  # of every host in principals: the one that needs no entry in /etc/hosts
NODE: Final = f"kafka/{NAME}"
PATHS: Final = f"{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin"
PROGRAMS: Final = ("krb5kdc", "kdb5_util", "kadmin.local")
SECONDS: Final = 60.0

# the names of nodes are taken as they stand: no DNS is asked
CLIENTS: Final = """\
[libdefaults]
 default_realm = {realm}
 dns_lookup_realm = false
 dns_lookup_kdc = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
 ticket_lifetime = {lifetime}
[realms]
 {realm} = {{
  kdc = {host}:{port}
 }}
[domain_realm]
 localhost = {realm}
"""
SERVER: Final = """\
[kdcdefaults]
 kdc_listen = {host}:{port}
 kdc_tcp_listen = {host}:{port}
[realms]
 {realm} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  acl_file = {folder}/acl
  max_life = 24h
 }}
[logging]
 kdc = FILE:{folder}/kdc.log
 default = FILE:{folder}/tools.log
"""


def principal(name: str) -> str:
    """`NAME@LAB.TEST`."""
    return f"{name}@{REALM}"


def section(name: str, keytab: Path, who: str) -> str:
    """A section of a JAAS file: a login from that keytab (pure)."""
    return (
        f"{name} {{ {MODULE} required useKeyTab=true storeKey=true useTicketCache=false doNotPrompt=true\n"
        f'  keyTab="{keytab}" principal="{principal(who)}"; }};\n'
    )


def require() -> None:
    """Raise LabRefused where a program of a KDC is not installed."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=PATHS) is None]
    if missing:
        raise LabRefused(
            f"a KDC needs {', '.join(missing)}",
            next_step="apt install --no-install-recommends krb5-kdc krb5-admin-server",
        )


@dataclass(frozen=True, slots=True)
class Kdc:
    """A KDC with its folder and its address; `lifetime` of tickets, as krb5.conf writes it."""

    folder: Path
    port: int
    lifetime: str = "24h"
    host: str = HOST

    @property
    def client_file(self) -> Path:
        """krb5.conf of everybody who calls it."""
        return self.folder / "krb5.conf"

    @property
    def environment(self) -> dict[str, str]:
        """What its programs need."""
        return {
            "PATH": PATHS, "KRB5_CONFIG": str(self.client_file), "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
        }  # fmt: skip

    @property
    def argv(self) -> tuple[str, ...]:
        """How it is started; it stays in the foreground."""
        return (shutil.which("krb5kdc", path=PATHS) or "krb5kdc", "-n")

    def make(self, keytabs: Mapping[Path, Sequence[str]]) -> None:
        """Write its files and the keytabs (path -> names of principals), once.  Raises LabRefused."""
        require()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        values = {
            "realm": REALM, "host": self.host, "port": self.port, "folder": self.folder, "lifetime": self.lifetime,
        }  # fmt: skip
        replace_file(str(self.client_file), CLIENTS.format(**values).encode())
        replace_file(str(self.folder / "kdc.conf"), SERVER.format(**values).encode())
        if not (self.folder / "stash").exists():
            word = secrets.token_urlsafe(18)
            self.run(("kdb5_util", "-r", REALM, "create", "-s"), f"{word}\n{word}\n")
        wanted = {path: names for path, names in keytabs.items() if not path.exists()}
        added = dict.fromkeys(f"addprinc -randkey {name}\n" for names in wanted.values() for name in names)
        written = (f"ktadd -norandkey -k {path} {' '.join(names)}\n" for path, names in wanted.items())
        if wanted:
            said = self.run(("kadmin.local", "-r", REALM), "".join((*added, *written)))
            if missing := [str(path) for path in wanted if not path.exists()]:
                raise LabRefused("kadmin.local wrote no keytab", where=missing[0], why=said)

    def run(self, words: Sequence[str], given: str = "") -> str:
        """One of its programs, to its end; what it complains of.  Raises LabRefused."""
        program = shutil.which(words[0], path=PATHS) or words[0]
        done = stream((program, *words[1:]), words[0], given.encode(), SECONDS, env=self.environment)
        if done.code:
            raise LabRefused(f"{words[0]} ended with {done.code}", where=str(self.folder), why=done.says)
        return done.says


# -- of a lab ----------------------------------------------------------------------------------------------------
def kdc_of(topology: Topology) -> Kdc:
    return Kdc(topology.folder(KDC), topology.kdc_port)


def keytab(topology: Topology, who: str) -> Path:
    """`node` of brokers and controllers, `zookeeper`, `tool`: what this tool is at Kafka and at ZooKeeper."""
    return topology.folder("secrets", f"{who}.keytab")


def lay_out(topology: Topology, tool: Sequence[str]) -> None:
    """Make the KDC with its keytabs, and have this process ask it.  Raises LabRefused."""
    names = {"node": (NODE,), "zookeeper": (f"zookeeper/{NAME}",), "tool": tool}
    kdc_of(topology).make({keytab(topology, who): known for who, known in names.items()})


def use(topology: Topology) -> None:
    """Have this process, and what it starts, ask that KDC: MIT's library reads the name of its file from there."""
    os.environ["KRB5_CONFIG"] = str(kdc_of(topology).client_file)


def spec(topology: Topology) -> ProcessSpec:
    found = kdc_of(topology)
    return ProcessSpec(
        name=KDC,
        node=None,
        argv=found.argv,
        directory=topology.directory,
        log=str(found.folder / "kdc.log"),
        output=str(topology.folder("logs", f"{KDC}.out")),
        config=str(found.folder / "kdc.conf"),
        environment=found.environment,
    )
