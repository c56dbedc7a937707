"""Substrings by trigrams: a text holds ``timeout`` only where it holds ``tim``, ``ime``, ``meo``, ``eou`` and ``out``.

The payload of a block is the sorted set of all three bytes that stand together in a text of it, as numbers of 24 bits.
A block that lacks one of those of a pattern cannot match. UTF-8 is cut between bytes, which is right: a text holds
another where its bytes do.

``RLIKE`` is a call that only kinds like this one judge: texts that must stand in what a regular expression matches are
read off it. ``ILIKE`` comes as ``lower(line) LIKE …``: each trigram is looked for in upper and lower case.
"""

import re
from itertools import product

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
from fuse_index.predicate import Call, Contains, EndsWith, Like, Literal, StartsWith

BYTES_OF_A_TYPICAL_PAYLOAD = 200_000.0
"""The cost of a vote: as much is read of a block, whatever is asked."""
KELVIN_SIGN, DOTTED_I = 0xE284AA, 0xC4B0
"""UTF-8 of the letters beyond ASCII whose small letters have one of ASCII in them: k, and i."""


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
        texts, any_case = required_texts(what, inputs[0].term)
        wanted = trigrams(pa.array(texts, pa.string())).tolist()
        groups = [cases(number) if any_case else (number,) for number in wanted if not any_case or is_ascii(number)]
        if not groups:
            return Refusal(Reason.LEAF_UNSUPPORTED, "trigram judges patterns with three bytes together that are known")
        return Probe((any_case, groups), cost=BYTES_OF_A_TYPICAL_PAYLOAD)

    def probe(self, probe, batch):
        any_case, groups = probe.what
        flat = np.array([number for group in groups for number in group], np.uint32)
        starts = np.cumsum([0, *map(len, groups[:-1])])
        votes = np.full(len(batch), SOME, np.uint8)
        for unit, count in enumerate(batch.summaries.to_pylist()):
            if count == 0:
                votes[unit] = NONE
            elif count is not None and (payload := batch.payload(unit)) is not None:
                held = payload.decoded((0, payload.size), as_numbers, nbytes)
                if len(held) != count:
                    raise Corrupt(f"{len(held)} trigrams, where there are to be {count}")
                if not (any_case and has_rare_capitals(held)):
                    found = contains(held, flat)
                    votes[unit] = SOME if np.logical_or.reduceat(found, starts).all() else NONE
        return Ballot(votes)

    def inspect(self, batch, options):
        counts = [count for count in batch.summaries.to_pylist() if count is not None]
        return {"trigrams": sum(counts), "most in a block": max(counts, default=0)}


def required_texts(what, term):
    """Texts that stand in every text on which the condition is TRUE, and whether in any case; none where not known."""
    either = term, Call("lower", (term,), pa.string())
    match what:
        case Contains(own, Literal(text)) | StartsWith(own, Literal(text)) | EndsWith(own, Literal(text)) if (
            own in either
        ):
            return [text], own != term
        case Like(own, Literal(pattern), escape) if own in either:
            return list(LikePattern.parse(pattern, escape).texts), own != term
        case Call("rlike", (own, Literal(pattern))) if own == term:
            return texts_of_pattern(pattern), False
    return [], False


def texts_of_pattern(pattern):
    """Texts that stand in whatever a regular expression of Java matches; none where it has what is not understood."""
    if re.search(r"\||\(\?|\\[^\W_dwsDWS]|\[\^?]?(?:\\.|[^]\\])*[\[&]", pattern):
        return []  # alternatives, flags, back references, quotes, classes within classes
    texts, depth = [""], 0
    for token in re.finditer(r"\\.|\[\^?]?(?:\\.|[^]\\])*\]|\{[^}]*\}|[*+?]|.", pattern, re.DOTALL):
        part = token[0]
        if part in "()":
            depth += 1 if part == "(" else -1
            texts.append("")
        elif part in "*+?" or part[0] == "{":
            texts[-1:] = [texts[-1][:-1], ""]  # what is repeated may be missing
        elif part in ".^$" or part[0] == "[" or part[1:] in ("d", "w", "s", "D", "W", "S") or depth:
            texts.append("")
        else:
            texts[-1] += part[-1]
    return texts


def contains(held, wanted):
    """Say of each wanted number whether it is held: bool, shape (how many are wanted,). ``held`` ascends."""
    places = np.minimum(np.searchsorted(held, wanted), len(held) - 1)
    return held[places] == wanted


def is_ascii(trigram):
    return not trigram & 0x808080


def cases(trigram):
    """The trigram in each way to write its letters large or small."""
    letters = trigram.to_bytes(3, "big").decode()
    both = zip(letters.lower(), letters.upper(), strict=True)
    return sorted({int.from_bytes("".join(each).encode(), "big") for each in product(*both)})


def has_rare_capitals(held):
    """Whether a letter beyond ASCII may be in the block that is small within it."""
    return bool((held == KELVIN_SIGN).any() or (held >> 8 == DOTTED_I).any() or (held & 0xFFFF == DOTTED_I).any())


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


def as_numbers(data):
    """The trigrams of a payload."""
    if len(data) % 4:
        raise Corrupt(f"{len(data)} bytes are no numbers of four bytes each")
    return np.frombuffer(data, np.uint32)


def nbytes(numbers):
    return numbers.nbytes


@hookimpl
def fuse_index_kinds():
    return [Trigram]
