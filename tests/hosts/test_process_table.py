"""/proc lines and records."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from migrate.hosts.process_table import Record, alive, boot_id, look, parse_record, parse_stat

LINE = "17 (a ) b (c) S 4 17 17 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 998877 100 200\n"


def test_a_command_name_may_hold_spaces_and_parentheses() -> None:
    """The last closing parenthesis ends it (proc(5))."""
    stat = parse_stat(LINE)
    assert (stat.pid, stat.state, stat.parent, stat.start) == (17, "S", 4, 998877)


@pytest.mark.parametrize("text", ["", "17", "17 (sh) S 4", "x (sh) " + "1 " * 22])
def test_what_is_no_stat_line_is_refused(text: str) -> None:
    """A torn line is never half believed."""
    with pytest.raises(ValueError, match=r".+"):
        parse_stat(text)


def test_a_record_holds_boot_start_and_configuration() -> None:
    """Three words, then the stat line."""
    assert parse_record("boot 12.5 abc\n" + LINE) == Record("boot", 12.5, "abc", 17, 998877)
    assert parse_record("boot 12.5 -\n" + LINE).config_sha256 is None


@pytest.mark.parametrize("text", ["", "boot 12.5\n" + LINE, "boot x abc\n" + LINE, "boot 1 abc\nhalf"])
def test_what_is_no_record_is_refused(text: str) -> None:
    """So that its state is unknown, not stopped."""
    with pytest.raises(ValueError, match=r".+"):
        parse_record(text)


def test_this_very_process_is_alive_and_no_other_is_taken_for_it() -> None:
    """pid, start and boot must all agree."""
    me = look(os.getpid())
    assert me is not None
    record = Record(boot_id(), 0.0, None, me.pid, me.start)
    assert alive(record)
    assert not alive(Record(boot_id(), 0.0, None, me.pid, me.start + 1))
    assert not alive(Record("another", 0.0, None, me.pid, me.start))


def test_a_pid_that_is_not_there_is_none() -> None:
    """The largest pid the kernel hands out is below this number."""
    limit = int(Path("/proc/sys/kernel/pid_max").read_text())
    assert look(limit + 1) is None
