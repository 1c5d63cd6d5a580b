"""A secured lab: SASL_SSL on every listener, ZooKeeper with SASL and ACLs, and a principal of its own for each part.

Brokers, controllers and the tool each have a name: `broker`, `controller`, `admin`. The brokers' files do not name the
controllers; what both sides need is added by the migration, as in any cluster.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from migrate.hosts.files import replace_file
from migrate.lab.topology import CLIENT, CONTROLLER, HOST, INTERNAL, ZOOKEEPER, LabBroker, Topology
from migrate.model.inventory import Access, AddedProperties, SecretFile, Store, ZookeeperLogin
from migrate.playbook.access import added

DAYS: Final = 3650  # a lab may stand parked for long
ROUNDS: Final = 100  # of the password's derivation
Span = tuple[dt.datetime, dt.datetime]


def span(days: int = DAYS) -> Span:
    """From yesterday, for so many days; a negative number has expired already."""
    start = dt.datetime.now(dt.UTC) - dt.timedelta(days=1 + max(0, -2 * days))
    return start, start + dt.timedelta(days=abs(days))


@dataclass(frozen=True, slots=True)
class Issued:
    """A key, its certificate and its authority's."""

    key: ec.EllipticCurvePrivateKey = field(repr=False)
    certificate: x509.Certificate
    authority: x509.Certificate

    @property
    def pem(self) -> bytes:
        key = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return key + self.certificate.public_bytes(Encoding.PEM)

    def pkcs12(self, password: str) -> bytes:
        """A key store as Java and Kafka read it, its secret a random one: stretching that would only cost time.

        A broker reads its store several times before it is up; the usual rounds cost it 0.15 s of CPU each time.
        """
        secret = PrivateFormat.PKCS12.encryption_builder().kdf_rounds(ROUNDS).build(password.encode())
        return serialize_key_and_certificates(b"key", self.key, self.certificate, [self.authority], secret)


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority that all parts trust."""

    key: ec.EllipticCurvePrivateKey = field(repr=False)
    certificate: x509.Certificate

    @classmethod
    def make(cls, name: str, valid: Span | None = None) -> Self:
        key = ec.generate_private_key(ec.SECP256R1())
        begun = _builder(name, name, key.public_key(), valid or span())
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        begun = begun.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        begun = begun.add_extension(usage, critical=True)
        begun = begun.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        return cls(key, begun.sign(key, hashes.SHA256()))

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def issue(self, name: str, hosts: Sequence[str], valid: Span | None = None) -> Issued:
        """A certificate for servers and clients on those hosts (names and addresses)."""
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        begun = _builder(name, str(issuer), key.public_key(), valid or span())
        begun = begun.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        begun = begun.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        begun = begun.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
        )
        begun = begun.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        return Issued(key, begun.sign(self.key, hashes.SHA256()), self.certificate)


def _builder(name: str, issuer: str, key: ec.EllipticCurvePublicKey, valid: Span) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(valid[0])
        .not_valid_after(valid[1])
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


BROKER: Final = "broker"
CONTROLLERS: Final = "controller"
ADMIN: Final = "admin"
ZOOKEEPER_USER: Final = "kafka"
KEYSTORE: Final = "keystore"  # the password of the key stores, which the seed sets as a dynamic configuration too
PRINCIPALS: Final = (BROKER, CONTROLLERS, ADMIN)
SECRETS: Final = (BROKER, CONTROLLERS, ZOOKEEPER_USER)
AUTHORITY: Final = "ca.pem"
PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
DIGEST_MODULE: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"
SCRAM: Final = "SCRAM-SHA-512"


def store_path(topology: Topology, name: str) -> Path:
    """`ca.pem`, or the key store of brokers or controllers."""
    return topology.folder("secrets", name)


def added_path(topology: Topology, who: str) -> Path:
    """The properties that the migration adds to brokers, or to controllers."""
    return topology.folder("conf", f"added-to-{who}s.properties")


def jaas_path(topology: Topology, process: str) -> Path:
    return topology.folder("conf", "zookeeper.jaas" if process == ZOOKEEPER else "kafka.jaas")


def login_option(topology: Topology, process: str) -> str:
    """The JVM's option that names it."""
    return f"-Djava.security.auth.login.config={jaas_path(topology, process)}"


# -- files -------------------------------------------------------------------------------------------------------
def plain(user: str, passwords: dict[str, str], known: tuple[str, ...] = ()) -> str:
    """sasl.jaas.config of PLAIN: the own login, and the known users (pure)."""
    users = "".join(f' user_{name}="{passwords[name]}"' for name in known)
    return f'{PLAIN_MODULE} required username="{user}" password="{passwords[user]}"{users};'


