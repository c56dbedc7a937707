"""What two lists of arrays of values differ in as multisets: which values, and how many of each, the one has more than
the other.

The arrays are of one type, such as fingerprints of rows, block by block; NULL takes no part.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_Mask = npt.NDArray[np.bool_]
_Indices = npt.NDArray[np.int64]


def multiset_difference(removed: Sequence[pa.Array], added: Sequence[pa.Array]) -> tuple[list[_Mask], list[_Mask]]:
    """Which rows one side has more of than the other."""
    was, now = _dictionary_codes(removed, added)
    size = int(max(was.max(initial=-1), now.max(initial=-1))) + 1
    surplus = np.bincount(now[now >= 0], minlength=size) - np.bincount(was[was >= 0], minlength=size)
    return _split_like(_first_occurrences(was, -surplus), removed), _split_like(_first_occurrences(now, surplus), added)


def match_keys(removed: Sequence[pa.Array], added: Sequence[pa.Array]) -> tuple[_Indices, _Indices]:
    """Rows, counted through all blocks, that went and came under the same key, the first with the first; sorted by the
    latter.
    """
    was, now = _dictionary_codes(removed, added)
    size = int(max(was.max(initial=-1), now.max(initial=-1))) + 1
    both = np.minimum(np.bincount(was[was >= 0], minlength=size), np.bincount(now[now >= 0], minlength=size))
    before, after = np.flatnonzero(_first_occurrences(was, both)), np.flatnonzero(_first_occurrences(now, both))
    before = before[np.argsort(was[before], kind="stable")]
    places = np.argsort(now[after], kind="stable")
    order = np.argsort(after[places])
    return before[order], after[places][order]


def _dictionary_codes(gone: Sequence[pa.Array], came: Sequence[pa.Array]) -> tuple[_Indices, _Indices]:
    """Numbers in place of fingerprints, the same for the same; -1 for NULL."""
    codes = np.asarray(pa.concat_arrays([*gone, *came]).dictionary_encode().indices.fill_null(-1), np.int64)
    count = sum(map(len, gone))
    return codes[:count], codes[count:]


def _first_occurrences(codes: _Indices, wanted: _Indices) -> _Mask:
    """Of the rows with a code the first so many."""
    known = np.flatnonzero(codes >= 0)
    places = known[wanted[codes[known]] > 0]
    mask = np.zeros(len(codes), np.bool_)
    mask[places[_occurrence_numbers(codes[places]) < wanted[codes[places]]]] = True
    return mask


def _occurrence_numbers(codes: _Indices) -> _Indices:
    """How many of the same code come before each."""
    order = np.argsort(codes, kind="stable")
    sorted_ = codes[order]
    fresh = (
        np.flatnonzero(np.concatenate([[True], sorted_[1:] != sorted_[:-1]])) if len(codes) else np.zeros(0, np.int64)
    )
    runs = np.diff(np.append(fresh, len(codes)))
    ranks = np.empty(len(codes), np.int64)
    ranks[order] = np.arange(len(codes)) - np.repeat(fresh, runs)
    return ranks


def _split_like(mask: _Mask, like: Sequence[pa.Array]) -> list[_Mask]:
    return np.split(mask, np.cumsum([len(one) for one in like])[:-1])
