"""Functions of plugins over a source: files without an answer are left out, and unknown ones are read exactly."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.indexes.registry import Host
from tests.acme import acme_functions
from tests.effort import some_of
from tests.spark.foreign.ways import Use, Ways, same_of_each

FILES, ROWS = 4, 30


def documents(number: int) -> pa.Table:
    bodies: list[str | None] = [
        f"line {i} of file{number}, {'Late-refund' if i == 7 else 'unremarkable'}" for i in range(ROWS)
    ]
    bodies[3], bodies[4] = None, ""
    found = [json.dumps({"user": {"name": f"u{number * ROWS + i}"}, "tags": [f"t{number}"]}) for i in range(ROWS)]
    ids = [number * ROWS + i for i in range(ROWS)]
    return pa.table({"id": ids, "body": bodies, "doc": [*found[:-1], "no json"]})


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    home = tmp_path_factory.mktemp("functions")
    (home / "lake").mkdir()
    for number in range(FILES):
        pq.write_table(documents(number), home / "lake" / f"{number}.parquet")
    table = fuse.attach(home / "lake", home / "index", votes_only=True)
    table.create_index("words", "full_text", ["body"])
    table.create_index("paths", "json_path", ["doc"], paths=["$.user.name", "$.tags[*]"])
    fuse_spark.install(spark)
    fuse_spark.use(spark, home / "index")
    return f"parquet.`{home}/lake`"


CONDITIONS: list[tuple[str, int | None]] = [  # how many files are read; None: no condition on the source is left to ask
    ("match(body, 'file2')", 1),
    ("match(body, 'FILE2 file1', 'operator=or')", 2),
    ("match(body, 'nowhere')", 0),
    ("match(body, 'file1') OR match(body, '\"late refund\" AND file3')", 2),
    ("match(body, 'file1') OR doc = 'x'", 4),
    ("NOT match(body, 'file1')", None),
    ("match(body, 'late') AND id < 10", 1),
    ("get_json_object(doc, '$.user.name') = 'u65'", 1),
    ("get_json_object(doc, '$.user.name') IN ('u1', 'u100')", 2),
    ("json_contains(doc, '$.tags[*]', 't3')", 1),
    ("json_contains(doc, '$.tags[*]', 't3') OR match(body, 'file0')", 2),
]


def test_functions_of_plugins(ways: Ways, source: str) -> None:
    ways.spark.table(source).createOrReplaceTempView("documents")  # whose files are listed once
    found = same_of_each(ways, "documents", [where for where, _ in CONDITIONS])

    assert {where: [FILES - use.left_out for use in told] for where, told in found.items()} == {
        where: [] if read is None else [read] for where, read in CONDITIONS
    }


def test_a_file_that_no_index_knows(ways: Ways, source: str) -> None:
    lake = Path(source[len("parquet.`") : -1])
    pq.write_table(documents(9), lake / "9.parquet")
    try:
        for where, read in some_of(CONDITIONS):
            told = ways.same(f"SELECT id FROM {source} WHERE {where}")
            assert told == ([] if read is None else [Use(FILES + 1, FILES - read, 1)]), where
        assert ways.with_votes(f"SELECT id FROM {source} WHERE match(body, 'file9 AND refund')")[0] == ["Row(id=277)"]
    finally:
        (lake / "9.parquet").unlink()


@pytest.mark.every_spark
def test_conditions_on_values_of_a_function(spark: SparkSession, ways: Ways, tmp_path: Path) -> None:
    host, lake = Host([acme_functions]), tmp_path / "lake"
    lake.mkdir()
    for number in range(FILES):
        pq.write_table(pa.table({"n": [7 * i + number for i in range(ROWS)]}), lake / f"{number}.parquet")
    table = fuse.attach(lake, tmp_path / "index", votes_only=True, host=host)
    table.create_index("by_remainder", "remainders", ["n"])
    fuse_spark.install(spark, host)
    try:
        fuse_spark.use(spark, tmp_path / "index")
        for where, read in [("remainder(n, 7) = 2", 1), ("NOT (remainder(n, 7) < 2) AND n > 5", 2)]:
            [use] = ways.same(f"SELECT n FROM parquet.`{lake}` WHERE {where}")
            assert FILES - use.left_out == read, where
    finally:
        fuse_spark.install(spark, Host.discover())
