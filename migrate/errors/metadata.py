"""Errors of bytes: wire format, record batches, metadata files."""

from __future__ import annotations

from migrate.errors.base import InputError


class DecodeError(InputError):
    """Bytes are not what Kafka's format says: cut short, a lying length, a trailing rest."""

    id = "E-WIRE-01"
    hint = "the bytes were damaged or come from another release; read them again from another node"


class EncodeError(InputError):
    """Values do not fit the message that they are meant for."""

    id = "E-WIRE-02"
    hint = "this is most likely a fault of kraft-migrate: keep the message and report it"


class UnknownSchemaError(DecodeError):
    """A record or message of a type or version that our tables do not have."""

    id = "E-WIRE-03"
    hint = "it was written by another release than Kafka 3.9: use a release of kraft-migrate that knows it"


class BatchError(DecodeError):
    """A record batch contradicts itself: its magic, counts, offsets or attributes."""

    id = "E-BATCH-01"
    hint = "the file or answer is damaged: read the metadata of another controller"


class BatchCutError(BatchError):
    """The bytes end inside a record batch."""

    id = "E-BATCH-02"
    hint = "copy the file again after its process has stopped, or read the metadata of another controller"


class BatchCrcError(BatchError):
    """A record batch's CRC-32C does not match its bytes."""

    id = "E-BATCH-03"
    hint = "the file is damaged: read the metadata of another controller"


class MetadataFileError(InputError):
    """A path holds no KRaft metadata, or a file there cannot be read as what its name says."""

    id = "E-KRAFT-01"
    hint = "give a .log, a .checkpoint, or a controller's metadata directory"


class SnapshotError(InputError):
    """A metadata snapshot lacks its header or footer, or disagrees with its name: it is not whole."""

    id = "E-KRAFT-02"
    hint = "copy the snapshot again, or use another controller's"


class ReplayError(InputError):
    """Metadata records contradict those before them: a gap, an unknown topic or broker, a broken transaction."""

    id = "E-KRAFT-03"
    hint = "read the metadata from its beginning again (from the active controller)"


class MetadataDiverges(InputError):
    """Metadata directories contradict each other: other epochs, other records or another cluster at one place."""

    id = "E-KRAFT-04"
    hint = "give the directories of a majority of one quorum's controllers, or one directory alone to look at it"


class OffsetNotThere(InputError):
    """The metadata at hand does not hold the offset that was asked for, or does not hold it as proven."""

    id = "E-KRAFT-05"
    hint = "ask for an offset within the metadata at hand, or add the directories of more controllers"


class ExportRefused(InputError):
    """The folder for an export holds something already, or cannot be written."""

    id = "E-KRAFT-06"
    hint = "name a folder that does not exist yet; nothing is ever overwritten"
