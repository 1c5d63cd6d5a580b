"""Of Kafka's logs only the lines that say why something waits are kept, the newest of each kind."""

from __future__ import annotations

import pytest

from migrate.checks.stuck.codes import DOCS
from migrate.checks.stuck.seen import KEPT, telling

# as Kafka 3.9.2 wrote them
DRIVER = "INFO [KRaftMigrationDriver id=3000] {} (org.apache.kafka.metadata.migration.KRaftMigrationDriver)"
LINES = (
    "[2026-11-21 18:48:33,614] " + DRIVER.format("No brokers are known to KRaft, waiting for brokers to register."),
    "[2026-11-21 18:48:34,614] " + DRIVER.format("Still waiting for ZK brokers [1, 2] to register with KRaft."),
    "[2026-11-21 18:48:35,614] " + DRIVER.format("Still waiting for ZK brokers [1] to register with KRaft."),
)


def test_the_newest_line_of_a_kind_stands_for_it() -> None:
    """Two brokers a minute ago, one now."""
    assert telling(LINES) == (LINES[0], LINES[2])


def test_only_a_few_lines_are_kept_and_the_newest_stands_last() -> None:
    """A page of log is not evidence."""
    many = (
        "Should not have ZK migrations enabled on a cluster that was created in KRaft mode.",
        "java.util.NoSuchElementException: None.get",
        "Error in topic consumer. Topic was t3.",
        LINES[0],
        LINES[2],
    )
    assert telling(many) == many[-KEPT:]
    assert telling((*many, many[0]))[-1] == many[0]


@pytest.mark.parametrize("doc", [doc for doc in DOCS if not doc.line.startswith("(")], ids=lambda doc: doc.code)
def test_every_line_of_the_codes_is_known_by_sight(doc: object) -> None:
    """What docs/stuck.md quotes is what is looked for."""
    text: str = doc.line  # type: ignore[attr-defined]
    if text.startswith("Initial migration of ZK metadata is done"):
        return  # it is logged in healthy clusters as well: no evidence
    assert telling([text.replace("[N]", "[1]").replace(" N", " 3001")]) != ()


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[2026-11-21 18:48:33,614] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",
        "INFO [KRaftMigrationDriver id=3000] transitioning from WAIT_FOR_CONTROLLER_QUORUM to WAIT_FOR_BROKERS state",
        "INFO Completed migration of metadata from ZooKeeper to KRaft. 264 records were generated in 683 ms",
        "ssl.keystore.password = [hidden]",
    ],
)
def test_other_lines_are_left_where_they_are(line: str) -> None:
    """Nothing that a log may hold besides comes into an answer."""
    assert telling([line]) == ()


def test_a_line_cannot_draw_on_a_terminal_and_has_an_end() -> None:
    """Logs hold what clients sent."""
    (kept,) = telling(["Still waiting for ZK brokers [1]\x1b[2J" + "x" * 5000])
    assert "\x1b" not in kept
    assert len(kept) < 500
