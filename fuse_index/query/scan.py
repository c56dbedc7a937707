"""Scans: reading the zones that a plan kept, needed columns only, and filtering where votes left doubt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.errors import InputError
from fuse_index.expressions.evaluate import evaluate
from fuse_index.expressions.function import Function
from fuse_index.expressions.traversal import column_names, predicate_terms
from fuse_index.predicate import Predicate
from fuse_index.pruning.explanation import Explanation
from fuse_index.pruning.planner import ScanPlan
from fuse_index.query.polars_source import import_polars, lazy_frame
from fuse_index.query.prefetch import prefetch_items
from fuse_storage import ScanUnits

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars

    from fuse_index.query.arrow_dataset import ScanDataset

_Mask = npt.NDArray[np.bool_]

_MAX_PREFETCHED_SCAN_BLOCKS = 2
"""Blocks that are read while one is being used."""


@dataclass(frozen=True)
class Scan:
    """Rows of one snapshot that match a predicate.

    ``columns`` are top-level logical names, in the order of the answer; ``limit`` stops the reading as soon as so many
    rows are found. Nothing is read before one of the methods is called, and each call reads anew. Whatever takes a
    stream of Arrow's takes a scan: ``polars.DataFrame(scan)``, ``duckdb.sql("SELECT … FROM scan")``.

    ``planner``: makes the plan for a further condition; None where no index is asked for one.
    """

    plan: ScanPlan[ScanUnits]
    columns: tuple[str, ...]
    functions: Mapping[str, Function]
    limit: int | None = None
    planner: Callable[[Predicate], ScanPlan[ScanUnits]] | None = None

    @property
    def schema(self) -> pa.Schema:
        whole = self.plan.table.snapshot.schema.arrow
        return pa.schema([whole.field(name) for name in self.columns])

    @cached_property
    def _filter_columns(self) -> list[str]:
        """The columns that the predicate looks at: found once, since it may have ten thousand terms."""
        return column_names(predicate_terms(self.plan.predicate))

    @property
    def explanation(self) -> Explanation:
        return self.plan.explanation

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield record batches of matching rows, block after block."""
        remaining = self.limit
        for rows in self.tables():
            if remaining is not None:
                rows = rows.slice(0, remaining)
                remaining -= len(rows)
            yield from (batch for batch in rows.to_batches() if len(batch))
            if remaining == 0:
                return

    def tables(self) -> Iterator[pa.Table]:
        """Yield matching rows, a table per block; those of the last may be more than ``limit``."""
        return self._tables(self.columns)

    def to_arrow(self) -> pa.Table:
        return pa.Table.from_batches(list(self.to_batches()), self.schema)

    def to_pandas(self) -> pandas.DataFrame:
        return self.to_arrow().to_pandas()

    def to_reader(self) -> pa.RecordBatchReader:
        """Stream the rows, block after block, in the memory of a few blocks."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_polars(self) -> polars.DataFrame:
        """Read the rows into Polars; ``scan_polars`` reads lazily. Raises InputError where it is not installed."""
        rows: polars.DataFrame = import_polars().DataFrame(self.to_arrow())
        return rows

    def to_dataset(self) -> ScanDataset:
        """The rows for whoever pushes columns and filters into a ``pyarrow.dataset.Dataset``, as DuckDB does."""
        from fuse_index.query.arrow_dataset import ScanDataset  # with which pyarrow imports pandas

        return ScanDataset(self.schema, self._narrowed_reader)

    def to_duckdb(self, connection: Any = None) -> duckdb.DuckDBPyRelation:
        """A relation of DuckDB's, whose columns and filters ask the indexes.

        ``connection``: by default DuckDB's own. Raises InputError where DuckDB is not installed.
        """
        try:
            import duckdb
        except ImportError as missing:
            raise InputError("rows for DuckDB need it: pip install duckdb") from missing
        relation: duckdb.DuckDBPyRelation = (connection or duckdb).from_arrow(self.to_dataset())
        return relation

    def to_lazy_frame(self) -> polars.LazyFrame:
        """A lazy frame of Polars, as ``scan_polars`` gives it."""
        return lazy_frame(self.schema, self._narrowed_reader, "fuse")

    def narrow(self, predicate: Predicate | None, columns: Sequence[str], limit: int | None = None) -> Scan:
        """Leave out blocks that cannot hold a row on which ``predicate`` is true, too.

        Of the other blocks rows may come on which it is not. If this scan is of so many rows, all of them come.
        """
        limits = [each for each in (self.limit, limit) if each is not None]
        plan = self.plan
        if predicate is not None and self.planner is not None and self.limit is None:
            plan = self.planner(predicate)
        return replace(self, plan=plan, columns=tuple(columns), limit=min(limits, default=None))

    def _narrowed_reader(
        self, predicate: Predicate | None, columns: Sequence[str], limit: int | None
    ) -> pa.RecordBatchReader:
        return self.narrow(predicate, columns, limit).to_reader()

    def count(self) -> int:
        """Count matching rows. Zones on which every row matches, and rows that an index knows, are counted unread."""
        unread_zones = self.plan.zones & self.plan.always_matching_zones
        count = int(self.plan.blocks.zone_rows[unread_zones].sum())
        for zone, mask in self.plan.row_masks.items():
            if unread_zones[zone]:
                count += int(np.count_nonzero(mask)) - int(self.plan.blocks.zone_rows[zone])
        count += sum(len(rows) for rows in self._tables((), self.plan.zones & ~self.plan.always_matching_zones, count))
        return count if self.limit is None else min(count, self.limit)

    def _tables(self, columns: Sequence[str], zones: _Mask | None = None, row_count: int = 0) -> Iterator[pa.Table]:
        """Yield matching rows, a table per block, reading a little ahead; stops after ``limit`` rows.

        ``zones``: which zones of all to read, bool of shape (zones,), by default those of the plan. ``row_count``: rows
        that count for the limit already.
        """
        zone_mask = self.plan.zones if zones is None else zones
        blocks = [block for block in range(len(self.plan.blocks)) if zone_mask[self._zones_of(block)].any()]
        if self.limit is not None and row_count >= self.limit:
            return
        depth = _MAX_PREFETCHED_SCAN_BLOCKS if self.limit is None else 1
        for rows in prefetch_items(lambda block: self._matching_rows(block, columns, zone_mask), blocks, depth):
            row_count += len(rows)
            yield rows
            if self.limit is not None and row_count >= self.limit:
                return

    def _zones_of(self, block: int) -> slice:
        return slice(int(self.plan.blocks.zone_offsets[block]), int(self.plan.blocks.zone_offsets[block + 1]))

    def _matching_rows(self, block: int, columns: Sequence[str], zone_mask: _Mask) -> pa.Table:
        """Read the matching rows of one block; ``zone_mask``: bool, one value per zone of all blocks."""
        span = self._zones_of(block)
        zones = np.flatnonzero(zone_mask[span])
        row_mask = self._row_mask(span.start + zones)
        if self.plan.always_matching_zones[span][zones].all():
            return self._read(block, columns, zones, row_mask)
        return self._filtered_rows(block, columns, zones, row_mask)

    def _filtered_rows(
        self, block: int, columns: Sequence[str], zones: npt.NDArray[np.int64], row_mask: _Mask | None
    ) -> pa.Table:
        """Read the rows on which the predicate is TRUE.

        The columns that it looks at are read first, the others only for rows that match. ``zones``: int64 indices of
        the block's zones; ``row_mask``: bool, one value per row of these zones.
        """
        assert self.plan.predicate is not None
        filter_columns = self._filter_columns
        rows = self._read(block, filter_columns, zones, row_mask)
        truth = evaluate(self.plan.predicate, rows, self.plan.context, self.functions).fill_null(False)
        rows = rows.filter(truth)
        other_columns = [name for name in columns if name not in filter_columns]
        if other_columns:
            matches = truth.to_numpy(zero_copy_only=False)
            if row_mask is not None:  # matches are of the rows that were read: back to all rows of the zones
                matching_rows = np.zeros(len(row_mask), np.bool_)
                matching_rows[row_mask] = matches
                matches = matching_rows
            others = self._read(block, other_columns, zones, matches)
            for name in other_columns:
                rows = rows.append_column(others.schema.field(name), others.column(name))
        return rows.select(list(columns))

    def _read(self, block: int, columns: Sequence[str], zones: npt.NDArray[np.int64], rows: _Mask | None) -> pa.Table:
        return self.plan.table.read_block(self.plan.blocks, block, list(columns), [int(zone) for zone in zones], rows)

    def _row_mask(self, zones: npt.NDArray[np.int64]) -> _Mask | None:
        """Say of each row of these zones whether it may match: bool of shape (rows,); None if no index knew rows.

        ``zones``: int64 indices of zones of all blocks.
        """
        if not any(int(zone) in self.plan.row_masks for zone in zones):
            return None
        sizes = self.plan.blocks.zone_rows
        return np.concatenate([self.plan.row_masks.get(int(zone), np.ones(sizes[zone], np.bool_)) for zone in zones])
