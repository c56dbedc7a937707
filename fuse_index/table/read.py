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
from fuse_storage import BlockFrame

if TYPE_CHECKING:
    import pandas
    import polars


class ReadMixin(TableHandle):
    """The part of ``fuse_index.Table`` that reads rows."""

    def scan(
        self,
        where: str | Predicate | None = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        indexes: bool = True,
        strict: bool = False,
    ) -> Scan:
        """Select matching rows, which are read when asked for.

        ``where``: Spark SQL; ``indexes=False`` reads every block. Raises WhereError showing the place,
        OpaqueError for what only Spark can evaluate, SchemaError naming near columns; ``strict`` raises IndexFault for
        an index that does something wrong, which otherwise only costs time.
        """
        if limit is not None and limit < 0:
            raise InputError(f"limit={limit!r}: give a number of rows, 0 or more, or None for all")
        names = tuple(self.schema.names) if columns is None else self._column_names(columns)
        predicate = self._predicate(where)
        planner = partial(_plan_narrower, self.stored, self.engine, predicate) if indexes else None
        return Scan(self._plan(predicate, indexes, strict), names, self.host.functions, limit, planner)

    def head(self, n: int = 10, columns: Sequence[str] | None = None) -> pa.Table:
        """Read the first rows; no more blocks are opened than have them. Raises as ``scan``."""
        return self.scan(columns=columns, limit=n).to_arrow()

    def count(self, where: str | Predicate | None = None) -> int:
        """Count rows; blocks whose statistics and indexes tell are not opened. Raises as ``scan``."""
        return self.scan(where).count()

    def to_arrow(self, where: str | Predicate | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """Read matching rows into Arrow. Raises as ``scan``."""
        return self.scan(where, columns).to_arrow()

    def to_pandas(self, where: str | Predicate | None = None, columns: Sequence[str] | None = None) -> pandas.DataFrame:
        """Read matching rows into pandas. Raises as ``scan``."""
        return self.scan(where, columns).to_pandas()

    def to_polars(self, where: str | Predicate | None = None, columns: Sequence[str] | None = None) -> polars.DataFrame:
        """Read matching rows into Polars. Raises as ``scan``, and InputError where Polars is not installed."""
        return self.scan(where, columns).to_polars()

    def _plan(self, predicate: Predicate | None, indexes: bool, strict: bool) -> ScanPlan[BlockFrame]:
        return plan_scan(self.stored, predicate, self.engine, indexes=indexes, strict=strict)


def scan_polars(source: Any) -> polars.LazyFrame:
    """Make a lazy frame of Polars of a table, or of the rows of a scan; nothing is read before it is collected.

    ``source``: a table or a scan. Indexes are asked for the columns, the conditions and the number of rows that Polars
    wants of it. Raises InputError where Polars is not installed.
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
