"""`controllers.overrides`: what the operator sets in the controllers' rendered files, held to the table of keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from migrate.model.config_keys import override_fault
from migrate.model.ids import NodeId
from migrate.model.secrets import is_password_config
from migrate.playbook.problems import Fault, Location
from migrate.playbook.schema import Controllers

KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
REFERENCE: Final = re.compile(r"\$\{[^:{}]+:[^{}]+\}")  # as Kafka's own configuration providers read it (KIP-297)
AT: Final[Location] = ("spec", "controllers")
EXAMPLE: Final = "${file:/etc/kafka/controller.secrets:password}"


def overrides_by_controller(section: Controllers | None) -> dict[NodeId, Mapping[str, str]]:
    """Each controller's overrides: those of all, and its own on top."""
    if section is None:
        return {}
    own = {int(text): values for text, values in section.overrides_of.items()}
    found = {NodeId(number): {**section.overrides, **own.get(number, {})} for number in section.ids}
    return {node: values for node, values in found.items() if values}


def override_faults(section: Controllers | None) -> Iterator[Fault]:
    """Keys that are not the operator's to set, secrets in clear text, and controllers that there are none of."""
    if section is None:
        return
    yield from _of((*AT, "overrides"), section.overrides)
    known = {str(number) for number in section.ids}
    for text, values in section.overrides_of.items():
        here = (*AT, "overrides_of", text)
        if text not in known:
            yield Fault(here, f"{text!r} is none of the controllers", f"`ids` has {sorted(section.ids)}")
        yield from _of(here, values)


def _of(at: Location, values: Mapping[str, str]) -> Iterator[Fault]:
    for key, value in values.items():
        why = override_fault(key)
        if not KEY.fullmatch(key):
            yield Fault((*at, key), "this is no configuration key of Kafka's")
        elif why is not None:
            hint = "take it out; `docs/configuration.md` shows what becomes of every key"
            yield Fault((*at, key), f"{key} cannot be overridden", why, hint)
        elif is_password_config(key) and not REFERENCE.fullmatch(value):
            hint = f"write a reference that the controller resolves by its config.providers, such as {EXAMPLE}"
            yield Fault(
                (*at, key), f"{key} holds a secret", "a playbook is read by many, and kept with every run", hint
            )
