"""Index definitions: which index is on which terms of a table, with which options. They live in the snapshot.

A definition is stored with column ids, so it survives renames, and under a key: a hash of all that its sidecars depend
on. Whatever changes that, changes the key, and old sidecars are never taken for new ones.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.types as is_
import xxhash

from fuse_index.errors import DefinitionError, FuseIndexError
from fuse_index.expressions.normalize import normalize
from fuse_index.expressions.scalar_functions import DATE_TRUNC
from fuse_index.expressions.serialize import decode_predicate, decode_term, encode_predicate, encode_term
from fuse_index.expressions.to_sql import term_sql
from fuse_index.expressions.traversal import predicate_terms
from fuse_index.expressions.types import spark_type_name
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.inputs import DEFINITION_TIMEOUT_SECONDS, resolve_aggregates, resolve_condition, resolve_input
from fuse_index.indexes.interface import IndexKind, Input, Refusal
from fuse_index.indexes.options import parse_options
from fuse_index.indexes.registry import Host
from fuse_index.indexes.sandbox import PluginFailure, sandboxed_call
from fuse_index.predicate import Call, Cast, Context, JsonPath, Predicate, Term
from fuse_index.reasons import Reason
from fuse_storage import Schema, SchemaError, Snapshot

_INDEX_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,127}")

MAX_CACHED_SNAPSHOTS = 64
"""Snapshots of which a host remembers what their definitions mean: every query asks."""
_DEFINITIONS: WeakKeyDictionary[
    Host, dict[tuple[str, Context | None], tuple[IndexDefinition | UnavailableIndex, ...]]
] = WeakKeyDictionary()


@dataclass(frozen=True)
class IndexDefinition:
    """One index of a table, understood. ``inputs`` have the names and types that the columns have now."""

    name: str
    kind: str
    inputs: tuple[Input, ...]
    options: Any
    version: int
    """The payload version that its sidecars are written in."""
    key: str
    context: Context | None = None
    """The session that its terms were understood in, where their values depend on one."""
    where: Predicate | None = None
    """It knows only of rows on which this is TRUE."""
    content: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """As it is stored, with whatever a newer version has put there."""

    @property
    def columns(self) -> list[str]:
        """What it is on, as people type it."""
        return _column_texts(self.inputs)


@dataclass(frozen=True)
class UnavailableIndex:
    """An index that a snapshot defines and that cannot be used here, and why."""

    name: str
    kind: str
    key: str
    refusal: Refusal
    inputs: tuple[Input, ...] = ()
    content: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def columns(self) -> list[str]:
        return _column_texts(self.inputs)


def _column_texts(inputs: Sequence[Input]) -> list[str]:
    return [term_sql(given.term) for given in inputs if not given.function]


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
            f"{name!r} cannot name an index: use up to 128 letters, digits, '_', '-' and '.', a letter or '_' first"
        )
    index_kind = engine.host.kind(kind)
    inputs = _resolve_inputs(name, terms, schema, engine)
    parsed = parse_options(index_kind, options)
    inputs += resolve_aggregates(name, index_kind, parsed, schema, engine)
    where = resolve_condition(name, index_kind, parsed, schema, engine)
    return _accepted(IndexDefinition(name, kind, inputs, parsed, index_kind.writes, "", None, where), schema, engine)


def redefine_index(previous: IndexDefinition | UnavailableIndex, schema: Schema, host: Host) -> IndexDefinition:
    """The same index as it would be defined today: by the kind that is installed, on the types that columns have now.

    Its key is the same if nothing changed that sidecars depend on. Raises DefinitionError if it cannot be used even so.
    """
    terms = [given.term for given in previous.inputs if not given.function]
    if not terms:
        raise DefinitionError(f"index {previous.name!r} cannot be built: {previous.refusal.detail}")  # type: ignore[union-attr]
    name, engine = previous.name, Engine(host, _stored_context(previous.content) or Context())
    kind = host.kind(previous.kind)
    inputs = _resolve_inputs(name, terms, schema, engine) + tuple(given for given in previous.inputs if given.function)
    options, where = (
        parse_options(kind, previous.content.get("options", {})),
        _stored_condition(previous.content, schema),
    )
    fresh = _accepted(IndexDefinition(name, kind.name, inputs, options, kind.writes, "", None, where), schema, engine)
    return replace(fresh, content={**previous.content, **fresh.content})


def _resolve_inputs(name: str, terms: Sequence[str | Term], schema: Schema, engine: Engine) -> tuple[Input, ...]:
    if isinstance(terms, str) or not terms:
        raise DefinitionError(f"index {name!r} needs a list of columns, and was given {terms!r}")
    inputs = tuple(resolve_input(term, schema, engine) for term in terms)
    if repeated := [each for number, each in enumerate(inputs) if each in inputs[:number]]:
        raise DefinitionError(f"index {name!r} is to be on {term_sql(repeated[0].term)} twice: name it once")
    return inputs


def _accepted(definition: IndexDefinition, schema: Schema, engine: Engine) -> IndexDefinition:
    """The definition with its key, and with the session if its values depend on one. Raises DefinitionError if its
    kind refuses.
    """
    kind, inputs = engine.host.kind(definition.kind), definition.inputs
    refusal = sandboxed_call(lambda: kind.accepts(inputs, definition.options), DEFINITION_TIMEOUT_SECONDS)
    if isinstance(refusal, PluginFailure):
        raise DefinitionError(
            f"index kind {kind.name!r} failed to judge this definition: {refusal.detail}"
        ) from refusal.error
    if refusal is not None:
        columns = ", ".join(_column_texts(inputs))
        raise DefinitionError(
            f"index kind {kind.name!r} cannot be on {columns}: {refusal.detail or refusal.reason.value}"
        )
    terms = [*(given.term for given in inputs), *predicate_terms(definition.where)]
    context = engine.context if any(map(depends_on_session, terms)) else None
    return _with_key(replace(definition, context=context), kind, schema, engine.host)


def load_definitions(
    snapshot: Snapshot, host: Host, context: Context | None = None
) -> list[IndexDefinition | UnavailableIndex]:
    """All indexes that the snapshot defines. Never raises for one that cannot be used: that is Unavailable.

    ``context``: of the session that asks, if it is to be the one that terms were computed in where that matters.
    """
    known = _DEFINITIONS.setdefault(host, {})
    name = (snapshot.id, context)
    if name not in known:
        if len(known) >= MAX_CACHED_SNAPSHOTS:
            known.clear()
        known[name] = tuple(
            _load_definition(each, found, snapshot.schema, host, context)
            for each, found in snapshot.definitions.items()
        )
    return list(known[name])


def depends_on_session(term: Term) -> bool:
    """Whether its values depend on the session: casts between instants and what calendars show, decimals as text."""
    match term:
        case Cast(inner, kind):
            zoned = _is_instant(inner.type) != _is_instant(kind) and any(_is_wall_clock(t) for t in (inner.type, kind))
            return zoned or (is_.is_decimal(inner.type) and is_.is_string(kind)) or depends_on_session(inner)
        case JsonPath(inner):
            return depends_on_session(inner)
        case Call(name, arguments):
            return name == DATE_TRUNC or any(depends_on_session(argument) for argument in arguments)
        case _:
            return False


def _is_instant(kind: pa.DataType) -> bool:
    return is_.is_timestamp(kind) and kind.tz is not None


def _is_wall_clock(kind: pa.DataType) -> bool:
    return is_.is_string(kind) or is_.is_date(kind) or (is_.is_timestamp(kind) and kind.tz is None)


def _load_definition(
    name: str, found: Mapping[str, Any], schema: Schema, host: Host, context: Context | None
) -> IndexDefinition | UnavailableIndex:
    kind, key = str(found.get("kind")), str(found.get("key"))
    unavailable = partial(UnavailableIndex, name, kind, key, content=found)
    try:
        terms = [decode_term(given, schema) for given in found["inputs"]]
        functions = found.get("functions", [""] * len(terms))
        sizes = found.get("lg_k", [0] * len(terms))
        given = zip(terms, functions, sizes, strict=True)
        inputs = tuple(Input(term, term.type, str(function), int(size)) for term, function, size in given)
        where = _stored_condition(found, schema)
    except (FuseIndexError, SchemaError, LookupError, TypeError, ValueError) as problem:
        return unavailable(Refusal(Reason.LEAF_UNSUPPORTED, f"its definition is not understood: {problem}"))
    if kind not in host.kinds:
        return unavailable(Refusal(Reason.PLUGIN_MISSING, host.missing_kind_message(kind)), inputs)
    chosen = host.kinds[kind]
    try:
        stated = _stored_context(found)
        options = parse_options(chosen, found.get("options", {}))
        understood = _with_key(
            IndexDefinition(name, kind, inputs, options, chosen.writes, key, stated, where), chosen, schema, host
        ).content
    except (FuseIndexError, TypeError, ValueError) as problem:
        return unavailable(Refusal(Reason.OPTION_MISMATCH, str(problem)), inputs)
    if (refusal := _mismatch(found, understood, chosen.writes) or _session_mismatch(stated, context)) is not None:
        return unavailable(refusal, inputs)
    return IndexDefinition(name, kind, inputs, options, int(found.get("version", 1)), key, stated, where, found)


def _mismatch(found: Mapping[str, Any], understood: Mapping[str, Any], writes: int) -> Refusal | None:
    """Why sidecars built for the stored definition are not those that it would have today."""

    def differs(part: str) -> bool:
        return bool(found.get(part, understood[part]) != understood[part])

    by = understood["by"]
    if differs("by"):
        detail = (
            f"it was defined with the {found['kind']!r} of {found['by']}, and here {by} brings "
            f"that kind: rebuild the index"
        )
        return Refusal(Reason.PLUGIN_MISSING, detail)
    if int(found.get("version", 1)) > writes:
        detail = f"it is of payload version {found['version']}, and {by} here writes {writes}: upgrade {by}"
        return Refusal(Reason.PAYLOAD_TOO_NEW, detail)
    if differs("types"):
        was, now = ", ".join(found["types"]), ", ".join(understood["types"])
        return Refusal(Reason.TYPE_MISMATCH, f"it was built on {was}, and its columns are {now} now: rebuild the index")
    if differs("summary"):
        return Refusal(
            Reason.OPTION_MISMATCH, f"{by} now keeps other summaries than it was built with: rebuild the index"
        )
    return None


def _session_mismatch(stated: Context | None, asking: Context | None) -> Refusal | None:
    """Why the session that asks would have computed other values."""
    if stated is None or asking is None or (stated.time_zone, stated.ansi) == (asking.time_zone, asking.ansi):
        return None
    built = f"its values were computed in time zone {stated.time_zone}, ansi={stated.ansi}"
    return Refusal(Reason.SESSION_SEMANTICS, f"{built}; this session has {asking.time_zone}, ansi={asking.ansi}")


def _with_key(definition: IndexDefinition, kind: IndexKind, schema: Schema, host: Host) -> IndexDefinition:
    """The definition with its stored form, under the key that this has. Raises DefinitionError if the kind fails."""
    summary = sandboxed_call(
        lambda: str(kind.summary_type(definition.inputs, definition.options)), DEFINITION_TIMEOUT_SECONDS
    )
    if isinstance(summary, PluginFailure):
        raise DefinitionError(
            f"index kind {kind.name!r} failed to name its summary's type: {summary.detail}"
        ) from summary.error
    content: dict[str, Any] = {
        "kind": definition.kind,
        "by": host.sources[kind.name].distribution,
        "version": definition.version,
        "inputs": [encode_term(given.term, schema) for given in definition.inputs],
        "types": [spark_type_name(given.type) for given in definition.inputs],
        "summary": summary,
        "options": dataclasses.asdict(definition.options),
    }
    if any(given.function for given in definition.inputs):
        content["functions"] = [given.function for given in definition.inputs]
    if any(given.lg_k for given in definition.inputs):
        content["lg_k"] = [given.lg_k for given in definition.inputs]
    if definition.where is not None:
        content["where"] = encode_predicate(definition.where, schema)
    if definition.context is not None:
        content["context"] = dataclasses.asdict(definition.context)
    try:
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise DefinitionError(f"an option of index kind {kind.name!r} cannot be kept as JSON: {problem}") from problem
    key = xxhash.xxh3_128_hexdigest(text.encode())
    return replace(definition, key=key, content={"key": key, **json.loads(text)})


def _stored_context(found: Mapping[str, Any]) -> Context | None:
    return Context(**found["context"]) if "context" in found else None


def _stored_condition(found: Mapping[str, Any], schema: Schema) -> Predicate | None:
    if "where" not in found:
        return None
    return normalize(
        decode_predicate(found["where"], schema), _stored_context(found) or Context()
    )  # columns may have been widened
