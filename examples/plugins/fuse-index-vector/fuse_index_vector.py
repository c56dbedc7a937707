"""The nearest vectors: ``ORDER BY l2_distance(v, …) LIMIT 10``, exact, or by a graph where less than all will do.

Those within a distance, too: ``l2_distance(v, …) < 3`` leaves out blocks by the balls around their vectors.

The payload of a block is its vectors as they are, a row after the other, and behind them a graph of those that are
whole. An exact ranking measures every vector. An approximate one walks through the graph, and measures what it found by
the vectors, so that a score is the same by both. The summary has a ball around all vectors: no row is nearer than it.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from usearch.index import Index

from fuse_index.plugin import (
    ALL,
    NONE,
    SOME,
    Ballot,
    Conjunction,
    Corrupt,
    Function,
    IndexKind,
    Probe,
    Reason,
    Refusal,
    Sidecar,
    ValueSet,
    hookimpl,
)
from fuse_index.predicate import Call, Literal

NUMBERS = {pa.float32(): np.dtype(np.float32), pa.float64(): np.dtype(np.float64)}
EFFORTS = {0.9: 128, 0.95: 256, 0.99: 768}
"""By recall: how many rows a walk keeps in sight. Chosen with room to spare; the tests judge it by the rows."""
ROWS_AT_ONCE = 4096
FEW_ROWS = 5000
"""Rows up to which each is measured: a graph would not be faster."""
FEW_FOUND = 256
"""Rows that a walk found and whose vectors are read by themselves: so graphs alone need stay in memory."""
LEAST, GREATEST = 1e-150, 1e150
"""Distances whose squares are numbers that a double holds in full."""


@dataclass(frozen=True)
class VectorOptions:
    dimensions: int = 64
    neighbours: int = 16
    """Edges of a row in the graph."""

    def __post_init__(self):
        if not 1 <= self.dimensions <= 4096 or not 2 <= self.neighbours <= 128:
            raise ValueError("dimensions are 1 to 4,096, and neighbours 2 to 128")


@dataclass(frozen=True)
class Wanted:
    """``effort``: of a walk through graphs; 0 measures every row."""

    vector: tuple[float, ...]
    size: int
    effort: int = 0


@dataclass(frozen=True)
class Within:
    """``distances`` from ``vector``: which ones are wanted."""

    vector: tuple[float, ...]
    distances: ValueSet


class Vector(IndexKind):
    """The vectors of a block, and a graph over them."""

    name = "vector"
    Options = VectorOptions
    searches = "l2_distance"
    best = "least"

    def accepts(self, inputs, options):
        if len(inputs) == 1 and pa.types.is_list(inputs[0].type) and inputs[0].type.value_type in NUMBERS:
            return None
        return Refusal(Reason.TYPE_MISMATCH, "vector is on one column of ARRAY<FLOAT> or ARRAY<DOUBLE>")

    def summary_type(self, inputs, options):
        return pa.struct(
            [("vectors", pa.int64()), ("graph", pa.int64()), ("middle", pa.binary()), ("radius", pa.float64())]
        )

    def build(self, rows, zones, options):
        vectors = matrix(rows.column(0), options.dimensions, NUMBERS[rows.column(0).type.value_type])
        whole = np.flatnonzero(~np.isnan(vectors).any(axis=1))
        if not len(whole):
            return Sidecar({"vectors": 0, "graph": 0, "middle": b"", "radius": 0.0})
        with np.errstate(over="ignore", invalid="ignore"):  # a ball that is not finite holds any vector
            middle = vectors[whole].mean(axis=0, dtype=np.float64).astype(np.float32)
        radius = float(measure(vectors[whole], middle.astype(np.float64)).max())
        graph = graph_of(vectors, whole, options) if len(whole) > FEW_ROWS else b""
        summary = {"vectors": len(whole), "graph": len(graph), "middle": middle.tobytes(), "radius": radius}
        return Sidecar(summary, vectors.tobytes() + graph)

    def compile(self, what, inputs, options, context):
        if isinstance(what, Conjunction):
            term, distances = what.domains[0]
        else:
            term, distances = getattr(what, "left", getattr(what, "term", None)), ValueSet.of(what)
        match term:
            case Call(self.searches, (one, other, *_)) if inputs[0].term in (one, other):
                column, wanted = (one, other) if one == inputs[0].term else (other, one)
                term = Call(self.searches, (column, constant(wanted)))
            case _:
                return Refusal(Reason.LEAF_UNSUPPORTED, "vector judges distances of its column from a constant vector")
        found = self._compile(term, inputs, options, 0, 1.0)
        if isinstance(found, Refusal):
            return found
        if distances is None or not np.isfinite(found.what.vector).all():
            return Refusal(Reason.LEAF_UNSUPPORTED, "vector compares a distance from finite numbers with constants")
        return Probe(Within(found.what.vector, distances))

    def probe(self, probe, batch):
        wanted, bits = probe.what, np.full(len(batch), SOME, np.uint8)
        for unit, summary in enumerate(batch.summaries.to_pylist()):
            if summary is not None:
                met = []
                if summary["vectors"]:
                    met.append(ball(summary, np.array(wanted.vector)))
                if summary["vectors"] < batch.row_counts[unit]:  # the others are NULL, or not whole
                    met.append((np.nan, np.nan))
                if all(wanted.distances.covers(*ends) for ends in met):
                    bits[unit] = ALL
                elif not any(wanted.distances.overlaps(*ends) for ends in met):
                    bits[unit] = NONE
        return Ballot(bits)

    def compile_ranking(self, what, inputs, options, context):
        return self._compile(what, inputs, options, 0, 1.0)

    def compile_approximation(self, what, inputs, options, context, recall):
        known = [each for each in EFFORTS if each >= recall]
        if not known:
            return Refusal(Reason.LEAF_UNSUPPORTED, f"graphs are measured up to a recall of {max(EFFORTS)}")
        return self._compile(what, inputs, options, EFFORTS[known[0]], known[0])

    def _compile(self, what, inputs, options, effort, recall):
        match what.arguments:
            case (term, Literal(list() as vector)) if term == inputs[0].term and None not in vector:
                if len(vector) == options.dimensions:
                    size = NUMBERS[inputs[0].type.value_type].itemsize
                    return Probe(Wanted(tuple(map(float, vector)), size, effort), recall=recall)
                return Refusal(
                    Reason.TYPE_MISMATCH, f"its vectors have {options.dimensions} numbers, not {len(vector)}"
                )
        return Refusal(Reason.LEAF_UNSUPPORTED, "vector ranks its column by a constant vector")

    def gather(self, probe, batch):
        return None  # a distance hangs on no other row

    def merge_statistics(self, parts):
        return None

    def bound(self, probe, statistics, batch):
        wanted, summaries = np.array(probe.what.vector), batch.summaries.to_pylist()
        return np.array([-ball(each, wanted)[0] if each["vectors"] else -np.inf for each in summaries])

    def top(self, probe, statistics, batch, unit, k, among):
        wanted, count = probe.what, int(batch.row_counts[unit])
        summary, payload = batch.summaries[unit].as_py(), batch.payload(unit)
        if summary["vectors"] == 0 or k == 0:
            return np.zeros(0, np.int64), np.zeros(0)
        size = count * len(wanted.vector) * wanted.size
        if payload is None or payload.size != size + summary["graph"]:
            raise Corrupt(f"{count} vectors and a graph of {summary['graph']} bytes are not what there is")
        rows = None if among is None else np.flatnonzero(among)
        if wanted.effort and summary["graph"] and (rows is None or len(rows) > FEW_ROWS):
            graph = payload.decoded((size, summary["graph"]), as_graph, nbytes_of_graph)
            found = walk(graph, wanted, k, summary["vectors"], among, count)
            if len(found) >= min(k, summary["vectors"] if among is None else k):
                rows = np.sort(found)
                if len(rows) <= FEW_FOUND:
                    best, scores = nearest(read_vectors(payload, rows, wanted), None, wanted, k)
                    return rows[best], scores
        numbers = payload.decoded((0, size), as_floats if wanted.size == 4 else as_doubles, nbytes)
        return nearest(numbers.reshape(count, -1), rows, wanted, k)

    def score(self, probe, rows):
        vectors = matrix(rows.column(0), len(probe.what.vector), NUMBERS[rows.column(0).type.value_type])
        distances = measure(vectors, np.array(probe.what.vector))
        return np.where(np.isnan(distances), -np.inf, -distances)


def constant(term):
    """``array(1.0D, 2.0D)`` of a condition as the literal that a search has; another term as it is."""
    match term:
        case Call("array", terms) if all(isinstance(each, Literal) for each in terms):
            return Literal([each.value for each in terms], term.type)
    return term


def matrix(values, dimensions, dtype):
    """The vectors of a column, shape (rows, dimensions); NaN in the place of one that is not whole."""
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    lengths = pc.fill_null(pc.list_value_length(values), -1).to_numpy(zero_copy_only=False)
    flat = values.filter(pa.array(lengths == dimensions)).flatten().cast(pa.from_numpy_dtype(dtype))
    found = np.full((len(values), dimensions), np.nan, dtype)
    found[lengths == dimensions] = flat.to_numpy(zero_copy_only=False).reshape(-1, dimensions)
    return found


def measure(vectors, wanted):
    """The distance of each vector, float64; some rows at a time, so that they stay in the processor's cache."""
    found = np.empty(len(vectors))
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        with np.errstate(over="ignore", invalid="ignore"):  # infinity, and infinity less infinity
            apart = np.subtract(vectors[start : start + ROWS_AT_ONCE], wanted, dtype=np.float64)
            found[start : start + len(apart)] = np.sqrt(np.square(apart, out=apart).sum(axis=1))
    return found


