"""Secrets are known by their names, and compared without being told."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.model.secrets import PASSWORD_CONFIGS, Digester, hidden, is_password_config, without_digits


@pytest.mark.parametrize("name", PASSWORD_CONFIGS)
def test_a_password_stays_one_behind_any_listener_prefix(name: str) -> None:
    """`listener.name.<listener>.[<mechanism>.]`."""
    for prefix in ("", "listener.name.client.", "listener.name.client.plain."):
        assert is_password_config(prefix + name)


@pytest.mark.parametrize(
    "name", ["ssl.keystore.location", "num.io.threads", "notssl.key.password", "ssl.key.passwords", "password"]
)
def test_other_configurations_are_shown(name: str) -> None:
    """A name that merely ends alike is another key."""
    assert not is_password_config(name)


@given(st.text(), st.text())
def test_digests_are_equal_exactly_where_secrets_are(one: str, two: str) -> None:
    """Within one run; text and bytes alike."""
    digester = Digester(b"key")
    assert (digester.digest(one) == digester.digest(two)) is (one == two)
    assert digester.digest(one) == digester.digest(one.encode())


def test_a_digest_says_nothing_to_another_run() -> None:
    """Its key lives as long as the run, and is shown nowhere."""
    one, two = Digester(), Digester()
    assert one.digest("hush") != two.digest("hush")
    assert "hush" not in one.digest("hush")
    assert repr(one) == "Digester()"


@pytest.mark.slow
@given(st.text(st.characters()), st.text(st.characters()))
def test_hidden_values_are_equal_exactly_where_the_values_are(one: str, two: str) -> None:
    """Half characters too; without the digits all are the same text."""
    assert (hidden(one) == hidden(two)) is (one == two)
    assert without_digits(hidden(one)) == "(sensitive)"


@pytest.mark.slow
def test_the_digits_of_a_hidden_value_are_under_a_key_that_only_this_process_has() -> None:
    """Nobody who has the text can compute them for a list of passwords, nor can this tool in another process."""
    program = "from migrate.model.secrets import hidden; print(hidden('hush'))"
    says = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in "12"]
    assert len({hidden("hush"), *(answer.stdout.strip() for answer in says)}) == 3
