"""Tables that Delta's and Iceberg's connectors write, attached: rows are what the connector reads, sync by sync."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from tests.effort import everything
from tests.lakes.tables import create_delta, create_iceberg, place_of
from tests.spark.foreign.sources import a_of
from tests.spark.foreign.ways import conf


def attached(home: Path, name: str) -> fuse.Table:
    format_ = "delta" if name.startswith("delta.") else "iceberg"
    options = {"shared_places": str(home)}
    table = fuse.attach(place_of(home, name), home / f"attached-{uuid4().hex[:8]}", format_, options=options)
    table.create_index("by_a", "bloom", ["a"])
    return table


def assert_same(spark: SparkSession, name: str, table: fuse.Table, *conditions: str) -> None:
    """The rows are those that the connector reads, with indexes, and where a condition is true.

    The connector is asked once: each of its queries of a Delta table is five jobs and a second of processor.
    """
    asked = [f"coalesce({where}, false) `{where}`" for where in conditions]
    read = spark.table(name).selectExpr("*", *asked).toArrow()
    theirs = read.select(read.schema.names[: -len(conditions) or None])
    for where in ("true", *conditions):
        rows = theirs if where == "true" else theirs.filter(read.column(where))
        found = table.to_arrow(where) if where != "true" else table.to_arrow()
        assert found.schema.names == rows.schema.names
        order = [(found.schema.names[0], "ascending")]
        assert found.sort_by(order).to_pylist() == rows.sort_by(order).to_pylist(), where


STATEMENTS = [
    "DELETE FROM {} WHERE id IN (3, 777, 1501)",
    "UPDATE {} SET n = n + 1 WHERE id BETWEEN 100 AND 120",
    """MERGE INTO {} t USING (SELECT id + 100 AS id FROM range(40)) s ON t.id = s.id
    WHEN MATCHED AND s.id < 110 THEN DELETE WHEN MATCHED THEN UPDATE SET b = 'merged'""",
    "DELETE FROM {} WHERE id < 200",  # all rows of a file
]
CONDITIONS = [f"a = '{a_of(777)}'", f"a = '{a_of(110)}'", f"a = '{a_of(130)}'", "n < 40", "b = 'merged'"]


@pytest.mark.parametrize("version", [2, 3])
def test_rows_that_iceberg_deletes_where_they_are(spark: SparkSession, home: Path, version: int) -> None:
    modes = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")}
    name = create_iceberg(spark, **modes, **{"format-version": str(version)})
    table = attached(home, name)
    assert_same(spark, name, table, *CONDITIONS)
    for statement in STATEMENTS:
        spark.sql(statement.format(name))
        table.sync()
        assert_same(spark, name, table, *CONDITIONS)
    spark.sql(f"CALL ice.system.rewrite_position_delete_files('{name}')")
    table.sync()
    assert_same(spark, name, table, *CONDITIONS)
    assert table.inspect.index("by_a")["blocks_indexed"] == table.snapshot.block_count


def test_rows_that_equal_a_deleted_key(spark: SparkSession, home: Path) -> None:
    name = create_iceberg(spark, **{"format-version": "2"})
    table = attached(home, name)
    spark.sql(f"INSERT INTO {name} VALUES (9000, NULL, NULL, 7), (9001, 'x', NULL, 7)")
    delete_equal(spark, name, home, pa.table({"id": pa.array([5, 777, 9000])}))
    spark.sql(f"INSERT INTO {name} VALUES (777, '{a_of(777)}', 'again', 7)")
    for keys in (
        pa.table({"a": pa.array([None, a_of(800)], pa.string()), "n": pa.array([7, 800 % 1000], pa.int32())}),
        pa.table({"b": pa.array([None], pa.string())}),
    ):
        table.sync()
        assert_same(spark, name, table, *CONDITIONS, f"a = '{a_of(800)}'", "b IS NULL")
        delete_equal(spark, name, home, keys)
    table.sync()
    assert_same(spark, name, table, *CONDITIONS, f"a = '{a_of(800)}'", "b IS NULL")


def delete_equal(spark: SparkSession, name: str, home: Path, keys: pa.Table) -> None:
    """Commit a file of equality deletes, as Flink does and Spark's SQL cannot."""
    jvm = spark.sparkContext._jvm
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    ids = [table.schema().findField(each).fieldId() for each in keys.column_names]
    fields = [
        each.with_metadata({b"PARQUET:field_id": str(number).encode()})
        for each, number in zip(keys.schema, ids, strict=True)
    ]
    place = home / f"keys-{uuid4().hex[:8]}.parquet"
    pq.write_table(keys.cast(pa.schema(fields)), place)
    numbers = spark.sparkContext._gateway.new_array(jvm.int, len(ids))
    for position, number in enumerate(ids):
        numbers[position] = number
    built = (
        jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(table.spec())
        .ofEqualityDeletes(numbers)
        .withPath(f"file:{place}")
        .withFormat("PARQUET")
        .withFileSizeInBytes(place.stat().st_size)
        .withRecordCount(len(keys))
        .build()
    )
    table.newRowDelta().addDeletes(built).commit()
    spark.sql(f"REFRESH TABLE {name}")


