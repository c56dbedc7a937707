"""One call of a kind's ``probe``, with a deadline: a ballot of a form that the engine takes, or what went wrong."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from fuse_index.indexes.ballot import UNKNOWN, Ballot
from fuse_index.indexes.block_batch import FrameBatch
from fuse_index.indexes.interface import Probe, Votes
from fuse_index.indexes.sandbox import PluginFailure, sandboxed_call, trusted_call


def call_probe(
    kind: Votes, probe: Probe[Any], batch: FrameBatch, timeout_seconds: float | None
) -> Ballot | PluginFailure:
    """The author's ballot: of ``len(batch)`` units, or of as many zones as the batch has.

    ``timeout_seconds``: None for a kind that is trusted to end.
    """

    def ballot() -> Ballot:
        return _checked_ballot(kind.probe(probe, batch), batch)

    return trusted_call(ballot) if timeout_seconds is None else sandboxed_call(ballot, timeout_seconds)


def _checked_ballot(answer: object, batch: FrameBatch) -> Ballot:
    """A ballot of the engine's own: uint8 votes, one per unit or zone, and one per row where rows are known.

    Copied, so that nothing that the author keeps can change it. Raises TypeError or ValueError that names the form.
    """
    if not isinstance(answer, Ballot):
        raise TypeError(f"probe() gave {type(answer).__name__}, not a Ballot of uint8 bits")
    bits = _checked_votes(answer.bits, "bits")
    if len(bits) not in (len(batch), len(batch.zone_rows)):
        raise ValueError(f"probe() gave {len(bits)} votes for {len(batch)} units with {len(batch.zone_rows)} zones")
    if not isinstance(answer.rows, Mapping):
        raise TypeError(f"probe() gave {type(answer.rows).__name__}, not a mapping, as the votes on rows")
    row_counts = batch.zone_rows if len(bits) == len(batch.zone_rows) else batch.row_counts
    bits, rows = bits.copy(), {}
    for given, votes in answer.rows.items():
        unit = index(given)
        if not 0 <= unit < len(bits):
            raise ValueError(f"probe() gave votes on the rows of unit {unit}, and there are {len(bits)}")
        rows[unit] = _known_votes(_checked_votes(votes, f"votes on rows of unit {unit}"))
        if len(rows[unit]) != row_counts[unit]:
            raise ValueError(
                f"probe() gave {len(rows[unit])} row votes for unit {unit}, which has {row_counts[unit]} rows"
            )
        union = np.bitwise_or.reduce(rows[unit], initial=0)
        if bits[unit] and union & ~bits[unit]:
            raise ValueError(f"probe() gave unit {unit} the vote {bits[unit]}, and its rows more: {union} together")
        bits[unit] = union
    return Ballot(_known_votes(bits), rows)


def _known_votes(votes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """A copy in which a vote without any outcome, which no row can have, is one that tells nothing."""
    known: npt.NDArray[np.uint8] = np.where(votes == 0, np.uint8(UNKNOWN), votes)
    return known


def _checked_votes(votes: object, what: str) -> npt.NDArray[np.uint8]:
    if not isinstance(votes, np.ndarray) or votes.dtype != np.uint8 or votes.ndim != 1:
        form = f"{votes.dtype} of shape {votes.shape}" if isinstance(votes, np.ndarray) else type(votes).__name__
        raise TypeError(f"probe() gave {what} as {form}, not uint8 of one dimension")
    if len(votes) and votes.max() > UNKNOWN:
        raise ValueError(
            f"probe() gave {what} with a {votes.max()}, and a vote is TRUE | FALSE | NULL, at most {UNKNOWN}"
        )
    return np.asarray(votes)
