"""WITH RECURSIVE over tables with indexes: Spark plans each step anew, with the rows of the step before."""

import re
from collections.abc import Iterator

import pyspark
import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.errors import InputError
from fuse_index.spark.native.planner_callback import PlannerCallback
from fuse_index.spark.protocol.questions import Prune, Question

pytestmark = [
    pytest.mark.every_spark,
    pytest.mark.skipif(pyspark.__version__ < "4.1", reason="the first Spark that has WITH RECURSIVE is 4.1"),
]

NODES, BLOCK = 400, 50
LINKS = [(number, (number * 7 + 3) % NODES, f"n{number}") for number in range(NODES)]
"""Nodes, the node that comes next, and a name."""


@pytest.fixture(scope="module")
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Views of the same links: ``heap`` and ``keyed`` of tables with indexes, and ``plain``."""
    home = tmp_path_factory.mktemp("links")
    columns = "id BIGINT NOT NULL, next BIGINT, name STRING"
    for name, key in (("heap", ()), ("keyed", ("id",))):
        table = fuse.create_table(home / name, columns, primary_key=key, properties={"block_rows": BLOCK})
        table.append([{"id": number, "next": following, "name": text} for number, following, text in LINKS])
        for column in ("next", "name"):
            table.create_index(f"by_{column}", "bloom", [column], fpp=0.0001)
        fuse_spark.read(spark, str(home / name)).createOrReplaceTempView(name)
    spark.createDataFrame(LINKS, columns).createOrReplaceTempView("plain")
    yield spark
    for name in ("heap", "keyed", "plain"):
        spark.catalog.dropTempView(name)


STEPS = 3  # nodes of a cycle of four
FOLLOWED = f"""
    WITH RECURSIVE c(i, steps) AS (
        SELECT id, 0 FROM {{t}} WHERE name = 'n5'
        UNION ALL SELECT t.id, steps + 1 FROM c JOIN {{t}} t ON t.next = c.i WHERE steps < {STEPS}
    ) SELECT * FROM c
"""
QUERIES = [
    FOLLOWED,
    """WITH RECURSIVE c(i, steps) AS (
           SELECT t.id, 0 FROM {t} t JOIN VALUES ('n1'), ('n390') AS w(name) ON t.name = w.name
           UNION ALL SELECT t.next, steps + 1 FROM c LEFT JOIN {t} t ON t.next = c.i AND t.name <> 'n7' WHERE steps < 3
       ) SELECT * FROM c""",
    """WITH RECURSIVE c(i) AS (
           SELECT 0L UNION ALL SELECT i + 20 FROM c
           WHERE i < (SELECT max(t.id) FROM {t} t JOIN VALUES ('n61'), ('n70') AS w(name) ON t.name = w.name)
       ) SELECT * FROM c""",
    """WITH RECURSIVE c(i) AS (
           SELECT 3L UNION ALL
           SELECT i + 1 FROM c WHERE i < 9 AND EXISTS (SELECT 1 FROM {t} t WHERE t.next = c.i AND t.name <> 'n172')
       ) SELECT * FROM {t} WHERE next IN (SELECT i FROM c) AND name > 'n2'""",
    """SELECT t.name, (
           WITH RECURSIVE c(i, steps) AS (
               SELECT 5L, 0 UNION ALL SELECT t.id, steps + 1 FROM c JOIN {t} t ON t.next = c.i WHERE steps < 3
           ) SELECT sum(i) FROM c
       ) FROM {t} t WHERE t.name = 'n9'""",
]


@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_those_of_a_plain_table(views: SparkSession, query: str) -> None:
    plain = sorted(map(tuple, views.sql(query.format(t="plain")).collect()), key=repr)
    assert plain
    for name in ("heap", "keyed"):
        assert sorted(map(tuple, views.sql(query.format(t=name)).collect()), key=repr) == plain, name


def test_each_step_asks_about_the_rows_of_the_step_before(views: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    reply = PlannerCallback._reply

    def keep(self: PlannerCallback, text: str, question: Question) -> bytes:
        asked.extend([text] if isinstance(question, Prune) else [])
        return reply(self, text, question)

    monkeypatch.setattr(PlannerCallback, "_reply", keep)
    new = FOLLOWED.replace("'n5'", "'n6'")  # what no other test has asked: replies are remembered
    found = [node for node, _ in views.sql(new.format(t="heap")).collect()]

    following = {number: node for number, node, _ in LINKS}
    assert len(found) == STEPS + 1
    assert [following[node] for node in found[1:]] == found[:-1]
    keys = [re.findall(r'"InSet",.*?"values":\["(.*?)"\]', text) for text in asked]
    assert [int(key) for of_one in keys for key in of_one] == found[:-1]


def test_a_recursive_query_alone_has_no_account(views: SparkSession) -> None:
    with pytest.raises(InputError, match="steps of WITH RECURSIVE while the query runs: explain the SELECT of one"):
        fuse_spark.explain(views.sql(FOLLOWED.format(t="heap")))


def test_neither_has_a_stream_of_others(spark: SparkSession) -> None:
    with pytest.raises(InputError, match="this query scans no table of ours natively"):
        fuse_spark.explain(spark.readStream.format("rate").load())
