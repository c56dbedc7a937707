"""Rows that equality deletes take away: those of older files whose key columns equal a deleted key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.sources.iceberg.live_files import DataFileEntry, DeleteFileEntry
from fuse_index.sources.source import KeyHolders
from fuse_storage import RowMask, Unsupported

_MAX_KEPT_KEYS = 64
"""Files of deletes, or sets of them, whose keys are kept while data files are asked for them."""


class EqualityDeletes:
    """Equality deletes of a table, applied to one data file after the other."""

    def __init__(self, table: Any, holders: KeyHolders | None = None) -> None:
        self._table, self._holders = table, holders
        self._keys = lru_cache(_MAX_KEPT_KEYS)(self._read_keys)
        self._held = lru_cache(_MAX_KEPT_KEYS)(self._ask_holders)

    def mark(self, file: DataFileEntry, deletes: Sequence[DeleteFileEntry], mask: RowMask, may_ask: bool) -> None:
        """Mark the rows of a file that these delete. ``mask``: bool, shape (rows,).

        Its key columns are read where its bounds and, if they may be asked, ``holders`` say that it may hold a key: of
        a row that counts. Raises Unsupported for keys that are parts of columns.
        """
        for ids, found in groupby(sorted(deletes, key=lambda each: each.equality_ids), lambda each: each.equality_ids):
            some = tuple(found)
            keys = self._keys(some)
            if _may_hold(file.data_file, ids, keys) and not (may_ask and self._held(some).get(file.location) is False):
                mask |= equal_rows(self._read(file.data_file, ids), keys)

    def _ask_holders(self, deletes: tuple[DeleteFileEntry, ...]) -> Mapping[str, bool]:
        columns = dict(zip(deletes[0].equality_ids, self._keys(deletes).columns, strict=True))
        return (None if self._holders is None else self._holders(columns)) or {}

    def _read_keys(self, deletes: tuple[DeleteFileEntry, ...]) -> pa.Table:
        ids = deletes[0].equality_ids
        tables = [self._read(each.data_file, ids) for each in deletes]
        return pa.concat_tables(tables, promote_options="permissive")

    def _read(self, data_file: Any, ids: Sequence[int]) -> pa.Table:
        """The columns of these ids of a file of rows or keys, whole, in its order."""
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan
        from pyiceberg.schema import Schema
        from pyiceberg.table import FileScanTask

        schema = Schema(*(self._field(number, data_file) for number in ids))
        scan = ArrowScan(self._table.metadata, self._table.io, schema, AlwaysTrue())
        rows = scan.to_table([FileScanTask(data_file)])
        if rows.num_rows != data_file.record_count:
            raise Unsupported(
                f"{data_file.file_path} has {rows.num_rows} rows, and the table's metadata another number"
            )
        return rows

    def _field(self, number: int, data_file: Any) -> Any:
        """The column of an id, as the newest schema that has it says; it may have been dropped since."""
        if (field := self._fields.get(number)) is None:
            raise Unsupported(
                f"{data_file.file_path} deletes rows by column {number}, which is a part of one, or in no schema: "
                f"compact the table at the source (rewrite_data_files with delete-file-threshold = 1)"
            )
        return field.model_copy(update={"required": False})

    @cached_property
    def _fields(self) -> dict[int, Any]:
        schemas = sorted(self._table.schemas().values(), key=lambda each: each.schema_id)
        return {field.field_id: field for each in [*schemas, self._table.schema()] for field in each.fields}


def equal_rows(rows: pa.Table, keys: pa.Table) -> RowMask:
    """Tell which rows equal a key in all columns: bool, shape (rows,). NULL equals NULL, and NaN equals NaN.

    >>> keys = pa.table({"id": [1, None], "city": ["Bonn", "Oslo"]})
    >>> equal_rows(pa.table({"id": [1, 1, None], "city": ["Bonn", "Oslo", "Oslo"]}), keys).tolist()
    [True, False, True]
    """
    found: RowMask = np.ones(rows.num_rows, np.bool_)
    of_rows, of_keys = np.zeros(rows.num_rows, np.int64), np.zeros(keys.num_rows, np.int64)
    for column, wanted in zip(map(_exact, rows.columns), map(_exact, keys.columns), strict=True):
        values = pc.unique(wanted.cast(column.type))
        codes = pc.index_in(column, value_set=values, skip_nulls=False)
        found &= np.asarray(codes.is_valid().to_numpy(), np.bool_)
        pairs = _codes(of_keys, wanted.cast(column.type), values), _codes(of_rows, column, values)
        both, numbers = np.unique(np.concatenate(pairs), return_inverse=True)
        of_keys, of_rows = np.split(numbers.astype(np.int64), [keys.num_rows])
        assert len(both) < 1 << 31
    return found & np.isin(of_rows, of_keys)


def _codes(above: npt.NDArray[np.int64], column: pa.ChunkedArray, values: pa.Array) -> npt.NDArray[np.int64]:
    """Numbers of pairs: of what ``above`` has so far, int64, shape (n,), and a value of the column, by its place."""
    codes = pc.index_in(column, value_set=values, skip_nulls=False).fill_null(len(values)).to_numpy()
    return np.asarray(above * (len(values) + 1) + codes, np.int64)


def _exact(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column whose values are equal where Iceberg has them equal, of a type that Arrow compares.

    Floats by their bits, texts of one type, and UUIDs by their bytes.
    """
    if isinstance(column.type, pa.BaseExtensionType):
        return column.cast(column.type.storage_type)
    if pa.types.is_floating(column.type):
        numbers = np.where(np.isnan(values := column.to_numpy()), np.nan, values)
        kind = np.int64 if column.type == pa.float64() else np.int32
        bits = pa.array(numbers.astype(values.dtype).view(kind), mask=np.asarray(column.is_null().to_numpy(), np.bool_))
        return pa.chunked_array([bits])
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    return column


def _may_hold(data_file: Any, ids: Sequence[int], keys: pa.Table) -> bool:
    """Whether a file may hold a key, by the bounds of its columns; whoever has none, or another type's, may."""
    matching = np.ones(keys.num_rows, np.bool_)
    for number, column in zip(ids, keys.columns, strict=True):
        low, high = (
            _bound((each or {}).get(number), column.type) for each in (data_file.lower_bounds, data_file.upper_bounds)
        )
        if low is not None and high is not None:
            within = pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high))
            matching &= np.asarray(within.fill_null(True).to_numpy(), np.bool_)  # NULL is beyond bounds
    return bool(matching.any())


def _bound(data: bytes | None, kind: pa.DataType) -> pa.Scalar | None:
    """A bound as Iceberg has it in manifests, of the few types whose order and bytes leave no doubt."""
    if data is None:
        return None
    if pa.types.is_integer(kind) and len(data) in (4, 8):
        return pa.scalar(int.from_bytes(data, "little", signed=True), pa.int64())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        try:
            return pa.scalar(data.decode(), kind)
        except UnicodeDecodeError:
            return None
    return None
