"""From values to 64 bits each: XXH3-64 of bytes that are equal exactly where Spark calls the values equal.

The bytes of a value: whole numbers, dates, timestamps and decimals that fit (by their unscaled value) as 8 bytes,
little-endian, so that a column may be widened from int to bigint and keep its hashes; wider decimals as 16; floats and
doubles as those of the double, -0.0 as 0.0, and one NaN; text in UTF-8. Any implementation of XXH3 gives the same
numbers; here 8-byte values are hashed by numpy, a whole array at a time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as is_
from xxhash import xxh3_64_intdigest

Hashes = npt.NDArray[np.uint64]
"""XXH3-64 of values, in one dimension."""

_XXH3_FLIP = np.uint64(0x1CAD21F72C81017C ^ 0xDB979083E96DD4DE)
"""Two words of XXH3's own secret, which it mixes into 8-byte inputs when no seed is given."""
_XXH3_PRIME = np.uint64(0x9FB21C651E98DF25)
_MAX_DIGITS_IN_8_BYTES = 18
"""Digits of a decimal beyond which its unscaled value may not fit in 8 bytes."""


def hash_family(data_type: pa.DataType) -> str | None:
    """Name the family of a type: types of one family give equal bytes for equal values. None: values are not hashed."""
    if is_.is_signed_integer(data_type):
        return "int"
    if is_.is_float32(data_type) or is_.is_float64(data_type):
        return "float"
    if is_.is_decimal128(data_type):
        return f"decimal:{data_type.scale}"
    if is_.is_timestamp(data_type) and data_type.unit == "us":
        return "timestamp_ntz" if data_type.tz is None else "timestamp"
    for name, belongs in (
        ("boolean", is_.is_boolean),
        ("date", is_.is_date32),
        ("string", is_.is_string),
        ("binary", is_.is_binary),
    ):
        if belongs(data_type):
            return name
    return None


def hash_values(values: pa.Array) -> Hashes:
    """Hash an array of n values, k of them not null: uint64 of shape (k,), one hash for each of those, in order."""
    values = values.drop_null()
    words = _words(values)
    if words is not None:
        return _xxh3_of_8_bytes(words)
    return np.fromiter(map(xxh3_64_intdigest, canonical_bytes(values)), np.uint64, len(values))


def unique_hashes(hashes: Hashes) -> Hashes:
    """Sort hashes, uint64 of shape (n,), and keep each once: uint64 of shape (k,), k <= n."""
    ordered = np.sort(hashes)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def canonical_bytes(values: pa.Array) -> list[bytes]:
    """List the bytes that are hashed of each value that is not null, in order."""
    values = values.drop_null()
    words = _words(values)
    if words is not None:
        return [word.tobytes() for word in words.astype("<u8")]
    if is_.is_decimal(values.type):
        return [bytes(wide[:8] if fits else wide) for wide, fits in zip(*_decimal_bytes(values), strict=True)]
    texts: list[bytes] = values.cast(pa.binary()).to_pylist()
    return texts


def _words(values: pa.Array) -> Hashes | None:
    """The 8 bytes of each of n values, as uint64 of shape (n,); None where some have other than 8.

    No value may be null.
    """
    data_type = values.type
    if is_.is_floating(data_type):
        doubles = values.cast(pa.float64()).to_numpy() + 0.0  # -0.0 + 0.0 is 0.0
        doubles[np.isnan(doubles)] = np.nan
        return np.asarray(doubles, np.float64).view(np.uint64)
    if is_.is_boolean(data_type):
        return np.asarray(values.to_numpy(zero_copy_only=False), np.uint64)
    if is_.is_decimal(data_type):
        wide, fits = _decimal_bytes(values)
        is_short = data_type.precision <= _MAX_DIGITS_IN_8_BYTES or fits.all()
        return wide[:, :8].copy().view(np.uint64).ravel() if is_short else None
    if is_.is_string(data_type) or is_.is_binary(data_type):
        return None
    numbers = values.view(f"int{data_type.bit_width}").to_numpy()  # dates and timestamps as they lie in memory
    return np.asarray(numbers, np.int64).view(np.uint64)


def _decimal_bytes(values: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """The 16 bytes of each of n decimals, uint8 of shape (n, 16), and whether 8 of them say all, bool of shape (n,)."""
    data = np.frombuffer(values.buffers()[1], np.uint8)
    wide = data[16 * values.offset : 16 * (values.offset + len(values))].reshape(-1, 16)
    low, high = wide[:, :8].copy().view(np.int64).ravel(), wide[:, 8:].copy().view(np.int64).ravel()
    return wide, high == low >> 63


def _xxh3_of_8_bytes(words: Hashes) -> Hashes:
    """XXH3-64 of each number's 8 little-endian bytes, elementwise on uint64."""
    # xxHash 0.8, XXH3_len_4to8_64b and XXH3_rrmxmx: the names of its steps are rotate, multiply, shift and multiply.
    mixed = _rotate_left(words, 32) ^ _XXH3_FLIP
    mixed ^= _rotate_left(mixed, 49) ^ _rotate_left(mixed, 24)
    mixed *= _XXH3_PRIME
    mixed ^= (mixed >> np.uint64(35)) + np.uint64(8)
    mixed *= _XXH3_PRIME
    return mixed ^ (mixed >> np.uint64(28))


def _rotate_left(words: Hashes, bits: int) -> Hashes:
    return words << np.uint64(bits) | words >> np.uint64(64 - bits)
