"""Files of apache/parquet-testing, by the writers of many years: each is read as Arrow reads it, or refused by name."""

from pathlib import Path
from shutil import copy

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuse_index as fuse
from fuse_index.predicate import Column, Compare, IsNull, Literal

GOLDEN = Path(__file__).parents[2] / "golden" / "parquet_testing"
REFUSED = {
    "bad-ARROW-GH-45185": "does not hold the columns of its table",
    "bad-ARROW-GH-47662": "does not hold the columns of its table",
    "bad-ARROW-RS-GH-6229-DICTHEADER": "is no Parquet file that can be read",
    "bad-ARROW-RS-GH-6229-LEVELS": r"column 'outer\.item\.c' is of type null",
    "bad-PARQUET-1481": "is no Parquet file that can be read",
    "encrypt_columns_and_footer.encrypted": "is encrypted",
    "encrypt_columns_plaintext_footer.encrypted": "is encrypted",
    "float16_nonzeros_and_nans": "column 'x' is of type halffloat",
    "float16_zeros_and_nans": "column 'x' is of type halffloat",
    "incorrect_map_schema": "is no Parquet file that can be read",
    "nation.dict-malformed": "does not hold the columns of its table",
    "null_list": r"column 'emptylist\.item' is of type null",
    "rle-dict-uncompressed-corrupt-checksum": "does not hold the columns of its table.*checksum",
}
COLUMNS, LOOKUPS = 4, 2


def texts(rows: pa.Table) -> list[str]:
    """Rows as texts, in which NaN equals itself; times as numbers, since Python has not all of them."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            rows = rows.set_column(number, field.name, rows.column(number).cast(pa.int64()))
    return [str(row) for row in rows.to_pylist()]


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.parquet")), ids=lambda file: file.stem)
def test_rows_are_those_that_arrow_reads(file: Path, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    copy(file, tmp_path / "lake")
    if message := REFUSED.get(file.stem):
        with pytest.raises(fuse.StorageError, match=rf"{file.name}.*{message}"):
            fuse.attach(tmp_path / "lake", tmp_path / "table").to_arrow()
        return
    table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    found = pq.read_table(file, coerce_int96_timestamp_unit="us")
    expected = pa.table([found.column(each.name).cast(each.type) for each in table.schema], schema=table.schema)

    assert texts(expected) == texts(table.to_arrow())
    plain = [each for each in table.schema if not (pa.types.is_nested(each.type) or pa.types.is_timestamp(each.type))]
    for number, field in enumerate(plain[:COLUMNS]):
        if number == 0 and not (pa.types.is_floating(field.type) or pa.types.is_boolean(field.type)):
            table.create_index("by_first", "bloom", [f"`{field.name}`"])
        column, values = Column((field.name,), field.type), expected.column(field.name).to_pylist()
        for value in dict.fromkeys(values[:LOOKUPS]):
            same = IsNull(column) if value is None else Compare("=", column, Literal(value, field.type))
            keep = pa.array([each == value for each in values], pa.bool_())
            if value == value:  # NaN apart
                assert texts(expected.filter(keep)) == texts(table.to_arrow(same)), value
