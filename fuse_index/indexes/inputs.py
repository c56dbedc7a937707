"""Inputs of an index as people name them: columns, terms, aggregates and a condition.

Each is checked to be computable here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from fuse_index.aggregates.state import COUNT_STAR_ARGUMENT
from fuse_index.errors import DefinitionError
from fuse_index.expressions.canonical import canonical_term
from fuse_index.expressions.evaluate import evaluate, evaluate_term
from fuse_index.expressions.to_sql import term_sql
from fuse_index.expressions.traversal import columns_of
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.interface import IndexKind, Input, Ranks, Votes
from fuse_index.indexes.sandbox import PluginFailure, sandboxed_call
from fuse_index.predicate import Column, Context, Predicate, Term
from fuse_index.sql.parse import parse_aggregate, parse_predicate, parse_term
from fuse_storage import Schema

DEFINITION_TIMEOUT_SECONDS = 10.0
"""How long a kind may think about a definition."""


def resolve_input(column_or_term: str | Term, schema: Schema, engine: Engine) -> Input:
    """A column by its exact name, dots and spaces included, or else the text of a term; checked to be computable."""
    term = resolve_term(column_or_term, schema, engine)
    nothing = pa.table([pa.nulls(1, field.type) for field in schema.fields], schema.names)
    values = sandboxed_call(
        lambda: evaluate_term(term, nothing, engine.context, engine.functions), DEFINITION_TIMEOUT_SECONDS
    )
    if isinstance(values, PluginFailure):
        raise DefinitionError(f"{term_sql(term)} cannot be indexed: {values.detail}") from values.error
    if not any(columns_of(term)):
        raise DefinitionError(f"{term_sql(term)} cannot be indexed: it names no column")
    return Input(term, term.type)


def resolve_aggregates(name: str, kind: IndexKind, options: Any, schema: Schema, engine: Engine) -> tuple[Input, ...]:
    """An input for each aggregate that the options name. Raises DefinitionError, WhereError."""
    texts = sandboxed_call(lambda: tuple(map(_text, kind.aggregates(options))), DEFINITION_TIMEOUT_SECONDS)
    if isinstance(texts, PluginFailure):
        raise DefinitionError(
            f"index kind {kind.name!r} failed to say what index {name!r} keeps: {texts.detail}"
        ) from texts.error
    if not texts:
        return ()
    found = [parse_aggregate(text, schema, engine.context, engine.functions) for text in texts]
    for each in found:
        if each.argument != COUNT_STAR_ARGUMENT:
            resolve_input(each.argument, schema, engine)
    return tuple(Input(each.argument, each.argument.type, each.function, each.lg_k) for each in found)


def canonical_input(index_input: Input, context: Context) -> Input:
    """An aggregate's argument in the form that requests have theirs in; groups are as they were defined."""
    if not index_input.function:
        return index_input
    return replace(index_input, term=canonical_term(index_input.term, context))


def resolve_condition(name: str, kind: IndexKind, options: Any, schema: Schema, engine: Engine) -> Predicate | None:
    """The condition that the options name. Raises DefinitionError, WhereError."""
    text = sandboxed_call(
        lambda: None if (given := kind.condition(options)) is None else _text(given), DEFINITION_TIMEOUT_SECONDS
    )
    if isinstance(text, PluginFailure):
        raise DefinitionError(
            f"index kind {kind.name!r} failed to say which rows index {name!r} is on: {text.detail}"
        ) from text.error
    if text is None:
        return None
    if isinstance(kind, Votes | Ranks):
        raise DefinitionError(
            f"index {name!r} cannot be on some rows only: its kind {kind.name!r} would speak of rows it has not seen"
        )
    where = parse_predicate(text, schema, engine.context, engine.functions, kept=True)
    nothing = pa.table([pa.nulls(1, field.type) for field in schema.fields], schema.names)
    judged = sandboxed_call(
        lambda: evaluate(where, nothing, engine.context, engine.functions), DEFINITION_TIMEOUT_SECONDS
    )
    if isinstance(judged, PluginFailure):
        raise DefinitionError(f"index {name!r} cannot be on rows where {text}: {judged.detail}") from judged.error
    return where


def resolve_term(column_or_term: str | Term, schema: Schema, engine: Engine, kept: bool = True) -> Term:
    """A column by its exact name, or else the text of a term, ``kept`` or not. Raises WhereError."""
    if not isinstance(column_or_term, str):
        return column_or_term
    if column_or_term in schema.names:
        return Column((column_or_term,), schema.find([column_or_term]).type)
    return parse_term(column_or_term, schema, engine.context, engine.functions, kept)


def _text(given: object) -> str:
    if not isinstance(given, str):
        raise TypeError(f"it gave {given!r}, not text")
    return given
