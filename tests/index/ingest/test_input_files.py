"""Files of all formats, from wherever they are, are the same rows; and what cannot be read is named."""

import bz2
import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuse_index as fuse
from fuse_index.ingest import input_files
from fuse_index.ingest.input_files import InputFileError, find_input_files
from fuse_index.ingest.json_documents import DocumentLines
from fuse_index.ingest.read_files import InputFiles, read_files
from fuse_storage import open_store

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
FIRST = '{"id": 1, "price": "9.50", "at": "2026-01-31T12:00:00Z", "name": "Zoë"}'
CSV = "id,price,at,name\n1,9.50,2026-01-31T12:00:00Z,Zoë\n2,,,\n"


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS, SCHEMA), sink)
    return sink.getvalue()


def arrow_compressed(kind: str) -> Callable[[bytes], bytes]:
    return lambda data: pa.Codec(kind).compress(data, asbytes=True)


FILES = {
    "parquet": parquet(),
    "csv": CSV.encode(),
    "tsv": CSV.replace(",", "\t").encode(),
    "jsonl": f'{FIRST}\n{{"id": 2}}\n'.encode(),
    "json": f'[{FIRST},\n {{\n  "id": 2\n}}]\n'.encode(),
}
COMPRESSED = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": arrow_compressed("zstd"),
    ".br": arrow_compressed("brotli"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for suffix, data in FILES.items():
        (tmp_path / f"rows.{suffix}").write_bytes(data)
    return tmp_path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("compression", COMPRESSED)
@pytest.mark.parametrize("suffix", FILES)
def test_every_format_gives_the_same_rows_in_the_tables_own_types(suffix, compression, tmp_path):
    path = tmp_path / f"rows.{suffix}{compression}"
    path.write_bytes(COMPRESSED[compression](FILES[suffix]))
    advanced: list[int] = []

    files = InputFiles.open(find_input_files([path]), SCHEMA)
    rows = files.reader(advanced.append).read_all()

    assert rows.select(SCHEMA.names).to_pylist() == ROWS
    assert sum(advanced) == files.size == path.stat().st_size


@pytest.mark.parametrize("suffix", FILES)
def test_the_same_comes_from_standard_input(suffix, monkeypatch):
    stdin = io.BufferedReader(Pipe(gzip.compress(FILES[suffix])))
    monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": stdin}))

    assert read_files("-", suffix, schema=SCHEMA).read_all().select(SCHEMA.names).to_pylist() == ROWS
    with pytest.raises(InputFileError, match="standard input has no name: say its format"):
        read_files("-")


class Pipe(io.RawIOBase):
    """Bytes that can be read once, in small parts."""

    def __init__(self, data: bytes) -> None:
        self.rest = data

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        data, self.rest = self.rest[:100][: len(buffer)], self.rest[min(len(buffer), 100) :]
        buffer[: len(data)] = data
        return len(data)


def test_the_same_comes_from_an_object_store(folder):
    url = f"memory://files-{uuid4().hex}/in"
    store = open_store(url)
    for suffix, data in FILES.items():
        store.create(f"year=2026/rows.{suffix}", data)
        store.create(f"_hidden/rows.{suffix}", b"nothing")

    found = read_files(f"{url}/year=2026/rows.csv", schema=SCHEMA).read_all()
    assert found.to_pylist() == ROWS
    whole = read_files(url, schema=SCHEMA).read_all()
    assert whole["id"].to_pylist() == [1, 2] * 5
    assert set(whole["year"].to_pylist()) == {2026}
    assert read_files(f"{url}/*/rows.*s[vo]*", schema=SCHEMA).read_all()["year"].to_pylist() == [2026] * 8
    with pytest.raises(InputFileError, match="no file 'memory://"):
        read_files(f"{url}/year=2026/absent.csv")


def test_all_files_of_a_folder_are_one_stream(folder):
    (folder / "notes.txt").write_text("not data")
    (folder / "_SUCCESS.csv").write_text("not data")
    (folder / "empty.csv").write_text("")
    (folder / "empty.json").write_text("[]")

    assert read_files(folder, schema=SCHEMA).read_all()["id"].to_pylist() == [1, 2] * 5
    assert read_files(str(folder / "*.[ct]sv"), schema=SCHEMA).read_all()["id"].to_pylist() == [1, 2] * 2
    assert read_files([folder / "rows.csv", folder / "rows.tsv"]).read_all()["id"].to_pylist() == [1, 2] * 2


def test_files_that_know_fewer_columns_have_null_in_them(tmp_path):
    write(tmp_path / "1.csv", "id,n\n1,1\n")
    write(tmp_path / "2.csv", "name,id\nb,2\n")
    write(tmp_path / "3.jsonl", '{"id": 3, "n": 1.5, "s": {"x": 1}}\n')
    write(tmp_path / "4.jsonl", '{"id": 4, "s": {"y": 2}}\n')

    assert read_files(tmp_path).read_all().to_pylist() == [
        {"id": 1, "n": 1.0, "name": None, "s": None},
        {"id": 2, "n": None, "name": "b", "s": None},
        {"id": 3, "n": 1.5, "name": None, "s": {"x": 1, "y": None}},
        {"id": 4, "n": None, "name": None, "s": {"x": None, "y": 2}},
    ]
    write(tmp_path / "5.csv", "id\nfive\n")
    with pytest.raises(InputFileError, match=r"5\.csv and the files before it differ in columns: .*'?id"):
        read_files(tmp_path)


def test_a_file_with_a_column_twice_is_refused_by_its_name(tmp_path):
    write(tmp_path / "twice.csv", "id,n,id\n1,2,3\n")
    with pytest.raises(InputFileError, match=r"twice\.csv has more than one column 'id': rename one"):
        read_files(tmp_path)


def test_folders_of_hive_are_columns(tmp_path):
    write(tmp_path / "t/year=2025/city=Bonn%2FB/a.csv", "id\n1\n")
    write(tmp_path / "t/year=2026/city=__HIVE_DEFAULT_PARTITION__/b.csv", "id\n2\n")
    expected = [{"id": 1, "year": 2025, "city": "Bonn/B"}, {"id": 2, "year": 2026, "city": None}]

    assert read_files(tmp_path / "t").read_all().to_pylist() == expected
    assert read_files(str(tmp_path / "t" / "year=*" / "*" / "*.csv")).read_all().to_pylist() == expected
    assert read_files(str(tmp_path / "t" / "year=2026" / "**")).read_all().to_pylist() == expected[1:]
    typed = read_files(tmp_path / "t", schema=pa.schema([("year", pa.string())])).read_all()
    assert typed["year"].to_pylist() == ["2025", "2026"]
    assert read_files(tmp_path / "t", partitions=False).schema.names == ["id"]
    write(tmp_path / "d/on=2026-01-31/a.csv", "id\n1\n")
    assert read_files(tmp_path / "d").read_all()["on"].to_pylist() == [date(2026, 1, 31)]
    with pytest.raises(InputFileError, match="'2026-01-31' is no int64 for column 'on'"):
        read_files(tmp_path / "d", schema=pa.schema([("on", pa.int64())])).read_all()


def test_csv_takes_an_unquoted_empty_field_as_null_and_a_quoted_one_as_empty_text(tmp_path):
    path = write(tmp_path / "rows.csv", 'id,price,at,name\n1,,,""\n2,,,\n3,,,"two\nlines"\n')

    assert read_files(path, schema=SCHEMA).read_all()["name"].to_pylist() == ["", None, "two\nlines"]


def test_other_texts_for_null_can_be_named(tmp_path):
    path = write(tmp_path / "rows.csv", "id,price,at,name\n1,NA,NA,NA\n")

    rows = read_files(path, schema=SCHEMA, nulls=["NA"]).read_all()
    assert rows.to_pylist() == [{"id": 1, "price": None, "at": None, "name": None}]


def test_a_file_without_a_telling_name_needs_its_format_said(folder):
    path = (folder / "rows.csv").rename(folder / "rows.txt")

    with pytest.raises(InputFileError, match=r"rows\.txt' ends in none of .*: say its format \(--format"):
        read_files(path)
    assert read_files(path, "csv").read_all().num_rows == 2


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("rows.parquet", "id,price\n", r"rows\.parquet is not readable as parquet"),
        ("rows.csv", "id,price,at,name\none,,,\n", r"rows\.csv is not readable as csv.*'one'"),
        ("rows.csv.gz", "id\n1\n", None),
        ("rows.jsonl", '{"id": 1}\n{"id": \n', r"rows\.jsonl is not readable as jsonl \(one JSON object a line\)"),
        ("rows.json", '[{"id": 1}, {"id"}]', r"rows\.json is not readable as json: Expecting ':' .* at character 17"),
        ("rows.json", '[{"id": 1}, ', r"rows\.json is not readable as json: the array does not end"),
        ("rows.csv", "", r"rows\.csv is not readable as csv: it is empty"),
        ("rows.json", "[ ]", r"rows\.json is not readable as json: it is empty"),
        ("rows.json", "[1, 2]", r"rows\.json is not readable as json"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_named(tmp_path, name, text, says):
    path = write(tmp_path / name, text)

    if says is None:  # it is what its first bytes say
        assert read_files(path).read_all().num_rows == 1
        return
    with pytest.raises(InputFileError, match=says):
        read_files(path, schema=SCHEMA).read_all()


@pytest.mark.parametrize(
    ("arguments", "named", "says"),
    [
        (["absent.csv"], {}, r"no file 'absent\.csv'"),
        (["absent/*.csv"], {}, r"no Parquet, CSV, TSV or JSON file in 'absent/\*\.csv'"),
        ([3], {}, "paths=3: give a path, folder, glob or URL"),
        ([[]], {}, "give a path"),
        (["x.csv", "xml"], {}, "format='xml': give parquet, csv, tsv, jsonl, json, or None"),
        (["x.csv"], {"schema": "id INT"}, "give a pa.Schema"),
    ],
)
def test_what_names_no_file_is_refused(arguments, named, says):
    with pytest.raises(fuse.InputError, match=says):
        fuse.read_files(*arguments, **named)


def test_an_empty_folder_is_named(tmp_path):
    with pytest.raises(InputFileError, match="no Parquet, CSV, TSV or JSON file"):
        read_files(tmp_path)


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 1 << 20])
def test_documents_are_cut_where_they_end(cut):
    text = '\ufeff [{"a": "]},{\\"", "b": [1, {"c": "é"}]} ,\n{"a":1e400,"d":12345678901234567890123}\n, {}]\n'

    class Slow(io.BytesIO):
        def read(self, size: int = -1) -> bytes:
            return super().read(cut)

    lines = io.BufferedReader(DocumentLines(Slow(text.encode()))).read().decode().splitlines()
    assert lines == ['{"a": "]},{\\"", "b": [1, {"c": "é"}]}', '{"a":1e400,"d":12345678901234567890123}', "{}"]
    pretty = io.BufferedReader(DocumentLines(io.BytesIO(json.dumps(ROWS[1], indent=2, default=str).encode() * 2)))
    assert len(pretty.read().splitlines()) == 2


