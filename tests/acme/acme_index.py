"""A stranger's plugin: which remainders of division by ``modulus`` a block's numbers have. One class, one hook."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fuse_index.plugin import NONE, SOME, Ballot, IndexKind, Probe, Reason, Refusal, Sidecar, hookimpl
from fuse_index.predicate import Compare, In, Literal


@dataclass(frozen=True)
class RemainderOptions:
    modulus: int = 2


class Remainder(IndexKind):
    name = "remainder"
    Options = RemainderOptions

    def accepts(self, inputs, options):
        if len(inputs) == 1 and pa.types.is_integer(inputs[0].type):
            return None
        return Refusal(Reason.TYPE_MISMATCH, "remainder is on one column of whole numbers")

    def summary_type(self, inputs, options):
        return pa.list_(pa.int64())

    def build(self, rows, zones, options):
        numbers = rows.column(0).drop_null().to_numpy()
        return Sidecar(np.unique(numbers % options.modulus).tolist())

    def compile(self, what, inputs, options, context):
        match what:
            case Compare("=", left, Literal(value)) if left == inputs[0].term:
                return Probe({value % options.modulus})
            case In(left, values) if left == inputs[0].term:
                return Probe({value.value % options.modulus for value in values})
        return Refusal(Reason.LEAF_UNSUPPORTED, "remainder answers = and IN")

    def probe(self, probe, batch):
        held = batch.summaries.to_pylist()
        return Ballot(np.array([SOME if one is None or probe.what & set(one) else NONE for one in held], np.uint8))


@hookimpl
def fuse_index_kinds():
    return [Remainder]