def ball(summary, wanted):
    """How near and how far a whole vector of a block may be, by what is rounded and by what overflows, too."""
    middle = np.frombuffer(summary["middle"], np.float32)
    if len(middle) != len(wanted):
        raise Corrupt(f"a middle of {len(middle)} numbers, for vectors of {len(wanted)}")
    away = float(measure(middle[None].astype(np.float64), wanted)[0])
    slack = 1e-6 * (away + summary["radius"]) + LEAST
    least, greatest = away - summary["radius"] - slack, away + summary["radius"] + slack
    return max(0.0, least), greatest if greatest < GREATEST else np.inf


def read_vectors(payload, rows, wanted):
    """The vectors of these rows, and no others."""
    width = len(wanted.vector) * wanted.size
    data = b"".join(payload.read([(int(row) * width, width) for row in rows]))
    return (as_floats if wanted.size == 4 else as_doubles)(data).reshape(len(rows), -1)


def nearest(vectors, rows, wanted, k):
    """The k nearest of these rows (None: of all), the nearest first, and their scores; of equals, the first."""
    distances = measure(vectors if rows is None else vectors[rows], np.array(wanted.vector))
    known = np.flatnonzero(~np.isnan(distances))
    if len(known) > k:  # all that are as near as the k-th, of which sorting keeps the first
        known = known[distances[known] <= np.partition(distances[known], k - 1)[k - 1]]
    best = known[np.argsort(distances[known], kind="stable")[:k]]
    return best if rows is None else rows[best], -distances[best]


