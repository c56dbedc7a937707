"""Making a definition of an index: from what people name to what the snapshot keeps, with its kind's consent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fuse_index.errors import DefinitionError
from fuse_index.expressions.to_sql import term_sql
from fuse_index.expressions.traversal import predicate_terms
from fuse_index.indexes.definition import (
    IndexDefinition,
    UnavailableIndex,
    column_texts,
    session_dependence,
    stored_condition,
    stored_context,
    with_key,
)
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.inputs import DEFINITION_TIMEOUT_SECONDS, resolve_aggregates, resolve_condition, resolve_input
from fuse_index.indexes.interface import IndexKind, Input, Refusal
from fuse_index.indexes.options import parse_options
from fuse_index.indexes.registry import Host
from fuse_index.indexes.sandbox import PluginFailure, check_refusal, sandboxed_call
from fuse_index.predicate import Context, Term
from fuse_storage import Schema

MAX_INDEX_NAME = 128
"""Letters of an index's name."""
_INDEX_NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_.\-]{{0,{MAX_INDEX_NAME - 1}}}")


def define_index(
    name: str,
    kind: str,
    terms: Sequence[str | Term],
    options: Mapping[str, Any],
    schema: Schema,
    engine: Engine,
) -> IndexDefinition:
    """A new definition. Raises DefinitionError or WhereError, which say what is wrong with what was asked."""
    if not _INDEX_NAME.fullmatch(name):
        raise DefinitionError(
            f"{name!r} cannot name an index: use up to {MAX_INDEX_NAME} letters, digits, '_', '-' and '.', "
            f"a letter or '_' first"
        )
    index_kind = engine.host.kind(kind)
    inputs = _resolve_inputs(name, terms, schema, engine)
    parsed = parse_options(index_kind, options)
    inputs += resolve_aggregates(name, index_kind, parsed, schema, engine)
    where = resolve_condition(name, index_kind, parsed, schema, engine)
    return _with_consent(
        IndexDefinition(name, kind, inputs, parsed, index_kind.writes, "", None, where), index_kind, schema, engine
    )


def redefine_index(previous: IndexDefinition | UnavailableIndex, schema: Schema, host: Host) -> IndexDefinition:
    """Redefine an index as it would be today: by the kind that is installed, on the types that columns have now.

    Its key is the same if nothing changed that sidecars depend on. Raises DefinitionError if it cannot be used even so.
    """
    terms = [given.term for given in previous.inputs if not given.function]
    if not terms:
        raise DefinitionError(f"index {previous.name!r} cannot be built: {previous.refusal.detail}")  # type: ignore[union-attr]
    name, engine = previous.name, Engine(host, stored_context(previous.content) or Context())
    kind = host.kind_by(previous.kind, previous.content.get("by")) or host.kind(previous.kind)
    inputs = _resolve_inputs(name, terms, schema, engine) + tuple(given for given in previous.inputs if given.function)
    options = parse_options(kind, previous.content.get("options", {}))
    where = stored_condition(previous.content, schema)
    fresh = _with_consent(
        IndexDefinition(name, kind.name, inputs, options, kind.writes, "", None, where), kind, schema, engine
    )
    return replace(fresh, content={**previous.content, **fresh.content})


def _resolve_inputs(name: str, terms: Sequence[str | Term], schema: Schema, engine: Engine) -> tuple[Input, ...]:
    if isinstance(terms, str) or not terms:
        raise DefinitionError(f"index {name!r} needs a list of columns, and was given {terms!r}")
    inputs = tuple(resolve_input(term, schema, engine) for term in terms)
    if repeated := [each for number, each in enumerate(inputs) if each in inputs[:number]]:
        raise DefinitionError(f"index {name!r} is to be on {term_sql(repeated[0].term)} twice: name it once")
    return inputs


def _with_consent(definition: IndexDefinition, kind: IndexKind, schema: Schema, engine: Engine) -> IndexDefinition:
    """The definition with its key, and with the session if its values depend on one.

    Raises DefinitionError if its kind refuses it.
    """
    inputs = definition.inputs
    refusal = sandboxed_call(lambda: _judged(kind.accepts(inputs, definition.options)), DEFINITION_TIMEOUT_SECONDS)
    if isinstance(refusal, PluginFailure):
        raise DefinitionError(
            f"index kind {kind.name!r} failed to judge this definition: {refusal.detail}"
        ) from refusal.error
    if refusal is not None:
        columns = ", ".join(column_texts(inputs))
        raise DefinitionError(
            f"index kind {kind.name!r} cannot be on {columns}: {refusal.detail or refusal.reason.value}"
        )
    terms = [*(given.term for given in inputs), *predicate_terms(definition.where)]
    context = engine.context if any(map(session_dependence, terms)) else None
    return with_key(replace(definition, context=context), kind, schema, engine.host)


def _judged(answer: object) -> Refusal | None:
    """What ``accepts`` gave, if that is an answer. Raises TypeError."""
    if answer is None or isinstance(answer, Refusal):
        return None if answer is None else check_refusal(answer)
    raise TypeError(f"accepts() gave {type(answer).__name__}, not a Refusal or None")
