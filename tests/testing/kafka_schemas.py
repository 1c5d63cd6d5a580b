"""Kafka's schema files as they are in its jars, and APIs whose schemas the package does not ship."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from migrate.java.find import find_java
from migrate.java.jars import kafka_jars
from migrate.protocol.loader import Struct, parse
from migrate.protocol.messages import Api


def schemas_in(classpath: tuple[str, ...]) -> dict[str, str]:
    """Name of the file, without `.json`, -> its text, for every schema in Kafka's jars on a class path."""
    found = {}
    for jar in (Path(path) for path in classpath if Path(path).name.startswith("kafka")):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if match := re.fullmatch(r"common/(?:message|metadata)/(\w+)\.json", name):
                    found[match[1]] = archive.read(name).decode()
    return found


@cache
def _schema(name: str) -> Struct:
    return parse(schemas_in(kafka_jars(java=find_java()).classpath)[name])


@dataclass(frozen=True, slots=True)
class KafkaApi(Api):
    """An API with the schemas of Kafka's jars, which are fetched where they are missing."""

    @property
    def request(self) -> Struct:
        """The schema of the request."""
        return _schema(f"{self.name}Request")

    @property
    def response(self) -> Struct:
        """The schema of the response."""
        return _schema(f"{self.name}Response")
