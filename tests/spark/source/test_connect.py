"""Everything that needs no driver JVM, through a Spark Connect server that these tests start."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fuse_index import create_table, open_table
from tests.spark.questions import BLOCKS, FEW, ROWS, numbers
from tests.spark.servers import connect_server, run

# Servers start, and half a dozen jobs run, before the first test.
pytestmark = [pytest.mark.every_spark, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("connect")
    table = create_table(str(place / "numbers"), numbers(0).schema)
    for block in range(BLOCKS):
        table.append(numbers(block))
    table.create_index("by_kind", "bloom", ["kind"], build=False)
    schema = pa.schema({"id": pa.int64(), "s": pa.string()})
    create_table(str(place / "clustered"), schema, cluster_by=["id"], properties={"block_rows": 200})
    hot = create_table(str(place / "hot"), pa.schema({"id": pa.int64()}), properties={"hot_rows": 10})
    hot.append(pa.table({"id": range(20)}))
    keyed = create_table(str(place / "keyed"), "id BIGINT, n INT", primary_key=["id"])
    keyed.upsert([{"id": number, "n": number % 2} for number in range(4)])
    return place


@pytest.fixture(scope="module")
def told(folder: Path) -> Any:
    with connect_server(folder) as server:
        return run("connect", server, str(folder))


def test_the_program_was_a_client_without_a_jvm(told: Any) -> None:
    assert told["kind"] is True


@pytest.mark.parametrize("question", FEW)
def test_connect_gives_the_rows_that_spark_alone_gives(told: Any, question: str) -> None:
    answer, expected = told["questions"][question]

    assert answer == expected


def test_plain_sql_over_a_view(told: Any) -> None:
    assert told["sql"] == [["k0", 10], ["k1", 10], ["k2", 10], ["k3", 10], ["k4", 10]]


def test_a_function_of_a_plugin_is_called_in_sql_of_columns_and_in_text(told: Any) -> None:
    assert told["functions"] == [[3, 8, 13, 18, 23, 28]] * 3


def test_a_clustered_write_sorts_by_the_cluster_key(told: Any, folder: Path) -> None:
    assert told["clustered"] == [0, 1, 2, 3, 4]
    assert open_table(str(folder / "clustered")).explain("id = 3").to_dict()["blocks"]["kept"] == 1


def test_what_a_table_consists_of_is_seen_through_the_server(told: Any) -> None:
    assert told["looked_into"] == [[800, 0], "id"]


def test_append_and_overwrite(told: Any) -> None:
    assert told["overwritten"] == [20, 21, 22, 30, 31, 32]


def test_wrong_options_are_named(told: Any) -> None:
    unknown, misspelt, nowhere = told["refused"]

    assert "nobody" in unknown
    assert "no option 'wher'" in misspelt
    assert "never" in nowhere


def test_an_index_is_built_by_the_servers_tasks(told: Any) -> None:
    ((index),) = told["indexed"]

    assert (index["blocks"], index["blocks_indexed"]) == (BLOCKS, BLOCKS)


def test_a_table_is_followed_and_written(told: Any) -> None:
    assert told["streamed"] == BLOCKS * ROWS


def test_rows_are_changed_by_the_servers_tasks(told: Any) -> None:
    assert told["changed"] == [[10, "ten"], [11, "eleven"], [19, "last"], [30, "thirty"]]


def test_hot_rows_are_written_read_followed_and_tiered(told: Any) -> None:
    before, waiting, after, left = told["hot"]

    assert before == [45, 22, 1, 22, 45]
    assert waiting == [23, 45]
    assert after == [45, 45, 1, 45, 45]
    assert left == [0, 45]


def test_rows_are_put_and_read_by_their_keys(told: Any) -> None:
    assert told["keyed"] == [[1, 5], [3, 1], [30, 1]]


def test_the_client_unpickled_nothing_but_pysparks_own_memory_of_schemas(told: Any) -> None:
    assert [found for found in told["unpickled"] if not found.startswith("('pyspark.sql.types', ")] == []
