"""What other engines need to know of a snapshot's blocks: where they are, and bounds of columns; or why they cannot.

Blocks keep the columns that they were written with. Our readers fit them to the present ones; others do so only as far
as their formats allow, and what they would read otherwise than we do is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.types as is_
import xxhash

from fuse_storage import (
    BlockFrame,
    ColumnStatistics,
    Field,
    RowMask,
    SchemaError,
    StoredTable,
    TableUrl,
    holds_variant,
    live_row_masks,
    row_rules,
)


@dataclass(frozen=True)
class TableFormat:
    """What a format can say of files that are older than the present columns.

    ``tells_defaults``: what a column is in files that lack it, where that is not NULL. ``widens``: whether values of
    the one type are read as the other. ``has_variants``: whether VARIANT is one of its types.
    """

    name: str
    tells_defaults: bool
    widens: Callable[[pa.DataType, pa.DataType], bool]
    has_variants: bool = False


@dataclass(frozen=True)
class LiveFiles:
    """The blocks of a snapshot that have live rows, the tail's among them."""

    table: StoredTable

    @cached_property
    def blocks(self) -> BlockFrame:
        self.table.snapshot.check_rows()
        frame = self.table.blocks()
        return frame if (live := frame.live_row_counts > 0).all() else frame.take(np.flatnonzero(live))

    @cached_property
    def urls(self) -> list[str]:
        """Where they are, absolute."""
        files = self.table.block_files()[0]
        return [file_url(files[ordinal]) for ordinal in self.blocks.ordinals.tolist()]

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
        return [int(size) for size in self.blocks.sizes]

    @property
    def row_counts(self) -> list[int]:
        """How many rows each file has, whether they are live or not."""
        return [int(count) for count in self.blocks.row_counts]

    @cached_property
    def vector_ids(self) -> list[str | None]:
        """What tells the deletion vector of each from others of its file; None: all of its rows are live.

        Rows that later rows of their key hide have no vector of ours: the id is a hash of what is left of the file.
        """
        hidden, stored = self.blocks.segments.hidden_rows, self.blocks.deletion_vectors
        return [
            None if is_whole else _hashed(hidden[ordinal]) if ordinal in hidden else reference
            for is_whole, ordinal, reference in zip(
                self.blocks.has_all_rows.tolist(), self.blocks.ordinals.tolist(), stored, strict=True
            )
        ]

    def deleted_rows(self, chosen: Sequence[int]) -> list[RowMask]:
        """The deleted rows of each of these files that have some: bool, shape (rows,). Raises StorageError."""
        live = live_row_masks(self.blocks, chosen)
        return [~live[block] for block in chosen]

    @cached_property
    def statistics(self) -> dict[int, ColumnStatistics]:
        """The statistics of all blocks, by the id of a column at the top, as far as they are known."""
        columns = [field for field in self.table.snapshot.schema.fields if field.is_leaf]
        blocks = self.blocks.prefetch([field.id for field in columns])
        found = {field.id: blocks.statistics(field.id) for field in columns}
        return {column_id: statistics for column_id, statistics in found.items() if statistics is not None}

    @cached_property
    def older_fields(self) -> dict[int, list[Field | None]]:
        """What the parts of present columns were, by id, in the schemas of blocks, oldest first; None: not there.

        A schema is not listed where the part was as it is now.
        """
        snapshot = self.table.snapshot
        found: dict[int, list[Field | None]] = {}
        for schema_id in np.unique(self.blocks.schema_ids).tolist():
            before = {part.id: part for top in snapshot.schemas[schema_id].fields for part in top.walk()}
            for top in snapshot.schema.fields:
                for part in top.walk():
                    if (older := before.get(part.id)) is None or older.type != part.type:
                        found.setdefault(part.id, []).append(older)
        return found

    def check(self, format_: TableFormat) -> None:
        """Raise SchemaError for a column that readers of this format would not read in all blocks as we do."""
        snapshot = self.table.snapshot
        if snapshot.source is not None and self.blocks.foreign.mask.any():
            raise SchemaError(
                TableUrl(self.table.store.url)
                + f" has files of {snapshot.source['url']}, with columns as that has them, which "
                f"{format_.name} cannot be told: read the source itself"
            )
        variants = (
            [] if format_.has_variants else [top.name for top in snapshot.schema.fields if holds_variant(top.type)]
        )
        if variant := next(iter(variants), None):
            raise SchemaError(
                f"column {variant!r} is VARIANT, or has one in it, which exports to {format_.name} do not have: "
                f"drop it, or read it here"
            )
        fixed = row_rules(snapshot).key
        plain = next((top.name for top in snapshot.schema.fields if top.is_leaf and top.name not in fixed), "…")
        advice = f"table.update(None, {{{plain!r}: {plain!r}}})" + (" and table.maintenance.tier()" if fixed else "")
        for top in snapshot.schema.fields:
            for part in top.walk():
                for before in self.older_fields.get(part.id, ()):
                    if problem := _problem(before, part, format_):
                        raise SchemaError(
                            f"column {part.name!r} {problem}, which {format_.name} cannot say of files that are there: "
                            f"rewrite them first, {advice}"
                        )


def _problem(before: Field | None, now: Field, format_: TableFormat) -> str | None:
    if before is None:
        is_null = now.initial_default is None or format_.tells_defaults
        return None if is_null else f"is {now.initial_default!r} in rows that were there before it"
    if now.is_leaf and before.type != now.type and not format_.widens(before.type, now.type):
        return f"was {before.type} in some blocks and is {now.type}"
    return None


def _hashed(mask: RowMask) -> str:
    """A hash of some rows of a file, in hexadecimal."""
    return xxhash.xxh3_128_hexdigest(np.packbits(mask).tobytes())


def file_url(path: str) -> str:
    """A path or URL as a URL."""
    return path if "://" in path else f"file://{quote(str(Path(path).absolute()))}"


def has_plain_bounds(kind: pa.DataType) -> bool:
    """Whether bounds mean the same to everybody: whole numbers, dates and text, which have no NaN and no zone."""
    return bool(is_.is_integer(kind) or is_.is_date(kind) or is_.is_string(kind))
