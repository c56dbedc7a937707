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
from fuse_index.query.late_columns import MatchingRows, read_late_columns, with_columns_of
from fuse_index.query.polars_source import import_polars, lazy_frame
from fuse_index.query.prefetch import join_hot_blocks, prefetch_items
from fuse_storage import ScanUnits, pack_mask, unpack_mask

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars

    from fuse_index.query.arrow_dataset import ScanDataset

_Mask = npt.NDArray[np.bool_]

_MAX_PREFETCHED_SCAN_BLOCKS = 2
"""Blocks that are read while one is being used."""
_MAX_LATE_ROWS = 2_000
"""Matching rows of a block up to which its other columns are read together with those of other blocks."""


@dataclass(frozen=True)
class Scan:
    """Rows of one snapshot that match a predicate.

    ``columns`` are top-level logical names, in the order of the answer; ``limit`` stops the reading as soon as so many
    rows are found. Nothing is read before one of the methods is called, and each call reads anew. Whatever takes a
    stream of Arrow's takes a scan: ``polars.DataFrame(scan)``, ``duckdb.sql("SELECT … FROM scan")``.

    ``planner``: makes the plan for a further condition; None where no index is asked for one. ``strict``: whether a
    cast on which Spark raises is an OpaqueError where its row is read; else it has no value.
    """

    plan: ScanPlan[ScanUnits]
    columns: tuple[str, ...]
    functions: Mapping[str, Function]
    limit: int | None = None
    planner: Callable[[Predicate], ScanPlan[ScanUnits]] | None = None
    strict: bool = False

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
        """Yield matching rows, a table for each block, or for several in which few rows match.

        Those of the last may be more than ``limit``.
        """
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
        depth, together = 1, [[block] for block in blocks]
        if self.limit is None:
            depth = _MAX_PREFETCHED_SCAN_BLOCKS
            if columns or self._filter_columns:
                together = join_hot_blocks(self.plan.blocks, blocks)
        found = prefetch_items(lambda each: self._matching_rows_of(each, columns, zone_mask), together, depth)
        others = [] if self.plan.predicate is None else [name for name in columns if name not in self._filter_columns]
        for rows in read_late_columns(self.plan.table, self.plan.blocks, others, found):
            rows = rows.select(list(columns))
            row_count += len(rows)
            yield rows
            if self.limit is not None and row_count >= self.limit:
                return

    def _zones_of(self, block: int) -> slice:
        return slice(int(self.plan.blocks.zone_offsets[block]), int(self.plan.blocks.zone_offsets[block + 1]))

    def _matching_rows_of(
        self, blocks: Sequence[int], columns: Sequence[str], zone_mask: _Mask
    ) -> MatchingRows | pa.Table:
        """Read the matching rows of several blocks of few rows, which are filtered at once, or of one.

        ``zone_mask``: bool, one value per zone of all blocks.
        """
        if len(blocks) == 1:
            return self._matching_rows(blocks[0], columns, zone_mask)
        chosen = list[tuple[int, list[int], _Mask | None]]()
        names = list(dict.fromkeys([*columns, *self._filter_columns]))
        always = True
        for block in blocks:
            span = self._zones_of(block)
            zones = np.flatnonzero(zone_mask[span])
            chosen.append((block, zones.tolist(), self._row_mask(span.start + zones)))
            always &= bool(self.plan.always_matching_zones[span][zones].all())
        rows = pa.concat_tables(self.plan.table.read_blocks(self.plan.blocks, names, chosen))
        if not always:
            assert self.plan.predicate is not None
            truth = evaluate(self.plan.predicate, rows, self.plan.context, self.functions, self.strict)
            rows = rows.filter(truth.fill_null(False))
        return rows.select(list(columns))

    def _matching_rows(self, block: int, columns: Sequence[str], zone_mask: _Mask) -> MatchingRows | pa.Table:
        """Read the matching rows of one block, or, if other columns are read of few of them, what is filtered by.

        ``zone_mask``: bool, one value per zone of all blocks.
        """
        span = self._zones_of(block)
        zones = np.flatnonzero(zone_mask[span])
        row_mask = self._row_mask(span.start + zones)
        if self.plan.always_matching_zones[span][zones].all():
            return self._read(block, columns, zones, row_mask)
        found = self._filtered_rows(block, zones, row_mask)
        others = [name for name in columns if name not in self._filter_columns]
        if not others:
            return found.rows
        if self.limit is None and len(found.rows) <= _MAX_LATE_ROWS:
            return found
        return with_columns_of(found.rows, self._read(block, others, zones, found.row_mask))

    def _filtered_rows(self, block: int, zones: npt.NDArray[np.int64], row_mask: _Mask | None) -> MatchingRows:
        """Read the columns that the predicate looks at, of rows on which it is TRUE.

        ``zones``: int64 indices of the block's zones; ``row_mask``: bool, one value per row of these zones.
        """
        assert self.plan.predicate is not None
        rows = self._read(block, self._filter_columns, zones, row_mask)
        matches = unpack_mask(evaluate(self.plan.predicate, rows, self.plan.context, self.functions, self.strict))
        found = rows.filter(pack_mask(matches))
        if row_mask is not None:  # matches are of the rows that were read: back to all rows of the zones
            matching_rows = np.zeros(len(row_mask), np.bool_)
            matching_rows[row_mask] = matches
            matches = matching_rows
        return MatchingRows(block, zones.tolist(), matches, found)

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
