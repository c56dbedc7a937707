"""Functions of plugins in Spark: right with and without an index, seen by the scan, and refused while a query is
analysed.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.indexes.registry import Host, PluginWarning
from fuse_index.plugin import Function, hookimpl
from fuse_index.reasons import Reason
from fuse_index.spark import functions
from tests.acme import acme_functions
from tests.spark.executed import files_read

BLOCKS, ROWS = 4, 50
HOST = Host([acme_functions])


def rows(block: int) -> pa.Table:
    """Block 0 has the multiples of 7, block 1 those plus 1, …; block 3 has no even number."""
    numbers = [7 * i + block for i in range(ROWS)] if block < 3 else [14 * i + 3 for i in range(ROWS)]
    maybe = [None if i % 5 == 0 else i for i in range(ROWS)]
    words = [f"{'abc'[i % 3]}{i}" if i % 11 else None for i in range(ROWS)]
    return pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "maybe": pa.array(maybe, pa.int32()),
            "word": words,
            "other": [f"{'ab'[i % 2]}{i}" for i in range(ROWS)],
        }
    )


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = str(tmp_path_factory.mktemp("functions") / "numbers")
    table = fuse.create_table(url, rows(0).schema, host=HOST)
    table.create_index("by_remainder", "remainders", ["n"])
    for block in range(BLOCKS):
        table.append(rows(block))
    return url


@pytest.fixture(scope="module")
def plain(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(pa.concat_tables(rows(block) for block in range(BLOCKS)))


@pytest.fixture(autouse=True)
def view(spark: SparkSession, url: str, plain: DataFrame) -> Iterator[None]:
    fuse_spark.install(spark, HOST)
    fuse_spark.read(spark, url).createOrReplaceTempView("numbers")
    plain.createOrReplaceTempView("plain")
    yield
    fuse_spark.install(spark, Host.discover())
    spark.catalog.dropTempView("numbers")
    spark.catalog.dropTempView("plain")


SAME = [
    ("divides(n, 7)", "n % 7 = 0"),
    ("NOT divides(n, 7)", "n % 7 <> 0"),
    ("divides(n, 7) AND n < 100", "n % 7 = 0 AND n < 100"),
    ("divides(n, 7) OR even(n)", "n % 7 = 0 OR n % 2 = 0"),
    ("even(n)", "n % 2 = 0"),
    ("NOT even(n)", "n % 2 <> 0"),
    ("NOT (even(n) AND n > 10)", "n % 2 <> 0 OR n <= 10"),
    ("divides(maybe, 5)", "maybe % 5 = 0"),
    ("NOT divides(maybe, 3)", "maybe % 3 <> 0"),
    ("divides(maybe, 3) IS NULL", "maybe IS NULL"),
    ("even(maybe) IS NULL", "maybe IS NULL"),
    ("even(maybe) OR NOT even(maybe)", "maybe IS NOT NULL"),
    ("coalesce(divides(maybe, 3), true)", "coalesce(maybe % 3 = 0, true)"),
    ("divides(n, 3 + 4)", "n % 7 = 0"),
    ("divides(n + 1, 7)", "(n + 1) % 7 = 0"),
    ("alike(word, other)", "left(word, 1) = left(other, 1)"),
    ("alike(word, other, 2)", "left(word, 2) = left(other, 2)"),
    ("alike(word, word)", "word IS NOT NULL"),
    ("alike(word, 'a5')", "word LIKE 'a%'"),
    ("divides(12, 4)", "true"),
    ("divides(13, 4) OR n = 8", "n = 8"),
    ("divides(CAST(NULL AS INT), 4)", "false"),
    ("remainder(n, 7) = 1", "n % 7 = 1"),
    ("remainder(n, 7) <=> 1 OR remainder(maybe, 5) = 2", "n % 7 = 1 OR maybe % 5 = 2"),
    ("remainder(maybe, 3) <> 1", "maybe % 3 <> 1"),
    ("NOT (remainder(n, 7) = 1 OR remainder(maybe, 3) = 0)", "n % 7 <> 1 AND maybe % 3 <> 0"),
    ("remainder(maybe, 3) IS NULL", "maybe IS NULL"),
    ("coalesce(remainder(maybe, 3), 1) = 1", "coalesce(maybe % 3, 1) = 1"),
    ("remainder(n, 7) < maybe", "n % 7 < maybe"),
    ("remainder(n, 7) = remainder(n, 14)", "n % 7 = n % 14"),
    ("remainder(remainder(n, 14), 7) + 1 = 2", "n % 7 = 1"),
    ("if(remainder(n, 7) = 1, divides(n, 5), even(n))", "if(n % 7 = 1, n % 5 = 0, n % 2 = 0)"),
    ("CASE remainder(n, 7) WHEN 1 THEN true WHEN 2 THEN n < 99 END", "n % 7 = 1 OR n % 7 = 2 AND n < 99"),
]


@pytest.mark.alike
@pytest.mark.parametrize(("where", "same"), SAME)
def test_a_function_means_the_same_on_tables_of_ours_and_of_others(spark: SparkSession, where: str, same: str) -> None:
    ours, others = (
        spark.sql(f"SELECT '{on}' AS place, n, maybe FROM {on} WHERE {where}") for on in ("numbers", "plain")
    )
    expected = sorted(map(repr, spark.sql(f"SELECT n, maybe FROM plain WHERE {same}").collect()))

    found = ours.union(others).collect()
    for place in ("numbers", "plain"):
        assert sorted(repr(Row(n=row.n, maybe=row.maybe)) for row in found if row.place == place) == expected


@pytest.mark.alike
@pytest.mark.parametrize(
    ("where", "files"),
    [
        ("divides(n, 7)", 1),
        ("divides(n, 7) AND n > 100", 1),
        ("even(n)", 3),
        ("even(n) OR (even(n) AND n > 5)", 3),
        ("divides(n, 7) OR (divides(n, 14) AND n > 5)", 1),
        ("even(n) OR divides(n, 12)", 3),
        ("NOT (NOT even(n) OR n > 1000)", 3),
        ("NOT divides(n, 7)", 4),
        ("divides(n, 840) AND divides(n, 7)", 1),
        ("divides(n, 7) AND alike(word, other)", 1),
        ("remainder(n, 7) = 2", 1),
        ("2 < remainder(n, 7)", 1),
        ("NOT (remainder(n, 7) <= 1)", 2),
        ("remainder(n, 7) <> 0", 3),
        ("remainder(n, 7) IN (0, 3)", 2),
        ("remainder(n, 7) BETWEEN 1 AND 2", 2),
        ("remainder(n, 7) = 2 OR divides(n, 7)", 2),
        ("remainder(n, 7) = 2 OR even(n)", 3),
        ("remainder(n, 7) = 2 AND n IS NOT NULL AND alike(word, other)", 1),
        ("NOT (remainder(n, 7) < 2 OR remainder(n, 14) > 99)", 2),
        ("remainder(n, 7) > 100", 0),
        ("remainder(n, 7) IS NULL", 4),
        ("remainder(n, 7) < maybe", 4),
    ],
)
def test_the_scan_learns_of_a_call_however_it_is_evaluated(spark: SparkSession, where: str, files: int) -> None:
    found = spark.sql(f"SELECT n FROM numbers WHERE {where}")
    found.collect()

    assert files_read(found) == files


@pytest.mark.parametrize(
    ("where", "same", "files"),
    [
        ("divides(n, 7) AND alike(word, other)", "n % 7 = 0 AND left(word, 1) = left(other, 1)", 1),
        ("even(n)", "n % 2 = 0", 3),
        ("remainder(n, 7) = 2", "n % 7 = 2", 1),
    ],
)
def test_calls_are_read_where_names_in_back_quotes_are_patterns(
    spark: SparkSession, where: str, same: str, files: int
) -> None:
    spark.conf.set("spark.sql.parser.quotedRegexColumnNames", "true")
    try:
        found = spark.sql(f"SELECT n FROM numbers WHERE {where}")
    finally:
        spark.conf.unset("spark.sql.parser.quotedRegexColumnNames")

    assert sorted(found.collect()) == sorted(spark.sql(f"SELECT n FROM plain WHERE {same}").collect())
    assert files_read(found) == files


def test_explain_names_the_call_as_it_was_written(spark: SparkSession) -> None:
    explained = fuse_spark.explain(spark.sql("SELECT n FROM numbers WHERE divides(n, 7)"))

    assert ("divides(n, 7)", "by_remainder", Reason.USED) in {
        (vote.leaf, vote.index, vote.reason) for vote in explained.votes
    }


def test_functions_of_columns(spark: SparkSession, url: str) -> None:
    divides, alike = (functions.column_function(HOST.functions[name]) for name in ("divides", "alike"))
    df = fuse_spark.read(spark, url)
    found = df.where(divides("n", 7) & alike(df.word, "other"))

    assert found.count() == spark.sql("SELECT * FROM plain WHERE n % 7 = 0 AND left(word, 1) = left(other, 1)").count()
    assert fuse_spark.explain(found).to_dict()["blocks"] == {"total": BLOCKS, "kept": 1}


def test_functions_of_installed_plugins_are_imported_by_name() -> None:
    with pytest.raises(AttributeError, match="no plugin brings a function 'nosuch'"):
        _ = functions.nosuch


def test_a_call_may_stand_wherever_a_condition_may(spark: SparkSession) -> None:
    found = spark.sql(
        "SELECT divides(n, 7) AS seventh, count(*) c, count_if(divides(n, 2)) even FROM numbers GROUP BY "
        "divides(n, 7) ORDER BY seventh"
    )

    assert [tuple(row) for row in found.collect()] == [(False, 150, 50), (True, 50, 25)]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("divides(n)", r"divides\(\) takes 2 arguments, not 1"),
        ("alike(word)", r"alike\(\) takes 2 to 3 arguments, not 1"),
        ("divides(n, n)", r"divides\(\): argument 2 must be a constant"),
        ("divides(n, CAST(NULL AS INT))", r"divides\(\): argument 2 must be a constant, and not NULL"),
        ("divides(n, 'seven')", r"divides\(\): argument 2 must be bigint: 'seven'"),
        ("divides(n, 0)", r"divides\(\): nothing is divided by 0"),
        ("divides(array(n), 7)", 'cannot cast "ARRAY<BIGINT>" to "BIGINT"'),
        ("divides(INTERVAL '1' DAY, 7)", "argument 1 is interval day, which is not supported"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused_before_anything_runs(spark: SparkSession, call: str, told: str) -> None:
    with pytest.raises(AnalysisException, match=told):
        spark.sql(f"SELECT * FROM numbers WHERE {call}")


def test_a_function_of_sparks_own_name_is_left_alone(spark: SparkSession) -> None:
    class Plugin:
        @hookimpl
        def fuse_index_functions(self) -> list[Function]:
            return [Function("abs", (pa.int64(),), acme_functions.divides)]

    with pytest.warns(PluginWarning, match="'abs' of a plugin is not used in SQL: Spark has one of that name"):
        functions.register_functions(spark, Host([Plugin()]))

    assert spark.sql("SELECT abs(-3)").collect() == [(3,)]


def test_a_function_that_fails_while_it_is_written_fails_the_query_by_name(spark: SparkSession) -> None:
    def broken(number: str) -> str:
        raise KeyError("nothing here")

    class Plugin:
        @hookimpl
        def fuse_index_functions(self) -> list[Function]:
            return [Function("broken", (pa.int64(),), acme_functions.divides, native=broken)]

    functions.register_functions(spark, Host([Plugin()]))
    with pytest.raises(AnalysisException, match=r"broken\(\): KeyError: 'nothing here'"):
        spark.sql("SELECT broken(n) FROM numbers")


def test_format_fuse_takes_calls_in_where(spark: SparkSession, url: str, tmp_path: Path) -> None:
    found = spark.read.format("fuse").option("where", "divides(n, 7)").load(url)

    assert found.count() == ROWS
