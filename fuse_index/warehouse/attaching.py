"""Tables over files of others come into a warehouse."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fuse_storage as storage
from fuse_index.table.open import attach
from fuse_index.table.table import Table
from fuse_index.warehouse.tables import TablesMixin


class AttachingMixin(TablesMixin):
    """The part of ``fuse_index.Catalog`` that names tables over files of others."""

    def attach_table(
        self,
        identifier: str | Sequence[str],
        source: str | Path,
        format: str = "parquet",  # noqa: A002  # promised
        *,
        columns: Sequence[str] | None = None,
        widen: bool = False,
        max_age: str | None = None,
    ) -> Table:
        """Make a table over the files of another, as ``fuse_index.attach`` does, under a name.

        Args:
            identifier: The name of the new table.
            source: As for ``fuse_index.attach``.
            format: ``"parquet"``, ``"delta"`` or ``"iceberg"``.
            columns: As for ``fuse_index.attach``.
            widen: As for ``fuse_index.attach``.
            max_age: As for ``fuse_index.attach``.

        Returns:
            The table.

        Raises:
            AlreadyExists: The name is taken.
            NotFound: There is no such namespace.
            InputError: The source is none of this format; or SchemaError, Unsupported, as ``attach`` raises.
            StorageError: A store fails.

        Example:
            >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
            >>> folder, warehouse = tempfile.mkdtemp(), tempfile.mkdtemp()
            >>> pq.write_table(pa.table({"id": [1, 2]}), f"{folder}/part.parquet")
            >>> fuse.catalog(warehouse, create=True).attach_table("orders", folder).count()
            2
        """
        about: dict[str, Any] = {"columns": columns, "widen": widen, "max_age": max_age, "host": self.host}
        staged = storage.stage_table(
            self.warehouse,
            storage.parse_identifier(identifier),
            lambda store: attach(source, store.url, format, options=getattr(store, "options", None), **about),
        )
        staged.commit()
        return staged.table
