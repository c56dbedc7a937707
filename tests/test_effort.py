"""What a run without EFFORT leaves out is a part of what is alike: no file as a whole, and no value of a parameter."""

import itertools
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.effort import flips, in_turn, part

ROOT = Path(__file__).parents[1]
MARKED = re.compile(r"\bmark\.(alike|thorough)\b")
PLANNED = ("catalog", "foreign", "native", "server")
"""Rooms of what Spark's parser, planner, readers and servers hand over, which differs between versions."""
ALIKE = {
    "catalog/test_attach.py",
    "catalog/test_remedies.py",
    "catalog/test_statement_conflicts.py",
    "foreign/test_partitions.py",
    "foreign/test_typed.py",
    "native/test_cluster.py",
    "native/test_function_bounds.py",
    "native/test_partitioned_scans.py",
    "native/test_request_server.py",
    "native/test_statistics.py",
    "server/test_encryption.py",
    "server/test_endpoints.py",
    "server/test_kills.py",
}
"""Files of these rooms that are alike on every Spark, or follow from what others there, or tests/lakes, try on each."""
FILES = sorted(path for path in (ROOT / "tests").rglob("test_*.py") if MARKED.search(path.read_text("utf-8")))


@cache
def collected(effort: str, *choice: str) -> list[str]:
    """Tests and cases of the files with marks that a run with this EFFORT has, by their ids."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    found = subprocess.run(
        [*command, *(choice or map(str, FILES))],
        cwd=ROOT,
        env=os.environ | {"FUSE_INDEX_EFFORT": effort},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-3000:]
    return [line for line in found.stdout.splitlines() if "::" in line]


def test_of_a_list_the_first_the_last_and_every_fifth_run() -> None:
    assert part([(n,) for n in range(13)]) == [0, 5, 10, 12]
    assert part([(n, n) for n in range(13)]) == [0, 5, 10, 12]  # one list of pairs
    assert [part([(n,) for n in range(count)]) for count in range(4)] == [[], [0], [0, 1], [0, 2]]


@pytest.mark.parametrize("sides", [(9, 3), (3, 9), (2, 26), (4, 4), (5, 1, 2), (3, 4, 5), (2, 2, 2, 2), (6, 4)])
def test_of_combinations_each_value_of_each_parameter_runs(sides: tuple[int, ...]) -> None:
    places = list(itertools.product(*map(range, sides)))
    runs = part(places)

    for side, size in enumerate(sides):
        assert {places[number][side] for number in runs} == set(range(size))
    assert len(runs) <= len(places) // 2


def test_each_byte_is_changed_and_with_effort_in_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.effort._EFFORT", 1.0)
    assert flips(range(4, 9), (1, 128, 255)) == [(4, 128), (5, 255), (6, 1), (7, 128), (8, 255)]
    monkeypatch.setattr("tests.effort._EFFORT", 2.0)
    assert len(flips(range(4, 9), (1, 128, 255))) == 15


def test_what_needs_one_setting_is_tried_in_one_and_with_effort_in_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.effort._EFFORT", 1.0)
    assert [in_turn("abcde", turn) for turn in (False, True, 2)] == [["a", "c", "e"], ["b", "d"], ["a", "c", "e"]]
    assert [in_turn("abcde", turn, 3) for turn in range(3)] == [["a", "d"], ["b", "e"], ["c"]]
    monkeypatch.setattr("tests.effort._EFFORT", 2.0)
    assert [in_turn("abcde", turn) for turn in range(2)] == [[*"abcde"]] * 2


def test_more_effort_runs_all_and_a_run_without_leaves_no_file_and_no_kind_out() -> None:
    every, some = collected("2"), collected("1")

    assert set(some) < set(every)
    assert {case.partition("::")[0] for case in some} == {str(path.relative_to(ROOT)) for path in FILES}
    tests = {case.partition("[")[0] for case in every}
    gone = tests - {case.partition("[")[0] for case in some}
    assert len(gone) < len(tests) // 10, sorted(gone)  # they are thorough, and a part of their cases will not do


def test_values_of_decorators_one_over_the_other_are_combinations() -> None:
    """One case of each evolution runs, and of each kind of tables a third of them."""

    def ids(effort: str) -> list[str]:
        return [case for case in collected(effort) if "test_columns_come_with_the_rows_in_one_commit[" in case]

    kinds = ("copy-on-write", "merge-on-read", "keyed")
    of_kinds = {kind: [case for case in ids("1") if case.endswith(f"-{kind}]")] for kind in kinds}
    assert {kind: len(cases) for kind, cases in of_kinds.items()} == dict.fromkeys(kinds, len(ids("2")) // 9)
    evolutions = [case.removesuffix(f"-{kind}]") for kind, cases in of_kinds.items() for case in cases]
    assert len(set(evolutions)) == len(evolutions) == len(ids("2")) // 3


def test_of_each_file_about_what_spark_plans_something_runs_on_the_oldest_spark() -> None:
    tests = ROOT / "tests" / "spark"
    files = {str(path.relative_to(tests)): path for room in PLANNED for path in (tests / room).glob("test_*.py")}

    assert {name for name, path in files.items() if "mark.every_spark" not in path.read_text("utf-8")} == ALIKE


def test_cases_that_somebody_chose_run() -> None:
    [of_many] = {case.partition("[")[0] for case in collected("2") if "a_function_means_the_same" in case}
    second = [case for case in collected("2") if case.startswith(f"{of_many}[")][1]

    assert second not in collected("1")
    assert collected("0.5", second) == [second]
