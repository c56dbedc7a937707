"""SQL text to expressions: the one door to the SQL parser, which takes long to import and so waits for its first use.

Of all functions here: ``schema`` has the columns that the text may name, ``context`` the session whose SQL it is,
``functions`` those that plugins bring.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fuse_index.aggregates.state import Aggregate
from fuse_index.expressions.constant_folding import fold_constants
from fuse_index.expressions.normalize import normalize
from fuse_index.predicate import Context, Predicate, Term
from fuse_index.sql.garbage import collector_paused
from fuse_storage import Schema

if TYPE_CHECKING:
    from fuse_index.expressions.function import Function
    from fuse_index.sql.text.parser import SqlReader

    Functions = Mapping[str, Function] | Iterable[Function]

_DEFAULT_CONTEXT = Context()
_LONG_TEXT = 20_000
"""Characters from which on reading a text takes long enough, some 0.1 s, for the garbage collector to matter."""


def parse_predicate(
    text: str, schema: Schema, context: Context = _DEFAULT_CONTEXT, functions: Functions = (), kept: bool = False
) -> Predicate:
    """The predicate of a WHERE clause (without the word), normalised, constants folded.

    ``kept``: it is to mean the same whenever it is read, so that it may not ask for the time. Raises WhereError.
    """
    with collector_paused(len(text) > _LONG_TEXT):
        reader = _reader(text, schema, context, functions, kept)
        return normalize(fold_constants(reader.read_predicate(), context, reader.functions), context)


def parse_predicate_as_written(
    text: str, schema: Schema, context: Context = _DEFAULT_CONTEXT, functions: Functions = ()
) -> Predicate:
    """The predicate as it is written, with the casts that Spark adds. Raises WhereError."""
    return _reader(text, schema, context, functions).read_predicate()


def parse_term(
    text: str, schema: Schema, context: Context = _DEFAULT_CONTEXT, functions: Functions = (), kept: bool = True
) -> Term:
    """A column, or what is computed of some: by operators, CASE, casts and functions. Raises WhereError.

    ``kept``: its values are kept, as an index does, so that it may not ask for the time.
    """
    return _reader(text, schema, context, functions, kept).read_term()


def parse_aggregate(
    text: str, schema: Schema, context: Context = _DEFAULT_CONTEXT, functions: Functions = ()
) -> Aggregate:
    """``count(*)``, or the count, sum, min, max, avg, hll_sketch_agg or hll_union_agg of what ``parse_term`` reads.

    The term is in its canonical form. Raises WhereError.
    """
    return _reader(text, schema, context, functions, kept=True).read_aggregate()


def _reader(text: str, schema: Schema, context: Context, functions: Functions, kept: bool = False) -> SqlReader:
    from fuse_index.sql.text.parser import SqlReader

    listed = functions.values() if isinstance(functions, Mapping) else functions
    by_name = {name: function for function in listed for name in (function.name.lower(), function.name)}
    return SqlReader.of(text, schema, context, by_name, None if kept else datetime.now(UTC))
