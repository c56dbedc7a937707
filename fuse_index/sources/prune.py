"""Files that readers of a source are about to read, without those on which votes say that no row matches.

In: a table over a source, a condition, and what ``deltalake``, ``pyiceberg`` or Arrow would read. Out: the same with
fewer files. Columns go by the names that they have in what is read, be it an older version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import count
from typing import Any

import pyarrow as pa

from fuse_index.errors import InputError, WhereError
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.expressions.traversal import column_names, leaf_terms
from fuse_index.handle import TableHandle, resolve_predicate
from fuse_index.predicate import And, Not, Opaque, Or, Predicate
from fuse_index.pruning.planner import plan_scan
from fuse_index.sources.compare import compare_files
from fuse_index.sources.delta.source import DeltaSource
from fuse_index.sources.formats import open_source
from fuse_index.sources.iceberg.columns import columns_of_schema
from fuse_index.sources.location import normal_location
from fuse_storage import (
    ColumnMatch,
    Field,
    SchemaError,
    SourceColumn,
    StoredTable,
    encode_default,
    evolve_to,
    known_files,
    plain_source_columns,
)

_FILE_SYSTEMS = {"local": "", "s3": "s3://", "gcs": "gs://"}
"""What stands before the paths of a file system of Arrow's in a location."""
_Files = Mapping[str, int | None]
"""Sizes of files by their locations; None where nobody says it."""


def prune_files(table: TableHandle, where: str | Predicate, source: Any) -> Any:
    """Leave out files of a source in which no row matches, for whoever reads it in Python, without Spark.

    What is read is the source's matter: its version, its deletes, its mapping. A file that the table does not know, by
    its place and size, stays; so do files where the condition is about columns that have no votes. The condition is
    still to be applied to the rows.

    Args:
        table: A table over the source, for votes alone or not; or ``catalog.find_source_index(…)``.
        where: A condition in Spark SQL, or a predicate, by the names that columns have in what is read.
        source: A ``DeltaTable`` of deltalake; a scan of PyIceberg (``table.scan(…)``); or a dataset of Arrow over a
            Parquet folder.

    Returns:
        For deltalake and Arrow a dataset with fewer files; for PyIceberg the tasks of ``plan_files()``, but fewer.

    Raises:
        InputError: ``source`` is none of these, or of another format than the table's source.
        WhereError: The condition is none.
        StorageError: A store fails.

    Example:
        >>> import pyarrow as pa, pyarrow.dataset as ds, pyarrow.parquet as pq, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> for number in range(3):
        ...     pq.write_table(pa.table({"id": [number, number + 10]}), f"{folder}/{number}.parquet")
        >>> table = fuse.attach(folder, "memory://prune", votes_only=True, options={"shared_places": folder})
        >>> snapshot = table.create_index("by_id", "bloom", ["id"])
        >>> dataset = fuse.prune_files(table, "id = 11", ds.dataset(folder))
        >>> len(dataset.files), dataset.to_table(filter=ds.field("id") == 11).num_rows
        (1, 1)
    """
    if not isinstance(table, TableHandle):
        raise InputError(f"table={table!r}: give an open table over the source, as attach and open_table return it")
    made_by = type(source).__module__.partition(".")[0]
    for format_, maker, ability, prune in _SOURCES:
        if made_by == maker and hasattr(source, ability):
            about = table.snapshot.source
            if about is None or about.get("adopted") or about["format"] != format_:
                raise InputError(f"{table.stored.store.url} is over no source of format {format_!r}: attach {source}")
            return prune(table, where, source)
    raise InputError(f"source={source!r}: give a DeltaTable, a scan of PyIceberg, or a dataset of Arrow over Parquet")


def _prune_delta(table: TableHandle, where: str | Predicate, source: Any) -> Any:
    root = normal_location(source.table_uri)
    state = DeltaSource(root).state_of(source, votes_only=True)
    left_out = _left_out(
        table, where, state.columns.columns if state.columns else (), {file.location: file.size for file in state.files}
    )
    dataset = source.to_pyarrow_dataset()
    return _with_fragments(dataset, lambda path: (path if "://" in path else f"{root}/{path}") not in left_out)


def _prune_iceberg(table: TableHandle, where: str | Predicate, source: Any) -> Any:
    columns = columns_of_schema(source.update(selected_fields=("*",)).projection(), "the scan", True).columns
    tasks = list(source.plan_files())
    sizes = {normal_location(str(task.file.file_path)): task.file.file_size_in_bytes for task in tasks}
    left_out = _left_out(table, where, columns, sizes)
    return [task for task in tasks if normal_location(str(task.file.file_path)) not in left_out]


