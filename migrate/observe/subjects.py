"""The names in the certificates that nodes' files name, for those listeners where a certificate is who one is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from migrate.errors import MigrateError
from migrate.kafka.secrets import read_secret
from migrate.kafka.tls import subject
from migrate.model.ids import NodeId
from migrate.model.inventory import AddedProperties, Store
from migrate.model.outcome import Unknown
from migrate.model.ports import Files
from migrate.model.views import ConfigFile

LOCATION: Final = "ssl.keystore.location"
KIND: Final = "ssl.keystore.type"
PASSWORD: Final = "ssl.keystore.password"  # noqa: S105 - a configuration's name
ZOOKEEPER: Final = "zookeeper."
ENDINGS: Final = {"pem": "PEM", "p12": "PKCS12", "jks": "JKS"}
REFERENCE: Final = "${"


def with_subjects(file: ConfigFile, added: AddedProperties | None, files: Files, own: Store | None) -> ConfigFile:
    """The file with keystore's path -> subject: of the stores that it names, or will name, and of our own.

    Listeners' stores are not read where no listener is of protocol SSL; the one for ZooKeeper is.
    """
    values = {**file.values, **({} if added is None else added.values)}
    found = dict(_zookeepers(values, file.node, files))
    if ":SSL" in values.get("listener.security.protocol.map", "").replace(" ", "").upper():
        found |= dict(_stores((file.values, values), file.node, files))
        if own is not None:
            found[own.path] = _own(own)
    return replace(file, subjects=found) if found else file


def _zookeepers(values: Mapping[str, str], node: NodeId, files: Files) -> Iterator[tuple[str, str | Unknown]]:
    """The keystore with which the node calls ZooKeeper; without a type its ending tells it (`KeyStoreFileType`)."""
    path = values.get(f"{ZOOKEEPER}{LOCATION}", "").strip()
    if path:
        kind = values.get(f"{ZOOKEEPER}{KIND}", "").strip() or ENDINGS.get(path.rpartition(".")[2].lower(), "JKS")
        password = values.get(f"{ZOOKEEPER}{PASSWORD}", "").strip()
        yield path, _opened(path, kind, password, node, files)


def _stores(both: tuple[Mapping[str, str], ...], node: NodeId, files: Files) -> Iterator[tuple[str, str | Unknown]]:
    seen: set[str] = set()
    for values in both:
        for key, path in values.items():
            if key.endswith(LOCATION) and not key.startswith(ZOOKEEPER) and path not in seen:
                seen.add(path)
                yield path, _subject(values, key.removesuffix(LOCATION), path, node, files)


def _subject(values: Mapping[str, str], prefix: str, path: str, node: NodeId, files: Files) -> str | Unknown:
    def value(name: str, default: str) -> str:
        return values.get(prefix + name, values.get(name, default)).strip()

    return _opened(path, value(KIND, "JKS"), value(PASSWORD, ""), node, files)


def _opened(path: str, kind: str, password: str, node: NodeId, files: Files) -> str | Unknown:
    if REFERENCE in path + kind + password:
        return Unknown(f"a configuration provider says on the node how {path} is opened")
    try:
        return subject(files.read(node, path), kind, password)
    except OSError as error:
        return Unknown(f"{path} cannot be read: {error.strerror or error}")
    except MigrateError as error:
        return Unknown(f"{path} cannot be read: {error.id} {error}")


def _own(store: Store) -> str | Unknown:
    try:
        with open(store.path, "rb") as file:  # noqa: PTH123 - bytes of a path as the inventory spells it
            content = file.read(8 << 20)
        return subject(content, store.kind, read_secret(store.password) if store.password else "")
    except OSError as error:
        return Unknown(f"{store.path} cannot be read: {error.strerror}")
    except MigrateError as error:
        return Unknown(f"{store.path} cannot be read: {error.id}")
