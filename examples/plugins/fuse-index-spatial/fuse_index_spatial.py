"""Geometries by their boxes: ``st_intersects(shape, 'POLYGON (…)')`` on shapes in well-known binary, by the row.

The summary of a block is the box around its shapes. The payload has a box for each row, in floats that are rounded
outwards, and behind them a byte that is 1 where the row is NULL. What a row's box does not meet, the row does not.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import shapely

from fuse_index.plugin import (
    NONE,
    SOME,
    Ballot,
    Corrupt,
    Function,
    IndexKind,
    Probe,
    Reason,
    Refusal,
    Sidecar,
    hookimpl,
)
from fuse_index.predicate import Call, Literal

NULL = 4
"""The vote on a row without a shape: a condition is NULL there, and so is its opposite."""
NOWHERE = (np.inf, np.inf, -np.inf, -np.inf)
"""The box of an empty shape, and of bytes that are none: it meets no other."""
BYTES_OF_ROW = 4 * 4 + 1


@dataclass(frozen=True)
class SpatialOptions:
    """There is nothing to choose."""


class Spatial(IndexKind):
    """The box of each row's shape."""

    name = "spatial"
    Options = SpatialOptions

    def accepts(self, inputs, options):
        if len(inputs) == 1 and inputs[0].type == pa.binary():
            return None
        return Refusal(Reason.TYPE_MISMATCH, "spatial is on one column of BINARY that has shapes as well-known binary")

    def summary_type(self, inputs, options):
        return pa.struct([("box", pa.list_(pa.float32()))])

    def build(self, rows, zones, options):
        nulls, boxes = boxes_of(rows.column(0))
        around = [*boxes[:, :2].min(axis=0, initial=np.inf), *boxes[:, 2:].max(axis=0, initial=-np.inf)]
        return Sidecar({"box": [float(each) for each in around]}, boxes.tobytes() + nulls.tobytes())

    def compile(self, what, inputs, options, context):
        match what:
            case Call("st_intersects", (term, Literal(str() as text))) if term == inputs[0].term:
                return Probe(tuple(shapely.from_wkt(text).bounds), cost=1000.0)
        return Refusal(Reason.LEAF_UNSUPPORTED, "spatial judges st_intersects of its column and a constant shape")

    def probe(self, probe, batch):
        bits, rows = np.full(len(batch), SOME, np.uint8), {}
        for unit, summary in enumerate(batch.summaries.to_pylist()):
            if summary is None:
                continue
            if len(summary["box"]) != 4:
                raise Corrupt(f"a box of {len(summary['box'])} numbers")
            if not meets(np.array([summary["box"]]), probe.what)[0]:
                bits[unit] = NONE
                continue
            rows[unit] = votes_on_rows(probe.what, batch.payload(unit), int(batch.row_counts[unit]))
            bits[unit] = np.bitwise_or.reduce(rows[unit], initial=0)
        return Ballot(bits, rows)


def shapes_of(values):
    """The shapes of a column; None for NULL, for bytes that are none, and where a coordinate is no number."""
    with np.errstate(invalid="ignore"):
        found = shapely.from_wkb(np.array(values.to_pylist(), object), on_invalid="ignore")
    coordinates, owners = shapely.get_coordinates(found, return_index=True)
    found[owners[~np.isfinite(coordinates).all(axis=1)]] = None
    return found


def boxes_of(values):
    """NULLs, and the box of each row (west, south, east, north), float32, shape (rows, 4)."""
    exact = shapely.bounds(shapes_of(values))
    exact[np.isnan(exact).any(axis=1)] = NOWHERE
    with np.errstate(over="ignore"):  # beyond the largest float is infinity
        boxes = exact.astype(np.float32)
        low, high = np.nextafter(boxes, np.float32(-np.inf)), np.nextafter(boxes, np.float32(np.inf))
    boxes[:, :2] = np.where(boxes[:, :2] > exact[:, :2], low[:, :2], boxes[:, :2])
    boxes[:, 2:] = np.where(boxes[:, 2:] < exact[:, 2:], high[:, 2:], boxes[:, 2:])
    return values.is_null().to_numpy(zero_copy_only=False), boxes


def meets(boxes, wanted):
    """Whether each box meets the one that is wanted; never, if that is nowhere."""
    west, south, east, north = np.array(wanted, np.float64)  # a float of Python's would be rounded to the boxes'
    return (boxes[:, 0] <= east) & (boxes[:, 2] >= west) & (boxes[:, 1] <= north) & (boxes[:, 3] >= south)


def votes_on_rows(wanted, payload, count):
    """The vote on each row of a block: uint8, shape (count,)."""
    if payload is None or payload.size != count * BYTES_OF_ROW:
        raise Corrupt(f"boxes of {count} rows are not what there is")
    data = payload.decoded((0, payload.size), bytes, len)
    boxes = np.frombuffer(data, np.float32, count * 4).reshape(count, 4)
    votes = np.where(meets(boxes, wanted), np.uint8(SOME), np.uint8(NONE))
    votes[np.frombuffer(data, np.bool_, count, count * 16)] = NULL
    return votes


def st_intersects(shapes, other):
    """Whether a shape and another have a point in common; bytes that are no shape, or not of numbers, have none."""
    if isinstance(shapes, pa.Scalar):
        shapes = pa.repeat(shapes, len(other))
    found = shapes_of(shapes)
    if isinstance(other, pa.Scalar):
        wanted = shapely.from_wkt(other.as_py())
        shapely.prepare(wanted)
        absent = shapes.is_null()
    else:
        wanted = shapely.from_wkt(np.array(other.to_pylist(), object))
        absent = pa.compute.or_(shapes.is_null(), other.is_null())
    met = shapely.intersects(wanted, found)
    return pa.array(met, pa.bool_(), mask=absent.to_numpy(zero_copy_only=False))


def check_shape(shape, other):
    """Raise ValueError for text that is no shape, or has coordinates that are no numbers."""
    try:
        wanted = shapely.from_wkt(other)
    except shapely.errors.GEOSException as problem:
        raise ValueError(f"{other!r} is no shape in well-known text: {str(problem).strip()}") from None
    if not np.isfinite(shapely.get_coordinates(wanted)).all():
        raise ValueError(f"{other!r} has coordinates that are no numbers")


ST_INTERSECTS = Function(
    "st_intersects", (pa.binary(), pa.string()), st_intersects, constants=frozenset([1]), check=check_shape
)


@hookimpl
def fuse_index_kinds():
    return [Spatial]


@hookimpl
def fuse_index_functions():
    return [ST_INTERSECTS]
