"""The hosts' names mean the hosts, whatever the machine's own /etc/hosts says."""

from __future__ import annotations

from tests.bed.host_files import names, names_and_own
from tests.bed.shape import SHAPES


def test_lines_of_the_machine_with_a_hosts_name_do_not_count() -> None:
    """A kafka-1 of its own would be found first; comments and other lines stay."""
    shape = SHAPES["plain"]
    own = "127.0.0.1 localhost # not kafka-1\n10.9.9.9 old kafka-1\n10.9.9.8 zk\n"
    assert names_and_own(shape, own) == names(shape) + "127.0.0.1 localhost # not kafka-1\n10.9.9.8 zk\n"
