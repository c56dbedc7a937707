import pytest
from pyspark.sql import SparkSession

from tests.spark.foreign.ways import Ways


@pytest.fixture(scope="module")
def ways(spark: SparkSession) -> Ways:
    return Ways(spark)
