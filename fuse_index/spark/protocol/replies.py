"""What Python answers Spark's JVM, as values, and the bytes of each: big-endian, JSON where members have names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.aggregates.sketches import to_spark_sketches
from fuse_index.pruning.explanation import Explanation
from fuse_index.query.aggregate import AggregatePlan

_MAX_INT = (1 << 31) - 1


class KeptPlan(Protocol):
    """The plan that was made for an answer, and how many bytes it keeps in memory."""

    @property
    def nbytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class PruneReply:
    """What a scan must read.

    ``block_mask``: bool, shape (n,), True for each of the snapshot's n blocks to read. ``ranges``: int64, shape (k, 3):
    a block, and the first byte and the number of bytes of zones of it to read; a block without a range is read whole.
    ``certain_rows``: so many rows at least the filters are true on. ``named_rows``: how many rows they may be true on,
    where votes name those one by one; else None. ``plan`` stays in Python: by which the rows may be read next.
    """

    block_mask: npt.NDArray[np.bool_]
    explanation: Explanation
    ranges: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    certain_rows: int = 0
    named_rows: int | None = None
    plan: KeptPlan | None = None

    def encode(self) -> bytes:
        """The mask, as ``encode_mask`` gives it, six ints, and three longs for each range.

        The ints: how many zones are read, how many there are, how many rows match for certain, how many are named,
        whether a fault spoiled votes, and how many ranges follow.
        """
        zones = self.explanation.zones
        certain_rows = min(self.certain_rows, _MAX_INT)
        named_rows = _MAX_INT if self.named_rows is None else min(self.named_rows, _MAX_INT)
        doubtful = self.explanation.faulty  # the JVM remembers other replies, as long as it has room
        counts = np.array([zones.kept, zones.total, certain_rows, named_rows, doubtful, len(self.ranges)])
        ranges = np.ascontiguousarray(self.ranges.astype(">i8")).tobytes()
        return encode_mask(self.block_mask) + counts.astype(">i4").tobytes() + ranges


@dataclass(frozen=True, slots=True)
class AggregateReply:
    """What is known of an aggregate without reading rows, and what is left to scan.

    ``scan_mask``: bool, shape (n,), True for each of the snapshot's n blocks whose rows Spark must still add up.
    ``states``: an Arrow stream of the states of all others; its columns are the groups, then the parts of each
    aggregate in turn. None where nothing is answered.
    """

    scan_mask: npt.NDArray[np.bool_]
    states: bytes | None
    explanation: Explanation

    def encode(self) -> bytes:
        """The mask, as ``encode_mask`` gives it, and the states; byte 0 alone where there are none.

        Where a fault spoiled it, so that who asks again may be luckier, the first byte is 2, or says so behind byte 0.
        """
        doubtful = self.explanation.faulty
        if self.states is None:
            return b"\0a fault spoiled it" if doubtful else b"\0"
        mask = encode_mask(self.scan_mask)
        return (b"\2" + mask[1:] if doubtful else mask) + self.states


@dataclass(frozen=True, slots=True)
class RefreshReply:
    """A newer snapshot of the same schema, and its files as ``pack_file_listing`` gives them."""

    snapshot_id: str
    file_listing: bytes

    def encode(self) -> bytes:
        """Byte 1, the length of the id in a byte, the id and the files."""
        snapshot_id = self.snapshot_id.encode()
        return bytes([1, len(snapshot_id)]) + snapshot_id + self.file_listing


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """What the JVM reads as JSON, its members by their names."""

    def encode(self) -> bytes:
        return msgspec.json.encode(self)


class ScanDescription(Description, frozen=True, kw_only=True):
    """A snapshot but for its files, as ``TableSnapshot.java`` reads it.

    ``schema``, ``stored``: Spark's JSON of the columns, in the names of queries and in those of files; ``declared``: as
    statements made them, where that is otherwise. ``unpushable``: paths, in stored names, on which Parquet must not
    filter. ``whole``: columns of which all fields must be read. ``by_id``: files are read by field ids.
    """

    callback: str
    url: str
    branch: str
    mode: str
    snapshot: str
    schema: dict[str, Any]
    stored: dict[str, Any]
    unpushable: Sequence[tuple[str, ...]]
    whole: Sequence[str]
    by_id: bool
    declared: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class TableDescription(ScanDescription, frozen=True, kw_only=True):
    """A table of a catalogue, as ``CatalogFuseTable.java`` reads it.

    ``cluster_by``, ``partition_by``: columns, as SQL names them. ``indexes``: their names. ``place``: options of
    ``format("fuse")``. ``staged``: the number of a table that has no name yet. ``read_only``: why rows of it cannot be
    changed.
    """

    properties: Mapping[str, str]
    cluster_by: Sequence[str]
    partition_by: Sequence[str]
    indexes: Sequence[str]
    place: Mapping[str, str]
    staged: str | msgspec.UnsetType = msgspec.UNSET
    read_only: str | msgspec.UnsetType = msgspec.UNSET


class MetadataDescription(Description, frozen=True, kw_only=True):
    """A view of a table's metadata, as ``MetadataTable.java`` reads it. ``shown``: the name of the table."""

    view: str
    at: str | int | None
    shown: str


