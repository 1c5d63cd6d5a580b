"""How a node's process was started, as far as it decides the configuration, and which ports its host listens on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from migrate.model.outcome import Unknown

NOT_LOOKED: Final = Unknown("the environment was not looked at")
LOGIN_NOT_LOOKED: Final = Unknown("its login for ZooKeeper was not looked at")


@dataclass(frozen=True, slots=True)
class UnitNotes:
    """What systemd says of the unit: files read into its environment, and drop-ins."""

    environment_files: tuple[str, ...]
    drop_ins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ZookeeperClient:
    """As whom a process calls ZooKeeper by SASL: the user of its JAAS file's section.

    `accepted`: ZooKeeper let that user in with the password that stands there, or did not; Unknown where nobody tried.
    """

    username: str
    accepted: bool | Unknown


@dataclass(frozen=True, slots=True)
class NoZookeeperClient:
    """The process has no SASL login for ZooKeeper, and why that is known."""

    reason: str


@dataclass(frozen=True, slots=True)
class Launch:
    """A node's command line and environment, as it runs or would be started; no value of a secret is in it.

    `config` is the properties file in the command line, as it is spelled there; None where there is none.
    `environment` holds the names of variables that make configuration, never their values.
    """

    config: str | None
    overrides: Mapping[str, str] = field(default_factory=dict)  # `--override key=value`; passwords "(sensitive)"
    zookeeper_properties: tuple[str, ...] = ()  # names of -Dzookeeper.* words
    jaas_file: str | None = None  # -Djava.security.auth.login.config
    main_class: str | None = None  # None: no class of Kafka's is in the command line
    environment: tuple[str, ...] | Unknown = NOT_LOOKED
    unit: UnitNotes | None = None  # None: no unit of systemd's
    jute_maxbuffer: int | None = None  # -Djute.maxbuffer: bytes that ZooKeeper's client takes in one answer
    release: str = ""  # of Kafka, by the names of the jars in the class path; "" where it names none
    container: str = ""  # the tool that runs a container, where the unit's process is one
    zookeeper_section: str = "Client"  # of the JAAS file, for ZooKeeper; "" where SASL is switched off
    zookeeper_client: ZookeeperClient | NoZookeeperClient | Unknown = LOGIN_NOT_LOOKED  # controllers' alone


@dataclass(frozen=True, slots=True)
class Listening:
    """A listening TCP socket: `address` as text (`0.0.0.0`, `::`, `127.0.0.1`), IPv4 within IPv6 as IPv4."""

    address: str
    port: int
