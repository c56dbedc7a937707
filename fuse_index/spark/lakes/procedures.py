"""Indexes of sources in SQL: ``CALL fuse.system.index('spark_catalog.db.t', 'bloom', array('user_id'))`` and its like.

In: calls. Out: their rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from fuse_index.errors import InputError
from fuse_index.spark.catalog.definitions import parse_index_options
from fuse_index.spark.catalog.procedures import Parameter, Procedure, ProcedureCall
from fuse_index.spark.lakes.connectors import describe_connectors
from fuse_index.spark.lakes.index import NewIndex, index_at_place, index_in_warehouse, refresh_source
from fuse_index.spark.lakes.source import NamedSource, find_source
from fuse_index.spark.lakes.use import renew
from fuse_index.table.table import Table
from fuse_index.warehouse.source_indexes import no_index_problem
from fuse_storage import NotFound

_SOURCE = Parameter("source", "a name such as spark_catalog.db.t, ice.db.t or delta.`/path`, or a path or URL")
_FORMAT = Parameter("format", "parquet, delta or iceberg; told by what is there if it is left out", default="NULL")
_INDEX_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("source", "format", "index", "kind")),
        ("columns", pa.list_(pa.string())),
        ("files", pa.int64()),
        ("indexed", pa.int64()),
        ("location", pa.string()),
        ("connector", pa.string()),
        ("problem", pa.string()),
    ]
)


def _index(call: ProcedureCall) -> pa.Table:
    columns = call["columns"]
    if not columns or None in columns:
        raise InputError(f"columns => {columns!r}: give names, such as array('user_id')")
    store = call.names.options
    new = NewIndex(call["kind"], columns, parse_index_options(call["options"] or {}), call["name"])
    found = find_source(call.spark, call["source"], call["format"], store)
    if call["at"] is not None:
        return _rows(call.spark, [index_at_place(call.spark, found, new, call["at"], store)])
    return _rows(call.spark, [index_in_warehouse(call.spark, found, new, call.names.require_warehouse())])


def _list(call: ProcedureCall) -> pa.Table:
    warehouse, tables, broken = call.names.require_warehouse(), list[Table](), list[Mapping[str, str]]()
    for each in warehouse.source_indexes():
        if each.problem:
            place = {"source": each.source, "format": each.format, "location": each.url}
            broken.append({**place, "problem": each.problem})
        elif (table := warehouse.find_source_index(each.location)) is not None:
            tables.append(table)
    return pa.concat_tables([_rows(call.spark, tables), pa.Table.from_pylist(broken, _INDEX_SCHEMA)])


def _refresh(call: ProcedureCall) -> pa.Table:
    table = _table_of(call)
    refresh_source(call.spark, table)
    return _rows(call.spark, [table])


def _drop(call: ProcedureCall) -> pa.Table:
    if call["index"] is None:
        warehouse, location = call.names.require_warehouse(), _source(call).location
        table = warehouse.find_source_index(location)
        rows = _rows(call.spark, [] if table is None else [table])
        warehouse.drop_source_index(location)
    else:
        table = _table_of(call)
        rows = _rows(call.spark, [table])
        table.drop_index(call["index"])
        rows = rows.filter(pa.compute.equal(rows.column("index"), call["index"]))
    renew(call.spark)
    return rows


def _source(call: ProcedureCall) -> NamedSource:
    return find_source(call.spark, call["source"], call["format"], call.names.options)


def _table_of(call: ProcedureCall) -> Table:
    """The table for votes alone that the warehouse has of the source. Raises NotFound, which names others."""
    warehouse, location = call.names.require_warehouse(), _source(call).location
    if (table := warehouse.find_source_index(location)) is not None:
        return table
    known = {place for _, place in warehouse.source_places()}
    if location in known:
        raise NotFound(f"the files of the index of {location} are gone: index the source anew, or drop its index")
    raise NotFound(no_index_problem(location, known))


def _rows(spark: SparkSession, tables: Sequence[Table]) -> pa.Table:
    rows, connectors = [], describe_connectors(spark)
    for table in tables:
        source, total = table.snapshot.source or {}, table.snapshot.block_count
        about = {"source": source["url"], "format": source["format"], "files": total}
        place = {"location": table.stored.store.url, "connector": connectors.get(source["format"])}
        for each in table.inspect.indexes().to_pylist():
            known = {"index": each["name"], "kind": each["kind"], "columns": each["columns"]}
            rows.append({**about, **place, **known, "indexed": each["blocks_indexed"]})
    return pa.Table.from_pylist(rows, _INDEX_SCHEMA)


SOURCE_PROCEDURES: Mapping[str, Procedure] = {
    "index": Procedure(
        "Give a table of Parquet files, Delta or Iceberg an index, which its queries ask as they are",
        [
            _SOURCE,
            Parameter("kind", "of the index, such as bloom"),
            Parameter("columns", "names, or terms such as lower(email)", list),
            Parameter("name", "of the index; made of the kind and the columns if it is left out", default="NULL"),
            Parameter("at", "where the index is to be; in the warehouse if it is left out", default="NULL"),
            _FORMAT,
            Parameter("options", "of the kind", dict, default="NULL"),
        ],
        _index,
    ),
    "source_indexes": Procedure("The indexes of other tables that the warehouse keeps", [], _list),
    "refresh_source_index": Procedure(
        "Bring the indexes of a source to its present state: the files that came, and columns that became wider",
        [_SOURCE, _FORMAT],
        _refresh,
    ),
    "drop_source_index": Procedure(
        "Forget an index of a source, or all of them",
        [_SOURCE, Parameter("index", "its name; all if it is left out", default="NULL"), _FORMAT],
        _drop,
    ),
}
"""By name."""