class VotedColumn(msgspec.Struct, frozen=True):
    """A column of an indexed source that is in files what the source's reader takes it for."""

    name: str
    id: int


class SourceIndexDescription(Description, frozen=True, kw_only=True):
    """A table that votes on files of a source, as ``SourceIndex.java`` reads it.

    ``by_time``: a file may be written anew under the same path. ``changed``: numbers of blocks of which rows were
    deleted here, which are still the source's.
    """

    scan: ScanDescription
    source: str
    by_time: bool
    columns: Sequence[VotedColumn]
    changed: Sequence[int]


class ProcedureParameter(msgspec.Struct, frozen=True, kw_only=True):
    """What a procedure takes. ``default``: SQL; unset for what must be given."""

    name: str
    type: str
    comment: str
    default: str | msgspec.UnsetType = msgspec.UNSET


class ProcedureDescription(Description, frozen=True, kw_only=True):
    """A procedure, as ``FuseProcedure.java`` reads it."""

    description: str
    parameters: Sequence[ProcedureParameter]


@dataclass(frozen=True, slots=True)
class Framed:
    """A description, and the files or rows that it is about."""

    description: Description
    body: bytes

    def encode(self) -> bytes:
        """The length of the description as an int, the description, and the rest."""
        text = self.description.encode()
        return len(text).to_bytes(4, "big") + text + self.body


def encode_mask(mask: npt.NDArray[np.bool_]) -> bytes:
    """Byte 1, the number of blocks as an int, and a bit for each, the lowest first.

    ``mask``: bool, shape (n,), for n blocks.

    >>> encode_mask(np.array([True, False, True])).hex(" ")
    '01 00 00 00 03 05'
    """
    return b"\1" + len(mask).to_bytes(4, "big") + np.packbits(mask, bitorder="little").tobytes()


def encode_states(plan: AggregatePlan, unscaled: Sequence[bool]) -> bytes:
    """The states as one batch: the groups, then the parts of each aggregate in turn.

    ``unscaled``, for each aggregate: whether Spark adds up its decimals as whole numbers, without their point.
    """
    group_columns = len(plan.request.groups)
    columns = plan.states.columns[:group_columns]
    column_of_part = dict(zip(plan.request.parts, plan.states.columns[group_columns:], strict=True))
    for aggregate, is_unscaled in zip(plan.request.aggregates, unscaled, strict=True):
        parts = [column_of_part[part] for part in aggregate.parts]
        if is_unscaled:
            parts[0] = _unscaled_digits(parts[0]).cast(
                pa.float64() if aggregate.function == "avg" else pa.int64(), safe=False
            )
        if aggregate.function == "hll_sketch_agg":  # of a union there may be none, which Spark is to know
            parts[0] = to_spark_sketches(parts[0])
        columns += parts
    names = [f"column{number}" for number in range(len(columns))]
    batch = pa.record_batch([column.combine_chunks() for column in columns], names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _unscaled_digits(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decimals of at most 18 digits without their point, as int64, of the same length."""
    return pc.multiply(values, pa.scalar(Decimal(10) ** values.type.scale)).cast(pa.int64())
