"""``pytest -p tests.processor_time``: which files and tests take the processor, with all processes that they start.

Times of the wall say on a busy machine what others do. Processes count that live below the one that runs the tests, or
that one of these has waited for: JVMs, Python workers, commands.
"""

import os
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

SHOWN = 20
_PROPERTY = "processor_seconds"
_TICKS = os.sysconf("SC_CLK_TCK")
_seconds: Counter[str] = Counter()


def spent() -> float:
    """Seconds of this process, of those below it, and of those that these have waited for."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for pid, parent, taken in _processes():
        children.setdefault(parent, []).append(pid)
        ticks[pid] = taken
    found, waiting = 0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        found += ticks.get(pid, 0)
        waiting += children.get(pid, [])
    return found / _TICKS


def _processes() -> Iterator[tuple[int, int, int]]:
    """Of each process its id, its parent's, and its ticks with those of children that have ended."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                told = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            yield int(folder.name), int(told[1]), sum(map(int, told[11:15]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "teardown":
        report.user_properties.append((_PROPERTY, spent()))
    return report


_last: dict[str, float] = {}
"""What each process that runs tests had spent when its last test ended."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for name, now in report.user_properties:
        if name == _PROPERTY:
            runner = getattr(report, "worker_id", "")
            taken = float(str(now)) - _last.get(runner, 0.0)
            _last[runner] = float(str(now))
            _seconds[report.nodeid.partition("::")[0]] += taken  # type: ignore[assignment]
            _seconds[report.nodeid.partition("[")[0]] += taken  # type: ignore[assignment]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("processor seconds, the first test of a process with its imports")
    for are_tests in (False, True):
        some = Counter({name: taken for name, taken in _seconds.items() if ("::" in name) == are_tests})
        for name, taken in some.most_common(SHOWN):
            terminalreporter.line(f"{taken:8.1f}  {name}")
