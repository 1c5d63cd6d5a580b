"""The migration flag: its key, and whether a configuration file has it (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FLAG: Final = "zookeeper.metadata.migration.enable"


def truth(values: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    """A boolean configuration as Kafka reads it (`ConfigDef.parseType`)."""
    text = values.get(name, "").strip().lower()
    return default if not text else text == "true"


def has_flag(values: Mapping[str, str]) -> bool:
    """Does a node that starts with this file have the flag?"""
    return truth(values, FLAG)
