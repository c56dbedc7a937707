"""What an operator does about an index in Spark: it is switched off, built anew, and says what it failed at."""

import warnings
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.errors import BuildError
from fuse_index.indexes.registry import Host, PluginWarning
from fuse_index.plugin import Sidecar
from fuse_index.reasons import Reason
from fuse_index.signals.build_failures import BUILD_FAILURES
from fuse_index.signals.events import Event, PlanMade
from fuse_plugins import min_max
from tests.index.pruning.test_planner import Kind
from tests.spark.catalog.test_explain_statements import make_table

SWITCH = "spark.fuse.index.off"


class FailsOnLarge(Kind):
    def build(self, rows, zones, options):
        if rows.column(0)[0].as_py() > 15:
            raise RuntimeError("too large today")
        return Sidecar(None)


class Fails(Kind):
    def build(self, rows, zones, options):
        raise RuntimeError("no build today")


@pytest.mark.parametrize("statement", ["SELECT * FROM $T WHERE name = 'n3'", "DELETE FROM $T WHERE name = 'n3'"])
def test_an_account_says_what_the_session_switched_off(sql_spark: SparkSession, tmp_path: Path, statement: str) -> None:
    table = make_table(tmp_path)
    table.create_index("by_name", "bloom", ["name"])
    text = statement.replace("$T", f"fuse.`{tmp_path}/t`")
    sql_spark.conf.set(SWITCH, "by_name")
    try:
        told = [row[0] for row in sql_spark.sql(f'CALL fuse.system.explain("{text}")').collect()]
    finally:
        sql_spark.conf.unset(SWITCH)

    asked = [row[0] for row in sql_spark.sql(f'CALL fuse.system.explain("{text}")').collect()]
    assert [line for line in told if "by_name" in line and "DISABLED" in line and f"the setting {SWITCH}" in line]
    assert not [line for line in asked if "DISABLED" in line]


def test_a_statement_asks_no_index_that_the_session_switched_off(sql_spark: SparkSession, tmp_path: Path) -> None:
    table = make_table(tmp_path)
    table.create_index("by_name", "bloom", ["name"])
    heard: list[Event] = []
    sql_spark.conf.set(SWITCH, "kind:bloom")
    try:
        with fuse.listen(heard.append):
            sql_spark.sql(f"DELETE FROM fuse.`{tmp_path}/t` WHERE name = 'n3'").collect()
    finally:
        sql_spark.conf.unset(SWITCH)

    votes = [vote for event in heard if isinstance(event, PlanMade) for vote in event.explanation.votes]
    assert {vote.reason for vote in votes if vote.index == "by_name"} == {Reason.DISABLED}
    assert table.refresh().count("name = 'n3'") == 0


def test_an_index_that_executors_cannot_build_says_why(spark: SparkSession, tmp_path: Path) -> None:
    host = Host([min_max, FailsOnLarge])
    table = fuse.create_table(tmp_path / "t", "n BIGINT", properties={"block_rows": 10}, host=host)
    table.append([{"n": number} for number in range(40)])
    table.create_index("x", "own", ["n"], build=False)
    key = table.inspect.indexes().column("key")[0].as_py()

    with pytest.warns(PluginWarning, match="too large today"):
        fuse_spark.build_index(spark, str(tmp_path / "t"), "x", rebuild=True, host=host)

    for known in ("here", "in another process"):
        problem = table.refresh().inspect.indexes().column("problem")[0].as_py()
        assert problem.startswith("PLUGIN_ERROR: 2 of 4 blocks are not indexed: its kind failed in build() on "), known
        assert "too large today" in problem
        BUILD_FAILURES.forget(key)


def test_an_index_that_executors_built_on_no_block_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    host = Host([min_max, Fails])
    table = fuse.create_table(tmp_path / "t", "n BIGINT", properties={"block_rows": 10}, host=host)
    table.append([{"n": number} for number in range(40)])
    table.create_index("x", "own", ["n"], build=False)

    warnings.simplefilter("ignore", PluginWarning)
    with pytest.raises(BuildError, match="index 'x' was built on none of 4 blocks"):
        fuse_spark.build_index(spark, str(tmp_path / "t"), "x", rebuild=True, host=host)
    assert "no build today" in table.refresh().inspect.indexes().column("problem")[0].as_py()


def test_what_is_kept_is_named_once(sql_spark: SparkSession, tmp_path: Path) -> None:
    make_table(tmp_path)

    with pytest.raises(Exception, match="table and namespace: give one of them"):
        sql_spark.sql(f"CALL fuse.system.maintain(table => '{tmp_path}/t', namespace => 'shop')")
