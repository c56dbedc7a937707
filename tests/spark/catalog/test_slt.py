"""Statements in a warehouse of their own, file by file, and the rows or errors that they give."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fuse_index import spark as fuse_spark
from tests.effort import everything
from tests.spark.catalog import slt

FILES = sorted(Path(__file__).parent.glob("*.slt"))


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    fuse_spark.install(spark, warehouse=str(tmp_path / "warehouse"))
    slt.make_filled_table(tmp_path)
    yield tmp_path
    spark.catalog.setCurrentCatalog("spark_catalog")


@pytest.mark.every_spark
@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_statements_give_what_their_file_says(spark: SparkSession, warehouse: Path, file: Path) -> None:
    differences = slt.follow(spark, file, warehouse, halts=not everything())

    assert not differences, "\n\n".join(differences)
