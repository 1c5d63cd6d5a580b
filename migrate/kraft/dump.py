"""Metadata files as lines of JSON, spelled as Kafka's dump tool spells them (`DumpLogSegments`, `*JsonConverter`)."""

from __future__ import annotations

import base64
import contextlib
import json
import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from migrate.errors import DecodeError, MetadataFileError, SnapshotError
from migrate.kraft.files import Snapshot, find, read_batches, snapshot_of
from migrate.kraft.image import check_broker_epoch
from migrate.model.secrets import is_password_config
from migrate.protocol import records
from migrate.protocol.batches import Batch
from migrate.protocol.loader import Array, Struct, Values
from migrate.protocol.records import SNAPSHOT_FOOTER, decode_control, decode_record, type_name

REDACTED: Final = "(redacted)"
_REGISTERS: Final = bytes([records.REGISTER_BROKER.key])  # behind the frame's version


def spelled(table: Struct, version: int, values: Values) -> dict[str, Any]:
    """The values as Kafka's JSON converter gives them: fields in the schema's order, tagged ones only where set."""
    return {
        entry.name: _value(entry.type, version, values[entry.name]) for entry in table.fields if entry.name in values
    }


def _value(kind: object, version: int, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, Array):
        return [_value(kind.of, version, item) for item in value]
    if isinstance(kind, Struct):
        return spelled(kind, version, value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def redacted(table: Struct, values: Values) -> Values:
    """The values without what may not be shown: SCRAM keys, tokens, password configs."""
    if table is records.CONFIG:
        hide = values["value"] is not None and is_password_config(values["name"])
        return {**values, "value": REDACTED} if hide else values
    hidden = records.SECRETS.get(table)
    return {name: REDACTED if name in hidden else value for name, value in values.items()} if hidden else values


def java_double(value: float) -> str:
    """A double as Java prints it: at least one decimal, an exponent outside 10^-3 to 10^7 (`Double.toString`)."""
    if math.isnan(value) or math.isinf(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = format(Decimal(repr(value)), "f")
        return text if "." in text else text + ".0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    mantissa = "".join(map(str, digits))
    power = exponent + len(mantissa) - 1
    return f"{'-' if sign else ''}{mantissa[0]}.{mantissa[1:] or '0'}E{power}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def batch_lines(batch: Batch, *, show_secrets: bool) -> Iterator[str]:
    """One line a record.  A record that cannot be decoded is an error with file, position and offset."""
    for offset, key, value in batch.records():
        line: dict[str, Any] = {"offset": offset, "epoch": batch.epoch}
        try:
            if batch.control:
                name, table, version, values = decode_control(key, value)
                line["control"] = True
            else:
                table, version, values = decode_record(value)
                name, values = type_name(table), values if show_secrets else redacted(table, values)
        except DecodeError as error:
            raise type(error)(error.what, where=f"{batch.place}, offset {offset}") from error
        line |= {"type": name, "version": version}
        data = spelled(table, version, values)
        if table is records.CLIENT_QUOTA:  # the only record with a double: Python and Java print those differently
            body = ",".join(
                f"{_json(field)}:{java_double(of) if isinstance(of, float) else _json(of)}"
                for field, of in data.items()
            )
            yield _json(line)[:-1] + ',"data":{' + body + "}}"
        else:
            yield _json({**line, "data": data})


def file_lines(path: Path, *, show_secrets: bool) -> Iterator[str]:
    """All records of a .log or .checkpoint.

    A snapshot that disagrees with its name (epoch, end offset), or that ends without its footer, is a SnapshotError.
    """
    last: Batch | None = None
    snapshot = snapshot_of(path)
    for batch in read_batches(path):
        last = batch
        if snapshot is not None:
            _agrees(snapshot, batch)
        yield from batch_lines(batch, show_secrets=show_secrets)
    if path.suffix == ".checkpoint":
        if last is not None and last.control:
            *_, (_, key, value) = last.records()
            if decode_control(key, value)[1] is SNAPSHOT_FOOTER:
                return
        raise SnapshotError("the snapshot ends without its footer", where=str(path))


def _agrees(snapshot: Snapshot, batch: Batch) -> None:
    """Hold a batch to the snapshot's name: every batch is of its epoch, and no broker was registered after its end."""
    if batch.epoch != snapshot.epoch:
        what = f"a batch of epoch {batch.epoch}; the snapshot's name says {snapshot.epoch}"
        raise SnapshotError(what, where=batch.place)
    if batch.position == 0 and batch.base_offset != 0:
        raise SnapshotError(f"a snapshot begins with offset {batch.base_offset}; 0 was due", where=batch.place)
    for _, _, value in () if batch.control else batch.records():
        if value is not None and value[1:2] == _REGISTERS:
            with contextlib.suppress(DecodeError):  # told with its offset, when its line is due
                _, _, values = decode_record(value)
                check_broker_epoch(values["brokerId"], values["brokerEpoch"], snapshot.end_offset, batch.place)


def paths_of(path: Path) -> list[Path]:
    """What a path stands for: itself, or a directory's snapshots and segments by offset.

    bootstrap.checkpoint counts only where there is neither, as for the controller itself.
    """
    if not path.exists():
        raise MetadataFileError("there is no such file or directory", where=str(path))
    if not path.is_dir():
        return [path]
    files = find(path)
    paths = [snapshot.path for snapshot in files.snapshots] + [segment.path for segment in files.segments]
    return paths or [entry for entry in (files.bootstrap,) if entry is not None]


def dump_lines(paths: Iterable[Path], *, show_secrets: bool) -> Iterator[str]:
    for path in paths:
        for file in paths_of(path):
            yield from file_lines(file, show_secrets=show_secrets)
