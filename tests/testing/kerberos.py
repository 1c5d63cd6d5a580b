"""A real KDC for tests, and a Kafka node that is broker and controller, both listeners by GSSAPI."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import pytest

from migrate.errors import MigrateError
from migrate.java.find import find_java
from migrate.java.jars import kafka_jars
from migrate.java.run import java_argv
from migrate.kafka.connection import Connection
from migrate.lab.kdc import PATHS, PROGRAMS, REALM, Kdc, principal, section
from migrate.lab.topology import free_ports, is_free
from migrate.model.inventory import Access, Kerberos
from tests.testing.kraft_cluster import CLUSTER_ID, LOG4J, wait_for


def needs_kdc() -> None:
    """Skip where the programs of a KDC are not installed (Debian: krb5-kdc krb5-admin-server krb5-user)."""
    for name in (*PROGRAMS, "kinit"):
        if shutil.which(name, path=PATHS) is None:
            pytest.skip(f"no {name} on this machine")


@dataclass
class RunningKdc:
    """The process, and what it was made of; `keytab` names a keytab with one principal."""

    kdc: Kdc
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    def keytab(self, name: str) -> Path:
        """The keytab of that principal."""
        return self.folder / f"{name.replace('/', '-')}.keytab"

    def make(self, *names: str) -> None:
        """Have the principals, each with its keytab."""
        self.kdc.make({self.keytab(name): (name,) for name in names})

    def administer(self, *commands: str) -> None:
        """Have kadmin.local do it."""
        self.kdc.run(("kadmin.local", "-r", REALM), "".join(f"{command}\n" for command in commands))

    def kinit(self, name: str, cache: Path) -> None:
        """Fill a ticket cache."""
        self.kdc.run(("kinit", "-c", f"FILE:{cache}", "-k", "-t", str(self.keytab(name)), principal(name)))

    def start(self) -> None:
        """Start, and wait until it listens."""
        with (self.folder / "kdc.out").open("ab") as log:
            self.process = subprocess.Popen(self.kdc.argv, env=self.kdc.environment, stdout=log, stderr=log)
        wait_for("the KDC", lambda: not is_free(self.kdc.port), 20)

    def stop(self) -> None:
        """End it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(20)
            self.process = None

    def login(self, name: str, service: str = "") -> Kerberos:
        """That principal, by its keytab."""
        return Kerberos(principal(name), keytab=str(self.keytab(name)), service=service)

    def access(self, name: str, service: str = "") -> Access:
        """A listener by GSSAPI, as that principal."""
        return Access("SASL_PLAINTEXT", "GSSAPI", kerberos=self.login(name, service))


@contextmanager
def running_kdc(folder: Path, *names: str, lifetime: str = "24h") -> Iterator[RunningKdc]:
    """A KDC with those principals; this process's library asks it, too."""
    folder.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    found = RunningKdc(Kdc(folder / "kdc", port, lifetime), folder)
    found.make(*names)
    found.start()
    try:
        with patch.dict("os.environ", {"KRB5_CONFIG": str(found.kdc.client_file)}):
            yield found
    finally:
        found.stop()


@dataclass
class KerberosNode:
    """One node of Kafka; its listeners are at localhost."""

    kdc: RunningKdc
    folder: Path
    ports: list[int] = field(default_factory=lambda: free_ports(2))
    process: subprocess.Popen[bytes] | None = None

    @property
    def broker(self) -> str:
        """Address of the brokers' listener."""
        return f"localhost:{self.ports[0]}"

    @property
    def controller(self) -> str:
        """Address of the controllers' listener."""
        return f"localhost:{self.ports[1]}"

    def start(self) -> None:
        """Write its files, start it, and wait until it takes a login."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "data").mkdir(exist_ok=True)
        (self.folder / "data" / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={CLUSTER_ID}\n")
        (self.folder / "log4j.properties").write_text(LOG4J)
        jaas = self.folder / "jaas.conf"
        jaas.write_text(section("KafkaServer", self.kdc.keytab("kafka/localhost"), "kafka/localhost"))
        (self.folder / "node.properties").write_text(
            f"process.roles=broker,controller\nnode.id=1\nlog.dirs={self.folder}/data\n"
            f"controller.quorum.voters=1@{self.controller}\ncontroller.listener.names=CTL\n"
            f"listeners=INTERNAL://{self.broker},CTL://{self.controller}\ninter.broker.listener.name=INTERNAL\n"
            "listener.security.protocol.map=INTERNAL:SASL_PLAINTEXT,CTL:SASL_PLAINTEXT\n"
            "sasl.enabled.mechanisms=GSSAPI\nsasl.mechanism.inter.broker.protocol=GSSAPI\n"
            "sasl.kerberos.service.name=kafka\nsuper.users=User:kafka;User:migrator\n"
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
        )
        options = (
            "-Xmx256m",
            f"-Dlog4j.configuration=file:{self.folder / 'log4j.properties'}",
            f"-Djava.security.auth.login.config={jaas}",
            f"-Djava.security.krb5.conf={self.kdc.kdc.client_file}",
        )
        words = (str(self.folder / "node.properties"),)
        argv = java_argv(find_java(), kafka_jars().classpath, "kafka.Kafka", words, options)
        with (self.folder / "node.log").open("ab") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, cwd=self.folder)
        wait_for("the node", self._answers)

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "node.log").read_text()[-3000:]
        try:
            Connection(self.broker, self.kdc.access("migrator")).close()
        except MigrateError:
            return False
        return True

    def stop(self) -> None:
        """SIGKILL."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(30)
