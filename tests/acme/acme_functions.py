"""A stranger's functions, and an index that votes on them: ``divides`` needs Python, ``even`` Spark can say, ``alike``
has two columns, and ``remainder`` is no condition.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.plugin import (
    ALL,
    NONE,
    SOME,
    Ballot,
    Function,
    IndexKind,
    Probe,
    Reason,
    Refusal,
    Sidecar,
    ValueSet,
    hookimpl,
)
from fuse_index.predicate import Call, Compare, In, Literal

ALL_REMAINDERS = 840
"""A multiple of many numbers."""


def divides(numbers, divisor):
    """Whether a constant divides a number."""
    whole = divisor.as_py()
    return pa.array([None if number is None else number % whole == 0 for number in numbers.to_pylist()], pa.bool_())


def remainder(numbers, divisor):
    """What is left of a number that is divided by a constant."""
    return pa.array(
        [None if number is None else number % divisor.as_py() for number in numbers.to_pylist()], pa.int64()
    )


def alike(left, right, letters=None):
    """Whether two texts begin alike, by default with one letter."""
    count = 1 if letters is None else letters.as_py()
    return pc.equal(pc.utf8_slice_codeunits(left, 0, count), pc.utf8_slice_codeunits(right, 0, count))


def not_zero(number, divisor):
    if divisor == 0:
        raise ValueError("nothing is divided by 0")


class Remainders(IndexKind):
    """Which remainders the numbers of a block have."""

    name = "remainders"

    def accepts(self, inputs, options):
        return None if inputs[0].type == pa.int64() else Refusal(Reason.TYPE_MISMATCH, "remainders is on a bigint")

    def summary_type(self, inputs, options):
        return pa.list_(pa.int64())

    def build(self, rows, zones, options):
        return Sidecar(np.unique(rows.column(0).drop_null().to_numpy() % ALL_REMAINDERS).tolist())

    def compile(self, what, inputs, options, context):
        match what:
            case Call("even", (term,)) if term == inputs[0].term:
                return Probe((2, None))
            case Call("divides", (term, Literal(divisor))) if term == inputs[0].term and ALL_REMAINDERS % divisor == 0:
                return Probe((divisor, None))
            case Compare(_, call, _) | In(call, _):
                match call:
                    case Call("remainder", (term, Literal(divisor))) if term == inputs[0].term:
                        if ALL_REMAINDERS % divisor == 0 and (wanted := ValueSet.of(what)) is not None:
                            return Probe((divisor, wanted))
        return Refusal(Reason.LEAF_UNSUPPORTED, "remainders answers even(), divides() and remainder()")

    def probe(self, probe, batch):
        divisor, wanted = probe.what

        def vote(held):
            left = set() if held is None else {each % divisor for each in held}
            if held is None or (wanted is None and 0 in left):
                return SOME
            matching = [wanted is not None and wanted.overlaps(each, each) for each in left]
            return ALL if matching and all(matching) else SOME if any(matching) else NONE

        return Ballot(np.array([vote(held) for held in batch.summaries.to_pylist()], np.uint8))


@hookimpl
def fuse_index_kinds():
    return [Remainders]


@hookimpl
def fuse_index_functions():
    return [
        Function("divides", (pa.int64(), pa.int64()), divides, constants=frozenset([1]), check=not_zero),
        Function(
            "even",
            (pa.int64(),),
            lambda numbers: divides(numbers, pa.scalar(2)),
            native=lambda number: f"({number} % 2 = 0)",
        ),
        Function(
            "remainder",
            (pa.int64(), pa.int64()),
            remainder,
            constants=frozenset([1]),
            check=not_zero,
            returns=pa.int64(),
        ),
        Function("alike", (pa.string(), pa.string(), pa.int64()), alike, optional=1, constants=frozenset([2])),
    ]
