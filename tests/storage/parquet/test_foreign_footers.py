"""Footers of other writers' files, damaged in many ways: an error that names the file, or columns that can be read."""

import io
import random
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuse_storage import StorageError, open_store
from fuse_storage.attach.set_source import SourceVersion, first_attached_snapshot
from fuse_storage.attach.source_columns import plain_source_columns
from fuse_storage.attach.source_files import SourceFile
from fuse_storage.attach.stage_files import FileRules, stage_source_files
from fuse_storage.parquet.foreign.file_schema import file_columns, read_file_schema
from fuse_storage.parquet.foreign.footer import open_foreign_file

ROWS = pa.table(
    {
        "n": range(30),
        "s": [f"v{n}" for n in range(30)],
        "d": pa.array([Decimal(n) for n in range(30)], pa.decimal128(9, 2)),
        "day": [date(2024, 1, 1)] * 30,
        "b": [n % 2 == 0 for n in range(30)],
        "l": [[n] for n in range(30)],
        "x": [{"a": n} for n in range(30)],
    }
)


def a_file() -> bytes:
    file = io.BytesIO()
    pq.write_table(ROWS, file, row_group_size=10, write_page_index=True, store_schema=False)
    return file.getvalue()


def damaged(footer: bytes, draw: random.Random) -> bytes:
    found, at = bytearray(footer), draw.randrange(len(footer))
    match draw.randrange(5):
        case 0:
            found[at] ^= 1 << draw.randrange(8)
        case 1:
            found[at] = draw.randrange(256)
        case 2:
            del found[at : at + draw.randrange(1, 20)]
        case 3:
            del found[at:]
        case _:  # a number that is far too large, where one begins
            found[at:at] = bytes([0xFF] * draw.randrange(1, 9) + [draw.randrange(128)])
    return bytes(found)


def attach_one(place: str, data: bytes) -> None:
    store = open_store(place)
    store.create("a.parquet", data, overwrite=True)
    opened = open_foreign_file(store, "a.parquet", len(data))
    footer = opened.footer()
    found = file_columns(read_file_schema(footer), footer, "a.parquet")
    columns = plain_source_columns(found.schema)
    first = first_attached_snapshot(open_store("memory://no-table"), columns, SourceVersion("parquet", place, None), {})
    stage_source_files(store, first.schema, FileRules(by_id=False), [(SourceFile("a.parquet", len(data)), opened)])


@pytest.mark.parametrize("seed", range(2))
def test_a_damaged_footer_is_an_error_of_ours_or_one_that_can_be_read(seed: int) -> None:
    data, draw = a_file(), random.Random(seed)
    length = int.from_bytes(data[-8:-4], "little")
    pages, footer = data[: -8 - length], data[-8 - length : -8]
    told = []
    for _ in range(150):
        found = damaged(footer, draw)
        try:
            attach_one(f"memory://footers-{seed}", pages + found + len(found).to_bytes(4, "little") + b"PAR1")
        except StorageError as problem:
            told.append(str(problem))
    assert 50 < len(told) < 150
    assert [text for text in told if "memory://footers" not in text and "column" not in text] == []


def test_statistics_of_another_kind_are_unknown() -> None:
    data = a_file()
    highest = b"\x28\x08" + (9).to_bytes(8, "little")  # max_value, field 5 after null_count, of the first rows of n
    at = data.find(highest)
    assert at > 0
    # a number in nine bytes in the place of the text
    attach_one("memory://kinds", data[:at] + b"\x26" + b"\xff" * 8 + b"\x01" + data[at + 10 :])
