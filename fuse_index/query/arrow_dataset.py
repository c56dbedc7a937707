"""A scan as a ``pyarrow.dataset.Dataset``: whoever pushes columns and filters into one asks our indexes.

DuckDB does so by itself, and so does ``polars.scan_pyarrow_dataset``. A filter is an expression of Arrow's, which is
opaque in Python; but it is written, as when it is pickled, as a record batch: its literals are the columns, and the
metadata of the schema lists its parts in their order. The filter itself is applied again to what is read.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from fuse_index.predicate import Column, Operator, Predicate
from fuse_index.query.foreign_predicate import ForeignPredicates, Translator
from fuse_storage import show_card, show_line

_OPERATORS: dict[str, Operator] = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
NarrowScan = Callable[[Predicate | None, Sequence[str], int | None], pa.RecordBatchReader]
"""Reads these columns of the rows that a predicate may be true on, at most so many."""


class ScanDataset(ds.Dataset):  # type: ignore[misc]
    """The rows of a scan. What a Dataset of files can do besides being read is refused."""

    def __init__(self, schema: pa.Schema, narrow: NarrowScan) -> None:
        self._schema, self._narrow = schema, narrow

    def __repr__(self) -> str:
        return show_line("ScanDataset", {"columns": self._schema.names})

    def _repr_html_(self) -> str:
        return show_card("ScanDataset", {field.name: str(field.type) for field in self._schema})

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scanner(self, columns: Any = None, filter: Any = None, **options: Any) -> ds.Scanner:  # noqa: A002  # pyarrow's
        """A scanner as pyarrow's, of the rows on which ``filter`` is true; indexes say which blocks hold them."""
        options.pop("fragment_scan_options", None)
        predicate, used = None, None
        if filter is not None:
            predicate, used = arrow_predicate(filter, self._schema)
        return ds.Scanner.from_batches(
            self._narrow(predicate, self._needed(columns, used, filter is not None), None),
            columns=columns,
            filter=filter,
            **options,
        )

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """The first rows; without a filter, no more blocks are read than have them."""
        if options.get("filter") is not None or not isinstance(options.get("columns"), list | None):
            return self.scanner(**options).head(num_rows)
        names = self._needed(options.get("columns"), (), False)
        return self._narrow(None, names, num_rows).read_all().select(options.get("columns") or names)

    def _needed(self, columns: Any, used: Sequence[str] | None, is_filtered: bool) -> list[str]:
        """The columns to read: all, if it cannot be known what an expression is about."""
        names: list[str] = self._schema.names
        if columns is None or not isinstance(columns, list) or (is_filtered and used is None):
            return names
        return [name for name in names if name in columns or name in (used or ())] or names[:1]

    def _refuse(self, *arguments: Any, **named: Any) -> NoReturn:
        raise NotImplementedError("these are the rows of a scan, not files: read them, or filter the scan itself")

    filter = join = join_asof = sort_by = get_fragments = replace_schema = _refuse
    partition_expression = property(_refuse)


def arrow_predicate(expression: pc.Expression, schema: pa.Schema) -> tuple[Predicate | None, list[str] | None]:
    """A predicate that is true wherever an expression is, and the columns that it looks at; None for the unknown."""
    try:
        reader = _ExpressionReader(*_written(expression), ForeignPredicates(schema))
        node = reader.read()
    except (pa.ArrowException, LookupError, ValueError, TypeError, StopIteration):
        return None, None
    return reader.condition(node)(False), reader.used


@dataclass(frozen=True)
class _Call:
    function: str
    arguments: list[Any]
    options: dict[str, Any]


@dataclass
class _ExpressionReader:
    """Reads the parts of an expression, one after the other. A node is a call, a column, its name, or a pa.Scalar."""

    parts: list[tuple[str, str]]
    literals: list[pa.Scalar]
    make: ForeignPredicates
    used: list[str] = field(default_factory=list)

    def read(self) -> Any:
        key, value = self.parts.pop(0)
        match key:
            case "literal":
                return self.literals[int(value)]
            case "field_ref":
                self.used.append(value)
                return self.make.column([value])
            case "nested_field_ref":
                path = [self.parts.pop(0)[1] for _ in range(int(value))]
                self.used.append(path[0])
                return self.make.column(path)
            case "call":
                return self._read_call(value)
        raise ValueError(f"{key!r} is no part of an expression that is known")

    def _read_call(self, function: str) -> _Call:
        arguments: list[Any] = []
        options: dict[str, Any] = {}
        while self.parts[0][0] != "end":
            if self.parts[0][0] == "options":
                scalar = self.literals[int(self.parts.pop(0)[1])]
                options = {name: scalar[name] for name in scalar}
            else:
                arguments.append(self.read())
        self.parts.pop(0)
        return _Call(function, arguments, options)

    def condition(self, node: Any) -> Translator:
        return partial(self._condition, node)

    def _condition(self, node: Any, exact: bool) -> Predicate | None:
        if isinstance(node, Column):
            return self.make.is_true(node)
        if not isinstance(node, _Call):
            return None
        first = node.arguments[0] if node.arguments else None
        match node.function:
            case "and_kleene" | "and":
                return self.make.all_of([self.condition(each) for each in node.arguments], exact)
            case "or_kleene" | "or":
                return self.make.any_of([self.condition(each) for each in node.arguments], exact)
            case "invert":
                return self.make.none_of(self.condition(first))
            case "is_null" if not _is_set(node.options, "nan_is_null"):
                return self.make.is_null(first)
            case "is_valid":
                return self.make.none_of(lambda _: self.make.is_null(first))
            case "is_in" if not exact:  # there NULL is in no set, which is FALSE, not NULL
                return self.make.is_in(first, list(node.options["value_set"].values), exact)
            case "starts_with" if not _is_set(node.options, "ignore_case"):
                return self.make.starts_with(first, node.options["pattern"].as_py())
            case "if_else" if not exact and isinstance(node.arguments[2], pa.Scalar):  # as DuckDB writes IN
                return (
                    None
                    if node.arguments[2].as_py()
                    else self.make.all_of([self.condition(each) for each in node.arguments[:2]], False)
                )
            case function if function in _OPERATORS:
                return self.make.compare(_OPERATORS[function], first, node.arguments[1], exact)
        return None


def _is_set(options: dict[str, Any], name: str) -> bool:
    return name in options and bool(options[name].as_py())


def _written(expression: pc.Expression) -> tuple[list[tuple[str, str]], list[pa.Scalar]]:
    """The parts of an expression as pyarrow writes them, and its literals."""
    with pa.ipc.open_file(expression.__reduce__()[1][0]) as file:
        batch = file.get_batch(0)
        return _metadata_pairs(file.schema), [column[0] for column in batch.columns]


def _metadata_pairs(schema: pa.Schema) -> list[tuple[str, str]]:
    """A schema's metadata in its order, with what is there more than once: as a dict it would be there once.

    By the Arrow C data interface: a count of pairs, and for each text its length and its bytes.
    """
    capsule = schema.__arrow_c_schema__()
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = get_pointer(capsule, b"arrow_schema")
    metadata = (ctypes.c_void_p * 3).from_address(address)[2]
    position = metadata or 0

    def number() -> int:
        nonlocal position
        value = ctypes.c_int32.from_address(position).value
        position += 4
        return value

    def text() -> str:
        nonlocal position
        length = number()
        value = ctypes.string_at(position, length).decode()
        position += length
        return value

    return [(text(), text()) for _ in range(number())] if metadata else []
