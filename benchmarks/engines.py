"""Who is measured: fuse-index locally and in Spark, and the peers. Each ingests the same files and answers the same
queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.datasets import AGGREGATE, SCHEMA, Query

Answer = tuple[int, int]
"""How many rows, and the sum of their ids: equal in every engine, or the run fails."""


class Engine(Protocol):
    """``folder`` is empty at first, and holds all that the engine stores."""

    def __init__(self, folder: Path, block_rows: int) -> None: ...
    def ingest(self, files: Sequence[Path]) -> None: ...
    def answer(self, query: Query) -> Answer: ...
    def touched(self, query: Query) -> Mapping[str, Any]:
        """What the engine says it reads: blocks and bytes, where it says so."""
        ...

    def close(self) -> None: ...


def of_rows(rows: pa.Table) -> Answer:
    return rows.num_rows, pc.sum(rows["id"]).as_py() or 0


class FuseLocal:
    """The table of ``fuse_index`` with blooms on the two columns that are looked up, read by its own scan.

    Each query first looks for the newest snapshot, as a connection to any of the peers does.
    """

    def __init__(self, folder: Path, block_rows: int) -> None:
        import fuse_index

        self.table = fuse_index.create_table(str(folder / "table"), SCHEMA, properties={"block_rows": block_rows})
        self.table.create_index("code", "bloom", ["code"])
        self.table.create_index("name", "bloom", ["name"])

    def ingest(self, files: Sequence[Path]) -> None:
        self.table.append([str(file) for file in files])

    def answer(self, query: Query) -> Answer:
        table = self.table.refresh()
        if query.where is not None:
            return of_rows(table.scan(query.where).to_arrow())
        count = total = 0
        for batch in table.scan().to_batches():
            count, total = count + batch.num_rows, total + pc.sum(batch["id"]).as_py()
            for name in ("code", "ts", "amount", "name"):
                pc.max(batch[name])
        return count, total

    def touched(self, query: Query) -> Mapping[str, Any]:
        return _touched(self.table.explain(query.where).to_dict())

    def close(self) -> None: ...


class FuseCached(FuseLocal):
    """The same with room for all decoded columns, as an engine has that keeps its data in memory."""

    def __init__(self, folder: Path, block_rows: int) -> None:
        import fuse_index

        fuse_index.cache_columns(4 << 30)
        super().__init__(folder, block_rows)


class FuseUnindexed(FuseLocal):
    """The same table without an index on any column, as those of engines that build none when rows come in."""

    def __init__(self, folder: Path, block_rows: int) -> None:
        import fuse_index

        self.table = fuse_index.create_table(str(folder / "table"), SCHEMA, properties={"block_rows": block_rows})


class _Spark:
    def __init__(self, folder: Path, block_rows: int) -> None:
        from pyspark.sql import SparkSession

        self.folder = folder
        self.block_rows = block_rows
        self.spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.driver.memory", "6g")
            .config("spark.ui.enabled", False)
            .config("spark.ui.showConsoleProgress", False)
            .config("spark.sql.shuffle.partitions", 2)
            .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
            .config("spark.sql.session.timeZone", "UTC")
            .getOrCreate()
        )
        self.spark.sparkContext.setLogLevel("ERROR")

    def source(self, files: Sequence[Path]) -> Any:
        return self.spark.read.parquet(*map(str, files))

    def answer(self, query: Query) -> Answer:
        if query.where is None:
            row = self.spark.sql(f"SELECT {AGGREGATE} FROM rows").collect()[0]
            return row["n"], row["id"]
        rows = self.spark.sql(f"SELECT * FROM rows WHERE {query.where}").collect()
        return len(rows), sum(row["id"] for row in rows)

    def close(self) -> None:
        self.spark.stop()


class FuseSpark(_Spark):
    """The same table written by Spark, and plain Spark SQL over a view of it."""

    indexed: tuple[str, ...] = ("code", "name")

    def ingest(self, files: Sequence[Path]) -> None:
        import fuse_index
        from fuse_index import spark as fuse_spark

        url = str(self.folder / "table")
        table = fuse_index.create_table(url, SCHEMA, properties={"block_rows": self.block_rows})
        for column in self.indexed:
            table.create_index(column, "bloom", [column])
        fuse_spark.install(self.spark)
        self.source(files).write.format("fuse").mode("append").save(url)
        fuse_spark.read(self.spark, url).createOrReplaceTempView("rows")

    def touched(self, query: Query) -> Mapping[str, Any]:
        from fuse_index import spark as fuse_spark

        df = self.spark.sql(f"SELECT * FROM rows WHERE {query.where or 'true'}")
        df.collect() if query.where else None
        return _touched(fuse_spark.explain(df).to_dict()) if query.where else {}


class FuseSparkUnindexed(FuseSpark):
    """The same without an index on any column, as Parquet files are."""

    indexed = ()


class SparkParquet(_Spark):
    """What a Spark user has without us: Parquet files, Spark's own reader and its pushdown."""

    codec = "snappy"
    """Spark's default."""

    def ingest(self, files: Sequence[Path]) -> None:
        path = str(self.folder / "parquet")
        self.source(files).write.option("compression", self.codec).parquet(path)
        self.spark.read.parquet(path).createOrReplaceTempView("rows")

    def touched(self, query: Query) -> Mapping[str, Any]:
        paths = [path for path in (self.folder / "parquet").iterdir() if path.suffix == ".parquet"]
        return {"blocks": len(paths), "blocks_total": len(paths)}


