"""What other engines need to know of a snapshot's blocks: where they are, and bounds of columns; or why they cannot.

Blocks keep the columns that they were written with. Our readers fit them to the present ones; others do so only as far
as their formats allow, and what they would read otherwise than we do is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.types as is_

from fuse_storage import ColumnStatistics, Field, SchemaError, StoredTable, is_keyed

WidensType = Callable[[pa.DataType, pa.DataType], bool]
"""Whether a format reads values of the one type as the other."""


@dataclass(frozen=True)
class LiveFiles:
    """The blocks of a snapshot."""

    table: StoredTable

    @cached_property
    def urls(self) -> list[str]:
        """Where they are, absolute."""
        return [file_url(path) for path in self.table.block_files()[0]]

    @property
    def root(self) -> str:
        """The table's own place, absolute, without a slash at its end."""
        return file_url(self.table.store.url)

    @cached_property
    def relative_paths(self) -> list[str]:
        """Where they are below the table's own place, or absolute where they are elsewhere, as in a clone."""
        prefix = f"{self.root}/"
        return [url.removeprefix(prefix) for url in self.urls]

    @property
    def sizes(self) -> list[int]:
        return [int(size) for size in self.table.blocks().sizes]

    @property
    def row_counts(self) -> list[int]:
        return [int(count) for count in self.table.blocks().row_counts]

    @cached_property
    def statistics(self) -> dict[int, ColumnStatistics]:
        """Of all blocks, by the id of a column at the top, as far as they are known."""
        blocks = self.table.blocks().prefetch(
            [field.id for field in self.table.snapshot.schema.fields if field.is_leaf]
        )
        found = {field.id: blocks.statistics(field.id) for field in self.table.snapshot.schema.fields if field.is_leaf}
        return {column_id: statistics for column_id, statistics in found.items() if statistics is not None}

    def check(self, format_: str, widens: WidensType) -> None:
        """Raise SchemaError for a column that readers of this format would not read in all blocks as we do."""
        snapshot = self.table.snapshot
        if snapshot.source is not None and self.table.blocks().foreign.mask.any():
            raise SchemaError(
                f"{self.table.store.url} has files of {snapshot.source['url']}, with columns as that has them, which "
                f"{format_} cannot be told: read the source itself"
            )
        fixed = snapshot.key if is_keyed(snapshot) else ()
        plain = next((top.name for top in snapshot.schema.fields if top.is_leaf and top.name not in fixed), "…")
        advice = f"table.update(None, {{{plain!r}: {plain!r}}})" + (" and table.tier()" if fixed else "")
        if not self.table.blocks().has_all_rows.all():
            raise SchemaError(
                f"{self.table.store.url} has blocks with deletion vectors, which {format_} is not told of: rewrite "
                f"them first, {advice}"
            )
        now = [part for top in snapshot.schema.fields for part in top.walk()]
        for schema_id in np.unique(self.table.blocks().schema_ids).tolist():
            before = {part.id: part for top in snapshot.schemas[schema_id].fields for part in top.walk()}
            for part in now:
                if problem := _problem(before.get(part.id), part, widens):
                    raise SchemaError(
                        f"column {part.name!r} {problem}, which {format_} cannot say of files that are there: "
                        f"rewrite them first, {advice}"
                    )


def _problem(before: Field | None, now: Field, widens: WidensType) -> str | None:
    if before is None:
        return None if now.default is None else f"is {now.default!r} in rows that were there before it"
    if now.is_leaf and before.type != now.type and not widens(before.type, now.type):
        return f"was {before.type} in some blocks and is {now.type}"
    return None


def file_url(path: str) -> str:
    """A path or URL as a URL."""
    return path if "://" in path else f"file://{quote(str(Path(path).absolute()))}"


def has_plain_bounds(kind: pa.DataType) -> bool:
    """Whether bounds mean the same to everybody: whole numbers, dates and text, which have no NaN and no zone."""
    return bool(is_.is_integer(kind) or is_.is_date(kind) or is_.is_string(kind))
