"""Rows of a table, for whatever reads them: scans, and the short ways to what people ask for most."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import fuse_storage as storage
from fuse_index.errors import InputError
from fuse_index.handle import TableHandle, resolve_predicate
from fuse_index.indexes.engine import Engine
from fuse_index.predicate import And, Predicate
from fuse_index.pruning.planner import ScanPlan, plan_scan
from fuse_index.query.scan import Scan
from fuse_index.table.arguments import check_limit
from fuse_storage import BlockFrame

if TYPE_CHECKING:
    import pandas
    import polars


class ReadMixin(TableHandle):
    """The part of ``fuse_index.Table`` that reads rows."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """All rows, as DuckDB, Polars and Arrow read a stream."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self.scan().schema.__arrow_c_schema__()

    def scan(
        self,
        where: str | Predicate | None = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        indexes: bool = True,
        strict: bool = False,
        index_seconds: float | None = None,
    ) -> Scan:
        """Select matching rows, which are read when asked for.

        Args:
            where: A condition in Spark SQL, or a predicate; by default all rows.
            columns: Names of the columns wanted, in this order; by default all.
            limit: At most so many rows; the reading stops as soon as they are found.
            indexes: False reads every block.
            strict: Raise IndexFault for an index that does something wrong, which otherwise only costs time.
            index_seconds: How long indexes may take; by default the table's property, or the process's, or 10 s.

        Returns:
            A ``Scan``: ``to_arrow``, ``to_batches``, ``to_pandas``, ``to_polars`` and others read its rows.

        Raises:
            WhereError: The condition is none, showing the place.
            OpaqueError: Only Spark can evaluate the condition.
            SchemaError: A column is unknown, naming near ones.
            InputError: ``limit`` or ``index_seconds`` is below 0, or an argument is of a type that is not taken.
            IndexFault: With ``strict``, an index failed.
            VotesOnly: The table only votes on files of its source.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://scan", "id BIGINT, name STRING")
            >>> snapshot = table.append([{"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}])
            >>> table.scan("name = 'bob'", columns=["id"]).to_arrow().to_pylist()
            [{'id': 2}]
        """
        self.snapshot.check_rows()
        limit = check_limit(limit, "rows, 0 or more, or None for all")
        names = tuple(self.schema.names) if columns is None else self._column_names(columns)
        predicate = self._predicate(where)
        planner = partial(_plan_narrower, self.stored, self.engine, predicate) if indexes else None
        plan = self._plan(predicate, indexes, strict, index_seconds)
        return Scan(plan, names, self.host.functions, limit, planner, texts=True)

    def head(self, n: int = 10, columns: Sequence[str] | None = None) -> pa.Table:
        """Read the first rows; no more blocks are opened than have them.

        Args:
            n: How many rows.
            columns: Names of the columns wanted; by default all.

        Returns:
            At most ``n`` rows.

        Raises:
            InputError: ``n`` is below 0.
            SchemaError: A column is unknown.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://head", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}, {"id": 2}])
            >>> table.head(1).to_pylist()
            [{'id': 1}]
        """
        return self.scan(columns=columns, limit=n).to_arrow()

    def count(self, where: str | Predicate | None = None) -> int:
        """Count rows; blocks whose statistics and indexes tell are not opened.

        Args:
            where: A condition in Spark SQL, or a predicate; by default all rows are counted.

        Returns:
            The number of rows on which it is true.

        Raises:
            WhereError: The condition is none.
            OpaqueError: Only Spark can evaluate the condition.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://count", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}, {"id": 2}])
            >>> table.count("id > 1")
            1
        """
        return self.scan(where).count()

    def to_arrow(self, where: str | Predicate | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """Read matching rows into Arrow.

        Args:
            where: A condition in Spark SQL, or a predicate; by default all rows.
            columns: Names of the columns wanted; by default all.

        Returns:
            The rows, in the order of their blocks.

        Raises:
            FuseIndexError: As ``scan`` raises.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://to-arrow", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}, {"id": 2}])
            >>> table.to_arrow("id = 2").to_pylist()
            [{'id': 2}]
        """
        return self.scan(where, columns).to_arrow()

    def to_pandas(self, where: str | Predicate | None = None, columns: Sequence[str] | None = None) -> pandas.DataFrame:
        """Read matching rows into pandas.

        Args:
            where: A condition in Spark SQL, or a predicate; by default all rows.
            columns: Names of the columns wanted; by default all.

        Returns:
            The rows, in the order of their blocks.

        Raises:
            FuseIndexError: As ``scan`` raises.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://to-pandas", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}, {"id": 2}])
            >>> table.to_pandas()["id"].sum().item()
            3
        """
        return self.scan(where, columns).to_pandas()

    def to_polars(self, where: str | Predicate | None = None, columns: Sequence[str] | None = None) -> polars.DataFrame:
        """Read matching rows into Polars.

        Args:
            where: A condition in Spark SQL, or a predicate; by default all rows.
            columns: Names of the columns wanted; by default all.

        Returns:
            The rows, in the order of their blocks.

        Raises:
            InputError: Polars is not installed.
            FuseIndexError: As ``scan`` raises.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://to-polars", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}, {"id": 2}])
            >>> table.to_polars("id > 1").height
            1
        """
        return self.scan(where, columns).to_polars()

    def _plan(
        self, predicate: Predicate | None, indexes: bool, strict: bool, seconds: float | None = None
    ) -> ScanPlan[BlockFrame]:
        check_index_seconds(seconds)
        return plan_scan(self.stored, predicate, self.engine, indexes=indexes, budget=seconds, strict=strict)


def check_index_seconds(seconds: float | None) -> None:
    """Raises InputError for what is no number of seconds."""
    if seconds is not None and not 0 <= seconds < float("inf"):
        raise InputError(f"index_seconds={seconds!r}: give a number of seconds, 0 or more")


def scan_polars(source: Any) -> polars.LazyFrame:
    """Make a lazy frame of Polars of a table, or of the rows of a scan; nothing is read before it is collected.

    Indexes are asked for the columns, the conditions and the number of rows that Polars wants of it.

    Args:
        source: A table or a scan.

    Returns:
        The lazy frame.

    Raises:
        InputError: Polars is not installed, or the source is neither.
        StorageError: The store fails.

    Example:
        >>> import polars as pl
        >>> table = fuse.create_table("memory://scan-polars", "id BIGINT")
        >>> snapshot = table.append([{"id": 1}, {"id": 2}])
        >>> fuse.scan_polars(table).filter(pl.col("id") > 1).collect().to_dicts()
        [{'id': 2}]
    """
    if isinstance(source, ReadMixin):
        source = source.scan()
    if not isinstance(source, Scan):
        raise InputError(f"source={source!r}: give a table or a scan of one")
    return source.to_lazy_frame()


def _plan_narrower(
    stored: storage.StoredTable, engine: Engine, predicate: Predicate | None, further: Predicate
) -> ScanPlan[BlockFrame]:
    """The plan for a further condition beside that of a scan."""
    both = further if predicate is None else And((predicate, further))
    return plan_scan(stored, resolve_predicate(both, stored.snapshot, engine), engine)
