"""JAAS files as Java reads them; what Java refuses is refused without a word of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.hosts.jaas import sections

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
