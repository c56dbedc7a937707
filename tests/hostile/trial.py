"""What a hostile trial is, and what may come of it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from fuse_index.errors import FuseIndexError
from fuse_storage import StorageError

OURS = (StorageError, FuseIndexError)
"""Errors that say what is wrong; any other that leaves the library is a defect."""


class Verdict(StrEnum):
    """What came of one fault. The first two are what is promised."""

    HELD = "held"  # every answer was right
    REFUSED = "refused"  # an error of ours said what is wrong, and nothing was changed
    LOST = "lost"  # rows that were committed are gone
    WRONG = "wrong"  # an answer was wrong
    RAISED = "raised"  # an error that is not ours
    HUNG = "hung"  # no end was seen
    DIED = "died"  # the process itself ended


FINE = (Verdict.HELD, Verdict.REFUSED)


class Lost(AssertionError):
    """Rows that were acknowledged are not there."""


class Wrong(AssertionError):
    """An answer is not what the rows say."""


@dataclass(frozen=True)
class Trial:
    """One fault: ``name`` says which, ``run`` does it, judges, and raises Lost or Wrong; errors of ours are a refusal.

    ``run`` may return REFUSED itself, where a part of what it tried was refused and the rest held.
    """

    name: str
    run: Callable[[], Verdict | None]


class Suite(Protocol):
    """Trials without end, drawn by ``seed``, of a generator that whoever runs them closes."""

    def __call__(self, seed: int) -> Generator[Trial, None, None]: ...


def judge(trial: Trial) -> tuple[Verdict, str]:
    """Run a trial; return what came of it, and a sentence where it is not fine."""
    try:
        return trial.run() or Verdict.HELD, ""
    except Lost as loss:
        return Verdict.LOST, str(loss)
    except Wrong as wrong:
        return Verdict.WRONG, str(wrong)
    except OURS as refusal:
        return Verdict.REFUSED, str(refusal)
    except Exception as error:
        return Verdict.RAISED, f"{type(error).__name__}: {error}"
