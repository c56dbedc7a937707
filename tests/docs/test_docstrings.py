"""Every public function of the front can be looked up: what it takes, returns and raises, and an example."""

import ast
import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

import fuse_index as fuse
import fuse_index.spark
from fuse_index.hot.producer import Producer
from fuse_index.table.inspection.inspect import Inspect
from fuse_index.table.maintenance import Maintenance

JOBS = {"changing", "deleting", "merge_spec", "merging", "overwriting", "updating"}
"""Beginnings of statements that Spark's executors go on with; no user calls them."""
SECTIONS = re.compile(r"^(Args|Returns|Yields|Raises|Example):$", re.MULTILINE)


def of_class(owner: type) -> dict[str, Callable[..., Any]]:
    methods = inspect.getmembers(owner, inspect.isfunction)
    return {f"{owner.__name__}.{name}": method for name, method in methods if name[0] != "_" and name not in JOBS}


def of_module(module: Any) -> dict[str, Callable[..., Any]]:
    prefix = "spark." if module is fuse_index.spark else ""
    functions = {name: getattr(module, name) for name in module.__all__}
    return {f"{prefix}{name}": each for name, each in functions.items() if inspect.isfunction(each)}


FRONT = {
    **of_module(fuse),
    **of_module(fuse_index.spark),
    **{
        name: method
        for owner in (fuse.Table, Inspect, Maintenance, fuse.Scan, fuse.Catalog, Producer)
        for name, method in of_class(owner).items()
    },
}


def sections(function: Callable[..., Any]) -> dict[str, str]:
    """The text of each section by its name; what comes before the first is under ''."""
    parts = SECTIONS.split(inspect.getdoc(function) or "")
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


@pytest.mark.parametrize("name", sorted(FRONT))
def test_a_function_of_the_front_can_be_looked_up(name: str) -> None:
    function, found = FRONT[name], sections(FRONT[name])
    returned = str(inspect.signature(function).return_annotation)
    taken = [each for each in inspect.signature(function).parameters if each != "self"]
    named = re.findall(r"^    (\w+): ", found.get("Args", ""), re.MULTILINE)

    assert found[""].splitlines()[1:2] in ([], [""])  # one line says it all
    assert named == taken
    assert bool(found.keys() & {"Returns", "Yields"}) == (returned != "None")
    assert found["Example"].strip()
    if name not in ("Producer.close", "Producer.flush"):  # errors are those of the futures
        assert re.search(r"^    \w+: ", found["Raises"], re.MULTILINE)


def test_what_is_raised_is_known() -> None:
    raised = {
        error
        for name in FRONT
        for error in re.findall(r"^    (\w+): ", sections(FRONT[name]).get("Raises", ""), re.MULTILINE)
    }

    assert raised - set(fuse.__all__) == set()


@pytest.mark.parametrize("name", sorted(name for name in FRONT if name.startswith("spark.")))
def test_an_example_for_spark_is_python(name: str) -> None:
    """A session takes seconds, so that these are read and not run; the pages' examples are run."""
    tree = ast.parse(inspect.cleandoc(sections(FRONT[name])["Example"]))
    calls = [
        node.func.attr for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]

    assert name.removeprefix("spark.") in calls
