"""The codec: known bytes, null, tags, lies about lengths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import DecodeError, EncodeError, UnknownSchemaError
from migrate.protocol import primitives
from migrate.protocol.codec import decode, decode_whole, encode
from migrate.protocol.loader import UNKNOWN_TAGS, parse
from tests.testing.encoding import write_varlong

ID = "FgyzRFHJRC2kVDVxAIvi7A"

# classic in version 0, flexible from 1 on
MIXED = parse(
    """{ "name": "Mixed", "validVersions": "0-2", "flexibleVersions": "1+", "fields": [
      { "name": "Id", "type": "int32", "versions": "0+" },
      { "name": "Ready", "type": "bool", "versions": "0+" },
      { "name": "Name", "type": "string", "versions": "0+", "nullableVersions": "1+" },
      { "name": "Raw", "type": "bytes", "versions": "0+", "nullableVersions": "0+" },
      { "name": "Numbers", "type": "[]int16", "versions": "0+" },
      { "name": "Names", "type": "[]string", "versions": "0+", "nullableVersions": "0+" },
      { "name": "Parts", "type": "[]Part", "versions": "0+", "fields": [
        { "name": "Key", "type": "uuid", "versions": "0+" }, { "name": "Port", "type": "uint16", "versions": "0+" } ]},
      { "name": "Late", "type": "int64", "versions": "2+", "default": "-1" },
      { "name": "Hint", "type": "string", "versions": "2+", "ignorable": true },
      { "name": "Share", "type": "float64", "versions": "1+", "taggedVersions": "1+", "tag": 1, "default": "1.5" },
      { "name": "Level", "type": "int8", "versions": "1+", "taggedVersions": "1+", "tag": 0 },
      { "name": "Spare", "type": "[]int32", "versions": "1+", "nullableVersions": "1+",
        "taggedVersions": "1+", "tag": 3, "default": "null" }
    ]}"""
)
PLAIN = {"id": 7, "ready": True, "name": "é", "raw": b"\x01", "numbers": [1, -1], "names": None, "parts": []}


class TestVarints:
    """Unsigned, and zigzag of 32 and 64 bits."""

    @pytest.mark.parametrize(
        ("value", "raw"), [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (0xFFFFFFFF, "ffffffff0f")]
    )
    def test_unsigned_varints_have_kafkas_bytes(self, value: int, raw: str) -> None:
        """Values from KIP-482 and ByteUtilsTest."""
        out = bytearray()
        primitives.write_uvarint(out, value)
        assert out.hex() == raw
        assert primitives.read_uvarint(bytes(out) + b"\xff", 0) == (value, len(out))

    @pytest.mark.slow
    @given(st.integers(-(2**63), 2**63 - 1))
    def test_every_long_comes_back(self, value: int) -> None:
        """Zigzag: the sign goes into the lowest bit."""
        out = bytearray()
        write_varlong(out, value)
        assert primitives.read_varlong(bytes(out), 0) == (value, len(out))
        if -(2**31) <= value < 2**31:
            assert primitives.read_varint(bytes(out), 0) == (value, len(out))

    @pytest.mark.parametrize("raw", ["8080808080 01", "ffffffff1f", "ffffffff7f"])
    def test_a_varint_beyond_32_bits_is_refused(self, raw: str) -> None:
        """Neither a sixth byte nor bits above the thirty-second."""
        with pytest.raises(DecodeError):
            primitives.read_uvarint(bytes.fromhex(raw), 0)

    @pytest.mark.parametrize("raw", ["80" * 10 + "01", "ff" * 9 + "7f"])
    def test_a_varlong_beyond_64_bits_is_refused(self, raw: str) -> None:
        """Neither an eleventh byte nor bits above the sixty-fourth."""
        with pytest.raises(DecodeError):
            primitives.read_varlong(bytes.fromhex(raw), 0)


class TestUuids:
    """Text and bytes of UUIDs."""

    @pytest.mark.slow
    @given(st.binary(min_size=16, max_size=16))
    def test_every_uuid_comes_back(self, raw: bytes) -> None:
        """16 bytes, 22 characters, no padding."""
        text = primitives.uuid_text(raw)
        assert len(text) == 22
        assert primitives.uuid_bytes(text) == raw

    @pytest.mark.parametrize("text", ["", "short", ID + "A", ID[:-1] + "B", "FgyzRFHJRC2kVDVxAIvi+/", ID[:-1] + "é", 7])
    def test_what_is_no_uuid_is_not_sent(self, text: object) -> None:
        """Wrong length, the other alphabet, or bits that no byte holds."""
        with pytest.raises(EncodeError):
            primitives.uuid_bytes(text)  # type: ignore[arg-type]


class TestEncodings:
    """Known bytes of both encodings."""

    def test_classic_lengths_are_fixed_and_null_is_minus_one(self) -> None:
        """Version 0: int16 for strings, int32 for bytes and arrays, no tags."""
        raw = encode(MIXED, 0, PLAIN)
        expected = "00000007 01 0002c3a9 0000000101 00000002 0001ffff ffffffff 00000000"
        assert raw == bytes.fromhex(expected)
        assert decode_whole(MIXED, 0, raw) == PLAIN

    def test_flexible_lengths_are_varints_and_null_is_zero(self) -> None:
        """Version 1: length + 1, and a section of tags at each struct's end."""
        values = {**PLAIN, "name": None, "parts": [{"key": ID, "port": 65535}], "level": 3}
        raw = encode(MIXED, 1, values)
        part = "160cb34451c9442da4543571008be2ec ffff 00"
        expected = f"00000007 01 00 0201 03 0001ffff 00 02 {part} 01 00 01 03"
        assert raw == bytes.fromhex(expected)
        assert decode_whole(MIXED, 1, raw) == values

    def test_left_out_fields_stand_as_their_defaults(self) -> None:
        """As in Kafka's generated classes."""
        values = decode_whole(MIXED, 2, encode(MIXED, 2, {"parts": [{}]}))
        assert values["late"] == -1
        assert values["name"] == ""
        assert values["parts"] == [{"key": "AAAAAAAAAAAAAAAAAAAAAA", "port": 0}]
        assert "share" not in values

    def test_a_tagged_field_at_its_default_is_neither_written_nor_read(self) -> None:
        """Written by a stranger, it still means: absent."""
        raw = encode(MIXED, 1, {"share": 1.5})
        assert raw == encode(MIXED, 1, {})
        assert raw[-1] == 0
        assert decode_whole(MIXED, 1, raw[:-1] + bytes.fromhex("01 00 01 00")) == decode_whole(MIXED, 1, raw)

    def test_a_field_may_be_tagged_in_newer_versions_only(self) -> None:
        """In version 1 it is one of the plain fields, in version 2 it has a tag."""
        table = parse(
            """{ "name": "Moved", "validVersions": "1-2", "flexibleVersions": "1+", "fields": [
              { "name": "Level", "type": "int8", "versions": "1+", "taggedVersions": "2+", "tag": 4 } ]}"""
        )
        for version, raw in ((1, "05 00"), (2, "01 04 01 05")):
            assert encode(table, version, {"level": 5}) == bytes.fromhex(raw)
            assert decode_whole(table, version, bytes.fromhex(raw)) == {"level": 5}
        assert decode_whole(table, 1, b"\0\0") == {"level": 0}
        assert decode_whole(table, 2, b"\0") == {}

    def test_unknown_tags_are_carried(self) -> None:
        """A newer node's field comes back as it came, in its place among ours."""
        raw = encode(MIXED, 1, {})[:-1] + bytes.fromhex("03 00 01 05 02 03 aabbcc 04 00")
        values = decode_whole(MIXED, 1, raw)
        assert values[UNKNOWN_TAGS] == {2: b"\xaa\xbb\xcc", 4: b""}
        assert values["level"] == 5
        assert encode(MIXED, 1, values) == raw

    def test_decoding_begins_and_ends_where_it_is_told(self) -> None:
        """`decode` gives the offset after the values; `decode_whole` wants the end there."""
        raw = encode(MIXED, 0, PLAIN)
        assert decode(MIXED, 0, b"xx" + raw + b"y", 2) == (PLAIN, 2 + len(raw))
        with pytest.raises(DecodeError, match="1 bytes too many"):
            decode_whole(MIXED, 0, raw + b"y")


