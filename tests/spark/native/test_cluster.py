"""Native reads by executors that are other processes: whatever of ours travelled to them would fail there."""

from typing import Any

import pytest

from tests.effort import some_of
from tests.spark.questions import BLOCKS, QUESTIONS, ROWS
from tests.spark.servers import run


@pytest.fixture(scope="module")
def told(cluster_url: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return run("native", cluster_url, str(tmp_path_factory.mktemp("native") / "table"))


@pytest.mark.parametrize("way", ["as it is", "no generated code", "row by row"])
def test_executors_read_blocks_without_our_classes(told: Any, way: str) -> None:
    answers = told["ways"][way]

    assert {where: found for where, (found, _) in answers.items()} == {
        where: expected for where, (_, expected) in answers.items()
    }
    assert list(answers) == (QUESTIONS if way == "as it is" else some_of(QUESTIONS))


def test_executors_read_one_partition_a_task_without_our_classes(told: Any) -> None:
    groups, plan = told["partitioned"]

    distinct = {f"k{kind}": {i / 2 if i % 7 else "nan" for i in range(kind, BLOCKS * ROWS, 5)} for kind in range(5)}
    assert groups == [[kind, len(halves)] for kind, halves in distinct.items()]
    assert "Exchange hashpartitioning" not in plan
