"""The commands about clustering: the key, how well blocks follow it, and how they come to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fuse_index import open_table
from fuse_index.cli import output
from fuse_index.cli.front.progress import WorkProgress
from fuse_index.cli.options import (
    AtOption,
    BranchOption,
    JsonOption,
    SparkOption,
    TableArgument,
    open_spark_session,
    split_names,
)
from fuse_index.operations.recluster import DEFAULT_PASSES, DEFAULT_STEP_BLOCKS, DEFAULT_STEP_BYTES, ReclusterStep

clustering_app = typer.Typer(add_completion=False)


@clustering_app.command(name="cluster-by")
def _cluster_by(
    table: TableArgument,
    columns: Annotated[
        str | None, typer.Argument(metavar="COLUMNS", help="Columns, the first deciding, separated by commas.")
    ] = None,
    method: Annotated[str, typer.Option("--method", help="linear, or along a curve: zorder, hilbert.")] = "linear",
    none: Annotated[bool, typer.Option("--none", help="Keep no order from now on.")] = False,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Choose by which columns rows are kept together from now on."""
    if none != (columns is None):
        raise typer.BadParameter("give columns, or --none", param_hint="COLUMNS")
    snapshot = open_table(table, branch=branch).cluster_by(split_names(columns, "COLUMNS") or None, method)
    sentence = (
        f"clustered by {', '.join(snapshot.cluster_by)} ({snapshot.cluster_method})"
        if snapshot.cluster_by
        else "clustered by nothing"
    )
    output.print_result(
        {"snapshot": snapshot.id, "cluster_by": list(snapshot.cluster_by), "method": snapshot.cluster_method},
        sentence,
        as_json,
    )


@clustering_app.command("clustering")
def _clustering(
    table: TableArgument,
    by: Annotated[
        str | None, typer.Option("--by", help="Columns to look at instead of the table's key, separated by commas.")
    ] = None,
    method: Annotated[
        str | None, typer.Option("--method", help="linear, zorder or hilbert: how --by orders rows.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Draw it too, into this .svg file.")
    ] = None,
    branch: BranchOption = "main",
    at: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell how well blocks are clustered: how many overlap, and how deep they lie."""
    if picture is not None and picture.suffix.lower() != ".svg":
        raise typer.BadParameter(f"{picture} is no .svg file, and that is what is drawn", param_hint="--picture")
    report = open_table(table, branch=branch, at=at).inspect.clustering(split_names(by, "--by") or None, method)
    if picture is not None:
        picture.write_text(report.to_svg(), encoding="utf-8")
        output.print_note(f"drawn into {picture}")
    output.print_json(report.to_dict()) if as_json else output.stdout_console().print(report)


@clustering_app.command("recluster")
def _recluster(
    table: TableArgument,
    depth: Annotated[
        int, typer.Option("--depth", min=1, help="In how many blocks a value may be in the end (linear keys).")
    ] = 2,
    step_blocks: Annotated[
        int, typer.Option("--step-blocks", min=2, help="Blocks that a step reads at most.")
    ] = DEFAULT_STEP_BLOCKS,
    step_bytes: Annotated[
        int, typer.Option("--step-bytes", min=1, help="Bytes of rows that a step sorts at most.")
    ] = DEFAULT_STEP_BYTES,
    passes: Annotated[int, typer.Option("--passes", min=1, help="How often a row is sorted at most.")] = DEFAULT_PASSES,
    spark: SparkOption = None,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Sort blocks that overlap by the clustering key; each step is a commit."""
    target = open_table(table, branch=branch)
    before = target.inspect.clustering()
    steps: list[ReclusterStep] = []
    with WorkProgress("recluster") as progress:

        def print_step(step: ReclusterStep) -> None:
            steps.append(step)
            progress.say(f"step {step.number}, {sum(one.read for one in steps):,} blocks read")

        if spark is None:
            target.maintenance.recluster(depth, step_blocks, step_bytes, passes, print_step)
        else:
            with open_spark_session(spark) as (jobs, running):
                jobs.recluster(running, table, depth, step_blocks, step_bytes, passes, print_step, branch=branch)
    after = target.refresh().inspect.clustering()
    record = {
        "snapshot": target.snapshot.id,
        "steps": len(steps),
        "blocks_read": sum(step.read for step in steps),
        "rows": sum(step.rows for step in steps),
        "blocks_before": before.blocks,
        "blocks": after.blocks,
        "average_depth_before": before.average_depth,
        "average_depth": after.average_depth,
    }
    depths = f"average depth {before.average_depth:.2f} is {after.average_depth:.2f} after {len(steps)} steps"
    output.print_result(
        record, f"{depths}, {before.blocks:,} blocks are {after.blocks:,}, snapshot {target.snapshot.id}", as_json
    )


@clustering_app.command("suggest")
def _suggest(
    table: TableArgument,
    queries: Annotated[
        list[str] | None,
        typer.Option("--where", "-w", help="A condition that is asked, several times: indexes are tried on a sample."),
    ] = None,
    branch: BranchOption = "main",
    at: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say, from statistics alone, which columns an index or clustering might help; or which index, for conditions."""
    opened = open_table(table, branch=branch, at=at)
    suggestions = opened.explain.suggest(queries) if queries else opened.inspect.suggest()
    output.print_json(suggestions.to_pylist()) if as_json else output.print_rows(suggestions)
