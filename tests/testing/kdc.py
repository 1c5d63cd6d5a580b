"""A Kerberos KDC of one's own: files below one folder, one loopback port; made by Debian's programs."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from migrate.hosts.files import replace_file
from migrate.lab.topology import HOST

REALM: Final = "LAB.TEST"
NAME: Final = "kdc"
PATHS: Final = f"{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin"
PROGRAMS: Final = ("krb5kdc", "kdb5_util", "kadmin.local")

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


@dataclass(frozen=True, slots=True)
class Kdc:
    """A KDC with its folder and its port; `lifetime` of tickets, as krb5.conf writes it."""

    folder: Path
    port: int
    lifetime: str = "24h"

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
        """Write its files and the keytabs (path -> names of principals), once."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        values = {
            "realm": REALM, "host": HOST, "port": self.port, "folder": self.folder, "lifetime": self.lifetime,
        }  # fmt: skip
        replace_file(str(self.client_file), CLIENTS.format(**values).encode())
        replace_file(str(self.folder / "kdc.conf"), SERVER.format(**values).encode())
        if not (self.folder / "stash").exists():
            word = secrets.token_urlsafe(18)
            self.run(("kdb5_util", "-r", REALM, "create", "-s"), f"{word}\n{word}\n")
        names = dict.fromkeys(name for known in keytabs.values() for name in known)
        added = "".join(f"addprinc -randkey {name}\n" for name in names)
        written = "".join(
            f"ktadd -norandkey -k {path} {' '.join(known)}\n" for path, known in keytabs.items() if not path.exists()
        )
        if written:
            self.run(("kadmin.local", "-r", REALM), added + written)
            assert all(path.exists() for path in keytabs)

    def run(self, words: Sequence[str], given: str = "") -> None:
        """One of its programs, to its end."""
        found = shutil.which(words[0], path=PATHS)
        assert found is not None, words[0]
        argv = (found, *words[1:])
        subprocess.run(argv, input=given, env=self.environment, text=True, check=True, capture_output=True)
