"""Statements in a warehouse of their own, file by file, and the rows or errors that they give."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from tests.spark.catalog import slt

FILES = sorted(Path(__file__).parent.glob("*.slt"))


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    fuse_spark.install(spark, warehouse=str(tmp_path / "warehouse"))
    filled = fuse.create_table(tmp_path / "filled", "id BIGINT, name STRING")
    filled.append([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    filled.tag("monday")
    filled.append([{"id": 3, "name": "c"}])
    filled.branch("try").append([{"id": 4, "name": "d"}])
    yield tmp_path
    spark.catalog.setCurrentCatalog("spark_catalog")


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_statements_give_what_their_file_says(spark: SparkSession, warehouse: Path, file: Path) -> None:
    differences = slt.follow(spark, file, warehouse)

    assert not differences, "\n\n".join(differences)