@pytest.mark.parametrize(
    "mapping", [*(pytest.param(each, marks=pytest.mark.thorough) for each in ("none", "id")), "name"]
)
def test_rows_that_delta_deletes_where_they_are(spark: SparkSession, home: Path, mapping: str) -> None:
    mapped = {} if mapping == "none" else {"delta.columnMapping.mode": mapping}
    name = create_delta(spark, home, **{"delta.enableDeletionVectors": "true"}, **mapped)
    table = attached(home, name)
    for number, statement in enumerate(STATEMENTS):
        spark.sql(statement.format(name))
        if mapping != "none" and number == 1:
            spark.sql(f"ALTER TABLE {name} RENAME COLUMN n TO m")
            spark.sql(f"ALTER TABLE {name} RENAME COLUMN m TO n")
        if everything() or number % 2:
            table.sync()
            assert_same(spark, name, table, *CONDITIONS)
    assert table.inspect.index("by_a")["blocks_indexed"] == table.snapshot.block_count
    spark.sql(f"REORG TABLE {name} APPLY (PURGE)")
    table.sync()
    assert_same(spark, name, table, *CONDITIONS)


ON_VARIANTS = [
    "try_variant_get(v, '$.t', 'string') = 'x3'",
    "variant_get(v, '$.n', 'int') IN (5000, 12)",
    "try_variant_get(v, '$.n', 'int') = 33",
    "try_variant_get(v, '$', 'date') = DATE'2024-01-02'",
    "v IS NULL",
]


JSON_OF_ID = """concat('{"n": ', id, ', "t": "x', id % 7, '", "d": ', id / 4, '}')"""
VARIANT_OF_ID = (
    f"CASE id % 10 WHEN 0 THEN NULL WHEN 1 THEN CAST(DATE'2024-01-02' AS VARIANT) ELSE parse_json({JSON_OF_ID}) END"
)


@pytest.fixture
def reads_shredded(spark: SparkSession) -> Iterator[None]:
    """Spark's reader puts together what connectors shred."""
    with conf(spark, **{"spark.sql.variant.allowReadingShredded": "true"}):
        yield


@pytest.mark.parametrize(
    "mapping", [*(pytest.param(each, marks=pytest.mark.thorough) for each in ("none", "name")), "id"]
)
def test_a_variant_of_delta_is_one_of_ours(spark: SparkSession, home: Path, mapping: str) -> None:
    """Its values, and what is found at its paths, are those of the connector; merged and deleted rows are followed."""
    name = f"delta.`{home}/variants-{mapping}`"
    told = {"delta.enableDeletionVectors": "true"} | (
        {} if mapping == "none" else {"delta.columnMapping.mode": mapping}
    )
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in told.items())
    spark.sql(f"CREATE TABLE {name} (id BIGINT, a STRING, v VARIANT) USING delta TBLPROPERTIES ({properties})")
    rows = f"SELECT id, concat('a', id) a, {VARIANT_OF_ID} v FROM range"
    spark.sql(f"INSERT INTO {name} SELECT /*+ REPARTITION(3, id) */ * FROM ({rows}(300))")
    table = attached(home, name)
    table.create_index("by_path", "json_path", ["v"], paths="$.n;$.t")
    assert not table.inspect.left_out()
    fuse_spark.install(spark)
    statements = [
        f"INSERT INTO {name} {rows}(300, 330)",
        f"DELETE FROM {name} WHERE id IN (7, 120)",
        f"""UPDATE {name} SET v = parse_json('{{"n": 5000, "t": "new"}}') WHERE id = 33""",
        f"MERGE INTO {name} t USING (SELECT 44L id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = NULL",
    ]
    follow_variants(spark, name, table, statements)
    assert table.explain("try_variant_get(v, '$.n', 'int') = 5000").blocks.kept < table.snapshot.block_count


