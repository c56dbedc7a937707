"""Which connectors a session has whose scans ask indexes, and whether their releases were tested."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import SparkSession

from fuse_index.spark.native.java_compiler import jvm_bridge


def describe_connectors(spark: SparkSession) -> Mapping[str, str]:
    """What reads sources of a format, and its release: ``{"delta": "delta 4.3.1"}``. An untested one is named so."""
    told = json.loads(jvm_bridge(spark).connectors())
    return {format_: _described(format_, about["release"], about["tested"]) for format_, about in told.items()}


def _described(format_: str, release: str, tested: list[str]) -> str:
    name = f"{'Spark' if format_ == 'parquet' else format_} {release}"
    return name if release in tested else f"{name} (not tested: {', '.join(tested)} are)"
