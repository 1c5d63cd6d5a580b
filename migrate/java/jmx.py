"""Reads numbers over JMX, with Kafka's own `org.apache.kafka.tools.JmxTool`.

Only where JMX is offered without a password: JmxTool takes one on its command line, where everybody on the host reads
it.  What cannot be read is Unknown, never 0.
"""

from __future__ import annotations

import re
import socket
from typing import Final

from migrate.errors import MigrateError
from migrate.java.find import find_java
from migrate.java.jars import cached_jars
from migrate.java.run import run_tool
from migrate.model.outcome import Unknown

MAIN: Final = "org.apache.kafka.tools.JmxTool"
# a query: org.apache.kafka.server in 3.9 to 4.1, kafka.server alone in 5.0, both between; they are one number
QUEUED: Final = "*kafka.server:type=AssignmentsManager,name=QueuedReplicaToDirAssignments"
CONNECT_SECONDS: Final = 1.0
SECONDS: Final = 15.0  # JmxTool itself tries for 10 s


def number(address: str, name: str, attribute: str = "Value") -> int | Unknown:
    """An attribute of the MBean of that name, or of the first that a query finds, at host:port."""
    said = _asked(address, ("--object-name", name, "--attributes", attribute))
    return said if isinstance(said, Unknown) else read(*said, attribute, address)


def _asked(address: str, words: tuple[str, ...]) -> tuple[str, str] | Unknown:
    """JmxTool's output and errors."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        return Unknown(f"nothing offers JMX at {address}: {error}")
    jars = cached_jars()
    if jars is None:
        return Unknown("Kafka's JmxTool is not in the cache of jars: `kraft-migrate lab up` fetches them")
    url = f"service:jmx:rmi:///jndi/rmi://{address}/jmxrmi"
    line = ("--jmx-url", url, *words, "--one-time", "--report-format", "properties")
    try:
        done = run_tool(find_java(), jars.classpath, MAIN, line, SECONDS)
    except MigrateError as error:
        return Unknown(f"JMX at {address} was not read: {error.what}")
    return done.stdout, done.stderr


def read(output: str, errors: str, attribute: str, address: str) -> int | Unknown:
    """Parse the number in JmxTool's output, or why there is none (pure)."""
    found = re.search(rf"^.*:{re.escape(attribute)}=(-?\d+)(?:\.0)?$", output, re.MULTILINE)
    if found is not None:
        return int(found[1])
    if "No matched attributes" in errors:
        return Unknown(f"the process at {address} has no such MBean: a broker has it in KRaft mode alone")
    return Unknown(_why(errors, address) or f"JMX at {address} has no {attribute}")


def _why(errors: str, address: str) -> str:
    if "SecurityException" in errors:
        return f"JMX at {address} asks for a password: it is not read then"
    if "Could not connect" in errors:
        return f"JMX at {address} did not answer"
    return ""
