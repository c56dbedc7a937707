"""Writers of Parquet files whose statistics are known to be wrong, told by the ``created_by`` of a footer.

A file without ``created_by`` is not believed at all: parquet-mr left it out while its bounds were wrong (PARQUET-297).
What every writer has got wrong is not here, but never believed: ``file_statistics`` says it. Nothing here reads page
bounds or distinct counts, since nobody asks for them. Counts of NULL beyond the rows, as cuDF before 21.12 wrote
(rapidsai/cudf#9221), are unknown in any file.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa
import pyarrow.types as is_

from fuse_storage.parquet.column_chunks import PHYSICAL_TYPES
from fuse_storage.parquet.foreign.thrift_footer import ForeignChunk, ForeignFooter, RawStatistics

_CREATED_BY = re.compile(
    r"(?P<name>.*?)(?: version (?P<version>\d+(?:\.\d+)*)?.*| v(?P<short>\d+(?:\.\d+)*).*)?", re.DOTALL
)
"""The writer's name, and perhaps "version" with numbers, as Parquet's readers take it apart; ClickHouse has a "v"."""
_NEVER = (1 << 30,)
_BYTES = (PHYSICAL_TYPES.index("BYTE_ARRAY"), PHYSICAL_TYPES.index("FIXED_LEN_BYTE_ARRAY"))


@dataclass(frozen=True, slots=True)
class Lie:
    """Writers named ``writer`` before version ``fixed``, or of no version, say wrong ``bounds`` or ``null_counts``.

    ``dictionary``: only in columns that Arrow has as a dictionary (categories of pandas and Polars). ``decimal``: only
    of decimals. ``in_bytes``: only of text and bytes.
    """

    writer: str
    fixed: tuple[int, ...]
    bounds: bool = False
    null_counts: bool = False
    dictionary: bool = False
    decimal: bool = False
    in_bytes: bool = False


KNOWN_LIES = (
    # Both are of the first chunk of the column (apache/arrow#15042); before 6, a count of NULL is 0 and bounds are
    # those of all categories (ARROW-12513, fixed behind 5.0.0: measured). Arrow before 0.16 called itself parquet-cpp.
    Lie("parquet-cpp-arrow", (11,), bounds=True, null_counts=True, dictionary=True),
    Lie("parquet-cpp", _NEVER, bounds=True, null_counts=True, dictionary=True),
    # Binary bounds before 1.8 are of another row group (PARQUET-251), those before 1.10 in another order
    # (PARQUET-686), and counts of NULL of old ones too low (apache/doris#67573). Presto and others call themselves so
    # without a version.
    Lie("parquet-mr", (1, 10), bounds=True, null_counts=True),
    # Counts the NULLs of the dictionary's values (jorgecarleitao/arrow2#1414), and took the bounds of some pages
    # (pola-rs/polars#7842). No version tells which. Polars called itself so until 2023.
    Lie("Arrow2 - Native Rust implementation of Arrow", _NEVER, bounds=True),
    Lie("Arrow2 - Native Rust implementation of Arrow", _NEVER, null_counts=True, dictionary=True),
    # Counts of NULL times the number of pages (pola-rs/polars#29321): 1.38 wrote so, 2.1 does not (measured). Polars
    # had no version in its name when it did.
    Lie("Polars", (2, 1), null_counts=True),
    Lie("Polars (python)", (2, 1), null_counts=True),
    # Of two texts of which one begins with the other, that of the earlier page is the bound (pola-rs/polars#25886):
    # 1.31 wrote so (measured), and had no version in its name.
    Lie("Polars", (1, 37), bounds=True, in_bytes=True),
    Lie("Polars (python)", (1, 37), bounds=True, in_bytes=True),
    # A column of NULLs has a count of 0 (apache/arrow-rs#306).
    Lie("parquet-rs", (5,), null_counts=True),
    # The shorter of two texts is the lesser (apache/arrow-rs#641).
    Lie("parquet-rs", (5, 2), bounds=True, in_bytes=True),
    # Counts of NULL are off (fraugster/parquet-go#69). Arrow's Go has the name, too, and versions above 6. Its bounds
    # of text lie in memory of its caller, who may have put other rows there before they are written (apache/arrow-go
    # #917), and its counts of NULL of dictionaries go below 0, which takes away from others (apache/arrow-go#489).
    Lie("parquet-go", (7,), bounds=True, null_counts=True),
    Lie("parquet-go", (18, 7), bounds=True, in_bytes=True),
    Lie("parquet-go", (18, 5), null_counts=True, dictionary=True),
    # Bounds of text are overwritten by those of a later page (parquet-go/parquet-go#53), and the least one is not ''
    # (parquet-go/parquet-go#131). Builds need not tell the version. Until 2023 it was segmentio's.
    Lie("github.com/segmentio/parquet-go", _NEVER, bounds=True, in_bytes=True),
    Lie("github.com/parquet-go/parquet-go", (0, 21), bounds=True, in_bytes=True),
    # Decimals were compared without their sign (ClickHouse/ClickHouse#83754).
    Lie("ClickHouse", (25, 8), bounds=True, decimal=True),
    # Bounds of decimals are of other numbers (hyparam/hyparquet-writer#38).
    Lie("hyparquet", _NEVER, bounds=True),
)


_SIGNED_DECIMALS = {"parquet-cpp-arrow": (11,), "parquet-mr": (1, 10), "parquet-rs": (30,)}
"""From which version on writers are known to order decimals that are kept as bytes by their sign, as Parquet says."""


def orders_decimals(footer: ForeignFooter) -> bool:
    """Whether the writer is known to order decimals that are kept as bytes of fixed length as numbers."""
    name, version = _writer(footer.created_by)
    return version >= _SIGNED_DECIMALS.get(name, _NEVER)


def believed_statistics(footer: ForeignFooter, chunk: ForeignChunk, is_decimal: bool) -> RawStatistics:
    """What can be believed of a chunk's statistics, by who wrote the file; the rest is unknown (None).

    ``is_decimal``: whether the chunk holds decimals.
    """
    found = chunk.statistics
    if not footer.created_by:
        return RawStatistics(None, None, None)
    for lie in _lies_of(footer.created_by):
        if lie.dictionary and not _may_be_dictionary(footer.arrow_schema, chunk):
            continue
        if lie.decimal and not is_decimal:
            continue
        if lie.in_bytes and chunk.physical_type not in _BYTES:
            continue
        if lie.bounds:
            found = replace(found, min=None, max=None)
        if lie.null_counts:
            found = replace(found, null_count=None)
    return found


@lru_cache(maxsize=64)
def _lies_of(created_by: str) -> tuple[Lie, ...]:
    name, version = _writer(created_by)
    return tuple(lie for lie in KNOWN_LIES if lie.writer == name and version < lie.fixed)


@lru_cache(maxsize=64)
def _writer(created_by: str) -> tuple[str, tuple[int, ...]]:
    """The writer's name and version, which is empty where it is not told."""
    told = _CREATED_BY.fullmatch(created_by)
    assert told is not None  # a name of any text matches
    digits = told["version"] or told["short"]
    return told["name"].strip(), tuple(int(part[:9]) for part in digits.split(".")) if digits else ()


def _may_be_dictionary(arrow_schema: bytes, chunk: ForeignChunk) -> bool:
    """Whether Arrow had the column as a dictionary; without a schema of Arrow's, whether the chunk has one."""
    names = _dictionary_columns(arrow_schema)
    return chunk.has_dictionary if names is None else chunk.path[0] in names


@lru_cache(maxsize=64)
def _dictionary_columns(arrow_schema: bytes) -> frozenset[str] | None:
    """The columns that are a dictionary or have one inside; None if there is no schema that can be read."""
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(arrow_schema)))
    except (pa.ArrowException, OSError, ValueError):
        return None
    return frozenset(field.name for field in schema if any(is_.is_dictionary(kind) for kind in _types_in(field.type)))


def _types_in(kind: pa.DataType) -> Iterator[pa.DataType]:
    yield kind
    for number in range(kind.num_fields):
        yield from _types_in(kind.field(number).type)
