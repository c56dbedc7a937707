"""Whoever writes a table's indexes can make them useless, but not make a reader crash, hang, or take its memory."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuse_index.plugin import Corrupt, decompress, expanded_limit, read_untrusted_parquet, texts_from_lengths
from fuse_plugins.bloom.filters import HashFilter, filter_capacity, filter_shape
from fuse_plugins.full_text.compression import compress_arrays, decompress_arrays
from tests.sketches import needs_sketches

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("kind", "cases"),
    [
        ("bloom", 60),
        ("json_path", 60),
        pytest.param("aggregate", 40, marks=needs_sketches),
        ("full_text", 25),
    ],
)
def test_wrong_numbers_behind_right_checksums_cost_an_index_its_vote_and_nothing_else(kind, cases):
    command = [sys.executable, "-m", "tests.plugins.hostile_payloads", kind, os.environ.get("HOSTILE_SEED", "0")]
    asked = subprocess.run([*command, str(cases)], cwd=ROOT, capture_output=True, text=True)

    assert (asked.returncode, asked.stdout) == (0, ""), asked.stderr
    assert " 0 refusals" not in asked.stderr


def test_what_a_blob_expands_to_is_bounded_before_memory_is_taken():
    bomb = compress_arrays(np.zeros(10_000_000, np.int64))

    assert len(bomb) < 10_000
    with pytest.raises(Corrupt, match="40000000 once expanded"):
        decompress_arrays(bomb, expanded_limit(len(bomb)))
    with pytest.raises(Corrupt, match="are not 8 of zstd"):
        decompress(bomb[12:], "zstd", 8, limit=8)


@pytest.mark.parametrize("header", [[], [1], [2, 0, 0], [1, 3, 8], [1, (1 << 32) - 1, 4], [(1 << 32) - 1, 1, 4]])
def test_a_header_that_contradicts_itself_is_refused(header):
    body = compress_arrays(np.array([7]))[12:]

    with pytest.raises(Corrupt, match="are not 1 arrays of numbers and 0 texts"):
        decompress_arrays(np.array(header, np.uint32).tobytes() + body, 100)


@pytest.mark.parametrize(
    ("lengths", "data"),
    [([4], b"abc"), ([2], b"abc"), ([5, -2], b"abc"), ([1 << 32, 3], b"abc"), ([1, 1], "é".encode())],
)
def test_texts_lie_in_their_bytes_and_are_utf_8(lengths, data):
    with pytest.raises(Corrupt, match=r"are said to lie in|damaged"):
        texts_from_lengths(np.array(lengths, np.int64), data)


def parquet(table, **options):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, store_schema=False, write_statistics=False, **options)
    return sink.getvalue().to_pybytes()


def test_a_parquet_payload_is_read_as_it_was_written():
    table = pa.table({"a": ["x", None, "zz"], "b": [1, 2, None], "c": [b"", b"1", None], "d": [True, None, False]})

    for options in ({}, {"compression": "zstd"}, {"use_dictionary": False}, {"data_page_version": "2.0"}):
        data = parquet(table, **options)
        assert read_untrusted_parquet(data, ["d", "a", "b", "c", "a"], 3, 1000).equals(
            table.select(["d", "a", "b", "c"])
        )
    assert read_untrusted_parquet(parquet(table.slice(0, 0)), ["a"], 0, 0).num_rows == 0


def test_a_parquet_payload_is_bounded_in_rows_and_in_bytes():
    many = parquet(pa.table({"a": pa.repeat(1, 100_000)}), compression="zstd")
    long = parquet(pa.table({"a": ["x" * 100_000] * 1000}), compression="zstd")
    wide = parquet(pa.table({"a": pa.array([bytes(100_000)] * 1000, pa.binary(100_000))}), compression="zstd")
    alike = parquet(
        pa.table({"a": ["x" * 10_000] * 9}), use_dictionary=False, column_encoding={"a": "DELTA_BYTE_ARRAY"}
    )

    assert max(map(len, (many, long, wide, alike))) < 30_000
    with pytest.raises(Corrupt, match="it has 100000 rows, and at most 99999 are possible"):
        read_untrusted_parquet(many, ["a"], 99_999, 1 << 20)
    with pytest.raises(Corrupt, match="its texts take more than 1048576 bytes"):
        read_untrusted_parquet(long, ["a"], 1000, 1 << 20)
    with pytest.raises(Corrupt, match="its columns take more than 1048576 bytes"):
        read_untrusted_parquet(wide, ["a"], 1000, 1 << 20)
    with pytest.raises(Corrupt, match="9 values of encoding 7"):
        read_untrusted_parquet(alike, ["a"], 9, 1 << 20)


@pytest.mark.parametrize(
    "table",
    [{"b": [1]}, {"a": [[1]]}, {"a": [{"b": 1}]}],
    ids=["no such column", "a list", "a struct"],
)
def test_a_parquet_payload_of_other_columns_is_refused(table):
    with pytest.raises(Corrupt, match=r"0 columns 'a'|has lists or structs"):
        read_untrusted_parquet(parquet(pa.table(table)), ["a"], 10, 1000)


def test_the_shape_of_a_filter_is_that_of_pybloom_and_needs_no_filter():
    for fpp in (0.0001, 0.001, 0.01, 0.3, 0.5):
        for capacity in sorted({filter_capacity(distinct) for distinct in range(1, 20_000, 7)}):
            real = HashFilter(capacity, fpp)
            assert filter_shape(capacity, fpp) == (real.num_slices, real.bits_per_slice)
    assert filter_shape((1 << 31) - 1, 0.001)[1] > 1 << 31