def graph_of(vectors, rows, options):
    graph = Index(ndim=options.dimensions, metric="l2sq", dtype="f32", connectivity=options.neighbours)
    graph.add(rows.astype(np.uint64), vectors[rows].astype(np.float32), threads=1)
    return bytes(graph.save())


def walk(graph, wanted, k, vectors, among, count):
    """Rows that are likely among the k nearest, and among those that are asked for."""
    share = 1.0 if among is None else max(float(among.mean()), 1e-3)
    asked = min(vectors, int(k / share * 1.5) + 8 if share < 1 else k)
    graph.expansion_search = max(wanted.effort, asked)
    rows = graph.search(np.array(wanted.vector, np.float32), asked, threads=1).keys.astype(np.int64)
    if len(rows) and rows.max() >= count:
        raise Corrupt(f"a graph has row {rows.max()} of {count}")
    return rows if among is None else rows[among[rows]]


def as_floats(data):
    return np.frombuffer(data, np.float32)


def as_doubles(data):
    return np.frombuffer(data, np.float64)


def nbytes(numbers):
    return numbers.nbytes


def as_graph(data):
    graph = Index.restore(bytearray(data))
    if graph is None:
        raise Corrupt("this is no graph")
    return graph


def nbytes_of_graph(graph):
    return graph.serialized_length


def l2_distance(one, other, recall=None):
    """How far two vectors are apart."""
    if isinstance(one, pa.Scalar):
        one, other = other, one
    if isinstance(other, pa.Scalar):
        if not other.is_valid:
            return pa.nulls(len(one), pa.float64())
        wanted = np.array([np.nan if each is None else each for each in other.as_py()], np.float64)
        distances = measure(matrix(one, len(wanted), np.dtype(np.float64)), wanted)
        return pa.array(distances, pa.float64(), mask=pc.is_null(one).to_numpy(zero_copy_only=False))
    apart = [
        None if None in (a, b) else distance(a, b) for a, b in zip(one.to_pylist(), other.to_pylist(), strict=True)
    ]
    return pa.array(apart, pa.float64())


def distance(one, other):
    if len(one) != len(other) or None in one or None in other:
        return float("nan")
    return float(measure(np.array([one], np.float64), np.array(other, np.float64))[0])


def check_recall(one, other, recall=None):
    if recall is not None and not 0 < recall <= 1:
        raise ValueError(f"a recall of {recall}: say a share of the nearest, above 0 and at most 1")


L2_DISTANCE = Function(
    "l2_distance",
    (None, None, pa.float64()),
    l2_distance,
    optional=1,
    constants=frozenset([2]),
    check=check_recall,
    returns=pa.float64(),
    recall=2,
)


@hookimpl
def fuse_index_kinds():
    return [Vector]


@hookimpl
def fuse_index_functions():
    return [L2_DISTANCE]
