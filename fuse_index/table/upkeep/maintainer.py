"""Tasks of many tables, the worst first, within a budget of time and bytes.

A maintainer asks each table what is due, takes its lease, asks again, and does one step; then what is worst now comes
first. A task that lost to a writer, and a table that fails, are told and passed over until the next run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic
from typing import Any

from fuse_index.errors import InputError
from fuse_index.handle import TableHandle, move_on
from fuse_index.hot.tier import tier_table
from fuse_index.signals.listeners import emit
from fuse_index.table.upkeep.account import DAY, DoneTask, MaintenanceCallback, rewritten_since, task_event
from fuse_index.upkeep.due import due_for_blocks, due_tasks, upkeep_context
from fuse_index.upkeep.steps import LOCAL_STEPS, Step, Stepped, run_step
from fuse_index.upkeep.task import REPAIR, DueTask, UpkeepContext
from fuse_storage import MAINTENANCE_TASKS, CodedError, Conflict, MaintenancePolicy, StoredTable, upkeep_lease

LEASE = timedelta(minutes=10)
"""How long the work on one step is left to one maintainer."""
_IN_WINDOW = ("compact", "recluster", "vacuum", "verify")
"""Tasks that wait for the window of the policy: the others keep a table up to date."""
_REWRITES = ("compact", "recluster")
_MAX_REST = 8
"""Runs that a table is left out of at most, after it lost or failed again and again."""


def _tier(context: UpkeepContext, task: DueTask) -> Stepped:
    return Stepped(tier_table(context.table, context.host))


STEPS: Mapping[str, Step] = {**LOCAL_STEPS, "tier": _tier}
"""Steps in this process, by task."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What a run may do. ``bytes``: of files that are rewritten. ``only``: which tasks."""

    budget: timedelta | None = None
    bytes: int | None = None
    only: frozenset[str] = frozenset(MAINTENANCE_TASKS)
    dry_run: bool = False
    lease: timedelta = LEASE

    @staticmethod
    def of(
        budget: timedelta | None,
        max_bytes: int | None,
        only: Sequence[str] | None,
        dry_run: bool,
        lease: timedelta = LEASE,
    ) -> RunLimits:
        """Check what people give. Raises InputError, which names the value."""
        if budget is not None and budget <= timedelta(0):
            raise InputError(f"budget={budget}: give more than no time, such as 10m")
        if max_bytes is not None and max_bytes < 1:
            raise InputError(f"max_bytes={max_bytes}: give a number of bytes, 1 or more")
        if unknown := [name for name in only or () if name not in MAINTENANCE_TASKS]:
            raise InputError(f"only={unknown[0]!r}: tasks are {', '.join(MAINTENANCE_TASKS)}")
        return RunLimits(budget, max_bytes, frozenset(MAINTENANCE_TASKS if only is None else only), dry_run, lease)


@dataclass
class KeptTable:
    """A table as a maintainer knows it.

    ``open``: opens it. ``for_blocks``: what was due for how blocks are, at which state. ``defaults``: properties of its
    namespaces. ``asked``: it was named, so that it is kept though nobody said so. ``rest``, ``losses``: runs that it is
    left out of, and how often it was in a row.
    """

    name: str
    open: Callable[[], TableHandle]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    asked: bool = False
    table: TableHandle | None = None
    policy: MaintenancePolicy = field(default_factory=MaintenancePolicy)
    for_blocks: tuple[StoredTable, list[DueTask]] | None = None
    due: list[DueTask] = field(default_factory=list)
    rest: int = 0
    losses: int = 0

    def look(self) -> UpkeepContext:
        """Open the table, or go to its head: one request if there is no news. Raises StorageError, InvalidArgument."""
        table = self.table = self.open() if self.table is None else self.table.refresh()
        policy = MaintenancePolicy.from_properties(table.snapshot.properties, self.defaults)
        if not (policy.stated or self.asked):
            policy = replace(policy, tasks=())
        context = upkeep_context(table.stored, table.host, policy, datetime.now(UTC))
        if self.for_blocks is None or self.for_blocks[0] is not table.stored or self.policy != policy:
            self.for_blocks = table.stored, due_for_blocks(context)
        self.policy, self.due = policy, due_tasks(context, self.for_blocks[1])
        return context

    def try_look(self) -> Exception | None:
        """Look, and give what stands in the way; then nothing is due that is known."""
        try:
            self.look()
        except (CodedError, OSError) as problem:
            self.due = []
            return problem
        return None

    def put_aside(self) -> None:
        """Leave it out of this run, and of more of the next ones each time."""
        self.due, self.losses = [], self.losses + 1
        self.rest = min(2 ** (self.losses - 1) - 1, _MAX_REST)


