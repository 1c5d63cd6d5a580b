"""A secured lab: SASL_SSL on every listener, ZooKeeper with SASL and ACLs, and a principal of its own for each part.

Brokers, controllers and the tool each have a name: `broker`, `controller`, `admin`. The brokers' files do not name the
controllers; what both sides need is added by the migration, as in any cluster.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

import migrate
from migrate.checks.oauth import FETCHER, LOGIN_HANDLER, MECHANISM, PACKAGE, SERVER_HANDLER, VALIDATOR
from migrate.hosts.files import replace_file
from migrate.lab import kdc
from migrate.lab.issuer import AUDIENCE
from migrate.lab.supervisor import ProcessSpec
from migrate.lab.topology import CLIENT, CONTROLLER, HOST, INTERNAL, ISSUER, ZOOKEEPER, LabBroker, Topology
from migrate.model.inventory import Access, AddedProperties, Kerberos, OAuth, SecretFile, Store, ZookeeperLogin
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
AT_ZOOKEEPER: Final = f"{ZOOKEEPER_USER}/tool"  # a host of its own: ZooKeeper takes hosts and realms off
PRINCIPALS: Final = (BROKER, CONTROLLERS, ADMIN)
SECRETS: Final = (BROKER, CONTROLLERS, ZOOKEEPER_USER)
AUTHORITY: Final = "ca.pem"
PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
TOKEN_SECONDS: Final = 600  # of a lab's tokens: each is fetched again during a migration
SESSION_MS: Final = 60_000  # of a lab with OAUTHBEARER: sessions end during every roll
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


def login_options(topology: Topology, process: str) -> tuple[str, ...]:
    """The JVM's options that name it, and the KDC."""
    kerberos = (f"-Djava.security.krb5.conf={kdc.kdc_of(topology).client_file}",) if topology.kdc_port else ()
    return (f"-Djava.security.auth.login.config={jaas_path(topology, process)}", *kerberos)


# -- files -------------------------------------------------------------------------------------------------------
def plain(user: str, passwords: dict[str, str], known: tuple[str, ...] = ()) -> str:
    """sasl.jaas.config of PLAIN: the own login, and the known users (pure)."""
    users = "".join(f' user_{name}="{passwords[name]}"' for name in known)
    return f'{PLAIN_MODULE} required username="{user}" password="{passwords[user]}"{users};'


def listener_lines(topology: Topology, broker: LabBroker, passwords: dict[str, str], users: tuple[str, ...]) -> str:
    """The part of a broker's file about listeners (pure)."""
    known = "".join(f' user_{name}="{passwords[name]}"' for name in users)
    also = f"listener.name.client.sasl.enabled.mechanisms=PLAIN,{SCRAM}"
    if topology.issuer_port:
        issuer = f"http://{HOST}:{topology.issuer_port}"
        also += f""",{MECHANISM}
{login_lines(topology, CLIENT, BROKER, passwords)}sasl.oauthbearer.token.endpoint.url={issuer}/token
sasl.oauthbearer.jwks.endpoint.url={issuer}/jwks
sasl.oauthbearer.expected.issuer={issuer}
sasl.oauthbearer.expected.audience={AUDIENCE}
connections.max.reauth.ms={SESSION_MS}"""
    if topology.kdc_port:
        also += f""",GSSAPI
advertised.listeners={INTERNAL}://{topology.host}:{broker.internal_port},{CLIENT}://{topology.host}:{broker.client_port}
sasl.kerberos.service.name=kafka"""
    return f"""\
# -- listeners: everybody encrypted and with a name
listeners={INTERNAL}://{HOST}:{broker.internal_port},{CLIENT}://{HOST}:{broker.client_port}
listener.security.protocol.map={INTERNAL}:SASL_SSL,{CLIENT}:SASL_SSL
inter.broker.listener.name={INTERNAL}
sasl.mechanism.inter.broker.protocol={topology.mechanism}
listener.name.internal.sasl.enabled.mechanisms={topology.mechanism}
{login_lines(topology, INTERNAL, BROKER, passwords)}{also}
listener.name.client.plain.sasl.jaas.config={PLAIN_MODULE} required{known};
listener.name.client.{SCRAM.lower()}.sasl.jaas.config={SCRAM_MODULE} required;
{_store_lines(topology, BROKER, passwords)}ssl.truststore.type=PEM
ssl.truststore.location={store_path(topology, AUTHORITY)}
zookeeper.set.acl=true
"""


