"""How the values of one column are best stored in one block: their encoding and their codec, chosen by a sample.

What takes fewer bytes takes longer to decode, so a slower form has to be worth it. Milliseconds to decode 200,000
values and their bytes, where these are sorted integers, then random doubles, then text of 17 random letters:

    integers   plain 0.2, 1.60 MB    delta 0.2, 0.01 MB    plain with lz4 2.5, 0.80 MB    plain with zstd 2.8, 0.21 MB
    doubles    plain 0.3, 1.60 MB                          plain with lz4 0.3, 1.61 MB    plain with zstd 2.2, 1.51 MB
    text       plain 3.4, 4.20 MB                          plain with lz4 4.3, 2.71 MB    plain with zstd 7.6, 1.10 MB

All forms are ones that every supported Spark reads; BYTE_STREAM_SPLIT is none of them. Knows no block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as is_

from fuse_storage.bounds import is_text_or_binary
from fuse_storage.statistics import ColumnStatistics

AUTO_COMPRESSION, UNCOMPRESSED, LZ4, ZSTD = "auto", "uncompressed", "lz4", "zstd"
COMPRESSIONS = (AUTO_COMPRESSION, UNCOMPRESSED, LZ4, ZSTD)
"""What a table may ask for: a codec for all columns, or for each column of each block the one that suits it."""

AUTO_ENCODING, PLAIN = "auto", "plain"
ENCODINGS = (AUTO_ENCODING, PLAIN)
"""What a table may ask for: differences where they suit a column, or none, for readers that know no differences."""

DELTA = "DELTA_BINARY_PACKED"
ARROW_CODECS = {UNCOMPRESSED: "none", LZ4: "lz4", ZSTD: "zstd"}
"""Codecs by the names that Arrow's writer has for them: its lz4 is what Parquet calls LZ4_RAW."""

_SAMPLED_ROWS = 8_192
"""A page of values: compression sees no more at a time."""
_SAMPLED_RUNS = 4
"""Pieces of a column, from its beginning to its end, that the sample is of."""
_SAMPLED_BYTES = 1 << 20
_JUDGED_ROWS = 65_536
"""Rows by which a column is judged: those of a zone."""
_MAX_DICTIONARY_SHARE = 0.05
"""Up to this share of distinct values in a zone a dictionary pays; above, it costs bytes and time."""

_MAX_MEAN_TEXT_BYTES = 128
"""Text that is longer than this on average gets no Parquet statistics: they would outgrow what they can skip."""

_MIN_SAMPLED_ROWS = 1_024
"""Columns of fewer rows are written with zstd, untried: trials would take longer than the column."""
_MAX_PLAIN_BYTES = 128
"""Columns of no more bytes, as sixteen numbers have, are not compressed: setting up a codec takes longer than that."""

_DELTA_GAIN, _LZ4_GAIN, _ZSTD_GAIN = 0.75, 0.9, 0.75
"""The share of the bytes of the best faster form, up to which a form is worth its time."""
_MIN_SAVED_SHARE = 1 / 16
"""Share of the values' bytes in memory: a codec that saves less is not worth its time, be it half of what is left."""


@dataclass(frozen=True, slots=True)
class ColumnEncoding:
    """How a column is written. ``encoding``: ``DELTA``; None for plain values, or for a dictionary if it has one."""

    codec: str
    encoding: str | None = None


_PLAIN_COLUMN = ColumnEncoding(UNCOMPRESSED)


def suits_dictionary(values: pa.Array, known: ColumnStatistics | None) -> bool:
    """Judge by the first zone if a dictionary pays; never for floats, whose dictionaries Spark filters wrongly.

    ``known``: statistics of these values; None of those within structs, arrays and maps.
    """
    if is_.is_floating(values.type) or is_.is_boolean(values.type):
        return False
    limit = _MAX_DICTIONARY_SHARE * min(len(values), _JUDGED_ROWS)
    if limit < 2 and known is not None and len(known) == 1 and not known.min_cut.true_count:
        return bool(known.min.equals(known.max))  # one value, or none: to count them takes ten times as long
    zone = values[:_JUDGED_ROWS]
    # a few rows show that most columns are not, at a tenth of the cost
    return bool(
        pc.count_distinct(zone[: 1 << 13]).as_py() <= max(limit, 1) and pc.count_distinct(zone).as_py() <= max(limit, 1)
    )


def suits_statistics(values: pa.Array) -> bool:
    """Judge if Parquet's own statistics are written: they are for Spark's filters, which get floats wrong by them."""
    if is_.is_floating(values.type):
        return False
    return not is_text_or_binary(values.type) or has_few_bytes(values, _MAX_MEAN_TEXT_BYTES * len(values))


