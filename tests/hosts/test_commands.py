"""Whatever stands in an inventory, the remote shell sees exactly our words, or nothing is sent."""

from __future__ import annotations

import itertools
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import WordRefused
from migrate.hosts import commands

HOSTILE = (
    "; rm -rf /", "$(id)", "`id`", "a' b", 'a" b', "\\", "\\\\'", "-o ProxyCommand=id", "&& id", "| id", "> /x", "*",
    "?", "[a]", "{a,b}", "~root", "!!", "#x", "$HOME", "${IFS}", "a b", "é", "\u202e", "%s%n", "''", '""', "=", "--",
)  # fmt: skip
PIECES = (*HOSTILE, "a", "/", "kafka", ".service", " ", "'", '"', "$", "\\")


def split_by_a_real_shell(lines: list[str]) -> list[list[str]]:
    """What sh makes of each line."""
    script = "\n".join(f"set -- {line}; printf '%s\\0' \"$@\"; printf '\\001\\0'" for line in lines)
    done = subprocess.run(["/bin/sh"], input=script.encode(), capture_output=True, check=True)
    found: list[list[str]] = [[]]
    for word in done.stdout.decode().split("\0")[:-1]:
        if word == "\x01":
            found.append([])
        else:
            found[-1].append(word)
    return found[:-1]


@pytest.mark.slow
def test_a_hundred_thousand_hostile_words_reach_a_real_shell_as_they_are() -> None:
    """No word is split, expanded or taken for an operator."""
    words = ("".join(pieces) for pieces in itertools.product(PIECES, repeat=3))
    more = ("".join(pieces) for pieces in itertools.product(PIECES, PIECES, HOSTILE, PIECES[:3]))
    hostile = list(itertools.islice(itertools.chain(words, more), 100_000))
    assert len(hostile) == 100_000
    batches = [["x", *hostile[start : start + 10]] for start in range(0, len(hostile), 10)]
    for start in range(0, len(batches), 2_000):
        part = batches[start : start + 2_000]
        assert split_by_a_real_shell([commands.quote(words) for words in part]) == part


@pytest.mark.slow
@given(st.lists(st.text(), min_size=1, max_size=5))
def test_words_are_quoted_or_refused(words: list[str]) -> None:
    """Nothing in between: control characters and lone surrogates are in no command."""
    try:
        text = commands.quote(words)
    except WordRefused:
        bad = any(commands.CONTROL.search(word) or any("\ud800" <= c <= "\udfff" for c in word) for word in words)
        assert bad or not words[0]
    else:
        assert split_by_a_real_shell([text]) == [words]


@pytest.mark.parametrize("text", ["relative", "", "-rf", "~/x", "/a\nb", "/a\x00b", "/a\x1b[2J", "/\udcff"])
def test_a_path_that_is_no_absolute_line_is_refused(text: str) -> None:
    """What does not begin with a slash could be an option."""
    with pytest.raises(WordRefused):
        commands.path(text)


@pytest.mark.parametrize(
    "name", ["kafka", "-H.service", "kafka.timer", "a b.service", "$(x).service", "../x.service", "x.service;id", ""]
)
def test_only_names_of_services_are_units(name: str) -> None:
    """The client takes options anywhere, and other hosts by -H."""
    with pytest.raises(WordRefused):
        commands.unit(name)


@pytest.mark.parametrize("name", ["kafka.service", "kafka@1.service", r"kafka-dev\x2d1.service", "a:b_c.service"])
def test_systemds_own_names_are_units(name: str) -> None:
    """Templates and escaped names too."""
    assert commands.unit(name) == name


@pytest.mark.parametrize("name", ["-oProxyCommand=id", "a b", "a;b", "host/x", "$(x)", "", "@h", "-l@h", "h\n", "a@-h"])
def test_a_destination_is_never_an_option(name: str) -> None:
    """CVE-2017-1000117 and its kin: a host that begins with a dash."""
    with pytest.raises(WordRefused):
        commands.destination(name)


@pytest.mark.parametrize("name", ["kafka-1", "ops@kafka-1.example.org", "10.0.0.1", "fe80::1", "fe80::1%eth0", "k_1@h"])
def test_hosts_and_users_are_destinations(name: str) -> None:
    """Names of the operator's own configuration, addresses, user@host."""
    assert commands.destination(name) == name


def test_a_command_without_a_program_or_without_measure_is_refused() -> None:
    """Both are bugs or attacks, never a command."""
    for words in ([], [""], ["x", "a" * commands.LONGEST]):
        with pytest.raises(WordRefused):
            commands.quote(words)
