"""Executors without a plugin: rows are written, nothing is indexed, and everybody is told who lacks what."""

import pickle
import sys
import warnings
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.errors import BuildError, IndexFault
from fuse_index.indexes.builder import (
    IndexBuilder,
    MissingBuilder,
    index_builders,
    recorded_warnings,
    warn_of_unindexed,
)
from fuse_index.indexes.plugins import load_plugin
from fuse_index.indexes.registry import Host, PluginWarning
from fuse_index.operations.build_index import run_build_task_in_worker
from fuse_index.table.indexes import plan_index_tasks
from fuse_storage import open_store
from tests.index.strangers import ACME

ROWS = pa.table({"n": [1, 2, 3, 4]})


@pytest.fixture
def table(monkeypatch):
    with monkeypatch.context() as patch:
        patch.syspath_prepend(ACME)
        host = Host([load_plugin("acme_index", "acme-index", "0.1")])
    table = fuse.create_table(f"memory://lacks-{uuid4().hex}", ROWS.schema, properties={"block_rows": 2}, host=host)
    table.create_index("x", "remainder", ["n"])
    yield table
    sys.modules.pop("acme_index", None)


def sent(value, monkeypatch):
    """What arrives in a process where the plugin is not installed."""
    data = pickle.dumps(value)
    monkeypatch.setitem(sys.modules, "acme_index", None)
    return pickle.loads(data)


def test_a_builder_arrives_where_its_kind_is(table):
    (builder,) = index_builders(table.snapshot, table.host)

    assert isinstance(pickle.loads(pickle.dumps(builder)), IndexBuilder)


def test_a_builder_arrives_where_its_kind_is_not_and_says_who_lacks_what(table, monkeypatch):
    (builder,) = index_builders(table.snapshot, table.host)
    arrived = sent(builder, monkeypatch)

    assert isinstance(arrived, MissingBuilder)
    assert (arrived.key, list(arrived.columns)) == (builder.key, ["n"])
    with pytest.warns(PluginWarning, match=r"'remainder' cannot be loaded .* install acme-index 0.1 on every executor"):
        assert arrived.build(ROWS, np.array([0, 4])) is None


def test_strictly_it_is_an_error(table, monkeypatch):
    strict = IndexBuilder(**{**vars(index_builders(table.snapshot, table.host)[0]), "strict": True})

    with pytest.raises(IndexFault, match="acme-index"):
        sent(strict, monkeypatch).build(ROWS, np.array([0, 4]))


def test_rows_are_written_without_the_index_and_the_commit_says_so(table, monkeypatch):
    stored = table.stored
    missing = sent(index_builders(table.snapshot, table.host), monkeypatch)
    with recorded_warnings() as texts, stored.writer(missing) as writer:
        writer.write(ROWS)
        staged = writer.finish()
    assert ["acme-index 0.1" in text for text in texts] == [True]
    after = stored.transaction(missing).append(staged).commit()

    assert after.snapshot.summary["unindexed_blocks"] == {"x": 2}
    with pytest.warns(
        PluginWarning, match="index 'x' does not know 2 of the blocks that were written: refresh it; why"
    ):
        warn_of_unindexed(after.snapshot, ["why", "why"])
    assert fuse.open_table(open_store(stored.store.url).url, host=Host([])).scan("n = 3").count() == 1


def test_a_commit_whose_blocks_are_all_indexed_says_nothing(table):
    table.append(ROWS)

    assert "unindexed_blocks" not in table.snapshot.summary
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_unindexed(table.snapshot)


def test_a_build_where_the_kind_is_missing_is_an_error_that_names_the_distribution(table, monkeypatch):
    table.append(ROWS)
    (task, *_) = plan_index_tasks(table, "x", rebuild=True)

    with pytest.raises(BuildError, match=r"install acme-index 0.1 on every executor"):
        run_build_task_in_worker(sent(task, monkeypatch))