def has_few_bytes(values: pa.Array, limit: int) -> bool:
    """Whether values take at most so many bytes; whole buffers, of which they may be a part, are asked sooner."""
    return bool(values.get_total_buffer_size() <= limit or values.nbytes <= limit)


def choose_encoding(
    values: pa.Array, uses_dictionary: bool, compression: str, level: int, encoding: str = AUTO_ENCODING
) -> ColumnEncoding:
    """Choose how to store the values of a column, without NULL or with it.

    ``compression``: one of ``COMPRESSIONS``; ``level``: of zstd; ``encoding``: one of ``ENCODINGS``.

    >>> choose_encoding(pa.array(range(10_000)), uses_dictionary=False, compression="auto", level=1)
    ColumnEncoding(codec='uncompressed', encoding='DELTA_BINARY_PACKED')
    >>> choose_encoding(pa.array(np.random.default_rng(1).random(10_000)), False, "auto", 1)
    ColumnEncoding(codec='uncompressed', encoding=None)
    >>> choose_encoding(pa.array([f"user {n % 8191}" for n in range(10_000)]), False, "auto", 1)
    ColumnEncoding(codec='zstd', encoding=None)
    """
    if compression == AUTO_COMPRESSION and has_few_bytes(values, _MAX_PLAIN_BYTES):
        return _PLAIN_COLUMN
    sample = _sample(values)
    if len(sample) < _MIN_SAMPLED_ROWS or sample.null_count == len(sample):
        return ColumnEncoding(ZSTD if compression == AUTO_COMPRESSION else compression)
    trials = _Trials(sample, uses_dictionary, level)
    first_codec = UNCOMPRESSED if compression == AUTO_COMPRESSION else compression
    chosen = None if encoding == PLAIN else trials.smallest_encoding(first_codec)
    if compression != AUTO_COMPRESSION:
        return ColumnEncoding(compression, chosen)
    codec, size = UNCOMPRESSED, trials.size(UNCOMPRESSED, chosen)
    for slower, gain in ((LZ4, _LZ4_GAIN), (ZSTD, _ZSTD_GAIN)):
        compressed = trials.size(slower, chosen)
        if compressed <= min(gain * size, size - _MIN_SAVED_SHARE * sample.nbytes):
            codec, size = slower, compressed
    return ColumnEncoding(codec, chosen)


def _sample(values: pa.Array) -> pa.Array:
    """Some values of each part of the column, in order."""
    count = min(_SAMPLED_ROWS, len(values) * _SAMPLED_BYTES // max(values.nbytes, 1))
    if len(values) <= count:
        return values
    starts = np.linspace(0, len(values) - count // _SAMPLED_RUNS, _SAMPLED_RUNS).astype(np.int64)
    return pa.concat_arrays([values.slice(start, count // _SAMPLED_RUNS) for start in starts.tolist()])


@dataclass(frozen=True, slots=True)
class _Trials:
    """Writes a sample in one form or another."""

    sample: pa.Array
    uses_dictionary: bool
    level: int

    def smallest_encoding(self, codec: str) -> str | None:
        """``DELTA`` if it is that much smaller than plain values, both compressed in this way."""
        if self.uses_dictionary or not _has_integers(self.sample.type):
            return None
        return DELTA if self.size(codec, DELTA) <= _DELTA_GAIN * self.size(codec, None) else None

    def size(self, codec: str, encoding: str | None) -> int:
        """Bytes of the sample in this form, headers of pages included."""
        schema = pa.schema([pa.field("x", self.sample.type, self.sample.null_count > 0)])
        chosen: dict[str, Any] = {"column_encoding": {"x": encoding}} if encoding else {}
        with pq.ParquetWriter(
            pa.BufferOutputStream(),
            schema,
            data_page_version="1.0",
            compression=ARROW_CODECS[codec],
            compression_level=self.level if codec == ZSTD else None,
            use_dictionary=self.uses_dictionary,
            write_statistics=False,
            store_schema=False,
            store_decimal_as_integer=True,
            **chosen,
        ) as writer:
            writer.write_table(pa.Table.from_arrays([self.sample], schema=schema))
        return int(writer.writer.metadata.row_group(0).column(0).total_compressed_size)


def _has_integers(data_type: pa.DataType) -> bool:
    """Whether Parquet keeps values of this type as integers of 4 or 8 bytes."""
    if is_.is_decimal(data_type):
        return bool(data_type.precision <= 18)
    return bool(is_.is_integer(data_type) or is_.is_date32(data_type) or is_.is_timestamp(data_type))
