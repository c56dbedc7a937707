"""A session whose catalogue ``fuse`` knows tables by their places."""

import pytest
from pyspark.sql import SparkSession

from fuse_index import spark as fuse_spark


@pytest.fixture(scope="module")
def sql_spark(spark: SparkSession) -> SparkSession:
    fuse_spark.install(spark)

    return spark
