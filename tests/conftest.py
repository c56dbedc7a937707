"""Worlds are drawn from a fixed seed, so that a run today is a run tomorrow; ``--hypothesis-profile=explore`` draws
others. A failure is shown when it happens, and again at the end.
"""

import atexit
import gc
from collections.abc import Generator

import pytest
from hypothesis import settings

from tests.effort import effort, everything, left_out

# how long a case takes says more of the machine than of the code
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=effort(25))
settings.register_profile("explore", derandomize=False, deadline=None, max_examples=effort(50), print_blob=True)
settings.load_profile("repeatable")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Garbage is not looked for among what stays: thousands of tests, and the modules that they import."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs where EFFORT says more, unless somebody chose the cases (``-k``, ``file::test[case]``)."""
    if everything() or config.option.keyword or any("[" in argument for argument in config.args):
        return
    gone = set(left_out(items))
    config.hook.pytest_deselected(items=[item for item in items if item in gone])
    items[:] = [item for item in items if item not in gone]


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if (terminal := config.pluginmanager.get_plugin("terminalreporter")) is not None:  # xdist's workers have none
        config.pluginmanager.register(FailuresAtOnce(terminal))


class FailuresAtOnce:
    """Shows why a test failed as soon as it did."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    @pytest.hookimpl(trylast=True)  # after the letter of the test
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._terminal.ensure_newline()
            if self._terminal._tw.width_of_current_line:  # letters of tests alone
                self._terminal.line("")
            self._terminal.write_sep("_", f"{report.when} of {report.nodeid}", red=True)
            report.toterminal(self._terminal._tw)


atexit.register(
    gc.unfreeze
)  # libraries look at the end for what was never collected; pytest collects before, five times
