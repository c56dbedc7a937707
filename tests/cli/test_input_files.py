from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuse_index.cli import input_files
from fuse_index.cli.input_files import InputFile, InputFileError, InputFormat

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("price", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", tz="UTC")),
        ("name", pa.string()),
    ]
)
ROWS = [
    {"id": 1, "price": Decimal("9.50"), "at": datetime(2026, 1, 31, 12, tzinfo=UTC), "name": "Zoë"},
    {"id": 2, "price": None, "at": None, "name": None},
]


def read(found: list[InputFile]) -> tuple[pa.Table, int]:
    advanced = []
    rows = input_files.read_input_files(found, SCHEMA, advanced.append).read_all()
    return rows, sum(advanced)


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS, SCHEMA), path)
    return path


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text("id,price,at,name\n1,9.50,2026-01-31T12:00:00Z,Zoë\n2,,,\n")
    return path


@pytest.fixture
def jsonl(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 1, "price": "9.50", "at": "2026-01-31T12:00:00Z", "name": "Zoë"}\n{"id": 2}\n')
    return path


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_every_format_gives_the_same_rows_in_the_tables_own_types(kind, request):
    path = request.getfixturevalue(kind)

    rows, advanced = read(input_files.find_input_files([path], None))

    assert rows.select(SCHEMA.names).to_pylist() == ROWS
    assert advanced == path.stat().st_size


def test_all_files_of_a_folder_are_one_stream(parquet, csv, jsonl, tmp_path):
    (tmp_path / "notes.txt").write_text("not data")

    rows, advanced = read(input_files.find_input_files([tmp_path], None))

    assert rows["id"].to_pylist() == [1, 2, 1, 2, 1, 2]
    assert advanced == sum(path.stat().st_size for path in (parquet, csv, jsonl))


def test_csv_takes_an_unquoted_empty_field_as_null_and_a_quoted_one_as_empty_text(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('id,price,at,name\n1,,,""\n2,,,\n')

    rows, _ = read(input_files.find_input_files([path], None))

    assert rows["name"].to_pylist() == ["", None]


def test_other_texts_for_null_can_be_named(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id,price,at,name\n1,NA,NA,NA\n")

    rows, _ = read(input_files.find_input_files([path], None, ["NA"]))

    assert rows.to_pylist() == [{"id": 1, "price": None, "at": None, "name": None}]


def test_a_file_without_a_telling_name_needs_its_format_said(csv, tmp_path):
    path = csv.rename(tmp_path / "rows.txt")

    with pytest.raises(InputFileError, match="say --format"):
        input_files.find_input_files([path], None)
    assert read(input_files.find_input_files([path], InputFormat.csv))[0].num_rows == 2


def test_a_missing_file_and_an_empty_folder_are_named(tmp_path):
    with pytest.raises(InputFileError, match=r"no file .*absent\.csv"):
        input_files.find_input_files([tmp_path / "absent.csv"], None)
    with pytest.raises(InputFileError, match="no Parquet, CSV or JSON lines file"):
        input_files.find_input_files([tmp_path], None)


def test_a_file_that_is_not_what_its_name_says_is_named(tmp_path):
    path = tmp_path / "rows.parquet"
    path.write_text("id,price\n")

    with pytest.raises(InputFileError, match=r"rows\.parquet is not readable as parquet"):
        read(input_files.find_input_files([path], None))


def test_a_value_that_is_not_of_the_columns_type_names_the_file_and_the_value(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id,price,at,name\none,,,\n")

    with pytest.raises(InputFileError, match=r"rows\.csv is not readable as csv.*'one'"):
        read(input_files.find_input_files([path], None))


def test_files_that_differ_in_columns_are_refused_by_name(parquet, tmp_path):
    other = tmp_path / "z.parquet"
    pq.write_table(pa.table({"id": [3], "colour": ["red"]}), other)

    with pytest.raises(InputFileError, match=r"z\.parquet .* differ in columns \['at', 'colour', 'name', 'price'\]"):
        read(input_files.find_input_files([parquet, other], None))


def test_the_schema_of_a_file_can_be_asked_before_any_table_exists(parquet, csv):
    assert input_files.infer_file_schema(InputFile(parquet, InputFormat.parquet)) == SCHEMA
    assert input_files.infer_file_schema(InputFile(csv, InputFormat.csv)).names == SCHEMA.names
