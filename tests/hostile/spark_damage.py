"""Blocks that were changed behind the table's back, read by Spark's own reader."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import fuse_index.spark as fuse_spark
from fuse_storage import process_cache
from tests.hostile.damage import DAMAGES
from tests.hostile.trial import Trial, Verdict
from tests.hostile.world import Rows, as_rows, check_state, create

LIFE = 60


# A session that would rather go on than fail: what is asked of us must not depend on it
CARELESS = {"spark.sql.files.ignoreCorruptFiles": "true", "spark.sql.files.ignoreMissingFiles": "true"}


def spark_damage(seed: int) -> Generator[Trial, None, None]:
    """One block, or two swapped ones, in every way."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config(map=CARELESS)
    spark = builder.config("spark.log.level", "OFF").config("spark.task.maxFailures", "1").getOrCreate()
    yield from damaged_blocks(spark, seed)


def damaged_blocks(spark: SparkSession, seed: int) -> Generator[Trial, None, None]:
    """Trials in this session."""
    for number in count(seed):
        folder, draw = Path(tempfile.mkdtemp(prefix="fuse-hostile-")), Random(number)
        _, rows = create(str(folder / "table"))
        blocks = sorted((folder / "table" / "_b").glob("*.parquet"))
        try:
            for _ in range(LIFE):
                name, block = draw.choice(["two swapped", *DAMAGES]), draw.choice(blocks)
                other = draw.choice([path for path in blocks if path != block])
                yield Trial(f"block: {name}", partial(read, spark, rows, block, other, name, draw.random()))
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def read(spark: SparkSession, rows: Rows, block: Path, other: Path, name: str, chance: float) -> Verdict:
    """Damage a block, read all rows and some, and mend it again."""
    whole = {path: path.read_bytes() for path in (block, other)}
    if name == "two swapped":
        block.write_bytes(whole[other])
        other.write_bytes(whole[block])
    elif (data := DAMAGES[name](whole[block], Random(chance))) is None:
        block.unlink()
    else:
        block.write_bytes(data)
    process_cache.clear()
    try:
        dataframe = fuse_spark.read(spark, str(block.parents[1]))
        found = [row.asDict() for row in dataframe.collect()]
        check_state(as_rows(*found), rows)
        some = [row.asDict() for row in dataframe.where("grp = 3").collect()]
        check_state(as_rows(*some), {row_id: value for row_id, value in rows.items() if value[0] == 3})
    except (PySparkException, Py4JError):
        return Verdict.REFUSED
    finally:
        for path, data in whole.items():
            path.write_bytes(data)
    return Verdict.HELD