class TestDamage:
    """Bytes that lie."""

    @pytest.mark.parametrize("version", [0, 1, 2])
    def test_a_message_cut_anywhere_is_an_error(self, version: int) -> None:
        """Never IndexError or struct.error, and never a value."""
        values = {**PLAIN, "names": ["a", "bc"], "parts": [{"key": ID, "port": 9}]}
        raw = encode(MIXED, version, values)
        for end in range(len(raw)):
            with pytest.raises(DecodeError):
                decode_whole(MIXED, version, raw[:end])

    @pytest.mark.slow
    @given(st.binary(max_size=80), st.sampled_from([0, 1, 2]))
    def test_any_bytes_give_values_or_an_error(self, raw: bytes, version: int) -> None:
        """What is read can be written again."""
        try:
            values = decode_whole(MIXED, version, raw)
        except DecodeError:
            return
        assert decode_whole(MIXED, version, encode(MIXED, version, values)) == values

    @pytest.mark.parametrize(
        ("damage", "says"),
        [
            ("00000007 01 ffff", "name has the length -1"),
            ("00000007 01 fffe", "name has the length -2"),
            ("00000007 01 7fff 61", "name says 32767 bytes; 1 are left"),
            ("00000007 01 0002 c328", "name is not UTF-8"),
            ("00000007 01 0000 7fffffff 61", "raw says 2147483647 bytes"),
            ("00000007 01 0000 ffffffff 7fffffff 0001", "numbers says 2147483647 entries"),
            ("00000007 01 0000 ffffffff 00000000 7fffffff 00", "names says 2147483647 entries"),
        ],
    )
    def test_lying_lengths_name_the_field(self, damage: str, says: str) -> None:
        """The error says which field, and allocates nothing."""
        with pytest.raises(DecodeError, match=says) as caught:
            decode_whole(MIXED, 0, bytes.fromhex(damage))
        assert caught.value.where.startswith("byte ")
        assert "Mixed version 0" in caught.value.what

    def test_a_string_longer_than_kafkas_limit_is_refused(self) -> None:
        """32767 bytes, also where compact lengths could say more."""
        raw = bytearray.fromhex("00000007 01")
        primitives.write_uvarint(raw, 32768 + 1)
        with pytest.raises(DecodeError, match="name says 32768"):
            decode_whole(MIXED, 1, bytes(raw) + b"a" * 40000)

    @pytest.mark.parametrize(
        "tags",
        ["02 00 01 05 00 01 05", "02 01 08 0000000000000000 00 01 05", "01 00 02 0505", "01 00 01", "01 07 7f", "05"],
        ids=["twice", "descending", "wrong-size", "cut", "past-the-end", "fewer-than-said"],
    )
    def test_broken_tag_sections_are_refused(self, tags: str) -> None:
        """Tags ascend, and each has the size that it says."""
        with pytest.raises(DecodeError):
            decode_whole(MIXED, 1, encode(MIXED, 1, {})[:-1] + bytes.fromhex(tags))

    def test_unknown_versions_are_named(self) -> None:
        """Reading and writing alike."""
        with pytest.raises(UnknownSchemaError, match="Mixed version 3"):
            decode(MIXED, 3, b"")
        with pytest.raises(UnknownSchemaError, match="Mixed version -1"):
            encode(MIXED, -1, {})


