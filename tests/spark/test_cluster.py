"""On a standalone cluster, whose executors are other processes, that these tests start."""

from typing import Any

import pytest

from fuse_index import create_table
from tests.spark.questions import BLOCKS, FEW, ROWS, numbers
from tests.spark.servers import run

# servers start, and half a dozen jobs run, before the first test
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def told(cluster_url: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("cluster")
    create_table(str(folder / "numbers"), numbers(0).schema, cluster_by=["id"], properties={"block_rows": ROWS})
    return run("cluster", cluster_url, str(folder))


def test_two_executors_worked_and_the_driver_did_not(told: Any) -> None:
    assert told["processes"] == {"executors": 2, "driver_is_one": False}


def test_a_clustered_write_sizes_the_blocks(told: Any) -> None:
    assert sum(told["written"]) == BLOCKS * ROWS
    assert max(told["written"]) <= ROWS
    assert len(told["written"]) <= 2 * BLOCKS


@pytest.mark.parametrize("question", FEW)
def test_the_executors_give_the_rows_that_spark_alone_gives(told: Any, question: str) -> None:
    source, native, expected = told["questions"][question]

    assert source == expected
    assert native == expected


def test_an_index_is_built_by_the_executors(told: Any) -> None:
    assert told["indexed"]["indexed"] == told["indexed"]["blocks"] > 0
    assert told["indexed"]["kept"] == told["indexed"]["rows"] == 0


def test_votes_leave_out_files_of_a_source_that_executors_read(told: Any) -> None:
    assert told["voted"] == {"ids": [7], "left_out": 3}


def test_a_retried_task_doubles_no_row(told: Any) -> None:
    assert told["retried"] == list(range(1000))


def test_a_speculative_attempt_doubles_no_row(told: Any) -> None:
    assert "1-1" in told["speculated"]["attempts"]  # or there was none, and this proves nothing
    assert told["speculated"]["ids"] == list(range(1000))


def test_a_job_that_fails_for_good_leaves_the_table_as_it_was(told: Any) -> None:
    assert "failed 4 times" in told["failed"]["told"] or "a broken task" in told["failed"]["told"]
    assert told["failed"]["unchanged"]
    assert told["failed"]["rows"] == BLOCKS * ROWS
