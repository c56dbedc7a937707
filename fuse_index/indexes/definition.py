"""Index definitions: which index is on which terms of a table, with which options. They live in the snapshot.

A definition is stored with column ids, so it survives renames, and under a key: a hash of all that its sidecars depend
on. Whatever changes that, changes the key, and old sidecars are never taken for new ones.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.types as is_
import xxhash

from fuse_index.errors import DefinitionError, FuseIndexError
from fuse_index.expressions.calls import session_fields
from fuse_index.expressions.normalize import normalize
from fuse_index.expressions.serialize import decode_predicate, decode_term, encode_predicate, encode_term
from fuse_index.expressions.to_sql import term_sql
from fuse_index.expressions.traversal import called_functions, predicate_terms, terms_of_case
from fuse_index.expressions.types import spark_type_name
from fuse_index.indexes.inputs import DEFINITION_TIMEOUT_SECONDS
from fuse_index.indexes.interface import IndexKind, Input, Refusal
from fuse_index.indexes.options import parse_options
from fuse_index.indexes.plugins import OWN_DISTRIBUTION
from fuse_index.indexes.registry import Host
from fuse_index.indexes.sandbox import PluginFailure, sandboxed_call
from fuse_index.predicate import Call, Case, Cast, Context, JsonPath, Predicate, Term
from fuse_index.reasons import Reason
from fuse_storage import Schema, SchemaError, Snapshot

_SESSION = frozenset(["time_zone", "ansi"])
_MAX_CACHED_SNAPSHOTS = 64
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
    """The condition of a partial index: it knows only of rows on which this is TRUE."""
    content: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The definition as it is stored, with whatever a newer version has put there."""

    def kind_in(self, host: Host) -> IndexKind:
        """The kind that it was made with, whoever else brings one of that name."""
        kind = host.kind_by(self.kind, self.content.get("by"))
        assert kind is not None  # else it were unavailable
        return kind

    @property
    def columns(self) -> list[str]:
        """The index's terms, as people type them."""
        return column_texts(self.inputs)


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
        return column_texts(self.inputs)


def column_texts(inputs: Sequence[Input]) -> list[str]:
    """The columns and terms that an index is on, as people type them; aggregates that it keeps are not among them."""
    return [term_sql(each.term) for each in inputs if not each.function]


def load_definitions(
    snapshot: Snapshot, host: Host, context: Context | None = None
) -> list[IndexDefinition | UnavailableIndex]:
    """All indexes that the snapshot defines. Never raises for one that cannot be used: that is Unavailable.

    ``context``: of the session that asks, if it is to be the one that terms were computed in where that matters.
    """
    cached = _DEFINITIONS.setdefault(host, {})
    key = (snapshot.id, context)
    if key not in cached:
        if len(cached) >= _MAX_CACHED_SNAPSHOTS:
            cached.clear()
        cached[key] = tuple(
            _load_definition(name, content, snapshot.schema, host, context)
            for name, content in snapshot.definitions.items()
        )
    return list(cached[key])


def session_dependence(term: Term) -> frozenset[str]:
    """What of the session its values depend on, fields of ``Context``.

    Casts between instants and what calendars show do, decimals as text, and arithmetic that may overflow.
    """
    inner: Iterable[Term] = ()
    own: frozenset[str] = frozenset()
    match term:
        case Cast(value, kind):
            inner = (value,)
            zoned = _is_instant(value.type) != _is_instant(kind) and any(_is_wall_clock(t) for t in (value.type, kind))
            own = _SESSION if zoned or (is_.is_decimal(value.type) and is_.is_string(kind)) else own
        case JsonPath(value):
            inner = (value,)
        case Call(_, arguments):
            inner = arguments
            own = session_fields(term)
        case Case(branches, otherwise):
            inner = terms_of_case(branches, otherwise)
    return own.union(*map(session_dependence, inner))


def _is_instant(kind: pa.DataType) -> bool:
    return is_.is_timestamp(kind) and kind.tz is not None


def _is_wall_clock(kind: pa.DataType) -> bool:
    return is_.is_string(kind) or is_.is_date(kind) or (is_.is_timestamp(kind) and kind.tz is None)


def _load_definition(
    name: str, content: Mapping[str, Any], schema: Schema, host: Host, context: Context | None
) -> IndexDefinition | UnavailableIndex:
    kind, key = str(content.get("kind")), str(content.get("key"))
    unavailable = partial(UnavailableIndex, name, kind, key, content=content)
    try:
        terms = [decode_term(encoded, schema) for encoded in content["inputs"]]
        functions = content.get("functions", [""] * len(terms))
        sizes = content.get("lg_k", [0] * len(terms))
        inputs = tuple(
            Input(term, term.type, str(function), int(size))
            for term, function, size in zip(terms, functions, sizes, strict=True)
        )
        where = stored_condition(content, schema)
    except (FuseIndexError, SchemaError, LookupError, TypeError, ValueError) as problem:
        return unavailable(Refusal(Reason.LEAF_UNSUPPORTED, f"its definition is not understood: {problem}"))
    index_kind = host.kind_by(kind, content.get("by"))
    if index_kind is None:
        return unavailable(Refusal(Reason.PLUGIN_MISSING, host.missing_kind_message(kind, content.get("by"))), inputs)
    try:
        stated = stored_context(content)
        dependence = frozenset[str]().union(*map(session_dependence, [*terms, *predicate_terms(where)]))
        options = parse_options(index_kind, content.get("options", {}))
        present = with_key(
            IndexDefinition(name, kind, inputs, options, index_kind.writes, key, stated, where),
            index_kind,
            schema,
            host,
        ).content
    except (FuseIndexError, TypeError, ValueError) as problem:
        return unavailable(Refusal(Reason.OPTION_MISMATCH, str(problem)), inputs)
    if (
        refusal := _mismatch(content, present, index_kind.writes) or _session_mismatch(stated, context, dependence)
    ) is not None:
        return unavailable(refusal, inputs)
    return IndexDefinition(name, kind, inputs, options, int(content.get("version", 1)), key, stated, where, content)


