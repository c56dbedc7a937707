"""Two lists of arrays of values, such as hashes of rows block by block, are compared as multisets.

In a multiset order says nothing and number does: of b, b, c the second b is one more than in b, c. All arrays are of
one type; NULL takes no part.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_Mask = npt.NDArray[np.bool_]
_Indices = npt.NDArray[np.int64]


def multiset_difference(removed: Sequence[pa.Array], added: Sequence[pa.Array]) -> tuple[list[_Mask], list[_Mask]]:
    """Mark the values that one side has more of than the other: booleans for each array, of its shape.

    Of a, b, b on the one side and b, c on the other, a and one b are left over, and c:

    >>> removed, added = multiset_difference([pa.array(["a", "b", "b"])], [pa.array(["b", "c"])])
    >>> removed, added
    ([array([ True,  True, False])], [array([False,  True])])
    """
    removed_codes, added_codes, code_count = _dictionary_codes(removed, added)
    surplus = _code_counts(added_codes, code_count) - _code_counts(removed_codes, code_count)
    return (
        _split_like(_first_occurrences(removed_codes, -surplus), removed),
        _split_like(_first_occurrences(added_codes, surplus), added),
    )


def match_keys(removed: Sequence[pa.Array], added: Sequence[pa.Array]) -> tuple[_Indices, _Indices]:
    """Pair rows that went and came under the same key, the first with the first; sorted by the latter.

    Returns two int64 arrays, both of shape (pairs,): numbers of rows, counted through all arrays of a side.

    >>> match_keys([pa.array(["a", "b"])], [pa.array(["b", "c"]), pa.array(["a"])])
    (array([1, 0]), array([0, 2]))
    """
    removed_codes, added_codes, code_count = _dictionary_codes(removed, added)
    pair_counts = np.minimum(_code_counts(removed_codes, code_count), _code_counts(added_codes, code_count))
    removed_rows = np.flatnonzero(_first_occurrences(removed_codes, pair_counts))
    added_rows = np.flatnonzero(_first_occurrences(added_codes, pair_counts))
    # Sorted by key, and stably so, the n-th of one side belongs to the n-th of the other.
    removed_rows = removed_rows[np.argsort(removed_codes[removed_rows], kind="stable")]
    added_rows = added_rows[np.argsort(added_codes[added_rows], kind="stable")]
    order = np.argsort(added_rows)
    return removed_rows[order], added_rows[order]


def _dictionary_codes(removed: Sequence[pa.Array], added: Sequence[pa.Array]) -> tuple[_Indices, _Indices, int]:
    """Number the values, int64, the same for the same, -1 for NULL; and count the numbers there are."""
    encoded = pa.concat_arrays([*removed, *added]).dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(-1), np.int64)
    removed_count = sum(map(len, removed))
    return codes[:removed_count], codes[removed_count:], int(codes.max(initial=-1)) + 1


def _code_counts(codes: _Indices, code_count: int) -> _Indices:
    return np.bincount(codes[codes >= 0], minlength=code_count)


def _first_occurrences(codes: _Indices, limits: _Indices) -> _Mask:
    """Mark the first rows of each code, as many as its limit says: booleans, one for each row."""
    known = np.flatnonzero(codes >= 0)
    rows = known[limits[codes[known]] > 0]
    mask = np.zeros(len(codes), np.bool_)
    mask[rows[_occurrence_numbers(codes[rows]) < limits[codes[rows]]]] = True
    return mask


def _occurrence_numbers(codes: _Indices) -> _Indices:
    """Count for each row how many of the same code come before it: of 7, 5, 7 it is 0, 0, 1."""
    order = np.argsort(codes, kind="stable")
    sorted_codes = codes[order]
    is_start = np.ones(len(codes), np.bool_)
    is_start[1:] = sorted_codes[1:] != sorted_codes[:-1]
    run_starts = np.flatnonzero(is_start)
    run_lengths = np.diff(np.append(run_starts, len(codes)))
    numbers = np.empty(len(codes), np.int64)
    numbers[order] = np.arange(len(codes)) - np.repeat(run_starts, run_lengths)
    return numbers


def _split_like(mask: _Mask, like: Sequence[pa.Array]) -> list[_Mask]:
    return np.split(mask, np.cumsum([len(array) for array in like])[:-1])
