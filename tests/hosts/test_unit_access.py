"""What the user of a unit may not do on its host is told with what to do about it, before anything is stopped."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from migrate.hosts.unit_access import access_of
from tests.testing import worlds

BROKER, CONTROLLER = worlds.inventory().brokers[0], worlds.inventory().controllers[0]
FINE: dict[str, Any] = {
    "user": "kafka",
    "group": "kafka",
    "config": {"exists": True, "path_readable_by_user": True, "readable_by_user": True},
    "metadata_directory": {"exists": True, "writable_by_user": True, "mount_point": True, "can_be_made": False},
    "kafka_home": {"storage_tool": "/opt/kafka/bin/kafka-storage.sh", "exists": True, "executable_by_user": True},
    "java": "/usr/bin/java",
}


def told(**parts: object) -> dict[str, Any]:
    """The answer of a host; of a part some entries changed, or the part itself."""
    found = deepcopy(FINE)
    for name, changed in parts.items():
        found[name] = {**found[name], **changed} if isinstance(changed, dict) else changed
    return found


def test_a_host_where_nothing_is_missing() -> None:
    """A directory or a file that is not there yet is fine where it can be made."""
    new = {"exists": False, "writable_by_user": False, "can_be_made": True}
    for answer in (FINE, told(config={"exists": False, "readable_by_user": False}), told(metadata_directory=new)):
        assert list(access_of(answer, CONTROLLER)) == []
    assert list(access_of(told(metadata_directory=None, kafka_home={"exists": False}, java=""), BROKER)) == []


@pytest.mark.parametrize(
    ("answer", "says", "advice"),
    [
        (told(config={"readable_by_user": False}), f"cannot read {CONTROLLER.config}", "chmod g+r"),
        (told(config={"path_readable_by_user": False, "readable_by_user": False}), "may not enter", "chmod g+x"),
        (told(metadata_directory={"writable_by_user": False}), "cannot write into", "chown kafka:"),
        (told(metadata_directory={"exists": False, "writable_by_user": False}), "is not there", "install -d -o kafka"),
        (told(kafka_home={"exists": False, "executable_by_user": False}), "is not there for user", "kafka_home"),
        (told(kafka_home={"executable_by_user": False}), "cannot run /opt/kafka", "chmod +x"),
        (told(java=""), "has no java", "JAVA_HOME"),
    ],
)
def test_what_would_stop_a_run_is_named_with_what_to_do(answer: object, says: str, advice: str) -> None:
    """One fact, one sentence."""
    ((what, to_do),) = access_of(answer, CONTROLLER)
    assert says in what
    assert advice in to_do


@pytest.mark.parametrize("answer", [None, {}, told(config=None), told(config={"exists": "yes"}), told(java=None)])
def test_an_answer_that_is_none_is_an_error(answer: object) -> None:
    """And never fine."""
    with pytest.raises(TypeError, match="answer"):
        list(access_of(answer, CONTROLLER))
