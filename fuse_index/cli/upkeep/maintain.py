"""The command that keeps tables: what is due is done, the worst first, once or for ever."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Annotated, Any

import typer

from fuse_index import Catalog, catalog, open_table
from fuse_index.cli import output
from fuse_index.cli.front.short_process import resume_garbage_collection
from fuse_index.cli.options import JsonOption, SparkOption, open_spark_session, split_table_name
from fuse_index.table.arguments import parse_duration
from fuse_index.table.upkeep.account import DoneTask
from fuse_index.table.upkeep.maintainer import STEPS, KeptTable, Maintainer, RunLimits
from fuse_index.warehouse.upkeep import check_defaults, kept_tables
from fuse_storage import NotFound, parse_identifier, parse_size_text

upkeep_app = typer.Typer(add_completion=False)


@upkeep_app.command("maintain")
def _maintain(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="PLACE",
            help="Warehouses, whose tables say whether they are kept; and tables, which are, unless off.",
        ),
    ],
    every: Annotated[str | None, typer.Option("--every", help="Go on for ever, so often: 30s, 5m.")] = None,
    budget: Annotated[str | None, typer.Option("--budget", help="Begin no step after so long: 10m.")] = None,
    max_bytes: Annotated[
        str | None, typer.Option("--bytes", help="Rewrite at most so many bytes of blocks, each time: 100GB.")
    ] = None,
    only: Annotated[str | None, typer.Option("--only", help="Tasks, separated by commas: tier,compact.")] = None,
    default: Annotated[
        list[str] | None,
        typer.Option("--default", help="A property of tables that say nothing of it: maintain=on; repeatable."),
    ] = None,
    lease: Annotated[str, typer.Option("--lease", help="A step is left to one maintainer for so long.")] = "10m",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done first.")] = False,
    spark: SparkOption = None,
    as_json: JsonOption = False,
) -> None:
    """Do what is due at tables, the worst first: tier, sync, refresh, compact, recluster, vacuum, verify.

    Any number of these may run at once. A table that fails is told and passed over. SIGTERM ends it after the step that
    is being done.
    """
    pause = None if every is None else parse_duration(every, "--every").total_seconds()
    limits = RunLimits.of(
        None if budget is None else parse_duration(budget, "--budget"),
        None if max_bytes is None else parse_bytes(max_bytes, "--bytes"),
        None if only is None else [name.strip() for name in only.split(",")],
        dry_run,
        parse_duration(lease, "--lease"),
    )
    kept = _KeptPlaces(places, _parse_defaults(default or []))
    with ExitStack() as stack:
        stopped = stack.enter_context(_stop_asked())
        steps = STEPS if spark is None else {**STEPS, **_spark_steps(*stack.enter_context(open_spark_session(spark)))}
        report = partial(_report, as_json=as_json)
        resume_garbage_collection()
        while True:
            maintainer = Maintainer(kept.tables(report), limits, report, stopped.is_set, steps)
            done = maintainer.run()
            failed = [each for each in done if each.outcome == "failed"]
            if pause is None and not done and not kept.failed:
                output.print_note("nothing to do: no table is due, or none is to be kept (--default maintain=on)")
            if pause is None or stopped.wait(pause):
                break
    if failed or kept.failed:
        raise typer.Exit(1)


def parse_bytes(text: str, option: str) -> int:
    """Read a number of bytes. Raises typer.BadParameter.

    >>> parse_bytes("1.5GB", "--bytes"), parse_bytes("10", "--bytes")
    (1500000000, 10)
    """
    try:
        return parse_size_text(text)
    except ValueError as problem:
        raise typer.BadParameter(f"{text!r} {problem}", param_hint=option) from None


class _KeptPlaces:
    """The tables of what was typed. Those that are open stay so, and warehouses are asked each time."""

    def __init__(self, places: list[str], defaults: Mapping[str, str]) -> None:
        self._places, self._defaults = places, defaults
        self._known: dict[tuple[str, str], KeptTable] = {}
        self.failed = False

    def tables(self, report: Callable[[DoneTask], None]) -> list[KeptTable]:
        """List the tables as they are now; a warehouse that cannot be asked is told."""
        found: dict[tuple[str, str], KeptTable] = {}
        self.failed = False
        for place in self._places:
            try:
                found |= {(place, each.name): each for each in self._tables_of(place)}
            except (NotFound, OSError) as problem:
                self.failed = True
                report(DoneTask(place, "look", "it was to be asked for its tables", "failed", problem=str(problem)))
        self._known = {key: self._known.get(key, each) for key, each in found.items()}
        return list(self._known.values())

    def _tables_of(self, place: str) -> list[KeptTable]:
        if (named := split_table_name(place)) is not None:
            warehouse, name = named
            identifier = parse_identifier(name)
            kept = kept_tables(catalog(warehouse), identifier[:-1], self._defaults, asked=True)
            found = catalog(warehouse).find_table(identifier)
            return [each for each in kept if each.name == found.name]
        if (opened := _warehouse(place)) is None:
            return [KeptTable(place, partial(open_table, place), self._defaults, asked=True)]
        return kept_tables(opened, (), self._defaults)


def _warehouse(place: str) -> Catalog | None:
    try:
        return catalog(place)
    except NotFound:
        return None


def _parse_defaults(texts: list[str]) -> dict[str, str]:
    """``maintain=on`` as properties. Raises typer.BadParameter for what is no pair, InvalidArgument."""
    if unreadable := [text for text in texts if "=" not in text]:
        raise typer.BadParameter(f"{unreadable[0]!r} is not of the form name=value", param_hint="--default")
    defaults = {name.strip(): value.strip() for name, _, value in (text.partition("=") for text in texts)}
    check_defaults(defaults)
    return defaults


def _spark_steps(jobs: Any, session: Any) -> Mapping[str, Any]:
    from fuse_index.spark.jobs.upkeep import spark_steps

    return spark_steps(session)


@contextmanager
def _stop_asked() -> Iterator[threading.Event]:
    """Let SIGTERM and Ctrl-C ask for a stop; the second one ends the process as ever."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def ask(number: int, frame: Any) -> None:
        stopped.set()
        for each, handler in before.items():
            signal.signal(each, handler)
        output.print_note("to be stopped: the step that is being done is finished first")

    for number in before:
        signal.signal(number, ask)
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _report(done: DoneTask, as_json: bool) -> None:
    if as_json:
        print(json.dumps(done.to_dict()), flush=True)
        return
    if done.task == "look":  # it could not be asked, and the problem says what to do
        problem = str(done.problem)
        said = problem if done.table in problem else f"{done.table}: {problem}"
        output.stderr_console().print(f"error: {said}", markup=False)
        return
    what = done.task if done.index is None else f"{done.task} {done.index}"
    match done.outcome:
        case "done":
            cost = f"{output.format_bytes(done.bytes_read)} read, {output.format_bytes(done.bytes_written)} written"
            said = f"in {done.seconds:.1f} s, {cost}: {done.why}"
        case "due":
            said = f"would read {output.format_bytes(done.bytes_read)}: {done.why}"
        case "failed" | "lost":
            said = f"{done.outcome}: {done.problem}"
        case _:
            said = "; ".join(filter(None, [f"{done.outcome}: {done.why}", done.problem]))
    line = f"{done.table}: {what} {said}"
    if done.outcome in ("failed", "lost", "told"):
        output.stderr_console().print(line, markup=False)
    else:
        output.print_text(line)
        sys.stdout.flush()
