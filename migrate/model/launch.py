"""How a node's process is started: its options, its systemd unit, and the ports that its host listens on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from migrate.model.outcome import Unknown

NOT_RUNNING: Final = Unknown("it does not run: how it would be started cannot be seen")
NOT_LOOKED: Final = Unknown("the environment was not looked at")
JAAS_NOT_LOOKED: Final = Unknown("the JAAS file of its process was not looked at")
LOGIN_NOT_LOOKED: Final = Unknown("its login for ZooKeeper was not looked at")

JAAS_FILE: Final = "-Djava.security.auth.login.config"
KRB5: Final = "-Djava.security.krb5.conf"
OPENED: Final = (JAAS_FILE, KRB5, "-Dzookeeper.ssl.keyStore.location", "-Dzookeeper.ssl.trustStore.location")


@dataclass(frozen=True, slots=True)
class UnitNotes:
    """What systemd says of the unit: files read into its environment, and drop-ins."""

    environment_files: tuple[str, ...]
    drop_ins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ZookeeperClient:
    """As whom a process calls ZooKeeper by SASL: the user of its JAAS file's section, or the principal of Kerberos."""

    username: str
    accepted: bool | Unknown  # did ZooKeeper let that user in with that password?  Unknown where nobody tried
    principal: str = ""  # with its realm


@dataclass(frozen=True, slots=True)
class NoZookeeperClient:
    """The process has no SASL login for ZooKeeper, and why that is known."""

    reason: str


@dataclass(frozen=True, slots=True)
class JaasLogin:
    """A login of a JAAS file: its module and those options that are no secrets; "" for an option that is not there."""

    module: str
    username: str = ""
    principal: str = ""
    service: str = ""


@dataclass(frozen=True, slots=True)
class Launch:
    """A node's command line and environment, as it runs or would be started; no value of a secret is in it.

    `config` is the properties file in the command line, as it is spelled there; None where there is none.
    `environment` holds the names of variables that make configuration, never their values.
    """

    config: str | None
    overrides: Mapping[str, str] = field(default_factory=dict)  # `--override key=value`; passwords "(sensitive)"
    zookeeper_properties: tuple[str, ...] = ()  # names of -Dzookeeper.* words
    kafka_properties: Mapping[str, str] = field(default_factory=dict)  # -Dorg.apache.kafka.*: the last of equal names
    files: Mapping[str, str] = field(default_factory=dict)  # -D words of `OPENED` and the files that they name
    main_class: str | None = None  # None: no class of Kafka's is in the command line
    environment: tuple[str, ...] | Unknown = NOT_LOOKED
    unit: UnitNotes | None = None  # None: no unit of systemd's
    jute_maxbuffer: int | None = None  # -Djute.maxbuffer: bytes that ZooKeeper's client takes in one answer
    release: str = ""  # of Kafka, by the names of the jars in the class path; "" where it names none
    container: str = ""  # the tool that runs a container, where the unit's process is one
    zookeeper_section: str = "Client"  # of the JAAS file, for ZooKeeper; "" where SASL is switched off
    zookeeper_sasl: tuple[str, ...] = ()  # -Dzookeeper.sasl.client.*=value
    logins: Mapping[str, tuple[JaasLogin, ...]] | Unknown = JAAS_NOT_LOOKED  # section of the JAAS file -> its modules
    realm: str | Unknown = JAAS_NOT_LOOKED  # Kerberos' default one on its host
    zookeeper_client: ZookeeperClient | NoZookeeperClient | Unknown = LOGIN_NOT_LOOKED  # controllers' alone

    @property
    def jaas_file(self) -> str | None:
        return self.files.get(JAAS_FILE)


@dataclass(frozen=True, slots=True)
class Listening:
    """A listening TCP socket: `address` as text (`0.0.0.0`, `::`, `127.0.0.1`), IPv4 within IPv6 as IPv4."""

    address: str
    port: int


STOP_SECONDS: Final = 330.0  # how long a stop is waited for: Kafka itself gives up a controlled shutdown after 300


@dataclass(frozen=True, slots=True)
class Unit:
    """One node's unit on its host.

    `patience` is after how many seconds of a stop systemd kills the process; None: never.  `starts_at_boot` is decided
    from `word`, which is what `systemctl is-enabled` says, and from what the boot's target pulls in.  `faults` say why
    a run cannot stop and start it as it is (`migrate.hosts.systemd`), `user` who it runs as, "" where not known,
    `access` what keeps that user from its files and tools (`migrate.hosts.systemd`).
    """

    host: str
    name: str
    patience: float | Unknown | None
    word: str
    starts_at_boot: bool | Unknown
    reload_due: bool | Unknown = False  # changed on disk since systemd read it
    faults: tuple[str, ...] = ()
    user: str = ""
    restarts_halted: bool = False  # systemd starts it again when it has halted with exit code 1
    access: tuple[tuple[str, str], ...] | Unknown = ()  # what its user may not do, and what to do about it
    view: tuple[tuple[str, str], ...] = ()  # properties by which systemd shows it other files than the host's
    is_own: bool = False  # no unit: commands of the operator's, and `patience` is what the inventory says of them


VIEW: Final = (  # properties of systemd.exec(5), by how much they hide
    *("RootDirectory", "RootImage", "InaccessiblePaths", "TemporaryFileSystem", "PrivateTmp", "BindPaths"),
    *("BindReadOnlyPaths", "ProtectHome", "ReadOnlyPaths", "ReadWritePaths", "ProtectSystem", "StateDirectory"),
    *("LogsDirectory", "DynamicUser"),
)
HOMES: Final = ("/home", "/root", "/run/user")
HOME: Final = {"yes": "gone", "tmpfs": "hidden", "read-only": "read"}
READ_ONLY: Final = {"yes": "/usr /boot /efi", "full": "/usr /boot /efi /etc", "strict": "/"}


