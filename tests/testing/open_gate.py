"""A gatekeeper for engines without a person or a window to ask."""

from __future__ import annotations

from migrate.model.plan import PlannedStep


class OpenGate:
    """Lets everything pass."""

    def before(self, planned: PlannedStep) -> None:
        """It may."""

    def still(self, planned: PlannedStep) -> None:
        """It may."""

    def while_waiting(self, planned: PlannedStep, *, begun: bool) -> None:
        """It may."""
