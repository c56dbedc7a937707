"""Tables of Delta and Iceberg that live while indexes of them grow old: any query has the rows that it has without."""

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.effort import effort, everything
from tests.lakes.lives import Life
from tests.lakes.tables import use_index
from tests.lakes.test_typed import create
from tests.spark.foreign import typed
from tests.spark.foreign.ways import Ways, conf

SETTINGS = {
    "spark.sql.adaptive.enabled": ["true", "true", "false"],
    "spark.sql.autoBroadcastJoinThreshold": ["10485760", "-1", "20000"],
    "spark.sql.session.timeZone": ["UTC", "Asia/Kathmandu"],
    "spark.sql.exchange.reuse": ["true", "false"],
}
STEPS = 8 if everything() else 2


def properties(format_: str, chosen: random.Random) -> dict[str, str]:
    if format_ == "delta":
        yes = {name: chosen.choice(["true", "false"]) for name in ("enableDeletionVectors", "enableRowTracking")}
        mode = chosen.choice(["name", "id", "none"])
        told = {**yes, "columnMapping.mode": mode, "enableTypeWidening": "true"}
        return {f"delta.{name}": value for name, value in told.items()}
    mode = chosen.choice(["merge-on-read", "copy-on-write"])
    modes = {f"write.{statement}.mode": mode for statement in ("delete", "update", "merge")}
    return {**modes, "format-version": chosen.choice(["2", "3"]), "write.distribution-mode": "none"}


@pytest.mark.filterwarnings("ignore:left out of the table")  # CHAR, which Delta's connector pads
@pytest.mark.parametrize("seed", range(effort(1)))
@pytest.mark.parametrize("format_", [pytest.param("delta", marks=pytest.mark.thorough), "iceberg"])
def test_a_life(ways: Ways, spark: SparkSession, home: Path, format_: str, seed: int) -> None:
    chosen = random.Random(f"{format_} {seed}")
    name = create(spark, home, format_, properties(format_, chosen))
    table, life = use_index(spark, home, name, *typed.INDEXED), Life(spark, name, chosen)
    for _ in range(STEPS):
        life.step()
        if chosen.random() < 0.2:
            table.sync()
        for _ in range(5):
            query = life.query()
            with conf(spark, **{key: chosen.choice(values) for key, values in SETTINGS.items()}):
                ways.same(query)

    for _ in range(3):  # whatever became of the files: one that the index knows is left out
        life.insert(life.next_id, life.next_id + typed.ROWS)
        life.next_id += typed.ROWS
    table.sync()
    value = f"a{(life.next_id - 1) * 7919 % 100_000:05d}"
    (use,) = ways.same(f"SELECT * FROM {name} WHERE {life.names['a']} = '{value}'")
    assert use.left_out >= 2, (use, life.names, life.refused)
