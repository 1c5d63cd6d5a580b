"""ZooKeeper's servers on their hosts: looked at, stopped, and kept from the next boot.  Their data is never touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from migrate.errors import HostCommandRefused, MigrateError, ProcessNotStopped
from migrate.hosts import commands
from migrate.hosts.runner import Runner
from migrate.hosts.supervisor import Supervisor
from migrate.hosts.systemd import LIVING, POLL_SECONDS, UnitState, Waits, parse_unit
from migrate.model.ensemble import NO_BOOT, ServerUnit
from migrate.model.inventory import ZookeeperServer
from migrate.model.outcome import Unknown
from migrate.model.views import Running

STOP_SECONDS: Final = 60.0  # ZooKeeper ends within a second; what it logged is on its disk before it answers
LOCAL_UNITS: Final = "/etc/systemd/system/"  # a unit's file here is where its mask would have to be


@dataclass(frozen=True, slots=True)
class UnitServers:
    """Implements `migrate.model.ports.ZookeeperServers` for systemd units; servers and runners by address."""

    servers: Mapping[str, ZookeeperServer]
    runners: Mapping[str, Runner]
    clock: Waits

    def look(self, address: str) -> ServerUnit | Unknown:
        server, runner = self.servers[address], self.runners[address]
        try:
            unit = self._unit(address)
            asked = runner.run(commands.unit_is_enabled(server.unit))
        except MigrateError as error:
            return Unknown(f"{self._name(address)}: {error.id} {error}")
        word = next(iter(asked.output.decode(errors="replace").split()), "")
        if not word:
            return Unknown(f"{self._name(address)}: systemctl is-enabled: {asked.says or asked.code}")
        return ServerUnit(self._name(address), unit.active in LIVING, word)

    def stop(self, address: str) -> None:
        """Stop the unit, and wait until its process is gone; raises ProcessNotStopped, HostCommandRefused."""
        self._do(address, commands.unit_stop(self.servers[address].unit))
        until = self.clock.monotonic() + STOP_SECONDS
        while (unit := self._unit(address)).active in LIVING:
            if self.clock.monotonic() > until:
                raise ProcessNotStopped(
                    f"it is still running after {STOP_SECONDS:.0f} s ({unit.active}, {unit.sub})",
                    where=self._name(address),
                )
            self.clock.sleep(POLL_SECONDS)

    def mask(self, address: str) -> None:
        """`systemctl disable` and `mask`; a unit whose own file lies where the mask would be is disabled alone."""
        name = self.servers[address].unit
        file = self._unit(address).properties.get("FragmentPath", "")
        self._do(address, commands.unit_disable(name))
        if not file.startswith(LOCAL_UNITS):
            self._do(address, commands.unit_mask(name))

    def _unit(self, address: str) -> UnitState:
        done = self.runners[address].run(commands.unit_state(self.servers[address].unit))
        try:
            found = parse_unit(done.output)
        except ValueError as error:
            raise HostCommandRefused(
                f"systemctl show: {done.says or 'no answer that can be read'}", where=self._name(address)
            ) from error
        if done.code or found.load not in ("loaded", "masked"):
            raise HostCommandRefused(f"systemd says that this unit is {found.load}", where=self._name(address))
        return found

    def _do(self, address: str, command: commands.Words) -> None:
        done = self.runners[address].run(command)
        if done.code:
            raise HostCommandRefused(f"{command[0]}: {done.says}", where=self._name(address))

    def _name(self, address: str) -> str:
        return f"{self.servers[address].unit} on {self.servers[address].host}"


@dataclass(frozen=True, slots=True)
class SupervisedServers:
    """The same for a lab, which starts nothing at a boot."""

    servers: Mapping[str, ZookeeperServer]
    supervisor: Supervisor

    def look(self, address: str) -> ServerUnit | Unknown:
        state = self.supervisor.state(self._process(address))
        if isinstance(state, Unknown):
            return state
        return ServerUnit(f"process {self._process(address)}", isinstance(state, Running), NO_BOOT)

    def stop(self, address: str) -> None:
        self.supervisor.stop(self._process(address), STOP_SECONDS)

    def mask(self, address: str) -> None:
        """Nothing is to be done: no boot starts it."""

    def _process(self, address: str) -> str:
        return self.servers[address].unit.removesuffix(".service")