def listener_lines(topology: Topology, broker: LabBroker, passwords: dict[str, str], users: tuple[str, ...]) -> str:
    """The part of a broker's file about listeners (pure)."""
    known = "".join(f' user_{name}="{passwords[name]}"' for name in users)
    return f"""\
# -- listeners: everybody encrypted and with a name
listeners={INTERNAL}://{HOST}:{broker.internal_port},{CLIENT}://{HOST}:{broker.client_port}
listener.security.protocol.map={INTERNAL}:SASL_SSL,{CLIENT}:SASL_SSL
inter.broker.listener.name={INTERNAL}
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.internal.sasl.enabled.mechanisms=PLAIN
listener.name.internal.plain.sasl.jaas.config={plain(BROKER, passwords, PRINCIPALS)}
listener.name.client.sasl.enabled.mechanisms=PLAIN,{SCRAM}
listener.name.client.plain.sasl.jaas.config={PLAIN_MODULE} required{known};
listener.name.client.{SCRAM.lower()}.sasl.jaas.config={SCRAM_MODULE} required;
{_store_lines(topology, BROKER, passwords)}ssl.truststore.type=PEM
ssl.truststore.location={store_path(topology, AUTHORITY)}
zookeeper.set.acl=true
"""


def rights_line() -> str:
    """super.users of a broker's file: the controllers are not known yet (pure)."""
    return f"User:{BROKER};User:{ADMIN}"


def _store_lines(topology: Topology, who: str, passwords: dict[str, str]) -> str:
    return (
        f"ssl.keystore.type=PKCS12\nssl.keystore.location={store_path(topology, f'{who}.p12')}\n"
        f"ssl.keystore.password={passwords[KEYSTORE]}\n"
    )


def added_files(topology: Topology, passwords: dict[str, str]) -> dict[str, str]:
    """File name -> what operators add for the controller listener, to brokers and to controllers (pure)."""
    listener = f"listener.name.{CONTROLLER.lower()}"
    return {
        added_path(topology, BROKER).name: (
            "# How brokers log in at the controllers: merged into each broker's file at its first restart.\n"
            "sasl.mechanism.controller.protocol=PLAIN\n"
            f"{listener}.plain.sasl.jaas.config={plain(BROKER, passwords)}\n"
        ),
        added_path(topology, CONTROLLERS).name: (
            "# Who controllers are, and whom they know: merged into each rendered controller's file.\n"
            "sasl.mechanism.controller.protocol=PLAIN\n"
            f"{listener}.sasl.enabled.mechanisms=PLAIN\n"
            f"{listener}.plain.sasl.jaas.config={plain(CONTROLLERS, passwords, PRINCIPALS)}\n"
            f"listener.name.internal.plain.sasl.jaas.config={plain(CONTROLLERS, passwords)}\n"
            f"{_store_lines(topology, CONTROLLERS, passwords)}"
        ),
    }


def jaas_files(topology: Topology, passwords: dict[str, str]) -> dict[str, str]:
    """File name -> login configuration: the identity with which brokers and controllers write ZooKeeper (pure)."""
    word = passwords[ZOOKEEPER_USER]
    return {
        jaas_path(topology, ZOOKEEPER).name: (
            f'Server {{\n  {DIGEST_MODULE} required\n  user_{ZOOKEEPER_USER}="{word}";\n}};\n'
        ),
        jaas_path(topology, BROKER).name: (
            f'Client {{\n  {DIGEST_MODULE} required\n  username="{ZOOKEEPER_USER}"\n  password="{word}";\n}};\n'
        ),
    }


def make_stores(topology: Topology, passwords: dict[str, str]) -> None:
    """An authority and a key store each for brokers and controllers, made once; the authority's key is not kept."""
    wanted = {who: store_path(topology, f"{who}.p12") for who in (BROKER, CONTROLLERS)}
    if store_path(topology, AUTHORITY).exists() and all(path.exists() for path in wanted.values()):
        return
    authority = Authority.make("kraft-migrate lab")
    for who, path in wanted.items():
        replace_file(str(path), authority.issue(who, ("localhost", HOST)).pkcs12(passwords[KEYSTORE]))
    replace_file(str(store_path(topology, AUTHORITY)), authority.pem)


# -- how to speak to it ------------------------------------------------------------------------------------------
def access(topology: Topology) -> Access:
    """Any of the listeners, as the administrator."""
    password = SecretFile(str(topology.folder("secrets", ADMIN)))
    return Access("SASL_SSL", "PLAIN", ADMIN, password, Store(str(store_path(topology, AUTHORITY)), "PEM"))


def login(topology: Topology) -> ZookeeperLogin:
    """ZooKeeper, as the brokers: no other identity may lock or roll back."""
    return ZookeeperLogin(ZOOKEEPER_USER, SecretFile(str(topology.folder("secrets", ZOOKEEPER_USER))))


def properties(topology: Topology, who: str) -> AddedProperties | None:
    """The properties added to brokers or controllers; None until the lab's files exist."""
    path = added_path(topology, who)
    return added(str(path)) if path.exists() else None
