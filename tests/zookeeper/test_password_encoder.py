"""Passwords that Kafka encoded are decoded; everything else is refused without a word of it."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from migrate.errors import PasswordUndecodable
from migrate.zookeeper.password_encoder import EncoderSecrets
from tests.testing.golden_trees import FOLDER
from tests.testing.kafka_encoder import PASSWORD, SECRET, Setting, captured, encode, kafka_encoder
from tests.testing.kafka_encoder import settings as every_setting

KAFKA = json.loads((FOLDER / "encoded-passwords.json").read_text())
CAPTURED = captured()
DEFAULTS = [case for case in KAFKA["values"] if "AES/CBC/" in case["encoded"]]
STRANGE = (
    *("", "0", "7", "-8", "129", "AES", "AES/CFB0/NoPadding", "AES/CFB256/NoPadding", "AES/CFBx/NoPadding"),
    *("AES/XTS/NoPadding", "DES/GCM/NoPadding", "AES/CBC/ZeroPadding", "AES/CBC", "AES/KW/NoPadding"),
    *("PBEWithMD5AndDES", "ChaCha20-Poly1305", "AES/CTS/NoPadding"),
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@pytest.mark.parametrize("case", DEFAULTS, ids=["cbc-sha512", "cbc-sha1"])
def test_what_kafkas_own_class_encoded_is_decoded(case: dict[str, str]) -> None:
    """Values made by EncryptingPasswordEncoder of Kafka 3.9.2: default settings, and where Java has SHA-1 alone."""
    assert EncoderSecrets(KAFKA["secret"]).decode(case["encoded"], "here") == case["clear"]


@pytest.mark.parametrize("case", DEFAULTS, ids=["cbc-sha512", "cbc-sha1"])
def test_a_wrong_secret_is_told_by_a_typed_error_without_secrets(case: dict[str, str]) -> None:
    """Neither the value, nor the secret, nor a cause that could hold them is in the error."""
    with pytest.raises(PasswordUndecodable) as caught:
        EncoderSecrets("wrong-secret").decode(case["encoded"], "/config/brokers/1 ssl.key.password")
    assert caught.value.where == "/config/brokers/1 ssl.key.password"
    assert caught.value.__cause__ is None
    for hidden in ("wrong-secret", case["clear"], case["encoded"][:40]):
        assert hidden not in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "encoded"), CAPTURED, ids=[f"{s.factory}-{s.cipher}-{s.bits}" for s, _ in CAPTURED]
)
def test_each_supported_algorithm_is_decoded_and_no_other_secret_opens_it(setting: Setting, encoded: str) -> None:
    """Key lengths and key factories as Java names them, whatever their case."""
    assert EncoderSecrets(SECRET).decode(encoded, "here") == PASSWORD
    with pytest.raises(PasswordUndecodable, match="not the brokers'") as caught:
        EncoderSecrets("sixteen-chars-no").decode(encoded, "here")
    shown = repr(caught.value) + str(caught.value) + repr(caught.value.__cause__)
    assert not [hidden for hidden in (SECRET, "sixteen-chars-no", PASSWORD, encoded[:30]) if hidden in shown]


@pytest.mark.parametrize(
    "cipher",
    [
        *("Blowfish/CBC/PKCS5Padding", "AES/CFB8/NoPadding", "AES/CTS/NoPadding", "ChaCha20-Poly1305"),
        *("AES/CBC/NoPadding", "AES/CTR/NoPadding", "AES/GCM/NoPadding"),
    ],
)
def test_a_cipher_that_is_not_supported_is_refused_with_what_to_do(cipher: str) -> None:
    """Java can write it, so the error does not blame the secret."""
    encoded = encode("clear-canary", "key", iterations=2).replace("AES/CBC/PKCS5Padding", cipher)
    with pytest.raises(PasswordUndecodable, match=rf"cipher {cipher} is not supported.*Kafka's own tool") as caught:
        EncoderSecrets("key").decode(encoded, "/config/brokers/1 ssl.key.password")
    assert "brokers'" not in caught.value.what
    assert "canary" not in str(caught.value)
    assert EncoderSecrets("new", "key").decode_old(encoded) is None


@pytest.mark.parametrize("factory", ["PBKDF2WithHmacSHA256", "PBKDF2WithHmacSHA512/256", "PBEWithMD5AndDES"])
def test_a_key_factory_that_is_not_supported_is_refused_by_its_name(factory: str) -> None:
    """As a cipher is."""
    encoded = encode("clear-canary", "key", iterations=2).replace("PBKDF2WithHmacSHA512", factory)
    with pytest.raises(PasswordUndecodable, match=rf"key factory {factory} is not supported") as caught:
        EncoderSecrets("key").decode(encoded, "here")
    assert "canary" not in str(caught.value)
    assert EncoderSecrets("new", "key").decode_old(encoded) is None


@pytest.mark.parametrize("name", ["", "AES\x1b[31m", "a" * 61])
def test_an_odd_name_of_an_algorithm_is_not_shown(name: str) -> None:
    """It may be anything."""
    encoded = encode("clear-canary", "key", iterations=2).replace("AES/CBC/PKCS5Padding", name)
    with pytest.raises(PasswordUndecodable, match="cipher of an odd name is not supported") as caught:
        EncoderSecrets("key").decode(encoded, "here")
    assert not name or name not in str(caught.value)


def test_the_captured_settings_are_all_that_are_tried() -> None:
    """A setting that is added is captured, too."""
    assert [setting for setting, _ in CAPTURED] == every_setting()


@pytest.mark.kafka
def test_kafkas_class_and_we_read_each_other() -> None:
    """Fresh salts and vectors for every setting; what we encode, Kafka decodes."""
    with kafka_encoder() as kafka:
        for setting in every_setting():
            encoded = kafka.encode(PASSWORD, SECRET, setting)
            assert EncoderSecrets(SECRET).decode(encoded, "here") == PASSWORD, setting
        first = every_setting()[0]
        for clear, secret in (("", "s"), ("ä🔑,:=", "sécret"), ("x" * 5000, "s" * 300)):
            ours = encode(clear, secret, first.iterations, 256)
            assert kafka.decode(ours, secret, first) == clear
            assert EncoderSecrets(secret).decode(kafka.encode(clear, secret, first), "here") == clear


def test_what_only_the_old_secret_opens_is_told_so_and_not_handed_out() -> None:
    """Controllers do not try password.encoder.old.secret when they copy; a restart of the broker encodes it again."""
    encoded = encode("clear-canary", "old", iterations=2)
    with pytest.raises(PasswordUndecodable, match=r"password\.encoder\.old\.secret: restart that broker") as caught:
        EncoderSecrets("new", "old").decode(encoded, "here")
    assert "canary" not in str(caught.value)
    assert EncoderSecrets("new", "old").decode_old(encoded) == "clear-canary"
    assert EncoderSecrets("new", "older").decode_old(encoded) is None
    assert EncoderSecrets("new").decode_old(encoded) is None
    assert EncoderSecrets("new", "old").decode_old("clear") is None
    assert EncoderSecrets("old", "older").decode(encoded, "here") == "clear-canary"
    with pytest.raises(PasswordUndecodable, match="not the brokers'"):
        EncoderSecrets("new", "older").decode(encoded, "here")


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damage_to_a_value_of_any_algorithm_ends_in_text_or_the_typed_error(data: st.DataObject) -> None:
    """Any field of any captured value replaced: no other exception, and soon.  Modes without a check may open."""
    setting, encoded = data.draw(st.sampled_from(CAPTURED))
    assume(setting.iterations < 100)
    fields = dict(part.partition(":")[::2] for part in encoded.split(","))
    victim = data.draw(st.sampled_from(sorted(fields)))
    raw = base64.b64encode(data.draw(st.binary(max_size=40))).decode()
    fields[victim] = data.draw(st.sampled_from([*STRANGE, raw]))
    try:
        found = EncoderSecrets(SECRET).decode(",".join(f"{name}:{value}" for name, value in fields.items()), "here")
    except PasswordUndecodable as error:
        found = error.where
    assert found


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(clear=TEXT, secret=TEXT)
def test_what_we_encode_we_decode(clear: str, secret: str) -> None:
    """A round trip for any text, also beyond the Basic Multilingual Plane (Java counts UTF-16 units)."""
    assert EncoderSecrets(secret).decode(encode(clear, secret, iterations=2), "here") == clear


def test_two_encodings_of_one_password_differ() -> None:
    """Salt and initialization vector are new each time."""
    assert encode("a", "b", iterations=1) != encode("a", "b", iterations=1)


@pytest.mark.slow
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
        clear, place = EncoderSecrets("key").decode(encoded, "here"), "here"
    except PasswordUndecodable as error:
        clear, place = "secret!", error.where
    assert (clear, place) == ("secret!", "here")


def test_secrets_are_not_printed() -> None:
    """Neither the decoder's nor those that are handed to it."""
    told = repr(EncoderSecrets("canary-1", "canary-2"))
    assert "canary" not in told


@given(TEXT)
def test_a_clear_password_is_told_apart_from_an_encoded_one(text: str) -> None:
    """A value that a broker without an encoder wrote in clear is named so, and not shown."""
    with pytest.raises(PasswordUndecodable, match="not encoded") as caught:
        EncoderSecrets("key").decode(f"clear-{text.replace('encryptedPassword', '')}", "here")
    assert "clear-" not in str(caught.value)


def test_the_decoder_does_not_show_its_secret() -> None:
    """Not in repr, which tracebacks and logs may print."""
    assert "hunter2" not in repr(EncoderSecrets("hunter2"))
