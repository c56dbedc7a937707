"""The rows of each value, as roaring bitmaps: =, <>, IN, NOT IN and ranges on columns of few values, by the row.

The summary of a block lists its values and the length of each bitmap; the payload has the bitmaps one after the other,
that of NULL first. A query reads those of the values that it wants, or of those that it does not, whichever are fewer.
"""

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from fuse_index.plugin import (
    ALL,
    NONE,
    SOME,
    Ballot,
    Conjunction,
    Corrupt,
    IndexKind,
    Probe,
    Reason,
    Refusal,
    Sidecar,
    ValueSet,
    hookimpl,
)

NULL = 4
"""The vote on a row whose value is NULL: a condition is NULL there, and so is its opposite."""
TYPES = (pa.bool_(), pa.int64(), pa.string())
LONGEST_TEXT = 16


@dataclass(frozen=True)
class RoaringOptions:
    most: int = 40
    """A block with more values is not indexed: its summary would be too long."""

    def __post_init__(self):
        if self.most < 1:
            raise ValueError(f"most is {self.most}, and a block has at least one value")


class Roaring(IndexKind):
    """The rows of each value of a block, where these are few."""

    name = "roaring"
    Options = RoaringOptions

    def accepts(self, inputs, options):
        if len(inputs) == 1 and inputs[0].type in TYPES:
            return None
        return Refusal(Reason.TYPE_MISMATCH, f"roaring is on one column of {', '.join(map(str, TYPES))}")

    def summary_type(self, inputs, options):
        return pa.struct([("values", pa.list_(inputs[0].type)), ("lengths", pa.list_(pa.int32()))])

    def build(self, rows, zones, options):
        encoded = rows.column(0).combine_chunks().dictionary_encode()
        values = encoded.dictionary.to_pylist()
        if len(values) > options.most or any(isinstance(one, str) and len(one) > LONGEST_TEXT for one in values):
            return Sidecar({"values": None, "lengths": None})
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        bitmaps = [BitMap(np.flatnonzero(codes == code).astype(np.uint32)) for code in range(-1, len(values))]
        data = [bitmap.serialize() for bitmap in bitmaps]
        return Sidecar({"values": values, "lengths": [len(one) for one in data]}, b"".join(data))

    def compile(self, what, inputs, options, context):
        if isinstance(what, Conjunction):
            return Probe(what.domain(inputs[0].term), cost=1000.0)
        term = getattr(what, "left", getattr(what, "term", None))
        wanted = ValueSet.of(what) if term == inputs[0].term else None
        if wanted is None:
            return Refusal(Reason.LEAF_UNSUPPORTED, "roaring judges comparisons, IN and ranges of its column")
        return Probe(wanted, cost=1000.0)

    def probe(self, probe, batch):
        bits, rows = np.full(len(batch), SOME, np.uint8), {}
        for unit, summary in enumerate(batch.summaries.to_pylist()):
            if summary is not None and summary["values"] is not None:
                count = int(batch.row_counts[unit])
                rows[unit] = votes_on_rows(probe.what, summary, batch.payload(unit), count)
                bits[unit] = np.bitwise_or.reduce(rows[unit])
        return Ballot(bits, rows)

    def inspect(self, batch, options):
        known = [one["values"] for one in batch.summaries.to_pylist() if one is not None]
        return {"blocks of too many values": sum(values is None for values in known)}


def votes_on_rows(wanted, summary, payload, count):
    """The vote on each row of a block: uint8, shape (count,)."""
    held = [wanted.contains(value) for value in summary["values"]]
    ends = [*accumulate(summary["lengths"])]
    if len(ends) != len(held) + 1 or min(summary["lengths"]) < 0 or payload is None or ends[-1] > payload.size:
        raise Corrupt(f"bitmaps of {len(held)} values are to end at {ends[-1:]}")
    fewer = sum(held) * 2 <= len(held)
    asked = [0, *(number for number, is_held in enumerate(held, 1) if is_held == fewer)]
    spans = [(ends[number] - summary["lengths"][number], summary["lengths"][number]) for number in asked]
    null, *bitmaps = [rows_of(data, count) for data in payload.read(spans)]
    votes = np.full(count, NONE if fewer else ALL, np.uint8)
    for bitmap in bitmaps:
        votes[bitmap] = ALL if fewer else NONE
    votes[null] = NULL
    return votes


def rows_of(data, count):
    """The rows of a bitmap: int64, ascending, each below ``count``."""
    try:
        rows = BitMap.deserialize(data)
    except ValueError as error:
        raise Corrupt(f"this is no roaring bitmap: {error}") from error
    if rows and rows.max() >= count:
        raise Corrupt(f"a bitmap has row {rows.max()} of {count}")
    return np.array(rows.to_array(), np.int64)


@hookimpl
def fuse_index_kinds():
    return [Roaring]
