"""Keys and enum names: Kafka's own, and no two entities share one key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.kraft import rules
from migrate.protocol.loader import Values

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8)
ACL = {"resourceType": 2, "resourceName": "t", "patternType": 3, "principal": "User:a", "host": "*", "operation": 3}


def acl(**fields: object) -> Values:
    """An AccessControlEntryRecord's values."""
    return {**ACL, "permissionType": 3, **fields}


class TestAcls:
    """`TYPE|PATTERN|name|principal|host|OPERATION|PERMISSION`."""

    @pytest.mark.parametrize(
        ("name", "codes"),
        [
            (
                "resourceType",
                {2: "TOPIC", 3: "GROUP", 4: "CLUSTER", 5: "TRANSACTIONAL_ID", 6: "DELEGATION_TOKEN", 7: "USER"},
            ),
            ("patternType", {3: "LITERAL", 4: "PREFIXED"}),
            (
                "operation",
                {
                    2: "ALL",
                    3: "READ",
                    4: "WRITE",
                    5: "CREATE",
                    6: "DELETE",
                    7: "ALTER",
                    8: "DESCRIBE",
                    9: "CLUSTER_ACTION",
                    10: "DESCRIBE_CONFIGS",
                    11: "ALTER_CONFIGS",
                    12: "IDEMPOTENT_WRITE",
                    13: "CREATE_TOKENS",
                    14: "DESCRIBE_TOKENS",
                    15: "TWO_PHASE_COMMIT",
                },
            ),
            ("permissionType", {2: "DENY", 3: "ALLOW"}),
        ],
    )
    def test_codes_have_the_names_of_kafkas_enums(self, name: str, codes: dict[int, str]) -> None:
        """ResourceType, PatternType, AclOperation, AclPermissionType."""
        place = {"resourceType": 0, "patternType": 1, "operation": 5, "permissionType": 6}[name]
        for code, text in codes.items():
            assert rules.acl_key(acl(**{name: code})).split("|")[place] == text

    def test_the_wildcards_and_colons_stay_readable(self) -> None:
        """As an operator writes them."""
        assert rules.acl_key(acl(resourceName="*")) == "TOPIC|LITERAL|*|User:a|*|READ|ALLOW"

    @pytest.mark.slow
    @given(st.tuples(TEXT, TEXT, TEXT), st.tuples(TEXT, TEXT, TEXT))
    def test_different_acls_have_different_keys(self, one: tuple[str, ...], other: tuple[str, ...]) -> None:
        """Whatever stands in names, principals and hosts."""
        keys = [rules.acl_key(acl(resourceName=a, principal=b, host=c)) for a, b, c in (one, other)]
        assert (keys[0] == keys[1]) == (one == other)
        assert all(key.count("|") == 6 for key in keys)


class TestQuotas:
    """`type=name/type=name`."""

    NAMES = st.none() | TEXT

    @pytest.mark.slow
    @given(NAMES, NAMES, NAMES, NAMES)
    def test_different_entities_have_different_keys(
        self, user: str | None, client: str | None, other_user: str | None, other_client: str | None
    ) -> None:
        """The default entity is none that has a name."""

        def key(one: str | None, two: str | None) -> str:
            parts: list[Values] = [
                {"entityType": "user", "entityName": one},
                {"entityType": "client-id", "entityName": two},
            ]
            return rules.quota_key(parts)

        same = (user, client) == (other_user, other_client)
        assert (key(user, client) == key(other_user, other_client)) == same

    def test_parts_are_sorted_whatever_their_order(self) -> None:
        """Records may name them either way round."""
        parts: list[Values] = [
            {"entityType": "user", "entityName": "u"},
            {"entityType": "client-id", "entityName": None},
        ]
        assert rules.quota_key(parts) == rules.quota_key(parts[::-1]) == "client-id=<default>/user=u"


@pytest.mark.parametrize(("code", "name"), [(1, "SCRAM-SHA-256"), (2, "SCRAM-SHA-512"), (3, "SCRAM-UNKNOWN(3)")])
def test_scram_mechanisms_have_kafkas_names(code: int, name: str) -> None:
    """As in ZooKeeper's user znodes; an unknown one stays visible."""
    assert rules.scram_mechanism(code) == name


def test_a_quota_that_names_a_type_twice_is_still_spelled() -> None:
    """Kafka never writes it; damage does, and a name beside null must not break the sorting."""
    twice: list[Values] = [{"entityType": "user", "entityName": "a"}, {"entityType": "user", "entityName": None}]
    assert rules.quota_key(twice) == "user=<default>/user=a"