READS_TWO_FILES = """
import sys
from resource import RUSAGE_SELF, getrusage
from fuse_index.ingest.read_files import read_files
for path in sys.argv[1:]:
    print(sum(batch.num_rows for batch in read_files(path)), getrusage(RUSAGE_SELF).ru_maxrss)
"""


READS_AND_ENDS = """
import io, sys
from fuse_index.ingest.lent_input import LentInput
import pyarrow as pa
import pyarrow.json
import threading, time

class Slow(io.BytesIO):
    def read(self, size=-1):
        if threading.current_thread() is not threading.main_thread() and self.tell():
            time.sleep(0.2)
        return super().read(size)

reader = pa.json.open_json(LentInput(Slow(b'{"id": 1}\\n' * 100_000)), pa.json.ReadOptions(block_size=10_000))
print(next(iter(reader)).num_rows > 100)
"""


def test_a_process_waits_for_threads_that_read_ahead():
    """Threads that want the interpreter while it ends would end the process by SIGABRT."""
    told = subprocess.run([sys.executable, "-c", READS_AND_ENDS], capture_output=True, text=True)
    assert (told.returncode, told.stdout, told.stderr) == (0, "True\n", "")


def test_a_large_file_is_read_in_the_memory_of_a_few_batches(tmp_path):
    """In a process of its own, whose memory the system counts, and which ends as it should: Arrow's threads that still
    read ahead would end it by SIGABRT.
    """
    sizes = {"small": 10, "large": 100_000}
    for name, count in sizes.items():
        with gzip.open(tmp_path / f"{name}.json.gz", "wt", compresslevel=1) as file:
            file.write("[" + ",".join(json.dumps({"id": n, "text": "x" * 1500}) for n in range(count)) + "]")

    paths = [str(tmp_path / f"{name}.json.gz") for name in sizes]
    told = subprocess.run([sys.executable, "-c", READS_TWO_FILES, *paths], capture_output=True, text=True, check=True)

    (_, before), (rows, after) = (map(int, line.split()) for line in told.stdout.splitlines())
    assert rows == 100_000
    assert after - before < 160 << 10  # KiB; 94 are used, and 240 if all rows are kept
    assert os.path.getsize(paths[1]) < 10 << 20


def test_a_table_takes_paths_and_knows_their_types(folder, tmp_path):
    table = fuse.create_table(f"memory://files-{uuid4().hex}", SCHEMA)
    table.append(str(folder / "rows.*"))
    table.append([folder / "rows.tsv"])
    table.merge(folder / "rows.json", on=["id"]) if table.count() == 2 else None

    assert table.count("price = 9.5 AND name = 'Zoë'") == 6
    required = pa.schema([pa.field("id", pa.int64()), pa.field("n", pa.int32(), nullable=False)])
    made = fuse.create_table(f"memory://files-{uuid4().hex}", required)
    made.append(write(tmp_path / "n.jsonl", '{"n": 1}\n'))
    with pytest.raises(fuse.SchemaError, match="lack column 'n', which is NOT NULL"):
        made.append(write(tmp_path / "id.jsonl", '{"id": 1}\n'))
    assert input_files.InputFormat("csv") == "csv"
