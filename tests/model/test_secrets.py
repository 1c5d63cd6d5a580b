"""Secrets are known by their names, and compared without being told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.model.secrets import PASSWORD_CONFIGS, Digester, is_password_config, redacted


@pytest.mark.parametrize("name", PASSWORD_CONFIGS)
def test_a_password_stays_one_behind_any_listener_prefix(name: str) -> None:
    """`listener.name.<listener>.[<mechanism>.]`."""
    for prefix in ("", "listener.name.client.", "listener.name.client.plain."):
        assert is_password_config(prefix + name)
        assert redacted(prefix + name, "hush") == "(sensitive)"


@pytest.mark.parametrize(
    "name", ["ssl.keystore.location", "num.io.threads", "notssl.key.password", "ssl.key.passwords", "password"]
)
def test_other_configurations_are_shown(name: str) -> None:
    """A name that merely ends alike is another key."""
    assert not is_password_config(name)
    assert redacted(name, "8") == "8"


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
