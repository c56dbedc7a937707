"""One call of a kind's ``probe``, with a deadline: a ballot of a form that the engine takes, or what went wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuse_index.indexes.ballot import Ballot
from fuse_index.indexes.block_batch import FrameBatch
from fuse_index.indexes.interface import Probe, Votes
from fuse_index.indexes.sandbox import PluginFailure, sandboxed_call
from fuse_index.reasons import Reason


def call_probe(kind: Votes, probe: Probe[Any], batch: FrameBatch, timeout_seconds: float) -> Ballot | PluginFailure:
    """The author's ballot: of ``len(batch)`` units, or of as many zones as the batch has."""
    answer = sandboxed_call(lambda: kind.probe(probe, batch), timeout_seconds)
    if isinstance(answer, PluginFailure):
        return answer
    return _wrong_form(answer, batch) or answer


def _wrong_form(answer: object, batch: FrameBatch) -> PluginFailure | None:
    """Why an answer cannot be used; None for uint8 votes, one per unit or zone, and per row where rows are known."""
    if not isinstance(answer, Ballot) or answer.bits.dtype != np.uint8 or answer.bits.ndim != 1:
        return PluginFailure(Reason.PLUGIN_ERROR, f"probe() gave {type(answer).__name__}, not a Ballot of uint8 bits")
    if len(answer) not in (len(batch), len(batch.zone_rows)):
        return PluginFailure(
            Reason.PLUGIN_ERROR,
            f"probe() gave {len(answer)} votes for {len(batch)} units with {len(batch.zone_rows)} zones",
        )
    for unit, rows in answer.rows.items():
        expected = batch.zone_rows[unit] if len(answer) == len(batch.zone_rows) else batch.row_counts[unit]
        if not 0 <= unit < len(answer) or len(rows) != expected:
            return PluginFailure(
                Reason.PLUGIN_ERROR, f"probe() gave {len(rows)} row votes for unit {unit}, which has {expected} rows"
            )
    return None
