"""JAAS texts as Java and Kafka read them; what they refuse is refused without a word of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.hosts.jaas import options, sections
from migrate.model.outcome import Unknown

FILE = """
// of the brokers
Client {
  org.apache.zookeeper.server.auth.DigestLoginModule required
  username="kafka"  /* the owner
  of the znodes */
  password="a \\"b\\" {c}; // d";
};
KafkaServer { a.B REQUISITE serviceName=kafka; c.D optional; };
Empty { };
"""


def test_sections_modules_and_options_are_read() -> None:
    """Comments, quotes with anything in them, bare words, several modules."""
    found = sections(FILE)
    assert list(found) == ["Client", "KafkaServer", "Empty"]
    (client,) = found["Client"]
    assert client.name.endswith("DigestLoginModule")
    assert client.options == {"username": "kafka", "password": 'a "b" {c}; // d'}
    assert [module.name for module in found["KafkaServer"]] == ["a.B", "c.D"]
    assert found["KafkaServer"][0].options == {"serviceName": "kafka"}
    assert found["Empty"] == ()


@pytest.mark.parametrize(
    "text",
    [
        'Client { a.B required password="canary }; ',
        "Client a.B required password=canary; };",
        "Client { a.B required password=canary }",
        "Client { a.B required password=canary; }",
        "Client { a.B canary password=canary; };",
        "Client { a.B required canary; };",
        "Client { a.B required password=; };",
        "canary",
        "{ };",
    ],
)
def test_what_java_refuses_is_refused_and_not_repeated(text: str) -> None:
    """Where, and never what."""
    with pytest.raises(ValueError, match=r"word|quotes|semicolon") as caught:
        sections(text)
    assert "canary" not in str(caught.value)


@given(st.text(alphabet='Ca{};="\\\n /*x', max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing else comes of it, and it ends."""
    try:
        sections(text)
    except ValueError:
        return


def test_no_option_stands_in_a_repr() -> None:
    """A failing test or a traceback must not print a password."""
    assert "c};" not in repr(sections(FILE))
    assert "kafka" not in repr(sections(FILE)["Client"])


def test_escapes_and_both_quotes_are_those_of_javas_tokenizer() -> None:
    """In a file as in a sasl.jaas.config: octal digits, control letters, a quote of the other kind."""
    (module,) = sections(r"""C { a.B required a="\101\t\4012" b='say "x"' c="\$"; };""".replace("\\\\", "\\"))["C"]
    assert module.options == {"a": "A\t 12", "b": 'say "x"', "c": "$"}


# -- the value of a sasl.jaas.config -------------------------------------------------------------------------------
def test_no_text_is_no_option() -> None:
    """A key that is not there."""
    assert options("") == options("  ") == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            """org.X required username="a b" password='c=d' user_e=f serviceName=kafka;""",
            {"username": "a b", "password": "c=d", "user_e": "f", "serviceName": "kafka"},
        ),
        ("org.X required;", {}),
        ("org.X\nrequired\n  a = 1 ;", {"a": "1"}),
        ("org.X required a=1 /* b=2; */ c=3; // end", {"a": "1", "c": "3"}),
        (r'org.X required password="a\"b\\c" user="d";', {"password": 'a"b\\c', "user": "d"}),
        (r"""org.X required password='it\'s' user="say 'x'";""", {"password": "it's", "user": "say 'x'"}),
        (r'org.X required password="tab\there\101";', {"password": "tab\there" + "A"}),
        ('org.X required password="";', {"password": ""}),
    ],
)
def test_options_are_those_that_kafka_reads(text: str, found: dict[str, str]) -> None:
    """Quotes of both kinds, escapes within them, comments between."""
    assert options(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "org.X",
        "org.X required",
        'org.X sometimes username="canary";',
        'org.X required username="canary"',
        'org.X required username="canary',
        "org.X required username= ;",
        'org.X required username "canary";',
        'org.X required = "canary";',
        '= required username="canary";',
        'org.X required a="canary"; org.Y required b="c";',
        "${file:/secrets/canary:jaas}",
        "hmac:canary",
        "org.X required password=a{canary;",
    ],
)
def test_what_kafka_refuses_or_resolves_later_is_unknown(text: str) -> None:
    """No word of it is told: it may hold a password."""
    found = options(text)
    assert isinstance(found, Unknown)
    assert "canary" not in found.reason
