"""What an executed plan did, by Spark's own counts."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame


def files_read(df: DataFrame) -> int:
    """The files that the scans of a collected DataFrame have opened, by Spark's own count."""
    return sum(scan.metrics().apply("numFiles").value() for scan in scans(df._jdf.queryExecution().executedPlan()))


def rows_scanned(df: DataFrame) -> int:
    """What Parquet handed over to a collected DataFrame, after its own filters on row groups."""
    return sum(scan.metrics().apply("numOutputRows").value() for scan in scans(df._jdf.queryExecution().executedPlan()))


def scans(plan: Any) -> Iterator[Any]:
    """The file scans of a physical plan, as adaptive execution left it."""
    name = plan.getClass().getSimpleName()
    if name == "FileSourceScanExec":
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
