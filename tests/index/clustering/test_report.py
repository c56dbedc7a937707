"""A clustering key is chosen, kept through a table's life, and sorts what is written, as far as a run goes."""

import math
from collections import Counter
from itertools import pairwise
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.clustering.key import ClusterKey, sort_order
from fuse_storage.testing import check_invariants

SCHEMA = "id BIGINT, name STRING, at STRUCT<x: DOUBLE>"


def made(by=(), schema=SCHEMA, **properties) -> fuse.Table:
    return fuse.create_table(f"memory://clustering-{uuid4().hex}", schema, by, {"block_rows": 10, **properties})


def drawn(count: int, seed: int = 1) -> pa.Table:
    ids = np.random.default_rng(seed).permutation(count)
    return pa.table(
        {"id": ids, "name": [f"n{row_id % 7}" for row_id in ids], "at": [{"x": float(row_id // 3)} for row_id in ids]}
    )


def test_an_append_is_sorted_by_the_key_and_its_blocks_are_equally_filled():
    table = made(["id"])
    table.create_index("by_name", "bloom", ["name"])
    table.append(drawn(35))

    assert table.scan().to_arrow().column("id").to_pylist() == list(range(35))
    assert table.inspect.blocks().column("rows").to_pylist() == [9, 9, 9, 8]
    assert table.inspect.clustering().average_depth == 1.0
    assert table.inspect.indexes().column("blocks_indexed").to_pylist() == [4]
    table.append(drawn(10))
    assert table.inspect.clustering().maximum_depth == 2


def test_what_does_not_fit_into_memory_is_sorted_in_runs():
    table = made(["id"], sort_bytes=2000)
    batches = drawn(100).to_batches(max_chunksize=5)
    table.append(pa.RecordBatchReader.from_batches(batches[0].schema, batches))

    ids = table.scan().to_arrow().column("id").to_pylist()
    falls = sum(after < before for before, after in pairwise(ids))
    assert sorted(ids) == list(range(100))
    assert 1 < table.inspect.clustering().maximum_depth <= falls + 1 < 10


def test_rows_are_ordered_as_spark_orders_them():
    nan = math.nan
    rows = pa.table({"f": [1.0, nan, None, -0.0, -math.inf, 0.0, math.inf], "s": ["b", "ä", "", None, "z", "a", "B"]})
    of = made(schema="f DOUBLE, s STRING").snapshot

    def sorted_by(*names: str) -> list[int]:
        return sort_order(rows, ClusterKey.from_names(of, names, "linear")).tolist()

    assert sorted_by("f") == [2, 4, 3, 5, 0, 6, 1]
    assert sorted_by("f", "s") == [2, 4, 3, 5, 0, 6, 1]
    assert sorted_by("s") == [3, 2, 6, 5, 0, 4, 1]


@pytest.mark.parametrize("method", ["zorder", "hilbert"])
def test_along_a_curve_blocks_are_narrow_in_every_column(method):
    table = made(["id", "at.x"], "id BIGINT, at STRUCT<x: DOUBLE>", cluster_method=method, block_rows=16)
    cells = [(a, 1000.0 * b) for a in range(32) for b in range(32)]
    order = np.random.default_rng(5).permutation(len(cells))
    table.append(pa.table({"id": [cells[n][0] for n in order], "at": [{"x": cells[n][1]} for n in order]}))

    assert [each.overlaps.average_depth for each in table.inspect.clustering().orders] == [8.0, 8.0]
    assert table.explain("id = 3").to_dict()["blocks"] == {"total": 64, "kept": 8}
    assert table.explain("at.x = 3000").to_dict()["blocks"] == {"total": 64, "kept": 8}


def test_a_key_is_chosen_changed_and_given_up_without_a_row_being_written():
    table = made()
    table.append(drawn(40))
    blocks = table.inspect.blocks()

    assert table.cluster_by(["at.x", "id"], "hilbert").cluster_by == ("at.x", "id")
    assert (table.snapshot.operation, table.snapshot.summary["method"]) == ("cluster by", "hilbert")
    same = table.snapshot
    assert table.cluster_by(["at.x", "id"], "hilbert") is same
    table.rename_column("at.x", "y")
    assert (table.snapshot.cluster_by, table.snapshot.cluster_method) == (("at.y", "id"), "hilbert")
    table.cluster_by(["name"])
    assert (table.snapshot.cluster_by, table.snapshot.cluster_method) == (("name",), "linear")
    assert dict(table.snapshot.properties) == {"block_rows": 10}
    with pytest.raises(fuse.SchemaError, match="clustered by 'name'"):
        table.drop_column("name")
    table.cluster_by(None)
    assert table.snapshot.cluster_by == ()
    table.drop_column("name")
    assert table.inspect.blocks() == blocks
    table.restore(same.id)
    assert (table.snapshot.cluster_by, table.snapshot.cluster_method) == (("at.x", "id"), "hilbert")
    check_invariants(table.stored)


def test_what_cannot_be_a_key_is_refused():
    table = made(schema="id BIGINT, tags ARRAY<INT>")

    for columns, method, error in [
        (["tags"], "linear", "plain types"),
        (["idd"], "linear", "did you mean"),
        (["id", "id"], "linear", "twice"),
        ("id", "linear", "a list"),
        (["id"], "zorder", "2 to 8 columns"),
        (["id"], "snake", "linear, zorder, hilbert"),
    ]:
        with pytest.raises((fuse.SchemaError, fuse.InputError, fuse.InvalidArgument), match=error):
            table.cluster_by(columns, method)
    with pytest.raises(fuse.InvalidArgument, match="snake"):
        made(["id"], cluster_method="snake")
    with pytest.raises(fuse.ReadOnly):
        fuse.open_table(table.stored.store, at=table.snapshot.id).cluster_by(["id"])
    assert table.refresh().snapshot.sequence == 1


def test_two_who_choose_at_once_are_told_and_an_append_goes_on():
    table = made()
    other = table.stored.transaction().cluster_by(["name"], "linear")
    late = table.stored.transaction().cluster_by(["at.x"], "linear")
    staged = table.stored.writer()
    staged.write(drawn(5))
    append = table.stored.transaction().append(staged.finish())
    other.commit()

    with pytest.raises(fuse.Conflict, match="clustering key were changed by cluster by"):
        late.commit()
    append.commit()
    assert (table.refresh().snapshot.cluster_by, table.snapshot.row_count) == (("name",), 5)


def test_what_is_written_over_others_is_sorted_too():
    table = made(["id"])
    table.append(drawn(40))
    table.overwrite(drawn(30, seed=2).to_pylist(), "id < 30")
    table.merge([{"id": row_id} for row_id in (71, 70, 72)], ["id"])

    ids = table.scan(columns=["id"]).to_arrow().column("id").to_pylist()
    assert Counter(ids) == Counter([*range(40), 70, 71, 72])
    assert [row_id for row_id in ids if row_id < 30] == list(range(30))
    assert [row_id for row_id in ids if row_id >= 70] == [70, 71, 72]
