"""Files of all formats as one stream of Arrow batches, in the memory of a few of them.

Files are looked into first, for the columns of all of them; then they are read one after the other, so that a column
has one type throughout, and is NULL in rows of files that lack it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from os import PathLike
from typing import Any

import pyarrow as pa

from fuse_index.errors import InputError
from fuse_index.ingest.file_formats import OpenFile, naming, open_input_file
from fuse_index.ingest.input_files import InputFile, InputFileError, InputFormat, find_input_files


def _is_date(text: str) -> bool:
    """Whether a text is a day that there is; where one of a column is none, its values are texts, as in Spark."""
    try:
        return re.fullmatch(r"\d{4}-\d\d-\d\d", text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


_PARTITION_TYPES: tuple[tuple[pa.DataType, Callable[[str], Any]], ...] = (
    (pa.int64(), re.compile(r"0|-?[1-9]\d{0,17}").fullmatch),
    (pa.date32(), _is_date),
)
ByteProgress = Callable[[int], None]
"""Called after each batch with the number of bytes of the files that were worked through since the last call."""


def read_files(
    paths: Any,
    format: str | None = None,  # noqa: A002  # promised
    *,
    schema: Any = None,
    nulls: Sequence[str] = (),
    partitions: bool = True,
    options: Mapping[str, str] | None = None,
) -> pa.RecordBatchReader:
    """Stream the rows of files: Parquet, CSV, TSV, JSON lines and JSON arrays, compressed or not.

    Args:
        paths: A path, folder, glob or URL, or several; ``-`` is standard input.
        format: What they are, where names do not say.
        schema: The types of columns, a pa.Schema such as a table's; others are as the files have or suggest them.
        nulls: Unquoted texts that mean NULL in CSV and TSV; by default the empty one.
        partitions: Whether columns of Hive's folders (``year=2026/``) are columns of the rows.
        options: Of an object store.

    Returns:
        The rows, as they are read.

    Raises:
        InputError: A file cannot be read, and is named; also while rows are read.
        StorageError: The store fails.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp(), "people.csv")
        >>> _ = file.write_text("id,name\\n1,ann\\n2,bob\\n")
        >>> fuse.read_files(file).read_all().to_pylist()
        [{'id': 1, 'name': 'ann'}, {'id': 2, 'name': 'bob'}]
    """
    path_list = to_path_list(paths)
    if format is not None and format not in [each.value for each in InputFormat]:
        raise InputError(f"format={format!r}: give {', '.join(InputFormat)}, or None")
    if schema is not None and not isinstance(schema, pa.Schema):
        raise InputError(f"schema={schema!r}: give a pa.Schema, such as table.schema")
    format_ = None if format is None else InputFormat(format)
    return InputFiles.open(find_input_files(path_list, format_, nulls, partitions, options), schema).reader()


def to_path_list(paths: Any) -> Sequence[str | PathLike[str]]:
    """One path, or several, as several. Raises InputError for what is none."""
    several = paths if isinstance(paths, list | tuple) else [paths]
    if not several or not all(isinstance(path, str | PathLike) and str(path) for path in several):
        raise InputError(f"paths={paths!r}: give a path, folder, glob or URL, or a list of them")
    return several


@dataclass
class InputFiles:
    """Files whose columns are known. ``schema``: those of all of them."""

    files: Sequence[InputFile]
    schema: pa.Schema
    _opened: dict[str, OpenFile] = field(default_factory=dict)

    @staticmethod
    def open(files: Sequence[InputFile], schema: pa.Schema | None = None, in_part: bool = False) -> InputFiles:
        """Look into the files. ``schema``: the types of columns that it has. Raises InputFileError.

        ``in_part``: what rows lack is not to be NULL. Then all files have the same columns, and documents of JSON those
        that the first ones have.
        """
        known = schema or pa.schema([])
        opened: dict[str, OpenFile] = {}
        columns = partition_columns(files, known)
        found: pa.Schema = pa.schema([])
        for file in files:
            required = {each.name for each in known if in_part or not each.nullable}
            stream = open_input_file(file, _types_for(file, known, required))
            if file.is_stdin:
                opened[file.name] = stream
            else:
                stream.close()
            if in_part and found.names and set(found.names) != set(stream.schema.names):
                raise InputFileError(
                    f"{file.name} has the columns {stream.schema.names}, and the files before it {found.names}: put "
                    f"the rows of each by themselves, so that what they lack stays as it is"
                )
            found = _merge_schemas(found, stream.schema, file)
        if not found.names:
            raise InputFileError(f"{files[0].name} is not readable as {files[0].format}: it is empty, without a column")
        names = [name for name in columns.names if name not in found.names]
        fields = [columns.field(each.name) if each.name in columns.names else _known(each, known) for each in found]
        return InputFiles(files, pa.schema([*fields, *(columns.field(name) for name in names)]), opened)

    @property
    def size(self) -> int:
        """Bytes of all files, as far as they are known."""
        return sum(file.size or 0 for file in self.files)

    def reader(self, advance: ByteProgress = lambda count: None) -> pa.RecordBatchReader:
        """All rows of all files, in the columns of ``schema``."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches(advance))

    def _batches(self, advance: ByteProgress) -> Iterator[pa.RecordBatch]:
        for file in self.files:
            done = 0
            stream = self._opened.pop(file.name, None) or open_input_file(file, self.schema)
            try:
                with naming(file):
                    for batch in stream.batches:
                        yield from _conform(batch, self.schema, file)
                        position = min(stream.position(), file.size or 0)
                        advance(max(position - done, 0))
                        done = max(position, done)
            finally:
                stream.close()
            advance((file.size or done) - done)