def _mismatch(content: Mapping[str, Any], present: Mapping[str, Any], writes: int) -> Refusal | None:
    """Why sidecars built for the stored definition are not those that it would have today."""

    def differs(part: str, without: Any = None) -> bool:
        expected = present.get(part, without)
        return bool(content.get(part, expected if without is None else without) != expected)

    by = present["by"]
    for name, distribution in content.get("functions_by", {}).items():
        if (here := present.get("functions_by", {}).get(name)) != distribution:
            brings = f"and here {here} brings a function of that name" if here else "which does not bring it here"
            detail = f"its terms call the {name!r} of {distribution}, {brings}: install {distribution}, or rebuild it"
            return Refusal(Reason.PLUGIN_MISSING, detail)
    if differs("function_versions", {}):
        was, now = content.get("function_versions", {}), present.get("function_versions", {})
        changed = ", ".join(f"{name!r}" for name in sorted(was.keys() | now.keys()) if was.get(name) != now.get(name))
        return Refusal(Reason.OPTION_MISMATCH, f"{changed} means something else since it was built: rebuild the index")
    if int(content.get("version", 1)) > writes:
        detail = f"it is of payload version {content['version']}, and {by} here writes {writes}: upgrade {by}"
        return Refusal(Reason.PAYLOAD_TOO_NEW, detail)
    if differs("types"):
        was, now = ", ".join(content["types"]), ", ".join(present["types"])
        return Refusal(Reason.TYPE_MISMATCH, f"it was built on {was}, and its columns are {now} now: rebuild the index")
    if differs("summary"):
        return Refusal(
            Reason.OPTION_MISMATCH, f"{by} now keeps other summaries than it was built with: rebuild the index"
        )
    return None


def _session_mismatch(stated: Context | None, asking: Context | None, dependence: Iterable[str]) -> Refusal | None:
    """Why the session that asks would have computed other values; ``dependence``: of what they depend on."""
    if stated is None or asking is None or all(getattr(stated, name) == getattr(asking, name) for name in dependence):
        return None
    built = f"its values were computed in time zone {stated.time_zone}, ansi={stated.ansi}"
    return Refusal(Reason.SESSION_SEMANTICS, f"{built}; this session has {asking.time_zone}, ansi={asking.ansi}")


def with_key(definition: IndexDefinition, kind: IndexKind, schema: Schema, host: Host) -> IndexDefinition:
    """The definition with its stored form, under the key that this has. Raises DefinitionError if the kind fails."""
    summary = sandboxed_call(
        lambda: _type_text(kind.summary_type(definition.inputs, definition.options)), DEFINITION_TIMEOUT_SECONDS
    )
    if isinstance(summary, PluginFailure):
        raise DefinitionError(
            f"index kind {kind.name!r} failed to name its summary's type: {summary.detail}"
        ) from summary.error
    content: dict[str, Any] = {
        "kind": definition.kind,
        "by": host.source_of(kind).distribution,
        "version": definition.version,
        "inputs": [encode_term(each.term, schema) for each in definition.inputs],
        "types": [spark_type_name(each.type) for each in definition.inputs],
        "summary": summary,
        "options": dataclasses.asdict(definition.options),
    }
    if any(each.function for each in definition.inputs):
        content["functions"] = [each.function for each in definition.inputs]
    if any(each.lg_k for each in definition.inputs):
        content["lg_k"] = [each.lg_k for each in definition.inputs]
    if called := _foreign_functions((*(each.term for each in definition.inputs), definition.where), host):
        content["functions_by"] = called
        versions = {name: host.functions[name].version for name in called if name in host.functions}
        if changed := {name: version for name, version in versions.items() if version != 1}:
            content["function_versions"] = changed
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


def _type_text(data_type: object) -> str:
    if not isinstance(data_type, pa.DataType):
        raise TypeError(f"summary_type() gave {type(data_type).__name__}, not an Arrow type")
    return str(data_type)


def _foreign_functions(nodes: Sequence[Term | Predicate | None], host: Host) -> dict[str, str]:
    """The functions that these call, each with the distribution that brings it; not those that are built in.

    Another distribution's function of that name may mean something else.
    """
    sources = {name: host.function_sources.get(name) for name in sorted(called_functions(nodes))}
    return {
        name: plugin.distribution
        for name, plugin in sources.items()
        if plugin is not None and plugin.distribution != OWN_DISTRIBUTION
    }


def stored_context(content: Mapping[str, Any]) -> Context | None:
    """The session that a stored definition names, if its values depend on one."""
    return Context(**content["context"]) if "context" in content else None


def stored_condition(content: Mapping[str, Any], schema: Schema) -> Predicate | None:
    """The condition of a stored definition, on the types that its columns have now."""
    if "where" not in content:
        return None
    return normalize(
        decode_predicate(content["where"], schema), stored_context(content) or Context()
    )  # columns may have been widened
