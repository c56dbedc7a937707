"""Substrings by trigrams: a text holds ``timeout`` only where it holds ``tim``, ``ime``, ``meo``, ``eou`` and ``out``.

The payload of a block is the sorted set of all three bytes that stand together in a text of it, as numbers of 24 bits.
A block that lacks one of those of a pattern cannot match. UTF-8 is cut between bytes, which is right: a text holds
another where its bytes do.
"""

from functools import partial

import numpy as np
import pyarrow as pa

from fuse_index.plugin import (
    NONE,
    SOME,
    Ballot,
    Corrupt,
    IndexKind,
    LikePattern,
    Probe,
    Reason,
    Refusal,
    Sidecar,
    hookimpl,
)
from fuse_index.predicate import Contains, EndsWith, Like, Literal, StartsWith

BYTES_OF_A_TYPICAL_PAYLOAD = 200_000.0
"""The cost of a vote: as much is read of a block, whatever is asked."""


class Trigram(IndexKind):
    """The three bytes that stand together in the texts of a block."""

    name = "trigram"

    def accepts(self, inputs, options):
        if [given.type for given in inputs] == [pa.string()]:
            return None
        return Refusal(Reason.TYPE_MISMATCH, "trigram is on one column of text")

    def summary_type(self, inputs, options):
        return pa.int64()  # how many there are: without any, nothing need be read

    def build(self, rows, zones, options):
        found = trigrams(rows.column(0))
        return Sidecar(len(found), found.tobytes() if len(found) else None)

    def compile(self, what, inputs, options, context):
        texts = required_texts(what, inputs[0].term)
        wanted = trigrams(pa.array(texts, pa.string())) if texts else np.zeros(0, np.uint32)
        if not len(wanted):
            return Refusal(Reason.LEAF_UNSUPPORTED, "trigram judges patterns with three bytes together that are known")
        return Probe(wanted.tolist(), cost=BYTES_OF_A_TYPICAL_PAYLOAD)

    def probe(self, probe, batch):
        wanted = np.array(probe.what, np.uint32)
        votes = np.full(len(batch), SOME, np.uint8)
        for unit, count in enumerate(batch.summaries.to_pylist()):
            if count == 0:
                votes[unit] = NONE
            elif count is not None and (payload := batch.payload(unit)) is not None:
                held = payload.decoded((0, payload.size), partial(as_numbers, count), lambda numbers: numbers.nbytes)
                votes[unit] = SOME if np.isin(wanted, held, assume_unique=True).all() else NONE
        return Ballot(votes)

    def inspect(self, batch, options):
        counts = [count for count in batch.summaries.to_pylist() if count is not None]
        return {"trigrams": sum(counts), "most in a block": max(counts, default=0)}


def required_texts(what, term):
    """Texts that stand in every text on which the condition is TRUE; None where it is not on this term."""
    match what:
        case Contains(own, Literal(text)) | StartsWith(own, Literal(text)) | EndsWith(own, Literal(text)) if (
            own == term
        ):
            return [text]
        case Like(own, Literal(pattern), escape) if own == term:
            return list(LikePattern.parse(pattern, escape).texts)
    return None


def trigrams(texts):
    """The trigrams of all texts, each once, ascending: uint32, shape (how many there are,)."""
    known = texts.drop_null().cast(pa.large_binary())
    known = known.combine_chunks() if isinstance(known, pa.ChunkedArray) else known
    lengths = pa.compute.binary_length(known).to_numpy(zero_copy_only=False).astype(np.int64)
    joined = np.frombuffer(b"".join(known.to_pylist()), np.uint8).astype(np.uint32)
    if len(joined) < 3:
        return np.zeros(0, np.uint32)
    ends = np.repeat(np.cumsum(lengths), lengths)  # for each byte, where its text ends
    within = np.arange(len(joined) - 2) + 2 < ends[:-2]
    return np.unique((joined[:-2] << 16 | joined[1:-1] << 8 | joined[2:])[within])


def as_numbers(count, data):
    """The trigrams of a payload, if it holds as many as its summary says."""
    if len(data) != 4 * count:
        raise Corrupt(f"{len(data)} bytes for {count} trigrams of four bytes each")
    return np.frombuffer(data, np.uint32)


@hookimpl
def fuse_index_kinds():
    return [Trigram]
