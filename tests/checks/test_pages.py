"""Every code has an explanation."""

from __future__ import annotations

import inspect
from collections import Counter

import pytest

from migrate import checks, errors
from migrate.checks.pages import error_docs, find
from migrate.errors import InputError, MigrateError, Retryable, UnknownCode, WorldError


def classes() -> list[type[MigrateError]]:
    """The whole tree of errors."""
    found = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, MigrateError)]
    return [cls for cls in found if cls not in (MigrateError, Retryable)]


def test_every_error_has_an_id_of_its_own() -> None:
    """Ids are for searching: two errors under one id would be one."""
    ids = Counter(vars(cls).get("id", f"{cls.__name__} has none") for cls in classes())
    assert [name for name, count in ids.items() if count > 1 or "none" in name] == []


@pytest.mark.parametrize("cls", classes(), ids=lambda cls: cls.__name__)
def test_every_error_has_a_root_a_next_step_and_a_meaning(cls: type[MigrateError]) -> None:
    """What is wrong with the input or the world, and what to do about it."""
    assert issubclass(cls, InputError | WorldError)
    doc = error_docs()[cls.id]
    assert doc.next_step
    assert doc.meaning.endswith(".")
    assert doc.exit_code in (1, 3, 4, 5, 6, 7, 10, 64, 130)
    assert cls("what", next_step="do this").next_step == "do this"


def test_codes_are_found_in_any_case_and_near_misses_are_suggested() -> None:
    """People type codes from a screenshot."""
    assert find(" b-zkn-01 ") == checks.CODES["B-ZKN-01"]
    with pytest.raises(UnknownCode) as caught:
        find("B-ZKM-01")
    assert "B-ZKN-01" in caught.value.next_step
    with pytest.raises(UnknownCode) as caught:
        find("xyzzy\x1b[2J" * 100)
    assert caught.value.next_step == UnknownCode.hint
    assert "\x1b" not in caught.value.what
