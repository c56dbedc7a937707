"""Small index kinds for tests: one that is sound, and some that fail in one way each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fuse_index.plugin import ALL, NONE, SOME, Ballot, IndexKind, Pack, Probe, Reason, Refusal, Sidecar
from fuse_index.predicate import Compare, Literal


@dataclass(frozen=True)
class Chosen:
    limit: int = 100
    share: float = 0.5
    words: tuple[str, ...] = ()


class Values(IndexKind):
    """All values of a block in its payload, how many in its summary; counts of what it built, by block."""

    name = "values"
    Options = Chosen

    def accepts(self, inputs: Sequence[Any], options: Any) -> Refusal | None:
        nested = [given for given in inputs if pa.types.is_nested(given.type)]
        return Refusal(Reason.TYPE_MISMATCH, f"cannot list values of {nested[0].type}") if nested else None

    def summary_type(self, inputs: Sequence[Any], options: Any) -> pa.DataType:
        return pa.int64()

    def build(self, rows: pa.Table, zones: Any, options: Any) -> Sidecar:
        values = rows.column(0).drop_null().unique()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, pa.schema([("value", values.type)])) as stream:
            stream.write_table(pa.table({"value": values}))
        return Sidecar(len(values), bytes(sink.getvalue()))

    def compile(self, what: Any, inputs: Any, options: Any, context: Any) -> Probe | Refusal:
        if (
            isinstance(what, Compare)
            and what.operator == "="
            and what.left == inputs[0].term
            and isinstance(what.right, Literal)
        ):
            return Probe(what.right.value, cost=10.0)
        return Refusal(Reason.LEAF_UNSUPPORTED, "values answers =")

    def probe(self, probe: Probe, batch: Any) -> Ballot:
        votes = []
        for unit in range(len(batch)):
            payload = batch.payload(unit)
            (data,) = payload.read([(0, payload.size)])
            held = pa.ipc.open_stream(data).read_all().column("value").to_pylist()
            votes.append(NONE if probe.what not in held else ALL if len(held) == 1 else SOME)
        return Ballot(np.array(votes, np.uint8))


class Greatest(IndexKind):
    """The greatest value of a block, rolled up over segments; no payload."""

    name = "greatest"

    def summary_type(self, inputs: Any, options: Any) -> pa.DataType:
        return pa.int64()

    def build(self, rows: pa.Table, zones: Any, options: Any) -> Sidecar:
        return Sidecar(int(np.max(rows.column(0).to_numpy(), initial=-(1 << 62))))

    def roll_up(self, summaries: pa.Array) -> pa.Scalar | None:
        return None if summaries.null_count else pa.scalar(max(summaries.to_pylist()), pa.int64())

    def compile(self, what: Any, inputs: Any, options: Any, context: Any) -> Probe | Refusal:
        if isinstance(what, Compare) and what.operator == ">" and what.left == inputs[0].term:
            return Probe(what.right.value)
        return Refusal(Reason.LEAF_UNSUPPORTED, "greatest answers >")

    def probe(self, probe: Probe, batch: Any) -> Ballot:
        return Ballot(
            np.array(
                [SOME if one is None or one > probe.what else NONE for one in batch.summaries.to_pylist()], np.uint8
            )
        )


class Raises(Values):
    name = "raises"

    def build(self, rows: pa.Table, zones: Any, options: Any) -> Sidecar:
        raise ValueError("no such luck")


class Exits(Values):
    name = "exits"

    def build(self, rows: pa.Table, zones: Any, options: Any) -> Sidecar:
        raise SystemExit("leaving")


class WrongSummary(Values):
    name = "wrong_summary"

    def build(self, rows: pa.Table, zones: Any, options: Any) -> Sidecar:
        return Sidecar("many", b"")


class WrongPayload(Values):
    name = "wrong_payload"

    def build(self, rows: pa.Table, zones: Any, options: Any) -> Sidecar:
        return Sidecar(1, "text")  # type: ignore[arg-type]


class NoSidecar(Values):
    name = "no_sidecar"

    def build(self, rows: pa.Table, zones: Any, options: Any) -> Sidecar:
        return None  # type: ignore[return-value]


class PackRaises(Values):
    name = "pack_raises"

    def pack(self, sidecars: Sequence[Sidecar]) -> Pack:
        raise ValueError("no room")


class PackTooShort(Values):
    name = "pack_too_short"

    def pack(self, sidecars: Sequence[Sidecar]) -> Pack:
        whole = Pack.concatenate(sidecars)
        return Pack(whole.data, whole.chunk, whole.summaries[1:], whole.spans[1:])


class PackBeyond(Values):
    name = "pack_beyond"

    def pack(self, sidecars: Sequence[Sidecar]) -> Pack:
        whole = Pack.concatenate(sidecars)
        return Pack(whole.data, whole.chunk, whole.summaries, [(5, len(whole.data))] * len(sidecars))


class RollUpRaises(Greatest):
    name = "roll_up_raises"

    def roll_up(self, summaries: pa.Array) -> pa.Scalar | None:
        raise ValueError("too much")


class RollUpWrong(Greatest):
    name = "roll_up_wrong"

    def roll_up(self, summaries: pa.Array) -> pa.Scalar | None:
        return pa.scalar("all of it")


class Lies(Values):
    """Says that no row ever matches."""

    name = "lies"

    def probe(self, probe: Probe, batch: Any) -> Ballot:
        return Ballot(np.full(len(batch), NONE, np.uint8))


FAILING = (Raises, Exits, WrongSummary, WrongPayload, NoSidecar, PackRaises, PackTooShort, PackBeyond)
"""Kinds of which no block ever is indexed."""