def login_lines(topology: Topology, listener: str, who: str, passwords: dict[str, str]) -> str:
    """How that node logs in to a listener, and checks who does where it has it itself (pure)."""
    if topology.kdc_port:  # a section KafkaServer says it
        return ""
    prefix = f"listener.name.{listener.lower()}.{topology.mechanism.lower()}."
    if not topology.issuer_port:
        known = () if (who, listener) in ((BROKER, CONTROLLER), (CONTROLLERS, INTERNAL)) else PRINCIPALS
        return f"{prefix}sasl.jaas.config={plain(who, passwords, known)}\n"
    client = f'clientId="{who}" clientSecret="{passwords[who]}"'
    return (
        f"{prefix}sasl.jaas.config={PACKAGE}.OAuthBearerLoginModule required {client};\n"
        f"{prefix}{LOGIN_HANDLER}={FETCHER}\n{prefix}{SERVER_HANDLER}={VALIDATOR}\n"
    )


def rights_line(topology: Topology) -> str:
    """super.users of a broker's file: the controllers are not known yet (pure)."""
    return f"User:{kdc.NODE.partition('/')[0] if topology.kdc_port else BROKER};User:{ADMIN}"


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
            f"sasl.mechanism.controller.protocol={topology.mechanism}\n"
            f"{login_lines(topology, CONTROLLER, BROKER, passwords)}"
        ),
        added_path(topology, CONTROLLERS).name: (
            "# Who controllers are, and whom they know: merged into each rendered controller's file.\n"
            f"sasl.mechanism.controller.protocol={topology.mechanism}\n"
            f"{listener}.sasl.enabled.mechanisms={topology.mechanism}\n"
            f"{login_lines(topology, CONTROLLER, CONTROLLERS, passwords)}"
            f"{login_lines(topology, INTERNAL, CONTROLLERS, passwords)}"
            f"{_store_lines(topology, CONTROLLERS, passwords)}"
        ),
    }


def jaas_files(topology: Topology, passwords: dict[str, str]) -> dict[str, str]:
    """File name -> login configuration: the identity with which brokers and controllers write ZooKeeper (pure)."""
    if topology.kdc_port:
        server, node = kdc.keytab(topology, ZOOKEEPER), kdc.keytab(topology, "node")
        return {
            jaas_path(topology, ZOOKEEPER).name: kdc.section("Server", server, f"zookeeper/{kdc.NAME}"),
            jaas_path(topology, BROKER).name: "".join(
                kdc.section(name, node, kdc.NODE) for name in ("KafkaServer", "Client")
            ),
        }
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


def issuer_file(topology: Topology, passwords: dict[str, str]) -> str:
    """What the issuer of tokens knows: its clients' secrets are in it (pure)."""
    clients = {who: passwords[who] for who in PRINCIPALS}
    return json.dumps({"port": topology.issuer_port, "lifetime": TOKEN_SECONDS, "clients": clients}) + "\n"


def issuer_spec(topology: Topology) -> ProcessSpec:
    package = str(Path(migrate.__file__).parent.parent)
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    config = str(topology.folder("conf", f"{ISSUER}.json"))
    return ProcessSpec(
        name=ISSUER,
        node=None,
        argv=(sys.executable, "-m", "migrate.lab.issuer", config),
        directory=topology.directory,
        log=str(topology.log(ISSUER)),
        output=str(topology.folder("logs", f"{ISSUER}.out")),
        config=config,
        environment={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "PYTHONPATH": path},
    )


# -- how to speak to it ------------------------------------------------------------------------------------------
def access(topology: Topology, mechanism: str = "") -> Access:
    """Any of the listeners, as the administrator; `mechanism` where clients have another one."""
    password, trusted = SecretFile(str(topology.folder("secrets", ADMIN))), store_path(topology, AUTHORITY)
    found = Access("SASL_SSL", mechanism or topology.mechanism, ADMIN, truststore=Store(str(trusted), "PEM"))
    if found.mechanism == "GSSAPI":
        return replace(found, username="", kerberos=_by_keytab(topology, ADMIN))
    if topology.issuer_port:
        endpoint = f"http://{HOST}:{topology.issuer_port}/token"
        return replace(found, oauth=OAuth(endpoint=endpoint, client_id=ADMIN, client_secret=password))
    return replace(found, password=password)


def login(topology: Topology) -> ZookeeperLogin:
    """ZooKeeper, as the brokers: no other identity may lock or roll back."""
    if topology.kdc_port:
        return ZookeeperLogin(kerberos=_by_keytab(topology, AT_ZOOKEEPER))
    return ZookeeperLogin(ZOOKEEPER_USER, SecretFile(str(topology.folder("secrets", ZOOKEEPER_USER))))


def _by_keytab(topology: Topology, name: str) -> Kerberos:
    return Kerberos(kdc.principal(name), str(kdc.keytab(topology, "tool")))


def properties(topology: Topology, who: str) -> AddedProperties | None:
    """The properties added to brokers or controllers; None until the lab's files exist."""
    path = added_path(topology, who)
    return added(str(path)) if path.exists() else None
