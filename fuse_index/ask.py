"""Asking a stranger's code: with a deadline, and without letting anything it does through.

An index is advisory. Whatever it raises, and however long it takes, the answer here is a ``Failure`` with a reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

from fuse_index.reasons import Reason
from fuse_storage import FormatError, NotFound

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Failure:
    reason: Reason
    detail: str
    error: BaseException | None = None


def ask(question: Callable[[], Answer], seconds: float) -> Answer | Failure:
    """What ``question()`` returns, or why it did not.

    It runs on a daemon thread (about 50 µs), because a thread that hangs can only be left behind: it neither holds up
    the query nor the end of the process.
    """
    answers: SimpleQueue[Answer | Failure] = SimpleQueue()

    def run() -> None:
        try:
            answers.put(question())
        except BaseException as error:  # a plugin may raise anything, SystemExit included
            answers.put(failure(error))

    Thread(target=run, daemon=True, name="fuse-index-ask").start()
    try:
        return answers.get(timeout=max(seconds, 0.001))
    except Empty:
        return Failure(Reason.TIMEOUT, f"no vote within {seconds:.3g} s")


def failure(error: BaseException) -> Failure:
    match error:
        case NotFound():
            reason = Reason.PAYLOAD_MISSING
        case FormatError():
            reason = Reason.CORRUPT
        case _:
            reason = Reason.PLUGIN_ERROR
    return Failure(reason, f"{type(error).__name__}: {error}", error)
