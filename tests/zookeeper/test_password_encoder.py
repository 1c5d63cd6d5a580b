"""Passwords that Kafka encoded are decoded; everything else is refused without a word of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.errors import PasswordUndecodable
from migrate.zookeeper.password_encoder import PasswordDecoder, encode
from tests.testing.golden_trees import FOLDER

KAFKA = json.loads((FOLDER / "encoded-passwords.json").read_text())
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@pytest.mark.parametrize("case", KAFKA["values"], ids=["cbc-sha512", "cbc-sha1", "gcm-sha256"])
def test_what_kafkas_own_class_encoded_is_decoded(case: dict[str, str]) -> None:
    """Values made by EncryptingPasswordEncoder of Kafka 3.9.2: default settings, another hash, GCM."""
    assert PasswordDecoder(KAFKA["secret"]).decode(case["encoded"], "here") == case["clear"]


@pytest.mark.parametrize("case", KAFKA["values"], ids=["cbc-sha512", "cbc-sha1", "gcm-sha256"])
def test_a_wrong_secret_is_told_by_a_typed_error_without_secrets(case: dict[str, str]) -> None:
    """Neither the value, nor the secret, nor a cause that could hold them is in the error."""
    with pytest.raises(PasswordUndecodable) as caught:
        PasswordDecoder("wrong-secret").decode(case["encoded"], "/config/brokers/1 ssl.key.password")
    assert caught.value.where == "/config/brokers/1 ssl.key.password"
    assert caught.value.__cause__ is None
    for hidden in ("wrong-secret", case["clear"], case["encoded"][:40]):
        assert hidden not in str(caught.value)


@settings(max_examples=25, deadline=None)
@given(clear=TEXT, secret=TEXT)
def test_what_we_encode_we_decode(clear: str, secret: str) -> None:
    """A round trip for any text, also beyond the Basic Multilingual Plane (Java counts UTF-16 units)."""
    assert PasswordDecoder(secret).decode(encode(clear, secret, iterations=2), "here") == clear


def test_two_encodings_of_one_password_differ() -> None:
    """Salt and initialization vector are new each time."""
    assert encode("a", "b", iterations=1) != encode("a", "b", iterations=1)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_value_is_refused_with_the_typed_error(data: st.DataObject) -> None:
    """Fields taken away, replaced or cut: decoded rightly or PasswordUndecodable, never anything else."""
    fields = dict(part.partition(":")[::2] for part in encode("secret!", "key", iterations=2).split(","))
    victim = data.draw(st.sampled_from(sorted(fields)))
    replacement = data.draw(
        st.one_of(
            st.none(),
            TEXT,
            st.sampled_from(
                ["", "-1", "0", "99999999999", "AES/ECB/PKCS5Padding", "PBKDF2WithHmacMD5", "AAAA", "=", "\uff11"]
            ),
        )
    )
    if replacement is None:
        del fields[victim]
    else:
        fields[victim] = replacement
    encoded = ",".join(f"{name}:{value}" for name, value in fields.items())
    try:
        clear, place = PasswordDecoder("key").decode(encoded, "here"), "here"
    except PasswordUndecodable as error:
        clear, place = "secret!", error.where
    assert (clear, place) == ("secret!", "here")


@given(TEXT)
def test_a_clear_password_is_told_apart_from_an_encoded_one(text: str) -> None:
    """A value that a broker without an encoder wrote in clear is named so, and not shown."""
    with pytest.raises(PasswordUndecodable, match="not encoded") as caught:
        PasswordDecoder("key").decode(f"clear-{text.replace('encryptedPassword', '')}", "here")
    assert "clear-" not in str(caught.value)


def test_the_decoder_does_not_show_its_secret() -> None:
    """Not in repr, which tracebacks and logs may print."""
    assert "hunter2" not in repr(PasswordDecoder("hunter2"))