def _types_for(file: InputFile, known: pa.Schema, required: set[str]) -> pa.Schema:
    """The types to look for in a file. All of them are columns of JSON then, but for those ``required`` to be there."""
    if "json" not in file.format or file.is_stdin or not required:
        return known
    try:
        found = open_input_file(file, pa.schema([]))
    except InputFileError:
        return known
    found.close()
    return pa.schema([each for each in known if each.name not in required or each.name in found.schema.names])


def _known(found: pa.Field, schema: pa.Schema) -> pa.Field:
    """A column of files in the type that it is to have: where files have one of their own, theirs is kept."""
    if found.name in schema.names and pa.types.is_null(found.type):
        return found.with_type(schema.field(found.name).type)
    return found


def _merge_schemas(before: pa.Schema, found: pa.Schema, file: InputFile) -> pa.Schema:
    name, count = Counter(found.names).most_common(1)[0] if found.names else ("", 0)
    if count > 1:
        raise InputFileError(f"{file.name} has more than one column {name!r}: rename one")
    try:
        plain = pa.schema([each.with_nullable(True) for each in found])
        return pa.unify_schemas([before, plain], promote_options="permissive")
    except pa.ArrowException as problem:
        raise InputFileError(
            f"{file.name} and the files before it differ in columns: {problem}; read them one by one, or give a schema"
        ) from problem


def _conform(batch: pa.RecordBatch, schema: pa.Schema, file: InputFile) -> Iterator[pa.RecordBatch]:
    """The rows in the columns of all files, with those of the path."""
    rows = pa.Table.from_batches([batch])
    partition = dict(file.partition)
    columns = []
    for column in schema:
        if column.name in partition:
            columns.append(pa.repeat(partition_value(partition[column.name], column, file), len(rows)))
        elif column.name in rows.column_names:
            columns.append(_cast(rows.column(column.name), column.type))
        else:
            columns.append(pa.nulls(len(rows), column.type))
    yield from pa.Table.from_arrays(columns, schema=schema).to_batches()


def _cast(values: pa.ChunkedArray, data_type: pa.DataType) -> pa.ChunkedArray:
    return values if values.type == data_type else values.cast(data_type)


def partition_columns(files: Sequence[InputFile], schema: pa.Schema) -> pa.Schema:
    """The columns that paths give, in the types of the schema or those that all values suggest."""
    values: dict[str, set[str]] = {}
    for file in files:
        for name, value in file.partition:
            values.setdefault(name, set()).update([] if value is None else [value])
    fields = []
    for name, texts in values.items():
        suggested = (kind for kind, is_value in _PARTITION_TYPES if texts and all(map(is_value, texts)))
        is_known = name in schema.names
        fields.append(pa.field(name, schema.field(name).type if is_known else next(suggested, pa.string())))
    return pa.schema(fields)


def partition_value(text: str | None, column: pa.Field, file: InputFile) -> pa.Scalar:
    """The value that a path gives a column. Raises InputFileError for one that it cannot hold."""
    try:
        if text is not None and pa.types.is_date(column.type):
            return pa.scalar(date.fromisoformat(text), column.type)
        return pa.scalar(text, pa.string()).cast(column.type)
    except (pa.ArrowException, ValueError) as problem:
        raise InputFileError(f"{file.name}: {text!r} is no {column.type} for column {column.name!r}") from problem
