"""Queries of Delta and Iceberg tables by their own names, which change nothing."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from tests.effort import effort, everything, some_of
from tests.lakes.tables import create_delta, create_iceberg, use_index
from tests.spark.foreign.shapes import OF_FILES, SHAPES, X, Y
from tests.spark.foreign.sources import FILES, MISSING
from tests.spark.foreign.ways import Use, Ways, conf, same_on_random_conditions


@pytest.fixture(scope="module", params=["delta", "iceberg"])
def source(request: pytest.FixtureRequest, spark: SparkSession, home: Path) -> str:
    name = create_delta(spark, home) if request.param == "delta" else create_iceberg(spark)
    use_index(spark, home, name)
    spark.udf.register("has_digits", lambda text: text is not None and text[1:].isdigit(), "boolean")
    return name


def test_shapes_of_queries(ways: Ways, source: str) -> None:
    # Delta has no `_metadata.row_index` of tables without deletion vectors, and Iceberg no `_metadata`.
    of_files = {name: shape for name, shape in OF_FILES.items() if "row_index" not in shape[0]}
    shapes = SHAPES | of_files if source.startswith("delta") else SHAPES
    # Adaptive execution takes the scan of an empty side out of the plan.
    shapes = shapes | {"full join with nobody": (SHAPES["full join with nobody"][0], [7])}
    some = dict(some_of(list(shapes.items())))  # all of them are run over Parquet
    with conf(ways.spark, spark_sql_autoBroadcastJoinThreshold="-1"):
        found = {name: sorted(ways.left_out(sql.format(t=source))) for name, (sql, _) in some.items()}

    assert found == {name: expected for name, (_, expected) in some.items()}


def test_random_conditions(ways: Ways, source: str) -> None:
    told = same_on_random_conditions(ways, source, seed=5, count=effort(10))

    assert sum(use.left_out for use in told) > effort(10)  # of the files that their own statistics did not leave out
    assert not any(use.unknown or use.problem for use in told)


def test_one_dataframe_in_many_places(ways: Ways, source: str) -> None:
    def query() -> DataFrame:
        some = ways.spark.table(source).where(col("a").isin(X, Y))
        joined = some.alias("p").join(some.alias("q"), "id").select("id", "p.a", "p.b", "p.n")
        return some.union(some).union(joined)

    assert {use.files - use.left_out for use in ways.same(query)} == {2}


def test_row_groups(ways: Ways, source: str) -> None:
    (use,) = ways.same(f"SELECT * FROM {source} WHERE a = '{X}'")

    assert use == Use(FILES, FILES - 1, 0, int(source.startswith("ice")))  # Delta writes one row group here


def test_an_error_is_the_same_unless_its_rows_were_left_out(ways: Ways, source: str) -> None:
    texts = [f"CAST(b AS INT) = 5 AND a = '{X}'", f"a = '{MISSING}' AND CAST(b AS INT) = 5"]
    if everything():
        texts += [f"CAST(b AS INT) = 5 AND a = '{MISSING}'", f"a = '{X}' AND CAST(b AS INT) = 5"]
    for text in texts:
        ways.same_but_for_errors(f"SELECT id FROM {source} WHERE {text}")


def test_metadata_columns_of_iceberg(ways: Ways, source: str) -> None:
    if source.startswith("ice"):
        assert ways.left_out(f"SELECT id, _file, _pos, _spec_id FROM {source} WHERE a = '{X}'") == [FILES - 1]
        for table, where in [
            ("snapshots", "operation = 'append'"),
            ("files", "content = 0"),
            ("entries", "status = 1"),
        ]:
            ways.same(f"SELECT count(*) FROM {source}.{table} WHERE {where}")
