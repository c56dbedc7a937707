"""Every annotation of a public function can be checked, or is left unchecked by name."""

import inspect

import pytest

import fuse_index as fuse
import fuse_index.spark
from fuse_index.table.accounts.explain import Explain
from fuse_index.table.arguments import check_arguments, checked_parameters
from fuse_index.table.inspection.inspect import Inspect
from fuse_index.table.maintenance import Maintenance

METHODS = [
    method
    for held in (fuse.Table, Inspect, Maintenance, Explain, fuse.Catalog)
    for name, method in inspect.getmembers(held, inspect.isfunction)
    if not name.startswith("_")
]
FUNCTIONS = [
    member
    for module in (fuse, fuse_index.spark)
    for name in module.__all__
    if inspect.isfunction(member := getattr(module, name))
]
UNCHECKED = {
    "Table.add_column": {"type", "default"},
    "Table.append": {"data"},
    "Table.apply": {"changes"},
    "Table.change_type": {"type"},
    "Table.delete_keys": {"keys"},
    "Table.lookup": {"keys"},
    "Explain.search": {"query"},
    "Table.search": {"query"},
    "spark.search": {"query"},
    "Table.upsert": {"data"},
    "Table.set_default": {"default"},
    "Table.merge": {"source", "matched", "not_matched", "not_matched_by_source"},
    "Table.overwrite": {"data"},
    "Explain.merge": {"source", "matched", "not_matched", "not_matched_by_source"},
    "Catalog.clone_table": {"source"},
    "Catalog.create_table": {"schema"},
    "Catalog.create_table_if_not_exists": {"schema"},
    "Catalog.register_table": {"location"},
    "Catalog.stage_table": {"schema"},
    "attach": {"url"},
    "prune_files": {"table", "source"},
    "catalog": {"url"},
    "create_table": {"url", "schema"},
    "listen": {"listener"},
    "open_table": {"url"},
    "read_files": {"paths", "schema"},
    "recover_table": {"url"},
    "scan_polars": {"source"},
    "spark.merge": {"matched", "not_matched", "not_matched_by_source"},
}


def label(function):
    if function in METHODS:
        owner = "Catalog" if ".warehouse." in function.__module__ else "Table"
        owner = "Explain" if ".accounts." in function.__module__ else owner
        return f"{owner}.{function.__name__}"
    return f"spark.{function.__name__}" if "spark" in function.__module__ else function.__name__


@pytest.mark.parametrize("function", [*METHODS, *FUNCTIONS], ids=label)
def test_what_is_unchecked_is_so_on_purpose(function):
    parameters = inspect.signature(function).parameters.values()
    named = {each.name for each in parameters if each.kind is not each.VAR_KEYWORD and each.name != "self"}

    assert UNCHECKED.get(label(function), set()) == named - set(checked_parameters(function))


def test_an_annotation_that_nobody_knows_is_an_error_where_it_is_written():
    def careless(names: "list[str]") -> None:
        pass

    with pytest.raises(TypeError, match=r"careless takes names: list\[str\], which cannot be checked"):
        check_arguments(careless)


def test_an_annotation_that_is_missing_is_an_error_where_it_is_missing():
    def careless(names) -> None:
        pass

    with pytest.raises(TypeError, match="careless takes names"):
        check_arguments(careless)
