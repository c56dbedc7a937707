"""Which blocks and segments an index knows in a payload version that its kind reads, and what is in the way elsewhere.

Sits between the storage room, which keeps whatever anybody wrote, and the kinds, which are shown only what they wrote.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.indexes.block_batch import UnitIndices
from fuse_index.indexes.interface import IndexKind, RollsUp
from fuse_index.reasons import Reason
from fuse_storage import SegmentFrame, SidecarRows

_Mask = npt.NDArray[np.bool_]
Note = Callable[[Reason, str], None]
"""Told what stands in the way: a reason, and a sentence."""


REFRESH = "refresh the index"
"""What to do of blocks that are not indexed, where nobody knows better."""


def readable_blocks(sidecars: SidecarRows, kind: IndexKind) -> _Mask:
    """The blocks that are indexed in a version that the kind reads: bool, one per block."""
    readable: _Mask = sidecars.indexed & np.isin(sidecars.versions, list(kind.reads))
    return readable


def has_summary_or_payload(sidecars: SidecarRows) -> _Mask:
    """The blocks of which a summary is kept, or a payload where a kind has no summaries: bool, one per block."""
    summaries = sidecars.summaries
    return sidecars.spans[1] > 0 if pa.types.is_null(summaries.type) else _validity_mask(summaries)


def usable_blocks(
    sidecars: SidecarRows, kind: IndexKind, chosen: UnitIndices, note: Note, remedy: Callable[[], str] = lambda: REFRESH
) -> _Mask:
    """The blocks of which the kind knows something: bool, one per block. What is in the way on the chosen is noted.

    ``remedy``: says what to do of blocks that are not indexed.
    """
    readable = readable_blocks(sidecars, kind)
    usable: _Mask = readable & has_summary_or_payload(sidecars)
    newer = int((sidecars.indexed & ~readable)[chosen].sum())
    absent = int((~sidecars.indexed)[chosen].sum())
    empty = int((readable & ~usable)[chosen].sum())
    if empty:
        note(Reason.USED_NO_GAIN, f"its kind keeps nothing of {empty} of {len(chosen)} blocks")
    if sidecars.error:
        note(Reason.CORRUPT, sidecars.error)
    if newer:
        note(
            Reason.PAYLOAD_TOO_NEW,
            f"{newer} of {len(chosen)} blocks have a payload version that this code cannot read",
        )
    if absent:
        note(Reason.BLOCK_NOT_INDEXED, f"{absent} of {len(chosen)} blocks are not indexed: {remedy()}")
    return usable


def usable_roll_ups(segments: SegmentFrame, key: str, kind: IndexKind, note: Note) -> tuple[pa.Array, _Mask] | None:
    """What is rolled up of each segment, and where it is of all its blocks in a version that the kind reads.

    None where no segment is rolled up. Else values and bool, one per segment.
    """
    summaries, versions = segments.roll_ups(key), segments.roll_up_versions(key)
    if summaries is None:
        return None
    present = _validity_mask(summaries)
    usable: _Mask = present & np.isin(versions, list(kind.reads))
    if newer := int((present & ~usable & (versions >= 0)).sum()):
        version_text = "a payload version that this code cannot read"
        note(Reason.PAYLOAD_TOO_NEW, f"{newer} of {len(segments)} segments are rolled up in {version_text}")
    if unsure := int((present & (versions < 0)).sum()):
        lack = "without all their blocks, or without saying in which payload version"
        note(Reason.BLOCK_NOT_INDEXED, f"{unsure} of {len(segments)} segments are rolled up {lack}: refresh the index")
    return summaries, usable


def blocks_to_roll_up(segments: SegmentFrame, sidecars: SidecarRows, key: str, kind: IndexKind) -> UnitIndices:
    """The first block of each segment whose roll-up may not be used as it is, though all its blocks could be rolled up.

    To index that block anew rolls the segment up. ``sidecars``: of all blocks. Numbers of blocks: int64, shape (k,),
    ascending.
    """
    roll_ups, starts = segments.roll_ups(key), segments.block_offsets[:-1]
    if roll_ups is None or not isinstance(kind, RollsUp) or not len(segments):
        return np.zeros(0, np.int64)
    unused = _validity_mask(roll_ups) & (segments.roll_up_versions(key) < 0)
    return starts[unused & np.logical_and.reduceat(sidecars.indexed & (sidecars.versions == kind.writes), starts)]


def null_where_unusable(summaries: pa.Array, usable: _Mask) -> pa.Array:
    """The summaries, null on units that are not to be shown: a kind may fail on what another version wrote.

    ``usable``: bool, one per unit.
    """
    if usable[_validity_mask(summaries)].all():
        return summaries
    return summaries.take(pa.array(np.arange(len(summaries)), mask=~usable))


def _validity_mask(values: pa.Array) -> _Mask:
    valid: _Mask = values.is_valid().to_numpy(zero_copy_only=False)
    return valid
