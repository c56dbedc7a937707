"""Rows in whatever form they are given are the same rows, and are read as they are used."""

import math
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import fuse_index as fuse
from fuse_index.ingest.arrow_input import to_record_batches

ROWS = [{"id": 1, "city": "Bonn"}, {"id": 2, "city": None}, {"id": 3, "city": "Oslo"}]
TABLE = pa.Table.from_pylist(ROWS, pa.schema([("id", pa.int64()), ("city", pa.string())]))


class OnlyStream:
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return TABLE.__arrow_c_stream__(requested_schema)


class OnlyArray:
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return TABLE.to_batches()[0].__arrow_c_array__(requested_schema)


FORMS = {
    "table": lambda: TABLE,
    "reader": lambda: TABLE.to_reader(),
    "stream": OnlyStream,
    "array": OnlyArray,
    "pandas": lambda: TABLE.to_pandas(),
    "polars": lambda: pl.DataFrame(TABLE),
    "dataset": lambda: ds.dataset(TABLE),
    "scanner": lambda: ds.dataset(TABLE).scanner(),
    "dicts": lambda: ROWS,
    "generator of dicts": lambda: (row for row in ROWS),
    "generator of batches": lambda: (batch for batch in TABLE.to_batches(max_chunksize=1)),
    "list of batches": lambda: TABLE.to_batches(max_chunksize=2),
    "generator of many things": lambda: iter([TABLE[:1], ROWS[1], TABLE[2:].to_pandas()]),
    "columns": lambda: {"id": [1, 2, 3], "city": ["Bonn", None, "Oslo"]},
    "columns of arrays": lambda: {"id": np.array([1, 2, 3]), "city": TABLE["city"]},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_rows(form):
    table = fuse.create_table(f"memory://forms-{uuid4().hex}", TABLE.schema)
    table.append(FORMS[form]())

    assert table.to_arrow().to_pylist() == ROWS


def test_a_generator_is_read_as_its_rows_are_used():
    taken = []

    def rows() -> Iterator[dict[str, int]]:
        for number in range(200_000):
            taken.append(number)
            yield {"id": number}

    batches = to_record_batches(rows())
    assert next(batches).num_rows == len(taken) == 65_536
    assert sum(batch.num_rows for batch in batches) == 200_000 - 65_536


def test_batches_of_a_generator_may_lack_columns_in_turn():
    table = fuse.create_table(f"memory://forms-{uuid4().hex}", TABLE.schema)
    table.append(iter([pa.table({"id": [1]}), pa.table({"city": ["Oslo"]})]))

    assert table.to_arrow().to_pylist() == [{"id": 1, "city": None}, {"id": None, "city": "Oslo"}]


def test_a_dataset_of_files_is_read_batch_by_batch(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet", row_group_size=1)
    table = fuse.create_table(f"memory://forms-{uuid4().hex}", TABLE.schema)
    table.append(ds.dataset(tmp_path))

    assert table.to_arrow().to_pylist() == ROWS


def test_categories_of_polars_are_texts() -> None:
    frame = pl.DataFrame(
        {
            "id": [1, 2, 3],
            "c": pl.Series(["a", "b", None], dtype=pl.Categorical),
            "e": pl.Series(["x", "y", "x"], dtype=pl.Enum(["x", "y"])),
            "l": pl.Series([["a"], ["b", "a"], None], dtype=pl.List(pl.Categorical)),
            "s": pl.Series([{"k": "a"}, {"k": "b"}, {"k": None}], dtype=pl.Struct({"k": pl.Categorical})),
        }
    )
    columns = "id BIGINT, c STRING, e STRING, l ARRAY<STRING>, s STRUCT<k: STRING>"
    table = fuse.create_table("memory://categories", columns)
    keyed = fuse.create_table("memory://keyed-categories", columns, primary_key=["id"])
    for write, written in [
        (table.append, table),
        (lambda rows: table.merge(rows, on=["id"]), table),
        (table.overwrite, table),
        (keyed.upsert, keyed),
    ]:
        write(frame)
        assert sorted(written.to_arrow().to_pylist(), key=lambda row: row["id"]) == frame.to_dicts()
    kinds = pl.Series("_change_type", ["delete", "insert", "update_postimage"], dtype=pl.Categorical)
    keyed.apply(frame.with_columns(kinds))
    assert sorted(keyed.to_arrow()["id"].to_pylist()) == [2, 3]


@pytest.mark.parametrize(
    ("ddl", "value", "said"),
    [
        ("ARRAY<STRING>", "abc", "'abc' in row 1: give lists of texts"),
        ("MAP<STRING, ARRAY<STRING>>", {"k": "abc"}, "{'k': 'abc'} in row 1: give dicts of lists of texts"),
        ("MAP<STRING, ARRAY<STRING>>", [("k", "abc")], "[('k', 'abc')] in row 1: give dicts of lists of texts"),
        ("ARRAY<MAP<STRING, ARRAY<STRING>>>", [{"k": "x"}], "give lists of dicts of lists of texts"),
        ("MAP<STRING, STRUCT<a: ARRAY<STRING>>>", {"k": {"a": "x"}}, "give dicts of dicts"),
    ],
)
def test_a_text_is_no_list_of_its_letters_wherever_it_stands(ddl, value, said):
    table = fuse.create_table(f"memory://letters-{uuid4().hex}", f"v {ddl}")
    with pytest.raises(fuse.InputError, match=re.escape(said)):
        table.append([{"v": None}, {"v": value}])
    assert table.count() == 0


@pytest.mark.parametrize(
    ("ddl", "value", "said"),
    [
        (
            "STRUCT<a: INT>",
            {"a": 1, "typo": 2},
            "column 'c' has in the rows a field 'typo' that the table's struct lacks",
        ),
        ("ARRAY<STRUCT<a: INT>>", [None, {"typo": 2}], "'c.element' has in the rows a field 'typo'"),
        ("MAP<STRING, STRUCT<a: INT>>", {"k": {"a": 1, "typo": 2}}, "'c.value' has in the rows a field 'typo'"),
        ("STRUCT<v: VARIANT>", {"v": {"any": 1}, "typo": 2}, "column 'c' has in the rows a field 'typo'"),
        (
            "STRUCT<s: STRUCT<a: INT>>",
            {"s": {"a": 1, 7: 2}},
            "{'s': {'a': 1, 7: 2}} in row 1: give dicts with the names",
        ),
    ],
)
def test_a_dict_with_a_field_that_the_struct_lacks_is_refused(ddl: str, value: Any, said: str) -> None:
    table = fuse.create_table(f"memory://{uuid4()}", f"id BIGINT, c {ddl}")

    with pytest.raises((fuse.SchemaError, fuse.InputError), match=re.escape(said)):
        table.append([{"id": 0, "c": None}, {"id": 1, "c": value}])
    assert table.count() == 0


_NOON = datetime(2026, 1, 31, 12)


@pytest.mark.parametrize(
    ("ddl", "values"),
    [
        ("INT", [1.5]),
        ("INT", [-1.9, Decimal("2.5")]),
        ("INT", [1, np.float32(1.5)]),
        ("DATE", [_NOON]),
        ("DATE", [_NOON.date(), _NOON]),
        ("DATE", [datetime(2026, 1, 31, tzinfo=UTC)]),
        ("DATE", [math.nan]),
        ("TIMESTAMP", [5.5]),
        ("TIMESTAMP", [pd.Timestamp("2026-01-31 12:00:00.000000001")]),
        ("TIMESTAMP_NTZ", [_NOON.replace(tzinfo=UTC)]),
        ("STRUCT<a: INT>", [{"a": 1.5}]),
        ("STRUCT<a: INT>", [[("a", 1.5)]]),
        ("MAP<STRING, INT>", [{"k": 1.5}]),
        ("MAP<STRING, INT>", [[("k", 1.5)]]),
        ("MAP<INT, STRING>", [[(1.5, "k")]]),
        ("ARRAY<DATE>", [[_NOON]]),
        ("ARRAY<STRUCT<m: MAP<STRING, INT>>>", [[{"m": {"k": 1.5}}]]),
    ],
)
def test_nothing_of_a_value_is_cut_off_to_make_it_fit(ddl: str, values: list[Any]) -> None:
    table = fuse.create_table(f"memory://{uuid4()}", f"id BIGINT, c {ddl}")
    table.append([{"id": 1}])

    for take in (
        lambda: table.append([{"id": 2, "c": value} for value in values]),
        lambda: table.append({"c": values}),
        lambda: table.merge([{"id": 1, "c": value} for value in values], on=["id"]),
        lambda: table.update("id = 1", {"c": values[-1]}),
    ):
        with pytest.raises(fuse.InputError, match=r"column 'c'.*: give "):
            take()
    assert table.to_arrow().to_pylist() == [{"id": 1, "c": None}]


@pytest.mark.parametrize(
    ("ddl", "values"),
    [
        ("DATE", pd.Series([_NOON])),
        ("DATE", np.array(["2026-01-31T12"], "datetime64[s]")),
        ("TIMESTAMP_NTZ", pd.Series([_NOON.replace(tzinfo=UTC)])),
        ("BOOLEAN", pd.Series([1.5])),
        ("INT", np.array([1.5])),
    ],
)
def test_nothing_of_a_column_of_pandas_is_cut_off(ddl: str, values: Any) -> None:
    table = fuse.create_table(f"memory://{uuid4()}", f"c {ddl}")

    with pytest.raises(fuse.InputError, match="column 'c' holds values that are no"):
        table.append({"c": values})


@pytest.mark.parametrize(
    ("ddl", "values", "stored"),
    [
        ("INT", [2.0, Decimal("3.0"), None], [2, 3, None]),
        ("DATE", [datetime(2026, 1, 31), pd.NaT], [date(2026, 1, 31), None]),
        ("MAP<STRING, INT>", [{"k": 2.0}], [[("k", 2)]]),
        ("BOOLEAN", pd.Series([1.0, 0.0]), [True, False]),
        ("DATE", pd.Series([datetime(2026, 1, 31)]), [date(2026, 1, 31)]),
        ("INT", pd.Series([2.0, math.nan], dtype=object), [2, None]),
        ("TIMESTAMP", [_NOON.replace(tzinfo=timezone(timedelta(hours=5)))], [datetime(2026, 1, 31, 7, tzinfo=UTC)]),
    ],
)
def test_what_fits_whole_is_taken(ddl: str, values: Any, stored: list[Any]) -> None:
    table = fuse.create_table(f"memory://{uuid4()}", f"c {ddl}")
    table.append({"c": values})

    assert table.to_arrow().column("c").to_pylist() == stored


def test_fields_of_dicts_are_added_where_the_schema_is_merged() -> None:
    table = fuse.create_table(f"memory://{uuid4()}", "id BIGINT, s STRUCT<a: INT>, l ARRAY<STRUCT<a: INT>>")
    rows = [
        {"id": 1, "s": {"a": 1, "b": "x"}, "l": [{"a": 1}, {"b": 2.5, "none": None}]},
        {"id": 2, "s": {"a": 2}, "l": None},
    ]

    table.append(rows, merge_schema=True)

    assert table.to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "s": {"a": 1, "b": "x"}, "l": [{"a": 1, "b": None}, {"a": None, "b": 2.5}]},
        {"id": 2, "s": {"a": 2, "b": None}, "l": None},
    ]
