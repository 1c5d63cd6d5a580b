"""Requests and responses: every version of every API comes back, and headers follow Kafka's rules."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from migrate.errors import DecodeError, UnknownSchemaError
from migrate.protocol.messages import (
    API_VERSIONS,
    METADATA,
    SASL_HANDSHAKE,
    Api,
    decode_response,
    encode_request,
)
from tests.protocol.strategies import values_of
from tests.testing.encoding import APIS, decode_request, encode_response

EVERY_VERSION = [
    pytest.param(api, version, id=f"{api.name}-{version}")
    for api in APIS.values()
    for version in range(api.versions.low, api.versions.high + 1)
]
FEW = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


class TestLookups:
    """What the APIs say of themselves."""

    def test_keys_and_flexible_versions_are_kafkas(self) -> None:
        """The numbers of the requests on the wire."""
        found = {
            api.name: (api.key, api.versions.low, api.versions.high, api.request.flexible.low) for api in APIS.values()
        }
        assert found == {
            "Fetch": (1, 12, 17, 12),
            "Metadata": (3, 1, 12, 9),
            "SaslHandshake": (17, 0, 1, 0),  # never flexible: an empty range
            "ApiVersions": (18, 0, 4, 3),
            "DescribeConfigs": (32, 1, 4, 4),
            "DescribeLogDirs": (35, 1, 4, 2),
            "SaslAuthenticate": (36, 0, 2, 2),
            "CreateDelegationToken": (38, 0, 3, 2),
            "DescribeDelegationToken": (41, 0, 3, 2),
            "ElectLeaders": (43, 0, 2, 2),
            "IncrementalAlterConfigs": (44, 0, 1, 1),
            "AlterClientQuotas": (49, 0, 1, 1),
            "DescribeQuorum": (55, 0, 2, 0),
            "FetchSnapshot": (59, 0, 1, 0),
            "DescribeCluster": (60, 0, 1, 0),
            "BrokerRegistration": (62, 0, 4, 0),
            "BrokerHeartbeat": (63, 0, 1, 0),
            "AssignReplicasToDirs": (73, 0, 0, 0),
        }

    @pytest.mark.parametrize(
        ("low", "high", "expected"), [(0, 12, 12), (0, 9, 9), (12, 13, 12), (0, 0, None), (13, 14, None)]
    )
    def test_the_best_version_is_the_highest_that_both_know(self, low: int, high: int, expected: int | None) -> None:
        """None where the ranges do not meet."""
        assert METADATA.best(low, high) == expected


class TestRoundTrips:
    """What is written is read back, in every version."""

    @pytest.mark.slow
    @pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
    @FEW
    @given(data=st.data())
    def test_requests_come_back(self, api: Api, version: int, data: st.DataObject) -> None:
        """Version, correlation id and body."""
        body = data.draw(values_of(api.request, version))
        raw = encode_request(api, version, 77, "client", body)
        assert decode_request(api, raw) == (version, 77, body)

    @pytest.mark.slow
    @pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
    @FEW
    @given(data=st.data())
    def test_responses_come_back_and_cut_ones_are_errors(self, api: Api, version: int, data: st.DataObject) -> None:
        """Correlation id and body; a response cut anywhere is never read as a shorter one."""
        body = data.draw(values_of(api.response, version))
        raw = encode_response(api, version, -5, body)
        assert decode_response(api, version, raw) == (-5, body)
        cut = data.draw(st.integers(0, len(raw) - 1))
        with pytest.raises(DecodeError):
            decode_response(api, version, raw[:cut])
        with pytest.raises(DecodeError, match="too many"):
            decode_response(api, version, raw + b"\0")


class TestHeaders:
    """Request header v1 or v2, response header v0 or v1."""

    def test_a_classic_request_has_header_v1(self) -> None:
        """SaslHandshake is never flexible."""
        raw = encode_request(SASL_HANDSHAKE, 1, 3, "c", {"mechanism": "PLAIN"})
        assert raw == bytes.fromhex("0011 0001 00000003 0001 63 0005") + b"PLAIN"

    def test_a_flexible_request_has_header_v2_with_a_classic_client_id(self) -> None:
        """The header's clientId keeps its int16 length, so that every node can read it."""
        raw = encode_request(API_VERSIONS, 3, 1, "c", {"clientSoftwareName": "a", "clientSoftwareVersion": "b"})
        assert raw == bytes.fromhex("0012 0003 00000001 0001 63 00 02 61 02 62 00")

    def test_no_client_id_is_null(self) -> None:
        """Length -1."""
        assert encode_request(API_VERSIONS, 0, 1, None, {}) == bytes.fromhex("0012 0000 00000001 ffff")

    def test_an_api_versions_response_never_has_a_flexible_header(self) -> None:
        """KIP-511: no tags after its correlation id; without the flag its tag is absent."""
        raw = bytes.fromhex("00000009 0000 01 00000000 00")
        assert decode_response(API_VERSIONS, 3, raw) == (9, {"errorCode": 0, "apiKeys": [], "throttleTimeMs": 0})
        flag = bytes.fromhex("00000009 0000 01 00000000 01 03 01 01")
        assert decode_response(API_VERSIONS, 4, flag)[1]["zkMigrationReady"] is True

    def test_other_flexible_responses_have_one(self) -> None:
        """One byte of tags stands before the body."""
        raw = encode_response(METADATA, 12, 9, {})
        assert raw[:5] == bytes.fromhex("00000009 00")
        assert encode_response(METADATA, 8, 9, {})[4:8] == bytes(4)

    def test_a_version_that_we_do_not_know_is_not_sent(self) -> None:
        """An error of ours, before anything is on the wire."""
        with pytest.raises(UnknownSchemaError, match="MetadataRequest version 13"):
            encode_request(METADATA, 13, 1, None, {})
