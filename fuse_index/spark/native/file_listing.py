"""The files of a snapshot, packed for the JVM: one array of bytes, since each py4j call costs milliseconds."""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import fuse_storage as storage
from fuse_index.expressions.types import spark_type_name
from fuse_storage import PartitionSpec, SchemaError, StoredTable, live_row_masks

_PLAIN_TEXT = re.compile(r"[\w .,:;/@+-]*")
"""Text that is the same between quotes whatever a session makes of quotes, backslashes and variables."""


@dataclass(frozen=True, slots=True)
class ForeignFiles:
    """What a listing says of files that somebody else wrote, besides.

    ``modified``: when each was written, in microseconds since 1970, int64, shape (n,); 0 of our own. ``etags``: of
    each, None of our own. ``constants``: by the stored name of a column, its value in each file as
    ``FileListing.java`` reads it, False where the file holds the column.
    """

    modified: npt.NDArray[np.int64]
    etags: Sequence[str | None]
    constants: Mapping[str, Sequence[str | Literal[False] | None]]


@dataclass(frozen=True, slots=True)
class Partitions:
    """Columns of which each file has one value.

    ``columns``: their stored names. ``values``: of each partition a value for each column, as ``Constants.java`` reads
    it. ``numbers``: of each file the number of its partition in ``values``, None where it may hold rows of many.
    """

    columns: Sequence[str]
    values: Sequence[Sequence[str | None]]
    numbers: Sequence[int | None]


@dataclass(frozen=True, slots=True)
class ListedFiles:
    """The n files of a snapshot, in the order of its blocks.

    ``paths``: names that Hadoop opens. ``sizes``: their bytes, int64, shape (n,). ``row_counts``: how many of their
    rows count, int64, shape (n,). ``seals``: the checksums in their seals, by which they are known, int64, shape (n,);
    0 where that is not known.
    """

    paths: Sequence[str]
    sizes: npt.NDArray[np.int64]
    row_counts: npt.NDArray[np.int64]
    seals: npt.NDArray[np.int64]


def pack_file_listing(
    files: ListedFiles,
    foreign: ForeignFiles | None = None,
    deleted: Mapping[int, npt.NDArray[np.bool_]] | None = None,
    partitions: Partitions | None = None,
) -> bytes:
    """Pack the files of a snapshot as ``FileListing.java`` reads them.

    ``foreign``: where some are not our own. ``deleted``: of files with rows that do not count, by position, bool, shape
    (rows,), True where one does not. ``partitions``: where files are partitioned.
    """
    paths = files.paths
    if not paths:
        return bytes(8)
    first, last = min(paths), max(paths)
    prefix_length = next(
        (i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last))
    )
    prefix = first[:prefix_length].encode()
    names = [path[prefix_length:].encode() for path in paths]
    ends = np.cumsum([len(name) for name in names])
    counts = np.array([len(paths), len(prefix)])
    modified = np.zeros(len(paths), np.int64) if foreign is None else foreign.modified
    more = _pack_more(len(paths), foreign, deleted or {}, partitions)
    return b"".join(
        [
            counts.astype(">i4").tobytes(),
            prefix,
            files.sizes.astype(">i8").tobytes(),
            files.row_counts.astype(">i8").tobytes(),
            files.seals.astype(">i8").tobytes(),
            modified.astype(">i8").tobytes(),
            ends.astype(">i4").tobytes(),
            *names,
            more,
        ]
    )


def _pack_more(
    count: int,
    foreign: ForeignFiles | None,
    deleted: Mapping[int, npt.NDArray[np.bool_]],
    partitions: Partitions | None,
) -> bytes:
    found: dict[str, Any] = {}
    if foreign is not None:
        values = list(zip(*foreign.constants.values(), strict=True))
        partly = [name for name, texts in foreign.constants.items() if False in texts]
        found |= {"columns": list(foreign.constants), "partly": partly, "values": values, "etags": list(foreign.etags)}
    if deleted:
        found["deleted"] = [_pack_mask(deleted[file]) if file in deleted else None for file in range(count)]
    if partitions is not None:
        found["partitions"] = {"columns": partitions.columns, "values": partitions.values, "of": partitions.numbers}
    return json.dumps(found).encode() if found else b""


def _pack_mask(mask: npt.NDArray[np.bool_]) -> str:
    return base64.b64encode(zlib.compress(np.packbits(mask, bitorder="little").tobytes(), 1)).decode()


def list_deleted_rows(table: StoredTable) -> dict[int, npt.NDArray[np.bool_]]:
    """What a listing says of rows that do not count: by position, bool, shape (rows,), True where one does not.

    Raises StorageError for a vector that cannot be read.
    """
    return {position: ~live for position, live in live_row_masks(table.blocks()).items()}


