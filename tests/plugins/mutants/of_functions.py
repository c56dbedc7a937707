"""Mutants of functions: what they mean, what they imply, and what Spark runs in their place."""

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fuse_index.plugin import Function
from fuse_index.predicate import Contains, EndsWith, Literal, StartsWith
from fuse_index.testing import FunctionTests


def ends_in(texts, ending):
    return pc.ends_with(texts, ending.as_py())


def implied(call):
    text, ending = call.arguments
    return [EndsWith(text, ending)]


ENDS_IN = Function(
    "ends_in",
    (pa.string(), pa.string()),
    ends_in,
    native=lambda text, ending: f"endswith({text}, '{ending.value}')",
    implies=implied,
    constants=frozenset([1]),
    narrows=lambda text, ending: f"{text} LIKE '%{ending.value[-1:]}'",
)


class OfEndings(FunctionTests):
    function = ENDS_IN

    def values(self, number):
        return ("", "a", "ba", "ab", "aab", "b") if number == 0 else ("a", "b", "ab")


@dataclass(frozen=True)
class FunctionMutant:
    """A function that is wrong in one way. ``killed_by``: the test that finds it; ``says``: what the failure says."""

    kind: Function
    killed_by: str
    says: str = "is TRUE on"
    raises: type[BaseException] = pytest.fail.Exception

    def tests(self):
        return type("Suite", (OfEndings,), {"function": self.kind})()


def wrong(name, killed_by, says, **changed):
    return FunctionMutant(replace(ENDS_IN, name=name, **changed), killed_by, says)


def first_row_only(texts, ending):
    found = ends_in(texts, ending).to_pylist()
    return pa.array([value and number == 0 for number, value in enumerate(found)], pa.bool_())


def by_the_row_before(texts, ending):
    found = ends_in(texts, ending).to_pylist()
    return pa.array(found[-1:] + found[:-1], pa.bool_())


def sql(pattern):
    """The condition that ``native`` or ``narrows`` gives."""
    return lambda text, ending: pattern.format(text=text, ending=ending.value)


def changed(change):
    """What the function is, changed."""
    return lambda texts, ending: change(ends_in(texts, ending))


def implying(leaf):
    return lambda call: [leaf(call.arguments[0], Literal("a", pa.string()))]


def refuses(*_):
    raise ValueError("no")


MUTANTS = [
    wrong("implies_too_much", "implied", "is TRUE on", implies=implying(StartsWith)),
    wrong("implies_another", "implied", "is TRUE on", implies=implying(Contains)),
    wrong("native_begins", "native", "in SQL", native=sql("startswith({text}, '{ending}')")),
    wrong("native_true_on_null", "native", "in SQL", native=sql("{text} IS NULL OR endswith({text}, '{ending}')")),
    wrong("native_false_on_null", "native", "in SQL", native=sql("{text} IS NOT NULL AND {text} LIKE '%{ending}'")),
    wrong("narrows_too_much", "narrows", "is TRUE on", narrows=sql("{text} = '{ending}'")),
    wrong("narrows_null", "narrows", "is NULL on", narrows=sql("true")),
    wrong("null_is_false", "null", "is not NULL on", evaluate=changed(lambda found: found.fill_null(False))),
    wrong("null_is_true", "null", "is not NULL on", evaluate=changed(lambda found: found.fill_null(True))),
    wrong("by_the_first_row", "row", "with fewer rows around it", evaluate=first_row_only),
    wrong("by_the_row_before", "row", "is", evaluate=by_the_row_before),
    wrong("one_too_few", "row", "values for", evaluate=changed(lambda found: found[1:])),
    wrong("gives_numbers", "row", "not bool", evaluate=changed(lambda found: pc.cast(found, pa.int64()))),
    wrong("refuses_all", "row", "refuses all constants", check=refuses),
]
RIGHT = [(ENDS_IN, OfEndings)]
