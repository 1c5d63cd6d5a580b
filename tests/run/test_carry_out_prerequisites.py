"""What a host refuses is told before a run's first effect: all of it."""

from __future__ import annotations

import pytest

from migrate.errors import HostRightMissing, UnitNotUsable
from migrate.model.ids import NodeId
from migrate.model.launch import STOP_SECONDS, Unit
from migrate.model.outcome import Unknown
from migrate.model.rights import HostRights, Refused
from migrate.run.carry_out import require_host_rights, require_units
from tests.run.test_engine import plan_for
from tests.testing.simulated_back import two_way

SET_UP = "doctor --host-setup prints it"


def refused(what: str) -> HostRights:
    """A host that refuses one thing."""
    return HostRights("kafka-1", (Refused(what, SET_UP),))


def test_every_refusal_of_every_host_is_named_at_once() -> None:
    """One look at the hosts fixes them all."""
    plan = plan_for(two_way())
    rights = {NodeId(1): refused("unit-stop: no"), NodeId(0): refused("read: no"), NodeId(2): HostRights("kafka-2")}
    with pytest.raises(HostRightMissing) as caught:
        require_host_rights(plan, rights)
    assert caught.value.what.startswith("node 0 on kafka-1: read: no; node 1 on kafka-1: unit-stop: no")
    assert caught.value.next_step == SET_UP
    assert "nothing was done" in caught.value.why


def test_a_host_that_does_not_answer_is_each_steps_own_to_see() -> None:
    """It is no refusal."""
    plan = plan_for(two_way())
    require_host_rights(plan, {NodeId(1): HostRights("kafka-1"), NodeId(2): Unknown("no connection")})
    require_host_rights(plan, {})


def test_every_unit_that_systemd_would_kill_is_named_before_the_first_stop() -> None:
    """Of brokers and controllers, at once; a unit that cannot be seen is the steps' own to ask again."""
    fine, soon = (Unit("kafka-1", "kafka.service", wait, "enabled", starts_at_boot=True) for wait in (STOP_SECONDS, 90))
    require_units("prod", {NodeId(0): fine, NodeId(1): Unknown("no route")})
    require_units("prod", Unknown("executor supervisor sees no systemd units"))
    with pytest.raises(UnitNotUsable) as caught:
        require_units("prod", {NodeId(0): fine, NodeId(3000): soon, NodeId(3001): soon})
    assert "node 3000 on kafka-1" in caught.value.what
    assert "node 3001 on kafka-1" in caught.value.what
    assert "nothing was done" in caught.value.why
    assert "TimeoutStopSec=330" in caught.value.next_step


def test_every_fault_of_a_unit_is_named_before_the_first_stop() -> None:
    """With what to do on its host; the same function decides for `assess` and the gates."""
    masked = Unit("k1", "kafka.service", None, "masked", starts_at_boot=False, faults=("systemd says it is masked",))
    due = Unit("k2", "kafka.service", None, "enabled", starts_at_boot=True, reload_due=True)
    with pytest.raises(UnitNotUsable) as caught:
        require_units("prod", {NodeId(0): masked, NodeId(1): due})
    assert "node 0 on k1: systemd says it is masked" in caught.value.what
    assert "node 1 on k2: it has changed on disk" in caught.value.what
    assert "systemctl edit kafka.service" in caught.value.next_step
    assert "daemon-reload" in caught.value.next_step
