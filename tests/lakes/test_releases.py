"""The releases of connectors that are tested are those that the page of lakes lists, and these tests run on."""

import json
import re

from pyspark.sql import SparkSession

from fuse_index.pruning.account.uses import SourceUse
from fuse_index.spark.lakes.connectors import describe_connectors
from fuse_index.spark.native.java_compiler import jvm_bridge
from tests.docs.pages import ROOT


def test_releases_that_are_tested(spark: SparkSession) -> None:
    told = json.loads(jvm_bridge(spark).connectors())

    page = (ROOT / "docs" / "lakes.md").read_text("utf-8")
    listed = dict(re.findall(r"^\| (Parquet|Delta|Iceberg) \| ([^|]+) \|", page, re.MULTILINE))
    assert {name.lower(): re.findall(r"\d+\.\d+\.\d+", text) for name, text in listed.items()} == {
        name: about["tested"] for name, about in told.items()
    }
    assert all(about["release"] in about["tested"] for about in told.values())
    assert describe_connectors(spark) == {
        "parquet": f"Spark {spark.version}",
        **{name: f"{name} {told[name]['release']}" for name in ("delta", "iceberg")},
    }


def test_a_release_that_was_not_tested_is_told() -> None:
    assert str(SourceUse("delta", 8, 7, release="9.0.0")) == "delta 9.0.0 (not tested) reads 1 of 8 files"
    assert str(SourceUse("delta", problem="why", release="9.0.0")) == "delta 9.0.0 (not tested) reads every file: why"
