"""Builders: a kind that fails costs the index of a block, and never a row."""

import pickle
import warnings
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.errors import IndexFault
from fuse_index.indexes.builder import IndexBuilder, index_builders
from fuse_index.indexes.define import define_index
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.registry import Host, PluginWarning
from fuse_index.predicate import Context
from fuse_plugins import bloom, min_max
from fuse_storage import Schema, Sidecar
from tests.index.kinds import FAILING, Greatest, Raises, RollUpRaises, RollUpWrong, Values

ROWS = pa.table({"n": pa.array([3, None, 1, 3], pa.int64()), "at": pa.array([0, 1, 2, 3], pa.timestamp("us", "UTC"))})
ZONES = np.array([0, 2, 4])
SCHEMA = Schema.create(ROWS.schema)


def builder(kind, terms=("n",), strict=False, context=None, **options):
    host = Host([kind])
    return IndexBuilder.for_definition(
        define_index("x", kind.name, terms, options, SCHEMA, Engine(host, context or Context())), host, strict
    )


def table_with(kind, *columns):
    made = fuse.create_table(
        f"memory://build-{uuid4().hex}", "n BIGINT", properties={"block_rows": 10}, host=Host([min_max, bloom, kind])
    )
    made.create_index("x", kind.name, columns or ["n"])
    return made


def numbers(count=30):
    return pa.table({"n": range(count)})


def test_a_builder_makes_what_its_kind_makes():
    made = builder(Values).build(ROWS, ZONES)

    assert isinstance(made, Sidecar)
    assert made.summary == 2


def test_inputs_are_computed_before_the_kind_sees_them():
    made = builder(Values, ["CAST(at AS STRING)"], context=Context("Asia/Tokyo"))

    assert made.columns == ["at"]
    assert made.input_values(ROWS).column(0)[3].as_py() == "1970-01-01 09:00:00.000003"


@pytest.mark.parametrize("kind", FAILING)
def test_a_kind_that_fails_never_costs_a_row(kind):
    table = table_with(kind)

    with pytest.warns(PluginWarning, match=f"index 'x' .kind '{kind.name}' of tests.index.kinds. failed in"):
        table.append(numbers())

    assert table.scan("n = 7").to_arrow().to_pydict() == {"n": [7]}
    (row,) = table.inspect.indexes().to_pylist()
    assert (row["blocks_indexed"], row["blocks"], row["rows_indexed"], row["rows"]) == (0, 3, 0, 30)


@pytest.mark.parametrize("kind", [RollUpRaises, RollUpWrong])
def test_a_failing_roll_up_costs_no_index(kind):
    table = table_with(kind)

    with pytest.warns(PluginWarning, match=r"failed in roll_up.. on a segment of 3 blocks, which is not rolled up"):
        table.append(numbers())

    assert table.scan("n > 28").count() == 1
    assert table.explain("n > 28").blocks.kept == 1
    assert table.inspect.indexes().column("blocks_indexed").to_pylist() == [3]


def test_a_roll_up_skips_whole_segments():
    table = table_with(Greatest)
    table.append(numbers(10))
    table.append(numbers(20))

    assert table.explain("n > 15").segments.kept == 1


def test_a_warning_names_the_error():
    with pytest.warns(PluginWarning, match="on a block of 4 rows, unindexed for now: ValueError: no such luck"):
        assert builder(Raises).build(ROWS, ZONES) is None


def test_strictly_a_failure_is_an_error():
    with pytest.raises(
        IndexFault, match=r"index 'x' of kind 'raises': PLUGIN_ERROR: build.. on block 7: ValueError: no such luck"
    ):
        builder(Raises, strict=True).build(ROWS, ZONES, "block 7")


def test_strictly_an_append_and_a_build_fail_too():
    table = table_with(Raises)

    with pytest.raises(IndexFault, match="no such luck"):
        table.append(numbers(), strict=True)
    with pytest.warns(PluginWarning):
        table.append(numbers())
    for build in (table.maintenance.refresh_index, table.maintenance.rebuild_index):
        with pytest.raises(IndexFault, match="no such luck"):
            build("x", strict=True)

    assert table.scan().count() == 30


def test_nobody_catches_the_user_who_interrupts():
    class Interrupted(Values):
        def build(self, rows, zones, options):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        builder(Interrupted).build(ROWS, ZONES)


def test_a_builder_crosses_processes():
    made = builder(Values, limit=7)

    arrived = pickle.loads(pickle.dumps(made))

    assert (arrived.definition, arrived.columns, arrived.build(ROWS, ZONES)) == (
        made.definition,
        made.columns,
        made.build(ROWS, ZONES),
    )


def test_where_another_version_of_a_kind_is_installed_nothing_is_indexed():
    class Newer(Values):
        writes, reads = 2, frozenset({1, 2})

    made = builder(Values)
    moved = IndexBuilder(made.definition, Newer(), made.version)

    with pytest.warns(PluginWarning, match="writes payload version 2 here, not 1: install one version everywhere"):
        assert moved.build(ROWS, ZONES) is None


def test_writers_get_a_builder_for_each_index_that_can_be_built():
    table = table_with(Values)
    table.create_index("again", "values", ["n"])
    table.create_index("more", "bloom", ["n"])

    assert sorted(found.definition.kind for found in index_builders(table.snapshot, table.host)) == ["bloom", "values"]
    assert [found.kind.name for found in index_builders(table.snapshot, Host([bloom]))] == ["bloom"]


def test_a_sound_kind_warns_of_nothing():
    table = table_with(Values)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.append(numbers())

    assert table.explain("n = 7").blocks.kept == 1