def list_partitions(table: StoredTable, foreign: ForeignFiles | None) -> Partitions | None:
    """What a listing says of partitions; None where there are none. ``foreign``: of a table that has such files.

    Columns of which each file of somebody else has one value are as good as those that a table is partitioned by.
    Raises Corrupt for a partition that no writer wrote.
    """
    spec = PartitionSpec.from_snapshot(table.snapshot)
    if spec is not None:
        texts = table.blocks().partitions
        known = {text: number for number, text in enumerate(dict.fromkeys(each for each in texts if each is not None))}
        values = [[catalyst_text(value) for value in spec.decode(text)] for text in known]
        return Partitions(
            [field.physical_name for field in spec.fields],
            values,
            [None if each is None else known[each] for each in texts],
        )
    constants = {} if foreign is None else {name: each for name, each in foreign.constants.items() if False not in each}
    if not constants:
        return None
    rows = list(zip(*constants.values(), strict=True))
    numbers = {row: number for number, row in enumerate(dict.fromkeys(rows))}
    return Partitions(list(constants), [list(row) for row in numbers], [numbers[row] for row in rows])


def hidden_column(table: StoredTable) -> str | None:
    """The name of a column that Spark's reader would read otherwise than it is in some file, or not at all.

    Such a file has one value of it, and holds it perhaps as another type, while others hold it; or has it in a
    form that only readers here convert, which is of no account where a table only votes.
    """
    constants, source = table.blocks().foreign.constants, table.snapshot.source
    converted = set() if table.snapshot.votes_only else set((source or {}).get("converted") or ())
    if found := next((each.name for each in table.snapshot.schema.fields if each.physical_name in converted), None):
        return found
    ids = {column_id for each in constants for column_id in each}
    for field in table.snapshot.schema.fields:
        partly = field.id in ids and not all(field.id in each for each in constants)
        if partly and source is not None and field.physical_name in source["unread"]:
            return field.name
    return None


def shredded_column(table: StoredTable) -> str | None:
    """The name of a VARIANT that some file holds in parts."""
    shredded = set((table.snapshot.source or {}).get("shredded") or ())
    return next((each.name for each in table.snapshot.schema.fields if each.physical_name in shredded), None)


def has_told_variants(table: StoredTable) -> bool:
    """Whether files say by Parquet's logical type that something is VARIANT, as all do that Iceberg's writers wrote.

    Of tables of Iceberg that earlier versions attached, nothing but the columns tells it.
    """
    source = table.snapshot.source or {}
    is_one = (storage.is_variant(each.type) for each in table.snapshot.schema.fields)
    return bool(source.get("told_variants")) or (source.get("format") == "iceberg" and any(is_one))


def list_foreign_files(table: StoredTable) -> ForeignFiles:
    """What a listing of a table's files says of those that are not its own. Raises SchemaError for hidden columns."""
    if (name := hidden_column(table)) is not None:
        raise SchemaError(
            f"files of {table.store.url} hold column {name!r}, which their paths give, too: open the table again"
        )
    found = table.blocks().foreign
    ids = {column_id for each in found.constants for column_id in each}
    columns = {
        field.physical_name: [
            field.id in each and constant_text(each[field.id], field.type) for each in found.constants
        ]
        for field in table.snapshot.schema.fields
        if field.id in ids
    }
    return ForeignFiles(found.modified, found.etags, columns)


def constant_text(value: Any, data_type: pa.DataType) -> str | None:
    """A value that a block's row holds for a column, as ``Constants.java`` reads it: days and times as numbers."""
    return catalyst_text(storage.decode_constant(value, data_type))


def catalyst_text(scalar: pa.Scalar) -> str | None:
    """A value as ``Constants.java`` reads it; None for NULL."""
    if not scalar.is_valid:
        return None
    if pa.types.is_date(scalar.type):
        return str(scalar.cast(pa.int32()).as_py())
    if pa.types.is_timestamp(scalar.type):
        return str(scalar.cast(pa.int64()).as_py())
    found = scalar.as_py()
    if isinstance(found, bytes):
        return found.hex()
    if isinstance(found, float) and not math.isfinite(found):
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(str(found), "NaN")
    return str(found).lower() if isinstance(found, bool) else str(found)


def sql_constant(value: pa.Scalar) -> str:
    """A value as a SQL constant of its type, whatever the session's time zone and ANSI mode."""
    return f"CAST({_constant(value.as_py())} AS {spark_type_name(value.type)})"


def _constant(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case int() | Decimal():
            return f"'{value}'"
        case float():
            return f"'{value!r}'"  # Spark reads "nan" and "inf" too
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            return f"'{value.isoformat(' ')}'"  # with its offset where the type is an instant
        case str() if _PLAIN_TEXT.fullmatch(value):
            return f"'{value}'"
        case str():
            return f"X'{value.encode().hex()}'"  # quotes and backslashes mean different things to different sessions
        case _:  # a date
            return f"'{value.isoformat()}'"