def _prune_folder(table: TableHandle, where: str | Predicate, source: Any) -> Any:
    if getattr(source, "_scan_options", None):  # which a dataset of its files would not have
        raise InputError("the dataset is filtered already: prune it first, and filter what comes of it")
    from pyarrow.dataset import get_partition_keys

    before = _FILE_SYSTEMS.get(source.filesystem.type_name)
    if before is None:
        return source
    about = table.snapshot.source or {}
    opened = open_source("parquet", about["url"], dict(getattr(table.stored.store, "options", None) or {}))
    same = compare_files(table.stored.blocks(), opened.state().files).kept
    columns, keys = plain_source_columns(source.schema), {}
    for each in source.get_fragments():
        keys[normal_location(f"{before}{each.path}")] = get_partition_keys(each.partition_expression)
    left_out = _left_out(table, where, columns, dict.fromkeys(same), _ids_read_otherwise(table.stored, keys))
    return _with_fragments(source, lambda path: normal_location(f"{before}{path}") not in left_out)


def _ids_read_otherwise(stored: StoredTable, keys: Mapping[str, Mapping[str, Any]]) -> set[int]:
    """The columns that have a value by a file's path in the table, and by its rows, or another value, where it is read.

    ``keys``: of each file that is read, the values that its path gives there, by column.
    """
    names, blocks = {field.id: field.name for field in stored.snapshot.schema.fields}, stored.blocks()
    return {
        column_id
        for location, constants in zip(blocks.locations, blocks.foreign.constants, strict=True)
        if constants and (read := keys.get(normal_location(location))) is not None
        for column_id, value in constants.items()
        if names[column_id] not in read or encode_default(read[names[column_id]]) != value
    }


_SOURCES: tuple[tuple[str, str, str, Callable[[TableHandle, str | Predicate, Any], Any]], ...] = (
    ("delta", "deltalake", "to_pyarrow_dataset", _prune_delta),
    ("iceberg", "pyiceberg", "plan_files", _prune_iceberg),
    ("parquet", "pyarrow", "files", _prune_folder),
)


def _with_fragments(dataset: Any, wanted: Callable[[str], bool]) -> Any:
    from pyarrow.dataset import FileSystemDataset

    fragments = [each for each in dataset.get_fragments() if wanted(each.path)]
    return FileSystemDataset(
        fragments, dataset.schema, dataset.format, dataset.filesystem, dataset.partition_expression
    )


def _left_out(
    table: TableHandle,
    where: str | Predicate,
    columns: Sequence[SourceColumn],
    files: _Files,
    without_votes: Container[int] = (),
) -> set[str]:
    """The locations of files on which votes say that no row matches.

    ``columns``: those that are read. ``without_votes``: ids of the table's columns that are read otherwise.
    """
    stored, unknown, untold = _seen_as(table.stored, columns, without_votes)
    try:
        predicate = resolve_predicate(where, stored.snapshot, table.engine)
    except WhereError:
        if isinstance(where, str) and any(re.search(rf"\b{re.escape(name)}\b", where) for name in untold):
            return set()  # it is about a column of which nothing can be said here
        raise
    if predicate is None:
        return set()
    mask = plan_scan(stored, _without(predicate, unknown), table.engine).block_mask
    return {
        location
        for name, file in known_files(table.stored).items()
        if not mask[file.block]
        and (location := normal_location(name)) in files
        and files[location] in (file.size, None)
    }


def _seen_as(
    stored: StoredTable, columns: Sequence[SourceColumn], without_votes: Container[int]
) -> tuple[StoredTable, set[str], set[str]]:
    """The table with the columns that are read, under their names there.

    And the names of those that have no votes, and of those that no column of a table can be like.
    """
    snapshot, fields, unknown, untold = stored.snapshot, list[Field](), set[str](), set[str]()
    known = {field.id: field for field in snapshot.schema.fields}
    ids = count(snapshot.last_column_id + 1)
    for column in columns:
        try:
            (field,) = ColumnMatch.of(snapshot, [column]).fields
        except SchemaError:
            untold.add(column.name)
            continue
        if field.id not in known or field.id in without_votes or _types(field) != _types(known[field.id]):
            field = Field(next(ids), field.name, f"#{field.name}", field.type)
            unknown.add(field.name)
        fields.append(field)
    return stored.at_entry(stored.entry, evolve_to(snapshot, tuple(fields))), unknown, untold


def _types(field: Field) -> list[tuple[int, pa.DataType | None]]:
    return [(part.id, part.type if part.is_leaf else None) for part in field.walk()]


def _without(predicate: Predicate, names: Iterable[str]) -> Predicate:
    """The predicate, in which leaves that are on these columns get no votes."""
    match predicate:
        case And(terms):
            return And(tuple(_without(each, names) for each in terms))
        case Or(terms):
            return Or(tuple(_without(each, names) for each in terms))
        case Not(term):
            return Not(_without(term, names))
        case leaf:
            is_known = set(names).isdisjoint(column_names(leaf_terms(leaf)))
            return leaf if is_known else Opaque(predicate_sql(leaf))
