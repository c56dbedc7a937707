"""What a failed test of a kind prints: what the kind did, and no frame of ours.

An author has nothing to look for in the code that judges. What a kind raises itself keeps its traceback, of its frames.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest

__tracebackhide__ = True  # authors look for nothing here: pytest shows frames of theirs


class ReportsPlainly:
    """Base of all suites: their tests fail with their message alone."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        for name, member in list(vars(cls).items()):
            if name.startswith("test_") and callable(member):
                setattr(cls, name, report_plainly(member))


def report_plainly(test: Callable[[Any], None]) -> Callable[[Any], None]:
    """The test, failing without a traceback where the assertion that fails is one of ours."""

    @wraps(test)
    def run(suite: Any) -> None:
        __tracebackhide__ = True
        try:
            test(suite)
        except AssertionError as error:
            if not _is_ours(error):
                raise
            message = str(error)
        else:
            return
        pytest.fail(message, pytrace=False)

    return run


def _is_ours(error: BaseException) -> bool:
    trace = error.__traceback__
    assert trace is not None
    while trace.tb_next is not None:
        trace = trace.tb_next
    module = str(trace.tb_frame.f_globals.get("__name__", ""))
    return module.startswith(("fuse_index.testing", "numpy.testing"))
