"""IndexTests is worth what it finds: kinds that are wrong on purpose, each in a way that some kind was, are all killed.

A mutant is run against the one test that is to kill it, so that hundreds cost seconds, and each test is known to bite.
"""

import pyarrow as pa
import pytest

from fuse_index.plugin import Function
from fuse_plugins.bloom import Bloom
from fuse_plugins.min_max import MinMax
from tests.effort import in_turn
from tests.plugins.mutants import (
    of_built_ins,
    of_functions,
    of_promises,
    of_rankings,
    of_scores,
    of_surroundings,
    of_texts,
    of_values,
)
from tests.plugins.mutants.sound import TESTS
from tests.plugins.some_types import OF_USUAL_OPTIONS


def named(kind):
    return kind.name if isinstance(kind, Function) else kind.__name__


MODULES = (of_built_ins, of_functions, of_values, of_promises, of_texts, of_rankings, of_scores, of_surroundings)
MUTANTS = [mutant for module in MODULES for mutant in module.MUTANTS]
RIGHT = [pair for module in MODULES for pair in getattr(module, "RIGHT", ())]


@pytest.mark.parametrize("mutant", MUTANTS, ids=[named(mutant.kind) for mutant in MUTANTS])
def test_a_kind_that_is_wrong_on_purpose_is_found(mutant):
    with pytest.raises(mutant.raises) as failure:
        getattr(mutant.tests(), TESTS[mutant.killed_by])()
    assert mutant.says in str(failure.value)
    assert len(str(failure.value).splitlines()) <= 10


@pytest.mark.parametrize("number", range(len(RIGHT)), ids=[f"{named(kind)}-{suite.__name__}" for kind, suite in RIGHT])
def test_a_kind_that_is_right_passes_all(number):
    """Of what hangs on no kind each passes a third, unless EFFORT says more."""
    kind, suite = RIGHT[number]
    left_to_others = OF_USUAL_OPTIONS - {*in_turn(sorted(OF_USUAL_OPTIONS), number, 3)}
    tests = type("Suite", (suite,), {"function" if isinstance(kind, Function) else "index": kind})()
    for name in dir(tests):
        if name.startswith("test_") and name not in left_to_others and (test := getattr(tests, name)) is not None:
            test()


OF_FEW_TYPES = (
    "test_a_table_of_unequal_zones_gives_the_rows_that_it_gives_without_the_index",
    "test_a_table_with_deleted_rows_and_a_tail_gives_the_rows_that_it_gives_without_the_index",
    "test_attached_files_give_the_rows_that_they_give_without_the_index",
    "test_how_long_votes_take_is_told",
)
"""Tests that a suite of many types does on three, or with fewer questions. ``TestMinMax`` and ``TestBloom`` do all
others on each type.
"""


@pytest.mark.alike
@pytest.mark.parametrize("column", [pa.int64(), pa.float64(), pa.string()], ids=str)
@pytest.mark.parametrize("kind", [MinMax, Bloom])
def test_a_built_in_kind_passes_all(kind, column):
    tests = of_built_ins.on(kind, column).tests()
    for name in OF_FEW_TYPES:
        getattr(tests, name)()


def test_what_a_mutant_gets_wrong_is_said_in_full():
    tests = of_built_ins.on(of_built_ins.ExcludesItsBound, pa.int32()).tests()

    with pytest.raises(pytest.fail.Exception) as failed:
        tests.test_no_vote_is_wrong_in_a_small_world()
    assert not failed.value.pytrace
    assert str(failed.value).splitlines() == [
        "min_max on int32: a wrong vote",
        "  leaf   c <= -1",
        "  row    [{'c': -1}] is TRUE: number 0 of block 0",
        "  vote   NONE",
        "  block  3 rows in zones of [2, 1]: [{'c': -1}, {'c': 0}, {'c': 1}]",
    ]


def test_what_a_kind_raises_is_shown_with_frames_of_the_kind_alone():
    raising = next(mutant for mutant in MUTANTS if mutant.raises is TypeError)

    with pytest.raises(TypeError) as failure:
        getattr(raising.tests(), TESTS[raising.killed_by])()
    shown = {entry.frame.f_globals["__name__"] for entry in failure.traceback.filter(failure)}
    assert {name.rpartition(".")[2] for name in shown} == {"test_mutants", "sound", "of_texts"}


def test_there_are_as_many_as_were_promised():
    assert len({mutant.kind for mutant in MUTANTS}) >= 110
    assert {mutant.killed_by for mutant in MUTANTS} >= {"small", "larger", "16 bits", "together", "threads", "process"}