class SparkZstd(SparkParquet):
    """The same, compressed as our blocks are: what is left between the two is not the codec."""

    codec = "zstd"


class DuckDB:
    """DuckDB's own file; it has min/max per row group, and no bloom filters there."""

    def __init__(self, folder: Path, block_rows: int) -> None:
        import duckdb

        self.connection = duckdb.connect(str(folder / "duck.db"))
        self.connection.execute("SET threads = 2; SET TimeZone = 'UTC'")

    def ingest(self, files: Sequence[Path]) -> None:
        self.connection.execute("CREATE TABLE rows AS SELECT * FROM read_parquet(?)", [[str(file) for file in files]])
        self.connection.execute("CHECKPOINT")

    def answer(self, query: Query) -> Answer:
        if query.where is None:
            row = self.connection.execute(f"SELECT {AGGREGATE} FROM rows").fetchall()[0]
            return row[0], int(row[1])
        return of_rows(self.connection.sql(f"SELECT * FROM rows WHERE {query.where}").to_arrow_table())

    def touched(self, query: Query) -> Mapping[str, Any]:
        return {}

    def close(self) -> None:
        self.connection.close()


class ClickHouse:
    """ClickHouse embedded (chdb): MergeTree sorted by id, bloom filter skip indexes on the two looked-up columns."""

    def __init__(self, folder: Path, block_rows: int) -> None:
        from chdb.session import Session

        self.session = Session(str(folder / "chdb"))
        self.session.query("CREATE DATABASE IF NOT EXISTS b ENGINE = Atomic")

    def ingest(self, files: Sequence[Path]) -> None:
        self.session.query(
            "CREATE TABLE b.rows (id Int64, code Int64, ts DateTime64(6, 'UTC'), amount Float64, name String, "
            "INDEX code code TYPE bloom_filter(0.01) GRANULARITY 8, INDEX name name TYPE "
            "bloom_filter(0.01) GRANULARITY 8) "
            "ENGINE = MergeTree ORDER BY id"
        )
        self.session.query(f"INSERT INTO b.rows SELECT * FROM file('{files[0].parent}/*.parquet', Parquet)")

    def answer(self, query: Query) -> Answer:
        if query.where is None:
            row = self._arrow(f"SELECT {AGGREGATE} FROM b.rows".replace("AS id", "AS i")).to_pylist()[0]
            return row["n"], row["i"]
        return of_rows(self._arrow(f"SELECT * FROM b.rows WHERE {query.where}"))

    def _arrow(self, sql: str) -> pa.Table:
        data = self.session.query(sql, "Arrow").bytes()
        return pa.ipc.open_file(data).read_all() if data else SCHEMA.empty_table()

    def touched(self, query: Query) -> Mapping[str, Any]:
        return {}

    def close(self) -> None:
        self.session.close()


class Databend:
    """Databend embedded: the Fuse engine, which blooms every column by itself. It stores below the working folder."""

    def __init__(self, folder: Path, block_rows: int) -> None:
        from databend import SessionContext

        self.context = SessionContext()
        self.block_rows = block_rows

    def ingest(self, files: Sequence[Path]) -> None:
        # A view of the files, not COPY: that wants its folder to be a stage
        self.context.register_parquet("source", f"{files[0].parent}/", pattern=r".*[.]parquet")
        self._run(
            "CREATE TABLE lines (id BIGINT NOT NULL, code BIGINT NOT NULL, ts TIMESTAMP NOT NULL, "
            "amount DOUBLE NOT NULL, "
            f"name VARCHAR NOT NULL) ROW_PER_BLOCK = {self.block_rows}"
        )
        self._run("INSERT INTO lines SELECT * FROM source")

    def answer(self, query: Query) -> Answer:
        if query.where is None:
            row = self._run(f"SELECT {AGGREGATE.replace('AS id', 'AS i')} FROM lines").iloc[0]
            return int(row["n"]), int(row["i"])
        frame = self._run(f"SELECT * FROM lines WHERE {query.where}")
        return len(frame), int(frame["id"].sum()) if len(frame) else 0

    def _run(self, sql: str) -> Any:
        return self.context.sql(sql).to_pandas()

    def touched(self, query: Query) -> Mapping[str, Any]:
        return {}

    def close(self) -> None: ...


def _touched(explanation: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "blocks": explanation["blocks"]["kept"],
        "blocks_total": explanation["blocks"]["total"],
        "bytes_planned": explanation["bytes"]["kept"],
        "bytes_total": explanation["bytes"]["total"],
    }


ENGINES: dict[str, Callable[[Path, int], Engine]] = {
    "fuse, local": FuseLocal,
    "fuse, local, columns kept": FuseCached,
    "fuse, local, no index": FuseUnindexed,
    "fuse, Spark": FuseSpark,
    "fuse, Spark, no index": FuseSparkUnindexed,
    "Parquet, Spark": SparkParquet,
    "Parquet zstd, Spark": SparkZstd,
    "DuckDB": DuckDB,
    "ClickHouse": ClickHouse,
    "Databend": Databend,
}
