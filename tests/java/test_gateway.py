"""The driver's JVM: what is on its command line, and what is said when it does not come up."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from migrate.errors import SparkDidNotStart
from migrate.java.find import Java
from migrate.java.gateway import (
    CONNECTION_FILE_VARIABLE,
    DriverRequest,
    driver_argv,
    read_door,
    start_driver,
)


def request(folder: Path, java: str = "/usr/bin/java") -> DriverRequest:
    """A request with settings of every kind."""
    return DriverRequest(
        java=Java(java, 17, "test"),
        jars=Path("/spark/jars"),
        conf={"spark.master": "local[2]", "spark.ui.enabled": "false"},
        folder=folder,
        memory="512m",
        options=("-XX:+UseSerialGC",),
        extra_classpath=("/etc/hadoop",),
        environment={"PYSPARK_PYTHON": "/venv/bin/python"},
    )


def stand_in(folder: Path, script: str) -> str:
    """A program in the place of `java`."""
    path = folder / "java"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def door(port: int, secret: str) -> str:
    """Printf's text of a connection file."""
    raw = struct.pack(">ii", port, len(secret)) + secret.encode()
    return "".join(f"\\{byte:03o}" for byte in raw)


def test_the_command_line_is_spark_submits(tmp_path: Path) -> None:
    """Settings as --conf, sorted; the operator's configuration folders before the jars; no incubator module."""
    argv = driver_argv(request(tmp_path))
    assert argv[:3] == ("/usr/bin/java", "-Xmx512m", "-XX:+UseSerialGC")
    place = argv.index("-cp")
    assert argv[place + 1 : place + 3] == ("/etc/hadoop:/spark/jars/*", "org.apache.spark.deploy.SparkSubmit")
    assert argv[place + 3 :] == (
        "--conf",
        "spark.master=local[2]",
        "--conf",
        "spark.ui.enabled=false",
        "pyspark-shell",
    )
    assert not [part for part in argv if "incubator" in part]


def test_the_connection_file_holds_port_and_secret() -> None:
    """As Spark's PythonGatewayServer writes it."""
    assert read_door(struct.pack(">ii", 40123, 6) + b"sesame") == (40123, "sesame")


def test_a_driver_that_opens_its_door_is_handed_over_and_ends_with_its_stdin(tmp_path: Path) -> None:
    """The stand-in writes the connection file and then lives until its stdin closes, as Spark's gateway does."""
    script = f'printf "{door(40123, "sesame")}" > "$T.part" && mv "$T.part" "$T"; cat > /dev/null'
    java = stand_in(tmp_path, script.replace("$T", f"${CONNECTION_FILE_VARIABLE}"))
    jvm = start_driver(request(tmp_path, java))
    assert (jvm.port, jvm.secret, jvm.alive) == (40123, "sesame", True)
    assert "sesame" not in repr(jvm)
    jvm.stop()
    assert not jvm.alive
    assert not list(tmp_path.glob("gateway-*"))


def test_a_driver_that_does_not_end_is_killed(tmp_path: Path) -> None:
    """Nothing of ours may hang on a JVM that ignores the end of its stdin."""
    script = f'printf "{door(1, "s")}" > "$T.part" && mv "$T.part" "$T"; exec tail -f /dev/null'
    java = stand_in(tmp_path, script.replace("$T", f"${CONNECTION_FILE_VARIABLE}"))
    jvm = start_driver(request(tmp_path, java))
    jvm.stop(timeout=0.2)
    assert not jvm.alive


def test_a_driver_that_ends_at_once_is_an_error_with_the_end_of_its_log(tmp_path: Path) -> None:
    """The reason is what Java said."""
    java = stand_in(tmp_path, 'echo "Error: Could not find or load main class" >&2; exit 1')
    with pytest.raises(SparkDidNotStart, match="exit code 1") as caught:
        start_driver(request(tmp_path, java))
    assert "Could not find or load main class" in caught.value.why
    assert caught.value.where == str(tmp_path / "spark-driver.log")


def test_a_complaint_is_told_with_what_was_thrown(tmp_path: Path) -> None:
    """Only that says which setting it is about."""
    (tmp_path / "said").write_text(
        "26/11/28 20:27:33 ERROR SparkContext: Error initializing SparkContext.\n"
        "org.apache.spark.SparkIllegalArgumentException: System memory 52428800 must be at least 471859200.\n"
        "\tat org.apache.spark.memory.UnifiedMemoryManager$.getMaxMemory(UnifiedMemoryManager.scala:229)\n"
    )
    script = f'cat {tmp_path}/said >&2; printf "{door(1, "s")}" > "$T.part" && mv "$T.part" "$T"; cat > /dev/null'
    jvm = start_driver(request(tmp_path, stand_in(tmp_path, script.replace("$T", f"${CONNECTION_FILE_VARIABLE}"))))
    jvm.stop()
    assert jvm.complaint() == "Error initializing SparkContext. System memory 52428800 must be at least 471859200."


def test_a_driver_that_opens_no_door_in_time_is_ended(tmp_path: Path) -> None:
    """It is not left behind."""
    java = stand_in(tmp_path, f"echo $$ > {tmp_path}/pid; exec tail -f /dev/null")
    with pytest.raises(SparkDidNotStart, match="no gateway in time"):
        start_driver(request(tmp_path, java), timeout=1.0)
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_a_driver_that_nobody_wants_any_more_is_ended(tmp_path: Path) -> None:
    """Before its door is open: who gives up does not wait for it."""
    pid = tmp_path / "pid"
    java = stand_in(tmp_path, f"echo $$ > {pid}.part; mv {pid}.part {pid}; exec tail -f /dev/null")
    with pytest.raises(SparkDidNotStart, match="stopped before it was there"):
        start_driver(request(tmp_path, java), unwanted=pid.exists)
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()
    assert not list(tmp_path.glob("gateway-*"))


def test_no_such_java_is_an_error(tmp_path: Path) -> None:
    """The path is named."""
    with pytest.raises(SparkDidNotStart) as caught:
        start_driver(request(tmp_path, str(tmp_path / "none")))
    assert caught.value.where.endswith("none")


def test_the_driver_inherits_no_door_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Port and secret of another session in our environment stay with us."""
    monkeypatch.setenv("PYSPARK_GATEWAY_SECRET", "other")
    java = stand_in(tmp_path, 'echo "secret=$PYSPARK_GATEWAY_SECRET python=$PYSPARK_PYTHON" >&2; exit 3')
    with pytest.raises(SparkDidNotStart) as caught:
        start_driver(request(tmp_path, java))
    assert caught.value.why == "secret= python=/venv/bin/python"