@dataclass
class Maintainer:
    """A run after another over the same tables. ``stop``: asked before each step, and whether to end the run."""

    tables: Sequence[KeptTable]
    limits: RunLimits
    report: MaintenanceCallback = lambda done: None
    stop: Callable[[], bool] = lambda: False
    steps: Mapping[str, Step] = field(default_factory=lambda: STEPS)

    def run(self) -> list[DoneTask]:
        """Do what is due, the worst first, until nothing is, or the budget is used up."""
        return list(self._tell(self._work()))

    def _tell(self, work: Iterator[DoneTask]) -> Iterator[DoneTask]:
        for done in work:
            self.report(done)
            emit(partial(task_event, done))
            yield done

    def _work(self) -> Iterator[DoneTask]:
        ends = None if self.limits.budget is None else monotonic() + self.limits.budget.total_seconds()
        left = self.limits.bytes
        for kept in self.tables:
            yield from self._look(kept)
        if self.limits.dry_run:
            for kept, task in sorted(self._candidates(None), key=_urgency, reverse=True):
                yield DoneTask(kept.name, task.task, task.why, "due", task.index, bytes_read=task.bytes)
            return
        while not self.stop() and (ends is None or monotonic() < ends):
            if (worst := max(self._candidates(left), key=_urgency, default=None)) is None:
                return
            kept, task = worst
            done = self._do(kept, task)
            if done is not None:
                left = left if left is None or task.task not in _REWRITES else left - done.bytes_written
                yield done
            if kept.due:
                yield from self._look(kept)
                kept.due = [
                    each for each in kept.due if each != task
                ]  # what a step leaves as it was is for the next run

    def _look(self, kept: KeptTable) -> Iterator[DoneTask]:
        """Ask a table what is due; tell what is not done by itself, and why it cannot be asked."""
        if kept.rest:
            kept.rest -= 1
            return
        told = {task.index for task in kept.due if task.task == REPAIR}
        if (problem := kept.try_look()) is not None:
            kept.put_aside()
            yield DoneTask(kept.name, "look", "it was to be asked what is due", "failed", problem=str(problem))
            return
        for task in kept.due:
            if task.task == REPAIR and task.index not in told:
                yield DoneTask(kept.name, REPAIR, task.why, "told", task.index)

    def _candidates(self, left: int | None) -> Iterator[tuple[KeptTable, DueTask]]:
        now = datetime.now(UTC)
        for kept in self.tables:
            if not kept.due or kept.table is None:
                continue
            policy = kept.policy
            for task in kept.due:
                if task.task not in self.limits.only or (task.task in _IN_WINDOW and not policy.allows(now)):
                    continue
                if task.task in _REWRITES and not self._affords(kept.table.stored, policy, task, left, now):
                    continue
                yield kept, task

    def _affords(
        self, table: StoredTable, policy: MaintenancePolicy, task: DueTask, left: int | None, now: datetime
    ) -> bool:
        if left is not None and task.bytes > left:
            return False
        return policy.daily_bytes is None or rewritten_since(table, now - DAY) + task.bytes <= policy.daily_bytes

    def _do(self, kept: KeptTable, task: DueTask) -> DoneTask | None:
        """Do one step of a task, under the table's lease; None where somebody else has it, or has done it."""
        began = monotonic()
        try:
            assert kept.table is not None
            with upkeep_lease(kept.table.stored.store, self.limits.lease) as mine:
                if not mine:
                    kept.due = []
                    return None
                return self._step(kept, task, began)
        except Conflict as lost:
            kept.put_aside()
            return self._told(kept, task, "lost", began, str(lost))
        except Exception as problem:  # of one table, whatever it is: the others are to be kept
            kept.put_aside()
            return self._told(kept, task, "failed", began, str(problem))

    def _step(self, kept: KeptTable, task: DueTask, began: float) -> DoneTask | None:
        context = kept.look()
        found = next((each for each in kept.due if (each.task, each.index) == (task.task, task.index)), None)
        if found is None:
            return None
        done = run_step(self.steps[task.task], context, found)
        assert kept.table is not None
        move_on(kept.table, context.table, done.table)
        kept.losses = 0
        summary = done.table.snapshot.summary if done.table is not context.table else {}
        told = self._told(kept, found, "done" if done.gained else "no gain", began, done.problem)
        read, written = summary.get("removed_bytes", found.bytes), summary.get("added_bytes", 0)
        return replace(told, bytes_read=int(read), bytes_written=int(written))

    def _told(self, kept: KeptTable, task: DueTask, outcome: str, began: float, problem: str | None = None) -> DoneTask:
        seconds = round(monotonic() - began, 3)
        return DoneTask(kept.name, task.task, task.why, outcome, task.index, seconds, problem=problem)


def _urgency(candidate: tuple[KeptTable, DueTask]) -> tuple[float, int]:
    """The worst first, and of what is equally bad the cheapest."""
    return candidate[1].excess, -candidate[1].bytes
