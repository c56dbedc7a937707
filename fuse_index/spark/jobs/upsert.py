"""Rows put into a table with a primary key by executors, of each key the latest: one hot commit.

A shuffle brings the rows of one key into one task, sorted, so that none is held there but those of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.functions import col

from fuse_index.changes.columns import CHANGE_COLUMNS, CHANGE_TYPE
from fuse_index.errors import InputError
from fuse_index.hot.append import was_committed
from fuse_index.indexes.registry import Host
from fuse_index.spark.answers import Sealed
from fuse_index.spark.jobs.dml import DmlTarget, map_tasks
from fuse_index.spark.native.relation import quote_path
from fuse_index.spark.placement import run_where_reachable
from fuse_index.spark.schemas import to_arrow_schema
from fuse_index.spark.source.keyed_write import (
    TaskPuts,
    commit_keyed,
    has_changes,
    resolve_keyed_names,
    stage_keyed,
)
from fuse_index.statements.key_changes import is_passed_over
from fuse_index.table.arguments import check_arguments
from fuse_storage import StoredTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_Mask = npt.NDArray[np.bool_]


@check_arguments
def upsert(
    df: DataFrame,
    url: str,
    order_by: str | Sequence[str] | None = None,
    application: tuple[str, int] | None = None,
    *,
    branch: str = "main",
    host: Host | None = None,
    **store: str,
) -> None:
    """Put the rows of a DataFrame into a table with a primary key, as ``Table.upsert``, by executors and in one commit.

    A column ``_change_type`` says what each row does, as in ``Table.apply``.

    Args:
        df: The rows.
        url: Where the table is.
        order_by: Columns by which, of several rows of one key, the greatest counts, as Spark orders (NULL is least);
            those that the table lacks are not stored. Without it nothing is shuffled, and of the rows of a key in a
            task the last counts.
        application: As for ``Table.append``.
        branch: Which branch.
        host: Index kinds and functions; by default what is installed where the table is planned.
        store: Options of the object store.

    Raises:
        InputError: Rows that differ are equal in ``order_by``; or, without it, several tasks have a key.
        SchemaError: A column does not fit.
        TailFull: A job does not keep up with tiering.
        Conflict: Columns were changed meanwhile.
        StorageError: The store fails.

    Example:
        fuse_spark.upsert(spark.table("staging.orders"), "/data/orders", order_by="at")
    """
    to = DmlTarget.for_session(df.sparkSession, url, branch, host, store)
    schema, order = to_arrow_schema(df.schema), [order_by] if isinstance(order_by, str) else list(order_by or ())
    if unknown := [name for name in order if name not in schema.names]:
        raise InputError(f"order_by names {unknown[0]!r}, and the rows have {', '.join(schema.names)}")
    sealed, names, key = run_where_reachable(df.sparkSession, lambda: _plan(to, schema, order, application))
    if names is None:
        return
    rows = df
    if order:
        by_key = [col(quote_path([name])) for name, stored in zip(df.columns, names, strict=True) if stored in key]
        sorting = [*by_key, *(col(quote_path([name])) for name in order)]
        rows = df.repartition(*by_key).sortWithinPartitions(*sorting)
    tasks = map_tasks(rows, partial(_stage, sealed, names, key, order))
    run_where_reachable(df.sparkSession, lambda: _commit(to, tasks, application))


def upserting(
    url: str,
    job: str,
    order_by: str | Sequence[str] | None = None,
    *,
    branch: str = "main",
    host: Host | None = None,
    **store: str,
) -> Callable[[DataFrame, int], None]:
    """Make what ``foreachBatch`` takes to ``upsert`` each micro-batch, exactly once by ``job`` and the batch's number.

    Args:
        url: Where the table is.
        job: Names the query to the table: another query, or one that begins again with a new checkpoint, has another.
        order_by: As for ``upsert``.
        branch: Which branch.
        host: Index kinds and functions; by default what is installed where the table is planned.
        store: Options of the object store.

    Returns:
        A function of a DataFrame and its number, which raises as ``upsert`` does.

    Raises:
        InputError: An argument is of a type that is not taken.

    Example:
        into = fuse_spark.upserting("/data/orders", "orders-from-kafka", order_by="at")
        rows.writeStream.foreachBatch(into).start()
    """

    def put(df: DataFrame, batch: int) -> None:
        upsert(df, url, order_by, (job, batch), branch=branch, host=host, **store)

    return put


def _plan(
    to: DmlTarget, schema: pa.Schema, order: Sequence[str], application: tuple[str, int] | None
) -> tuple[Sealed[StoredTable], list[str] | None, list[str]]:
    """The table, what it calls the columns of the rows, and its key; no names if there is nothing to do any more."""
    table = to.open()
    stored = table.stored
    table.row_store.by_key("upsert")
    if application is not None and was_committed(stored.snapshot, *application):
        return Sealed(stored), None, []
    known = [name.lower() for name in stored.snapshot.schema.names]
    if has_changes(schema.names, stored.snapshot):
        known += CHANGE_COLUMNS.names
    kept = pa.schema([field for field in schema if field.name not in order or field.name.lower() in known])
    resolved = dict(zip(kept.names, resolve_keyed_names(kept, stored.snapshot), strict=True))
    return Sealed(stored), [resolved.get(name, "") for name in schema.names], list(stored.snapshot.key)


def _stage(
    sealed: Sealed[StoredTable], names: list[str], key: list[str], order: list[str], batches: Iterable[pa.RecordBatch]
) -> Sealed[TaskPuts]:
    """Take the rows of a task. ``names``: what the table calls their columns; empty for those that it does not keep."""
    table = sealed.open()
    kept = [place for place, name in enumerate(names) if name]
    changes = has_changes([names[place] for place in kept], table.snapshot)
    if order:
        change_type = names.index(CHANGE_TYPE) if changes else None
        batches = _latest(batches, [names.index(name) for name in key], order, change_type)
    chosen = (batch.select(kept).rename_columns([names[place] for place in kept]) for batch in batches)
    return Sealed(stage_keyed(chosen, table, changes))


def _commit(to: DmlTarget, tasks: Sequence[Sealed[TaskPuts]], application: tuple[str, int] | None) -> None:
    table = to.open()
    commit_keyed(table.stored, table.host, [task.open() for task in tasks], application)


def _latest(
    batches: Iterable[pa.RecordBatch], key: Sequence[int], order: Sequence[str], change_type: int | None
) -> Iterator[pa.RecordBatch]:
    """Keep the last row of each key, of rows that are sorted by the key and by an order in it.

    ``key``, ``change_type``: places of columns. Raises InputError where the order does not tell rows apart that differ.
    """
    held, held_is_unclear = None, False
    for batch in batches:
        if change_type is not None:
            batch = batch.filter(pc.invert(is_passed_over(batch.column(change_type))))
        rows = batch if held is None else pa.concat_batches([held, batch])
        if not len(rows):
            continue
        is_last = np.append(_differ(rows, [rows.column(place) for place in key]), False)
        is_unclear = _find_unclear(rows, is_last, order, held_is_unclear)
        _raise_if_unclear(rows, is_unclear & is_last, order)
        held, held_is_unclear = rows.slice(len(rows) - 1), bool(is_unclear[-1])
        yield rows.filter(pa.array(is_last))
    if held is not None:
        _raise_if_unclear(held, np.array([held_is_unclear]), order)
        yield held


def _differ(rows: pa.RecordBatch, columns: Sequence[pa.Array]) -> _Mask:
    """Which rows differ from the next in some of these columns: bool, shape (rows - 1,). NULLs are alike, and NaNs."""
    found = np.zeros(max(0, len(rows) - 1), np.bool_)
    for column in columns:
        if pa.types.is_null(column.type):
            continue
        one, other = column.slice(0, len(found)), column.slice(1)
        unlike = pc.not_equal(one, other)
        if pa.types.is_floating(column.type):
            unlike = pc.and_(unlike, pc.invert(pc.and_(pc.is_nan(one), pc.is_nan(other))))
        either_null = pc.xor(one.is_null(), other.is_null())
        found |= pc.if_else(unlike.is_null(), either_null, unlike).to_numpy(zero_copy_only=False)
    return found


def _find_unclear(rows: pa.RecordBatch, is_last: _Mask, order: Sequence[str], first: bool) -> _Mask:
    """Which rows have the order of one before them, of the same key, that differs: bool, shape (rows,).

    ``is_last``: rows after which another key comes. ``first``: whether the first row is one.
    """
    alike = ~is_last[:-1] & ~_differ(rows, [rows.column(name) for name in order])
    is_flat = [not pa.types.is_nested(column.type) for column in rows.columns]
    unlike = _differ(rows, [column for column, flat in zip(rows.columns, is_flat, strict=True) if flat])
    nested = [column for column, flat in zip(rows.columns, is_flat, strict=True) if not flat]
    unclear = np.zeros(len(rows), np.bool_)
    unclear[:1] = first
    for place in np.flatnonzero(alike).tolist():
        differs = unlike[place] or any(repr(each[place].as_py()) != repr(each[place + 1].as_py()) for each in nested)
        unclear[place + 1] = unclear[place] or differs
    return unclear


def _raise_if_unclear(rows: pa.RecordBatch, is_unclear: _Mask, order: Sequence[str]) -> None:
    if is_unclear.any():
        row = rows.slice(int(np.argmax(is_unclear)), 1).to_pylist()[0]
        values = ", ".join(f"{name} = {row[name]!r}" for name in order)
        raise InputError(
            f"order_by does not say which of several rows counts that have {values} and one key, such as {row}: name "
            f"a column, too, in which they differ"
        )
