"""Sources that Spark reads by its ``s3a://``, whose indexes are in S3 by ours: both name one file by two schemes."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from tests.lakes.tables import all_rows
from tests.s3 import REGION, s3_server
from tests.spark.foreign.sources import FILES, MISSING, a_of
from tests.spark.foreign.ways import Use, Ways

pytestmark = pytest.mark.skipif(
    not list((Path(sys.prefix) / "lakes").glob("hadoop-aws-*.jar")), reason="no jars of hadoop-aws: run make install"
)


@pytest.fixture(scope="module")
def options(spark: SparkSession) -> Iterator[dict[str, str]]:
    """Options of a server with the buckets lake and tables, of which Spark knows the first as ``s3a://lake``."""
    with s3_server("lake", "tables") as options:
        hadoop = spark.sparkContext._jsc.hadoopConfiguration()
        for name, value in {
            "endpoint": options["endpoint"],
            "endpoint.region": REGION,
            "access.key": options["access_key_id"],
            "secret.key": options["secret_access_key"],
            "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
            "path.style.access": "true",
            "connection.ssl.enabled": "false",
        }.items():
            hadoop.set(f"fs.s3a.bucket.lake.{name}", value)
        yield {**options, "shared_places": "s3://lake"}


@pytest.mark.parametrize("format_", ["parquet", "delta"])
def test_an_index_in_s3_of_a_source_in_s3a(
    ways: Ways, spark: SparkSession, options: dict[str, str], format_: str
) -> None:
    source, place = f"s3a://lake/{format_}", f"s3://tables/{format_}"
    rows = all_rows(spark)
    rows.write.format(format_).save(source)
    fuse.attach(source, place, format_, votes_only=True, options=options).create_index("by_a", "bloom", ["a"])
    fuse_spark.use(spark, place, options=options)
    query = f"SELECT * FROM {format_}.`{source}` WHERE a = "

    found, told = ways.found(f"{query}'{a_of(777)}'")
    assert len(found) == 1
    assert [use.left_out for use in told] == [FILES - 1]
    assert ways.same(f"{query}'{MISSING}'") == [Use(FILES, FILES)]

    rows.where("id < 20").selectExpr("id + 9000 id", "a", "b", "n").coalesce(1).write.mode("append").format(
        format_
    ).save(source)
    (use,) = ways.same(f"{query}'{a_of(5)}'")
    assert (use.files, use.left_out, use.unknown) == (FILES + 1, FILES - 1, 1)
    fuse.open_table(place, options=options).sync()
    (use,) = ways.same(f"{query}'{a_of(777)}'")
    assert (use.files, use.left_out, use.unknown) == (FILES + 1, FILES, 0)
