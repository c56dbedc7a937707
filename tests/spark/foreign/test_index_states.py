"""An index that is stale, damaged, gone or wrong, or whose table changed: its source's queries give the same rows."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import Host
from fuse_index import spark as fuse_spark
from fuse_storage import InvalidArgument, NotFound
from tests.acme.broken import broken_kinds
from tests.s3 import s3_server
from tests.spark.foreign.sources import FILES, MISSING, ROWS, a_of, rows, use_index, write_file, write_folder
from tests.spark.foreign.ways import Use, Ways, conf


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "lake")


def query(lake: Path, value: str = a_of(5)) -> str:
    return f"SELECT * FROM parquet.`{lake}` WHERE a = '{value}'"


@pytest.fixture(autouse=True)
def _asked_each_time(spark: SparkSession) -> Iterator[None]:
    with conf(spark, spark_fuse_index_transparent_maxAge="0s"):
        yield


def test_a_table_that_has_rows_of_its_own_by_now(ways: Ways, lake: Path, tmp_path: Path) -> None:
    table = use_index(ways.spark, lake, tmp_path / "index")
    table.convert()
    table.delete("id < 10")
    table.update("id = 250", {"a": "'changed'"})

    for value in (a_of(5), a_of(250), a_of(777), "changed"):
        ways.same(query(lake, value))
    assert len(ways.with_votes(query(lake))[0]) == 1


def test_an_index_that_followed_its_source(ways: Ways, lake: Path, tmp_path: Path) -> None:
    table = use_index(ways.spark, lake, tmp_path / "index")
    write_file(rows(9), lake / "later.parquet")
    (lake / "part-0.parquet").unlink()
    assert ways.same(query(lake, a_of(9 * ROWS))) == [Use(FILES, FILES - 1, 1)]
    table.sync()
    assert ways.same(query(lake, a_of(9 * ROWS))) == [Use(FILES, FILES - 1, 0, 1)]
    assert ways.same(query(lake)) == [Use(FILES, FILES)]


@pytest.mark.parametrize("damage", ["payloads", "summaries", "snapshots", "everything"])
def test_damage(ways: Ways, lake: Path, tmp_path: Path, damage: str) -> None:
    place = tmp_path / "index"
    use_index(ways.spark, lake, place)
    folder = {"payloads": "_i", "summaries": "_x", "snapshots": "_ss", "everything": "."}[damage]
    files = [path for path in (place / folder).rglob("*") if path.is_file()]
    assert files
    if damage == "everything":
        shutil.rmtree(place)
    for path in files if damage != "everything" else ():
        path.write_bytes(b"damaged")

    for value in (a_of(5), MISSING):
        (use,) = ways.same(query(lake, value)) or [Use()]
        assert use.left_out <= FILES
    assert len(ways.with_votes(query(lake))[0]) == 1


@pytest.mark.every_spark
def test_a_kind_that_answers_wrongly_and_one_that_is_missing(ways: Ways, lake: Path, tmp_path: Path) -> None:
    other = Ways(ways.spark.newSession())
    host = Host([broken_kinds])
    fuse.attach(lake, tmp_path / "index", host=host).create_index("by_a", "wrong_length", ["a"])
    for known in (host, Host()):
        fuse_spark.install(other.spark, known)
        fuse_spark.use(other.spark, tmp_path / "index")
        assert other.same(query(lake)) == [Use(FILES)]


def test_who_is_no_table_of_a_source(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        fuse_spark.use(spark, tmp_path / "nowhere")
    fuse.create_table(tmp_path / "own", "id BIGINT")
    with pytest.raises(InvalidArgument, match="attached"):
        fuse_spark.use(spark, tmp_path / "own")


def test_threads_that_ask_while_files_come(ways: Ways, lake: Path, tmp_path: Path) -> None:
    spark = ways.spark
    use_index(spark, lake, tmp_path / "index")
    found: list[int] = []

    def ask() -> None:
        for _ in range(3):
            found.append(spark.read.parquet(str(lake)).where(f"a = '{a_of(777)}'").count())

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(20, 24):
        write_file(rows(number), lake / f".tmp-{number}")
        (lake / f".tmp-{number}").rename(lake / f"new-{number}.parquet")
    for thread in threads:
        thread.join()
    assert found == [1] * 9


@pytest.mark.every_spark
def test_one_plan_that_is_executed_by_many_threads(ways: Ways, lake: Path, tmp_path: Path) -> None:
    use_index(ways.spark, lake, tmp_path / "index")
    df = ways.spark.sql(query(lake, a_of(777)))
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(len(df.collect()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 4


def test_an_index_that_is_in_s3_while_its_source_is_not(ways: Ways, lake: Path) -> None:
    with s3_server("tables") as options:
        use_index(ways.spark, lake, "s3://tables/index", options={**options, "shared_places": str(lake)})
        assert ways.same(query(lake)) == [Use(FILES, FILES - 1, 0, 1)]
        write_file(rows(9), lake / "later.parquet")
        assert ways.same(query(lake, MISSING)) == [Use(FILES + 1, FILES, 1)]
