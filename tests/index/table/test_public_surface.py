"""What a table offers by name: verbs, what operators look at, upkeep, and former names that say where they went."""

import inspect
import pickle
import warnings
from uuid import uuid4

import pytest

import fuse_index as fuse
from fuse_index.operations.compact import CompactJob
from fuse_index.table import former_names
from fuse_index.table.accounts.explain import Explain
from fuse_index.table.former_names import FORMER_NAMES
from fuse_index.table.inspection.inspect import Inspect
from fuse_index.table.maintenance import Maintenance

VERBS = """
    add_column aggregate append apply branch change_type changes clone cluster_by convert count create_index delete
    delete_keys diff drop_branch drop_column drop_index export_delta export_iceberg fast_forward head history
    key_by lookup merge move_column overwrite producer refresh rename_column report restore scan search set_comment
    set_default set_nullable set_properties sync tag to_arrow to_pandas to_polars untag update upsert
"""
INSPECT = """
    blocks clustering columns due files index indexes left_out maintenance partitions plans refs segments
    snapshots statistics suggest
"""
EXPLAIN = "changes delete merge overwrite search suggest update what_if"
MAINTENANCE = "compact rebuild_index recluster refresh_index run tier vacuum verify_index"
PROPERTIES = "explain inspect maintenance schema snapshot tail version"
FIELDS = "name"
JOBS = "changing deleting merge_spec merging overwriting updating"
"""Beginnings of statements that Spark's executors go on with: inner ones, which are to become functions, too."""


def methods(owner: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(owner, inspect.isfunction) if not name.startswith("_")}


@pytest.fixture
def table() -> fuse.Table:
    table = fuse.create_table(f"memory://surface-{uuid4().hex}", "id BIGINT", ["id"])
    table.append([{"id": 1}])
    table.create_index("by_id", "bloom", ["id"])
    return table


def test_a_table_has_these_verbs_and_no_others() -> None:
    assert methods(fuse.Table) - set(JOBS.split()) == set(VERBS.split())
    assert methods(Inspect) == set(INSPECT.split())
    assert methods(Explain) == set(EXPLAIN.split())
    assert methods(Maintenance) == set(MAINTENANCE.split())


def test_whatever_else_a_table_shows_is_known(table: fuse.Table) -> None:
    shown = {name for name in dir(table) if not name.startswith("_")} - methods(fuse.Table)

    assert shown == {*PROPERTIES.split(), *FIELDS.split()}


ARGUMENTS = {
    "index_tasks": ("by_id",),
    "inspect_index": ("by_id",),
    "rebuild_index": ("by_id",),
    "verify_index": ("by_id",),
}


@pytest.mark.parametrize("name", FORMER_NAMES)
def test_a_former_name_does_what_it_did_and_says_once_where_it_went(
    name: str, table: fuse.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(former_names, "_warned", set())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = [getattr(table, name)(*ARGUMENTS.get(name, ())) for _ in range(2)]

    assert [(each.category, str(each.message), each.filename) for each in caught] == [
        (DeprecationWarning, f"Table.{name} moved: call {FORMER_NAMES[name]}", __file__)
    ]
    if FORMER_NAMES[name].startswith("table."):
        _, part, method = FORMER_NAMES[name].split(".")
        results.append(getattr(getattr(table, part), method)(*ARGUMENTS.get(name, ())))
    assert len({type(result) for result in results}) == 1


def test_a_former_name_is_found_where_it_is_said_to_be() -> None:
    for place in FORMER_NAMES.values():
        if not place.startswith("table."):
            module, _, function = place.rpartition(".")
            assert callable(getattr(__import__(module, fromlist=[function]), function))


def test_a_job_by_its_former_name_is_that_of_the_function(table: fuse.Table) -> None:
    former_names._warned.discard("compacting")
    with pytest.warns(DeprecationWarning, match=r"compacting moved: call fuse_index\.operations\.compact\.start"):
        job = table.compacting()

    assert isinstance(job, CompactJob)


def test_where_warnings_are_errors_each_call_is_one(table: fuse.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(former_names, "_warned", set())
    for _ in range(2):
        with pytest.raises(DeprecationWarning, match=r"Table\.tier moved: call table\.maintenance\.tier"):
            table.tier()


def test_no_other_name_is_made_up(table: fuse.Table) -> None:
    with pytest.raises(AttributeError, match="'Table' object has no attribute 'compcat'"):
        table.compcat()  # type: ignore[attr-defined]
    assert not hasattr(table, "__wrapped__")
    assert pickle.loads(pickle.dumps(table)).count() == 1


def test_upkeep_moves_the_table_that_it_is_of(table: fuse.Table) -> None:
    other = fuse.open_table(table.stored.store)
    other.append([{"id": 2}])

    table.maintenance.compact()

    assert table.snapshot.block_count == 1
    assert table.count() == 2
    assert other.snapshot.block_count == 2


def test_upkeep_is_refused_where_a_table_is_of_an_older_state(table: fuse.Table) -> None:
    pinned = fuse.open_table(table.stored.store, at=table.snapshot.id)

    for work in (pinned.maintenance.compact, pinned.maintenance.tier, pinned.maintenance.recluster):
        with pytest.raises(fuse.ReadOnly, match="open the table without at="):
            work()