class TestWrongValues:
    """Values that do not fit are never sent."""

    @pytest.mark.parametrize(
        "values",
        [
            {"id": "7"},
            {"id": 2**31},
            {"id": True},
            {"ready": 1},
            {"name": None},
            {"name": b"x"},
            {"name": "x" * 32768},
            {"name": "\ud800"},
            {"raw": "x"},
            {"numbers": None},
            {"numbers": "12"},
            {"numbers": [2**15]},
            {"parts": [7]},
            {"parts": [{"key": "nonsense"}]},
            {"parts": [{"kay": ID}]},
            {"other": 1},
            {"late": 5},
            {"level": 5},
        ],
    )
    def test_each_is_an_encode_error(self, values: dict[str, object]) -> None:
        """Wrong type, out of range, null, unknown, or not of this version."""
        with pytest.raises(EncodeError):
            encode(MIXED, 0, values)

    def test_defaults_and_ignorable_fields_of_other_versions_pass(self) -> None:
        """As Kafka's writers do: `late` stands at its default, `hint` may be lost."""
        assert encode(MIXED, 0, {"late": -1, "hint": "lost"}) == encode(MIXED, 0, {})

    def test_whole_numbers_are_doubles_too(self) -> None:
        """An int where a float is asked for."""
        assert encode(MIXED, 1, {"share": 2}) == encode(MIXED, 1, {"share": 2.0})
