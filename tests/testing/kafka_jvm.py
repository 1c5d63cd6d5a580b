"""A JVM with Kafka's own classes, reached by Py4J: what Kafka's classes answer, without a cluster.

It ends with our pipe.  With `callbacks`, Java may call Python objects that implement its interfaces.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyspark
from py4j import java_gateway, protocol
from py4j.java_gateway import CallbackServerParameters, GatewayParameters, JavaGateway

from migrate.java.find import find_java
from migrate.java.jars import KafkaJars, kafka_jars
from migrate.java.run import java_argv


@contextlib.contextmanager
def kafka_jvm(*, callbacks: bool = False, jars: KafkaJars | None = None, release: bool = True) -> Iterator[JavaGateway]:
    """The gateway to it; with 3.9.2's jars unless others are given.

    Without `release` Java keeps every object that it answered: half as many calls, for a short life.

    A Spark session replaces Py4J's reading of answers for every gateway of the process, and would look for our
    exceptions in its own JVM: here it is Py4J's own again.
    """
    java = find_java()
    (py4j,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    argv = java_argv(
        java,
        (*(jars or kafka_jars(java=java)).classpath, str(py4j)),
        "py4j.GatewayServer",
        ("--die-on-broken-pipe", "0"),
    )
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline()
        assert port.strip().isdecimal(), process.communicate(timeout=20)
        back = CallbackServerParameters(port=0, daemonize=True, daemonize_connections=True) if callbacks else None
        gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=int(port), auto_convert=True, enable_memory_management=release),
            callback_server_parameters=back,
        )
        own = patch.object(java_gateway, "get_return_value", protocol.get_return_value)
        own.start()
        try:
            if callbacks:
                ours = gateway.get_callback_server().get_listening_port()
                server = gateway.java_gateway_server
                server.resetCallbackClient(server.getCallbackClient().getAddress(), ours)
            yield gateway
        finally:
            own.stop()
            gateway.shutdown()
            process.kill()
            process.communicate(timeout=20)


def first_cause(error: Any) -> str:
    """`Class: message` of the Java exception behind a Py4JJavaError."""
    java = error.java_exception
    return f"{java.getClass().getName()}: {java.getMessage()}"
