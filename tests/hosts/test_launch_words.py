"""Command lines, environments and units of Kafka processes: read for what decides the configuration, no secret kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.hosts.launch_words import MAIN_CLASSES, generating, of_command_line, of_unit, words_of
from migrate.model.launch import UnitNotes
from migrate.model.outcome import Unknown

FILE = "/etc/kafka/server.properties"


def line(*words: str) -> bytes:
    """As /proc/PID/cmdline has it."""
    return "".join(word + "\0" for word in words).encode()


JAVA = ("/usr/bin/java", "-Xmx1g", "-Dkafka.logs.dir=/var/log", "-cp", "/opt/kafka/libs/*")


def test_a_plain_start_names_its_class_and_its_file() -> None:
    """As kafka-server-start.sh makes it."""
    found = of_command_line(line(*JAVA, "kafka.Kafka", FILE))
    assert (found.main_class, found.config, found.overrides) == ("kafka.Kafka", FILE, {})
    assert (found.zookeeper_properties, found.jaas_file) == ((), None)
    assert isinstance(found.environment, Unknown)
    assert found.unit is None


@pytest.mark.parametrize(
    ("words", "overrides"),
    [
        (["--override", "log.dirs=/a,/b"], {"log.dirs": "/a,/b"}),
        (["--override=log.dirs=/a"], {"log.dirs": "/a"}),
        (["--override", "a=1", "--override", "b=2", "--override", "a=3"], {"a": "3", "b": "2"}),
        (["--override", "empty="], {"empty": ""}),
        (["--override", "a=b=c"], {"a": "b=c"}),
        (["--override", "none"], {"none": ""}),
        (["--override"], {}),
        (["--overrides", "a=1"], {}),
    ],
)
def test_override_words_are_read_as_kafka_reads_them(words: list[str], overrides: dict[str, str]) -> None:
    """Behind the file, the last of a key wins."""
    found = of_command_line(line(*JAVA, "kafka.Kafka", FILE, *words))
    assert (found.config, found.overrides) == (FILE, overrides)


def test_a_secret_on_the_command_line_is_told_by_name_alone() -> None:
    """It is there for every user of the host to read already; we do not carry it further."""
    words = ("--override", "ssl.key.password=canary", "--override=listener.name.a.plain.sasl.jaas.config=canary")
    found = of_command_line(line(*JAVA, "kafka.Kafka", FILE, *words))
    assert set(found.overrides) == {"ssl.key.password", "listener.name.a.plain.sasl.jaas.config"}
    assert "canary" not in repr(found)
    secret = of_command_line(line("java", "-Dzookeeper.ssl.keyStore.password=canary", "kafka.Kafka", FILE))
    assert secret.zookeeper_properties == ("zookeeper.ssl.keyStore.password",)
    assert "canary" not in repr(secret)


@pytest.mark.parametrize(
    ("words", "bytes_"),
    [
        ((), None),
        (("-Djute.maxbuffer=8388608",), 8388608),
        (("-Djute.maxbuffer=0x9fffff",), 0x9FFFFF),
        (("-Djute.maxbuffer=1", "-Djute.maxbuffer=4194304"), 4194304),
        (("-Djute.maxbuffer=much",), None),
    ],
)
def test_the_largest_answer_that_zookeepers_client_takes_is_read(words: tuple[str, ...], bytes_: int | None) -> None:
    """As java and ZKClientConfig read it; none where it is not set."""
    assert of_command_line(line("java", *words, "kafka.Kafka", FILE)).jute_maxbuffer == bytes_


def test_the_release_is_told_by_the_jars_of_the_class_path() -> None:
    """As kafka-run-class.sh names them; a wildcard names none."""
    jars = "/opt/kafka/bin/../libs/activation-1.1.1.jar:/opt/kafka/bin/../libs/kafka-clients-3.9.2.jar:/opt/kafka/x.jar"
    assert of_command_line(line("java", "-cp", jars, "kafka.Kafka", FILE)).release == "3.9.2"
    own = "/libs/kafka-clients-3.9.1-acme.jar"
    assert of_command_line(line("java", "-cp", own, "kafka.Kafka", FILE)).release == "3.9.1-acme"
    assert of_command_line(line(*JAVA, "kafka.Kafka", FILE)).release == ""


def test_a_units_process_that_runs_a_container_is_known_by_its_tool() -> None:
    """Docker under systemd: the process of the unit is the tool's, and Kafka's own words are not in it."""
    found = of_command_line(line("/usr/bin/docker", "run", "--name", "kafka", "apache/kafka:3.9.2"))
    assert (found.container, found.main_class) == ("docker", None)
    assert of_command_line(line("/usr/bin/conmon", "--api-version", "1")).container == "conmon"
    assert of_command_line(line("/bin/python3", "/usr/bin/docker-compose", "up")).container == "docker-compose"
    assert of_command_line(line("/bin/sh", "/opt/start.sh")).container == ""
    assert of_command_line(line(*JAVA, "kafka.Kafka", FILE)).container == ""


def test_zookeepers_properties_and_the_jaas_file_are_those_of_the_jvm_alone() -> None:
    """What stands behind the class is Kafka's, not Java's."""
    jaas = "-Djava.security.auth.login.config="
    words = (
        "-Dzookeeper.client.secure=true",
        jaas + "/old",
        jaas + "/etc/jaas.conf",
        "-Dzookeeper.client.secure=false",
    )
    found = of_command_line(line("java", *words, "kafka.Kafka", FILE, "-Dzookeeper.no=1"))
    assert found.zookeeper_properties == ("zookeeper.client.secure",)
    assert found.jaas_file == "/etc/jaas.conf"


@pytest.mark.parametrize("raw", [b"", line("sleep", "60"), line("java", "-jar", "own-launcher.jar", FILE)])
def test_a_process_without_kafkas_class_says_nothing_of_a_file(raw: bytes) -> None:
    """Never guessed from a word that ends in .properties."""
    found = of_command_line(raw)
    assert (found.main_class, found.config, found.overrides) == (None, None, {})


def test_no_file_is_none() -> None:
    """An option in its place is not one."""
    assert of_command_line(line("java", "kafka.Kafka")).config is None
    assert of_command_line(line("java", "kafka.Kafka", "--override", "a=b")).config is None


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30), max_size=12))
def test_any_command_line_is_read(words: list[str]) -> None:
    """Empty words, control characters, any script."""
    raw = line(*words)
    found = of_command_line(raw)
    assert found.main_class in (None, "kafka.Kafka", "io.confluent.support.metrics.SupportedKafka")
    if words and words[-1]:
        assert words_of(raw) == words


@given(st.binary(max_size=200))
def test_any_bytes_are_read(raw: bytes) -> None:
    """The kernel promises no encoding."""
    found, names = of_command_line(raw), generating(raw)
    assert found.main_class in (None, *MAIN_CLASSES)
    assert found.overrides == {} or b"--override" in raw
    assert {*names} <= {entry.partition(b"=")[0].decode(errors="replace") for entry in raw.split(b"\0")}


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["KAFKA_CFG_LOG_DIRS", "PATH"], ("KAFKA_CFG_LOG_DIRS",)),
        (["KAFKA_ZOOKEEPER_CONNECT", "KAFKA_BROKER_ID"], ("KAFKA_BROKER_ID", "KAFKA_ZOOKEEPER_CONNECT")),
        (["KAFKA_LISTENERS", "KAFKA_ADVERTISED_LISTENERS"], ("KAFKA_ADVERTISED_LISTENERS", "KAFKA_LISTENERS")),
        (["KAFKA_OPTS", "KAFKA_HEAP_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS", "KAFKA_LOG4J_OPTS", "KAFKA_HOME"], ()),
        (["KAFKA_JMX_OPTS", "KAFKA_GC_LOG_OPTS", "JMX_PORT", "LOG_DIR", "KAFKA_CLUSTERS_0_NAME"], ()),
        (["KAFKA_BROKER_OPTS", "KAFKA_CONTROLLER_OPTS"], ()),
        (["XKAFKA_CFG_A", "KAFKA_CFG_"], ()),
    ],
)
def test_variables_that_images_make_files_of_are_told_from_those_of_kafkas_scripts(
    names: list[str], found: tuple[str, ...]
) -> None:
    """By name; no value is looked at, for any may be a secret."""
    raw = b"\0".join(f"{name}=canary".encode() for name in names)
    assert generating(raw) == found
    assert "canary" not in repr(generating(raw))


def test_a_units_files_and_drop_ins_are_read() -> None:
    """As `systemctl show` prints them."""
    found = of_unit(
        {
            "EnvironmentFiles": "/etc/default/kafka (ignore_errors=yes) /etc/kafka/my env (ignore_errors=no)",
            "DropInPaths": "/etc/systemd/system/kafka.service.d/10-opts.conf /run/systemd/system/k.service.d/x.conf",
        }
    )
    assert found.environment_files == ("/etc/default/kafka", "/etc/kafka/my env")
    assert [path.rpartition("/")[2] for path in found.drop_ins] == ["10-opts.conf", "x.conf"]
    assert of_unit({}) == UnitNotes((), ())


@pytest.mark.parametrize(
    ("words", "section"),
    [
        ((), "Client"),
        (("-Dzookeeper.sasl.clientconfig=Z1", "-Dzookeeper.sasl.clientconfig=Z2"), "Z2"),
        (("-Dzookeeper.sasl.client=false", "-Dzookeeper.sasl.clientconfig=Z"), ""),
    ],
)
def test_the_jaas_section_of_zookeeper_s_client_is_read(words: tuple[str, ...], section: str) -> None:
    """Java takes the last of equal properties; SASL may be switched off."""
    assert of_command_line(line("java", *words, "kafka.Kafka", FILE)).zookeeper_section == section