def kept_from(view: tuple[tuple[str, str], ...], path: str, *, written: bool = False) -> str:
    """The property by which a unit does not see what the host has at that path, or (`written`) may not write it.

    "" where there is none.  Of nested places the innermost counts, but nothing shows what InaccessiblePaths or
    ProtectHome=yes hide (tried on systemd 252).  Places are compared as they are written: links are not followed.
    """
    values = dict(view)
    if values.get("DynamicUser") == "yes":  # systemd.exec(5): it implies these
        values = {"ProtectSystem": "strict", "ProtectHome": "read-only", "PrivateTmp": "yes"} | values
    found = [(place, name, effect) for name in VIEW for place, effect in _places(name, values.get(name, ""))]
    over = [entry for entry in found if path == entry[0] or path.startswith(entry[0].rstrip("/") + "/")]
    for effects in (("gone",), ("hidden", "shown"), ("read", "written", "shown") if written else ()):
        nearest = max((entry for entry in over if entry[2] in effects), key=lambda entry: len(entry[0]), default=None)
        if nearest is not None and nearest[2] in ("gone", "hidden", "read"):
            return f"{nearest[1]}={values[nearest[1]]}"
    return ""


def _places(name: str, value: str) -> Iterator[tuple[str, str]]:
    """Where a property has which effect."""
    words = [word.lstrip("-+") for word in value.split()]
    match name:
        case "RootDirectory" | "RootImage" if value not in ("", "/"):
            yield "/", "gone"
        case "InaccessiblePaths":
            yield from ((word, "gone") for word in words)
        case "TemporaryFileSystem":
            yield from ((word.partition(":")[0], "hidden") for word in words)
        case "PrivateTmp" if value not in ("", "no"):
            yield from (("/tmp", "hidden"), ("/var/tmp", "hidden"))  # noqa: S108 - names of another host
        case "BindPaths" | "BindReadOnlyPaths":
            for word in words:
                there, _, more = word.partition(":")
                here = more.partition(":")[0] or there
                if name == "BindReadOnlyPaths":
                    yield here, "read"
                yield here, "shown" if here == there else "hidden"
        case "ProtectHome" if value in HOME:
            yield from ((home, HOME[value]) for home in HOMES)
        case "ReadOnlyPaths" | "ReadWritePaths":
            yield from ((word, "read" if name == "ReadOnlyPaths" else "written") for word in words)
        case "ProtectSystem":
            yield from ((place, "read") for place in READ_ONLY.get(value, "").split())
            yield from ((place, "written") for place in (*HOMES, "/dev", "/proc", "/sys") if value == "strict")
        case "StateDirectory" | "LogsDirectory":
            above = {"StateDirectory": "/var/lib/", "LogsDirectory": "/var/log/"}[name]
            yield from ((above + word.partition(":")[0], "written") for word in words)


OF_A_LAB: Final = "lab"  # what `is-enabled` says of a lab's units: its commands start them, and no boot does

STOP_ADVICE: Final = (
    f"give the unit TimeoutStopSec={STOP_SECONDS:.0f} or more (a drop-in will do), then `systemctl daemon-reload`"
)


OWN_STOP_ADVICE: Final = (
    f"let whoever supervises the process wait {STOP_SECONDS:.0f} s or more for its end, and say so as `timeout` of its "
    "`service` in the inventory"
)


def too_soon(patience: float | Unknown | None, killer: str = "systemd kills it") -> str:
    """Why a unit that waits for so many seconds must not be stopped by a run; "" where it may be."""
    if isinstance(patience, Unknown):
        return f"after how long systemd kills it is not known ({patience.reason})"
    if patience is None or patience >= STOP_SECONDS:
        return ""
    return f"{killer} {patience:.0f} s after a stop, and a controlled shutdown may take longer"


TOO_SOON: Final = "B-OPS-06"
RELOAD: Final = "B-CFG-29"
FAULT: Final = "B-OPS-09"
ACCESS: Final = "B-OPS-12"
OF_UNITS: Final = frozenset({TOO_SOON, RELOAD, FAULT, ACCESS})  # reasons against a stop: none against a start


def unfit(unit: Unit) -> tuple[tuple[str, str, str], ...]:
    """Why a run must not stop and start it, each as code, what is wrong, what to do: the one decision.

    `assess`, `plan`, `doctor --hosts`, a run before its first effect, and the gates of stages ask this.
    """
    stop_advice = OWN_STOP_ADVICE if unit.is_own else STOP_ADVICE
    problem = too_soon(unit.patience, "by the inventory it is killed" if unit.is_own else "systemd kills it")
    found = [(TOO_SOON, problem, stop_advice)] if problem else []
    if unit.reload_due is True:
        what = "it has changed on disk since systemd read it: what runs is not what is written"
        found.append((RELOAD, what, "look at the change, then `systemctl daemon-reload`, and restart the node"))
    advice = f"change it (`systemctl edit {unit.name}`), then `systemctl daemon-reload`"
    if unit.is_own:
        advice = "change its `service` in the inventory, or how it is run, and run the setup script of its host again"
    found += [(FAULT, fault, advice) for fault in unit.faults]
    barred = () if isinstance(unit.access, Unknown) else unit.access
    return (*found, *((ACCESS, what, to_do) for what, to_do in barred))