def follow_variants(spark: SparkSession, name: str, table: fuse.Table, statements: list[str]) -> None:
    """Rows of ``v``, or ``w`` once it is called so, are the connector's after two statements each, and at the end."""
    for number, statement in enumerate(statements):
        spark.sql(statement)
        if everything() or number % 2 or number == len(statements) - 1:
            table.sync()
            assert_same_variants(spark, name, table, "w" if "w" in table.schema.names else "v", number // 2)


def assert_same_variants(spark: SparkSession, name: str, table: fuse.Table, column: str, turn: int) -> None:
    """Values, and what is found at their paths, are those of the connector, natively and locally."""
    theirs, ours = spark.table(name), fuse_spark.read(spark, table.stored.store.url)
    assert theirs.schema == ours.schema
    wanted = ["id", "a", f"to_json({column}) j", f"schema_of_variant({column}) s"]
    conditions = [condition.replace("(v,", f"({column},").replace("v IS", f"{column} IS") for condition in ON_VARIANTS]
    told = theirs.selectExpr(*wanted, *(f"coalesce({condition}, false)" for condition in conditions)).toArrow()
    rows = told.select(range(len(wanted))).to_pylist()
    assert sorted(map(repr, (row.asDict() for row in ours.selectExpr(*wanted).collect()))) == sorted(map(repr, rows))
    for number, condition in enumerate(conditions, 1):
        expected = sorted(told.column("id").filter(told.column(len(wanted) + number - 1)).to_pylist())
        assert sorted(table.to_arrow(condition, ["id"]).column("id").to_pylist()) == expected, condition
        if number < 3 and (everything() or number % 2 == turn % 2):  # an index is asked
            assert sorted(row.id for row in ours.where(condition).select("id").collect()) == expected, condition


@pytest.mark.usefixtures("reads_shredded")
@pytest.mark.filterwarnings("ignore:.*fails on files with the logical type VARIANT")
@pytest.mark.parametrize("shredded", [False, True], ids=["plain", "shredded"])
def test_a_variant_of_iceberg_is_one_of_ours(spark: SparkSession, home: Path, shredded: bool) -> None:
    """PyIceberg refuses a schema that has one; its metadata is read without it, and the column is known by its id."""
    name = f"ice.db.variants_{shredded}"
    modes = ", ".join(f"'write.{each}.mode' = 'merge-on-read'" for each in ("delete", "update"))
    modes += f", 'write.parquet.shred-variants' = '{str(shredded).lower()}'"
    columns = "(id BIGINT, a STRING, v VARIANT, n INT)"
    spark.sql(f"CREATE TABLE {name} {columns} USING iceberg TBLPROPERTIES ('format-version' = '3', {modes})")
    rows = f"SELECT id, concat('a', id) a, {VARIANT_OF_ID} v, 7 n FROM range"
    spark.sql(f"INSERT INTO {name} {rows}(300)")
    table = attached(home, name)
    table.create_index("by_path", "json_path", ["v"], paths="$.n;$.t")
    assert not table.inspect.left_out()
    fuse_spark.install(spark)
    statements = [
        f"INSERT INTO {name} {rows}(300, 330)",
        f"DELETE FROM {name} WHERE id IN (7, 120)",
        f"""UPDATE {name} SET v = parse_json('{{"n": 5000, "t": "new"}}') WHERE id = 33""",
        f"ALTER TABLE {name} RENAME COLUMN v TO w",
        f"INSERT INTO {name} {rows}(330, 340)",
    ]
    follow_variants(spark, name, table, statements)
    assert table.explain("try_variant_get(w, '$.n', 'int') = 5000").blocks.kept < table.snapshot.block_count
    assert bool((table.snapshot.source or {}).get("shredded")) == shredded


def test_a_variant_of_ours_is_exported_to_delta(spark: SparkSession, home: Path) -> None:
    """Delta's connector reads the values, after deletes and a rename; and the export, attached, is the table."""
    place = home / "exported-variants"
    told = {"exports": "delta", "delete_mode": "merge-on-read", "block_rows": 10}
    table = fuse.create_table(place, "id BIGINT, v VARIANT, a STRING", properties=told)
    documents = ['{"n":1,"t":"x"}', "[1,2.5]", '"text"', None, "null", "12345678901234567890"]
    table.append([{"id": n, "v": documents[n % 6], "a": f"a{n}"} for n in range(40)])
    for change in (lambda: None, lambda: table.delete("id IN (3, 17)"), lambda: table.rename_column("v", "w")):
        change()
        column = table.schema.names[1]
        theirs = spark.read.format("delta").load(str(place)).selectExpr("id", f"to_json({column}) j", "a").toArrow()
        ours = table.to_arrow()
        assert theirs.sort_by("id").to_pylist() == [
            {"id": row["id"], "j": row[column], "a": row["a"]} for row in ours.sort_by("id").to_pylist()
        ]
    again = fuse.attach(place, home / "exported-variants-attached", "delta")
    assert again.to_arrow().sort_by("id").equals(table.to_arrow().sort_by("id"))
