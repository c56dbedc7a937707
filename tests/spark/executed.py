"""What an executed plan did, by Spark's own counts."""

from collections.abc import Iterator
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession

PASSES_VALUES = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 3)
"""Whether Spark itself hands the value of a scalar subquery to scans."""


def job_count(spark: SparkSession) -> int:
    """The jobs of the session so far, by the scheduler: its UI keeps no more than a thousand of them."""
    return int(spark._jsc.sc().dagScheduler().numTotalJobs())


def plan_of(df: DataFrame) -> str:
    """The text of the physical plan, which adaptive execution changes while it runs."""
    return str(df._jdf.queryExecution().executedPlan().toString())


def files_read(df: DataFrame) -> int:
    """The files that the tasks of a collected DataFrame's scans were given."""
    return sum(len(set(_paths(scan))) for scan in scans(df._jdf.queryExecution().executedPlan()))


def _paths(scan: Any) -> Iterator[str]:
    """The files of each task: in newer versions of Spark a task has one partition at most, in older ones a list."""
    tasks = scan.partitions()
    for number in range(tasks.length()):
        partitions = tasks.apply(number).iterator()
        while partitions.hasNext():
            for file in partitions.next().files():
                yield file.filePath().toString()


def rows_scanned(df: DataFrame) -> int:
    """What Parquet handed over to a collected DataFrame, after its own filters on row groups."""
    return sum(scan.metrics().apply("numOutputRows").value() for scan in scans(df._jdf.queryExecution().executedPlan()))


def scans(plan: Any) -> Iterator[Any]:
    """The scans of our tables in a physical plan, as adaptive execution left it."""
    name = plan.getClass().getSimpleName()
    if name == "BatchScanExec":
        yield plan
    inner = (
        plan.executedPlan()
        if name == "AdaptiveSparkPlanExec"
        else plan.plan()
        if name.endswith("QueryStageExec")
        else None
    )
    children = plan.children()
    for child in [inner] if inner else [children.apply(i) for i in range(children.length())]:
        yield from scans(child)
