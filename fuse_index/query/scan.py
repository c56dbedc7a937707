"""Scans: reading the zones that a plan kept, needed columns only, and filtering where votes left doubt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fuse_index.errors import InputError
from fuse_index.expressions.function import Function
from fuse_index.expressions.variant.columns import is_about_variants, text_schema, with_texts
from fuse_index.predicate import Predicate
from fuse_index.pruning.explanation import Explanation
from fuse_index.pruning.planner import ScanPlan
from fuse_index.query.late_columns import PlanReader
from fuse_index.query.polars_source import duckdb_relation, import_polars, lazy_frame
from fuse_index.query.scan_names import ScanNames
from fuse_storage import ScanUnits

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars

    from fuse_index.query.arrow_dataset import ScanDataset


@dataclass(frozen=True, repr=False)
class Scan(ScanNames):
    """Rows of one snapshot that match a predicate.

    ``columns``: top-level names, in this order. ``limit``: rows at most. Nothing is read before a method is called, and
    each reads anew. What takes a stream of Arrow's takes a scan. ``planner`` plans a further condition; None where no
    index is asked. ``strict``: a cast on which Spark raises is an OpaqueError. ``texts``: VARIANT is JSON text.
    """

    plan: ScanPlan[ScanUnits]
    columns: tuple[str, ...]
    functions: Mapping[str, Function]
    limit: int | None = None
    planner: Callable[[Predicate], ScanPlan[ScanUnits]] | None = None
    strict: bool = False
    texts: bool = False

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows, as an Arrow schema."""
        whole = text_schema(self.plan.table.snapshot.schema.arrow, self.texts)
        return pa.schema([whole.field(name) for name in self.columns])

    @cached_property
    def _reader(self) -> PlanReader:
        return PlanReader(self.plan, self.functions, self.limit, self.strict)

    def _facts(self) -> Mapping[str, Any]:
        told = self.explanation
        return {"table": told.called, "where": told.where, "columns": self.columns, "limit": self.limit}

    def _sections(self) -> list[str]:
        return [self.explanation._repr_html_()]

    @property
    def explanation(self) -> Explanation:
        """What will be read, and which index removed how much."""
        return self.plan.explanation

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield record batches of matching rows, block after block.

        Yields:
            Batches that are not empty.

        Raises:
            OpaqueError: A strict scan meets a cast on which Spark raises.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://to-batches", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}, {"id": 2}])
            >>> [batch.num_rows for batch in table.scan().to_batches()]
            [2]
        """
        remaining = self.limit
        for rows in self.tables():
            if remaining is not None:
                rows = rows.slice(0, remaining)
                remaining -= len(rows)
            yield from (batch for batch in rows.to_batches() if len(batch))
            if remaining == 0:
                return

    def tables(self) -> Iterator[pa.Table]:
        """Yield matching rows, a table for each block, or for several in which few rows match.

        Yields:
            Tables; rows of the last may be more than ``limit``.

        Raises:
            OpaqueError: A strict scan meets a cast on which Spark raises.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://tables", "id BIGINT", properties={"block_rows": 2})
            >>> snapshot = table.append([{"id": 1}, {"id": 2}, {"id": 3}])
            >>> [len(rows) for rows in table.scan().tables()]
            [2, 1]
        """
        return map(with_texts, self._reader.tables(self.columns)) if self.texts else self._reader.tables(self.columns)

    def to_arrow(self) -> pa.Table:
        """Read the rows into one table.

        Returns:
            The rows, in the order of their blocks.

        Raises:
            OpaqueError: A strict scan meets a cast on which Spark raises.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://scan-to-arrow", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}, {"id": 2}])
            >>> table.scan("id > 1").to_arrow().to_pylist()
            [{'id': 2}]
        """
        return pa.Table.from_batches(list(self.to_batches()), self.schema)

    def to_pandas(self) -> pandas.DataFrame:
        """Read the rows into pandas.

        Returns:
            The rows, in the order of their blocks.

        Raises:
            OpaqueError: A strict scan meets a cast on which Spark raises.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://scan-to-pandas", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}, {"id": 2}])
            >>> table.scan("id > 1").to_pandas().shape
            (1, 1)
        """
        try:
            return self.to_arrow().to_pandas()
        except ModuleNotFoundError as missing:
            raise InputError("rows for pandas need it: pip install 'pandas<3'") from missing

    def to_reader(self) -> pa.RecordBatchReader:
        """Stream the rows, block after block, in the memory of a few blocks.

        Returns:
            A reader, which raises as ``to_batches`` does while it reads.

        Raises:
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://to-reader", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}, {"id": 2}])
            >>> table.scan().to_reader().read_all().num_rows
            2
        """
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_polars(self) -> polars.DataFrame:
        """Read the rows into Polars; ``scan_polars`` reads lazily.

        Returns:
            The rows, in the order of their blocks.

        Raises:
            InputError: Polars is not installed.
            OpaqueError: A strict scan meets a cast on which Spark raises.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://scan-to-polars", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}, {"id": 2}])
            >>> table.scan("id > 1").to_polars().height
            1
        """
        rows: polars.DataFrame = import_polars().DataFrame(self.to_arrow())
        return rows

    def to_dataset(self) -> ScanDataset:
        """Make a dataset for whoever pushes columns and filters into a ``pyarrow.dataset.Dataset``, as DuckDB does.

        Returns:
            The dataset, whose filters ask the indexes.

        Raises:
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://to-dataset", "id BIGINT, name STRING")
            >>> snapshot = table.append([{"id": 1, "name": "ann"}])
            >>> table.scan().to_dataset().scanner(columns=["name"]).to_table().to_pylist()
            [{'name': 'ann'}]
        """
        from fuse_index.query.arrow_dataset import ScanDataset  # with which pyarrow imports pandas

        return ScanDataset(self.schema, self._narrowed_reader)

    def to_duckdb(self, connection: Any = None) -> duckdb.DuckDBPyRelation:
        """Make a relation of DuckDB's, whose columns and filters ask the indexes.

        Args:
            connection: By default DuckDB's own.

        Returns:
            The relation; nothing is read before DuckDB asks.

        Raises:
            InputError: DuckDB is not installed.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://to-duckdb", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}, {"id": 2}])
            >>> table.scan().to_duckdb().filter("id > 1").fetchall()
            [(2,)]
        """
        return duckdb_relation(self.to_dataset, connection)

    def to_lazy_frame(self) -> polars.LazyFrame:
        """Make a lazy frame of Polars, as ``scan_polars`` does.

        Returns:
            The lazy frame; nothing is read before it is collected.

        Raises:
            InputError: Polars is not installed.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://to-lazy-frame", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}, {"id": 2}])
            >>> table.scan().to_lazy_frame().collect().height
            2
        """
        return lazy_frame(self.schema, self._narrowed_reader, "fuse")

    def narrow(self, predicate: Predicate | None, columns: Sequence[str], limit: int | None = None) -> Scan:
        """Leave out blocks that cannot hold a row on which a further condition is true, too.

        Of the other blocks rows may come on which it is not: whoever asks filters them. If this scan is of so many
        rows, all of them come.

        Args:
            predicate: The further condition; None for none.
            columns: The columns that the narrower scan reads.
            limit: At most so many rows; by default those of this scan.

        Returns:
            The narrower scan.

        Raises:
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://narrow", "id BIGINT, name STRING")
            >>> snapshot = table.append([{"id": number} for number in range(6)])
            >>> table.scan().narrow(None, ["id"], limit=2).to_arrow().to_pylist()
            [{'id': 0}, {'id': 1}]
        """
        limits = [each for each in (self.limit, limit) if each is not None]
        plan, whole = self.plan, self.plan.table.snapshot.schema.arrow
        if predicate is not None and self.planner is not None and self.limit is None:
            plan = plan if is_about_variants(predicate, whole) else self.planner(predicate)
        return replace(self, plan=plan, columns=tuple(columns), limit=min(limits, default=None))

    def _narrowed_reader(
        self, predicate: Predicate | None, columns: Sequence[str], limit: int | None
    ) -> pa.RecordBatchReader:
        return self.narrow(predicate, columns, limit).to_reader()

    def count(self) -> int:
        """Count matching rows. Zones on which every row matches, and rows that an index knows, are counted unread.

        Returns:
            The number of rows, at most ``limit``.

        Raises:
            OpaqueError: A strict scan meets a cast on which Spark raises.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://scan-count", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}, {"id": 2}])
            >>> table.scan("id > 1").count()
            1
        """
        return self._reader.count()
