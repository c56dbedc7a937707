"""Calls of a plugin's code: with a deadline, and without letting anything it does through.

An index is advisory. Whatever it raises, and however long it takes, the answer here is a ``PluginFailure`` with a
reason.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

import numpy as np

from fuse_index.indexes.interface import Probe, Refusal
from fuse_index.reasons import Reason
from fuse_storage import FormatError, NotFound

_T = TypeVar("_T")
_Item = TypeVar("_Item")

MAX_CONCURRENT_PLUGIN_READS = 16
"""Reads at the same time, of one who asks for several."""
_MAX_ERROR_TEXT = 1000
"""Characters that are repeated of what an error says."""


@dataclass(frozen=True, slots=True)
class PluginFailure:
    """Why a plugin gave no answer: a reason for machines, a sentence for people, and what it raised, if it did."""

    reason: Reason
    detail: str
    error: BaseException | None = None


class _Worker:
    """A daemon thread that answers one question after the other, and offers itself again after each.

    One whose question hangs never does, so it can only be left behind: it neither holds up the query nor the end of
    the process. Starting a thread for each question would cost 50 µs to 1 ms of every vote.
    """

    def __init__(self, idle: deque[_Worker]) -> None:
        self.idle = idle
        self.calls: SimpleQueue[tuple[Callable[[], Any], SimpleQueue[Any]]] = SimpleQueue()
        Thread(target=self._run, daemon=True, name="fuse-index-ask").start()

    def _run(self) -> None:
        while True:
            question, answers = self.calls.get()
            try:
                answer = question()
            except BaseException as error:  # a plugin may raise anything, SystemExit included
                answer = failure_from_error(error)
            self.idle.append(self)
            answers.put(answer)
            del question, answers, answer  # they hold on to blocks and bitmaps


class _WorkerPool:
    """The threads of this process: as many as were ever busy at once."""

    def __init__(self) -> None:
        self.idle: deque[_Worker] = deque()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.idle.clear)  # threads do not survive a fork

    def submit(self, call: Callable[[], Any], answers: SimpleQueue[Any]) -> None:
        """Put what ``call`` returns, or a PluginFailure of what it raises, into ``answers``."""
        try:
            worker = self.idle.pop()
        except IndexError:
            worker = _Worker(self.idle)
        worker.calls.put((call, answers))


_POOL = _WorkerPool()


def trusted_call(call: Callable[[], _T]) -> _T | PluginFailure:
    """What ``call()`` returns, or what it raises: on this thread, and however long it takes."""
    try:
        return call()
    except Exception as error:
        return failure_from_error(error)


def sandboxed_call(call: Callable[[], _T], timeout_seconds: float) -> _T | PluginFailure:
    """What ``call()`` returns, or why it did not within so many seconds."""
    answers: SimpleQueue[_T | PluginFailure] = SimpleQueue()
    _POOL.submit(call, answers)
    try:
        return answers.get(timeout=max(timeout_seconds, 0.001))
    except Empty:
        return PluginFailure(Reason.TIMEOUT, f"no vote within {timeout_seconds:.3g} s")


def map_concurrently(work: Callable[[_Item], _T], items: Iterable[_Item]) -> list[_T]:
    """The work of all items, in their order, several at a time: for reads, which wait more than they compute.

    On the threads that answer questions, so that none has to start, and one that hangs holds up nobody's end. Raises
    what the work of an item raised.
    """
    todo = list(items)
    threads = min(MAX_CONCURRENT_PLUGIN_READS, len(todo))
    shares = [range(first, len(todo), threads) for first in range(threads)]
    answers: SimpleQueue[Any] = SimpleQueue()

    def run_share(share: Sequence[int]) -> dict[int, _T]:
        return {number: work(todo[number]) for number in share}

    for share in shares[1:]:
        _POOL.submit(partial(run_share, share), answers)
    results = run_share(shares[0]) if shares else {}
    for _ in shares[1:]:
        answer = answers.get()
        if isinstance(answer, PluginFailure):
            assert answer.error is not None
            raise answer.error
        results |= answer
    return [results[number] for number in range(len(todo))]


def failure_from_error(error: BaseException) -> PluginFailure:
    match error:
        case NotFound():
            reason = Reason.PAYLOAD_MISSING
        case FormatError():
            reason = Reason.CORRUPT
        case _:
            reason = Reason.PLUGIN_ERROR
    return PluginFailure(reason, describe_error(error), error)


def describe_error(error: BaseException) -> str:
    """The kind of an error and what it says; also of one that cannot be shown, or that says very much."""
    try:
        text = str(error)
    except Exception as problem:  # a stranger's error may fail even at this
        text = f"it cannot be shown ({type(problem).__name__})"
    return f"{type(error).__name__}: {text[:_MAX_ERROR_TEXT]}"


def check_probe(answer: object, method: str) -> Probe[Any] | Refusal:
    """What a kind's ``method`` gave for a question, if it is of the form that the engine goes on with.

    To be called within ``sandboxed_call``. Raises TypeError or ValueError that names the form.
    """
    match answer:
        case Probe(judges_null=bool() | np.bool_()) if _is_cost(answer.cost):
            if not _is_cost(answer.recall) or not (answer.selectivity is None or _is_cost(answer.selectivity)):
                raise TypeError(f"{method}() gave a Probe with {answer.recall=!r} and {answer.selectivity=!r}")
            return answer
        case Probe():
            raise TypeError(f"{method}() gave a Probe with cost {answer.cost!r} and judges_null {answer.judges_null!r}")
        case Refusal():
            return check_refusal(answer)
    raise TypeError(f"{method}() gave {type(answer).__name__}, not a Probe or a Refusal")


def check_refusal(refusal: Refusal) -> Refusal:
    """The refusal, if its reason is one, and its detail is text. Raises ValueError or TypeError."""
    if not isinstance(refusal.detail, str):
        raise TypeError(f"a Refusal's detail is {type(refusal.detail).__name__}, not text")
    return Refusal(Reason(refusal.reason), refusal.detail)


def _is_cost(cost: object) -> bool:
    return isinstance(cost, int | float | np.number) and not isinstance(cost, bool) and bool(0 <= cost < math.inf)
