"""Index definitions: which index is on which terms of a table, with which options. They live in the snapshot.

A definition is stored with column ids, so it survives renames, and under a key: a hash of all that its sidecars depend
on. Whatever changes that, changes the key, and old sidecars are never taken for new ones.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import xxhash

from fuse_index.ask import Failure, ask
from fuse_index.errors import DefinitionError, FuseIndexError
from fuse_index.host import Host
from fuse_index.plugin import IndexKind, Input, Refusal
from fuse_index.predicate import Column, Context, Term
from fuse_index.reasons import Reason
from fuse_index.render import term as shown
from fuse_index.terms import decode_term, encode_term
from fuse_storage import Schema, SchemaError, Snapshot

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,127}")

SECONDS = 10.0
"""How long a kind may think about a definition."""


@dataclass(frozen=True)
class Definition:
    """One index of a table, understood. ``inputs`` have the names and types that the columns have now."""

    name: str
    kind: str
    inputs: tuple[Input, ...]
    options: Any
    version: int
    """The payload version that its sidecars are written in."""
    key: str
    context: Context | None = None
    """The session that its terms were understood in, where they depend on one."""

    @property
    def columns(self) -> list[str]:
        """The terms, as people type them."""
        return [shown(given.term) for given in self.inputs]

    def to_json(self, schema: Schema) -> dict[str, Any]:
        return {"key": self.key, **self._content(schema)}

    def _content(self, schema: Schema) -> dict[str, Any]:
        """All that the sidecars depend on."""
        context = {} if self.context is None else {"context": dataclasses.asdict(self.context)}
        return {
            "kind": self.kind, "inputs": [encode_term(given.term, schema) for given in self.inputs],
            "options": dataclasses.asdict(self.options), "version": self.version, **context,
        }  # fmt: skip

    def keyed(self, schema: Schema) -> Definition:
        """The same under the key that its content has."""
        content = json.dumps(self._content(schema), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return dataclasses.replace(self, key=xxhash.xxh3_64_hexdigest(content.encode()))


@dataclass(frozen=True)
class Unavailable:
    """An index that a snapshot defines and that cannot be used here, and why."""

    name: str
    kind: str
    key: str
    refusal: Refusal
    inputs: tuple[Input, ...] = ()
    content: Mapping[str, Any] = field(default_factory=dict)


def define(
    name: str, kind: str, terms: Sequence[str | Term], options: Mapping[str, Any], schema: Schema, host: Host, context: Context
) -> Definition:
    """A new definition. Raises DefinitionError or WhereError, which say what is wrong with what was asked."""
    if not NAME.fullmatch(name):
        raise DefinitionError(f"{name!r} cannot name an index: use up to 128 letters, digits, '_', '-' and '.', a letter or '_' first")
    chosen = _kind(kind, host)
    if isinstance(terms, str) or not terms:
        raise DefinitionError(f"index {name!r} needs a list of columns, and was given {terms!r}")
    inputs = tuple(Input(term, _type(term)) for term in (_term(given, schema, host, context) for given in terms))
    understood = parse_options(chosen, options)
    refusal = ask(lambda: chosen.accepts(inputs, understood), SECONDS)
    if isinstance(refusal, Failure):
        raise DefinitionError(f"index kind {kind!r} failed to judge this definition: {refusal.detail}") from refusal.error
    if refusal is not None:
        columns = ", ".join(shown(given.term) for given in inputs)
        raise DefinitionError(f"index kind {kind!r} cannot be on {columns}: {refusal.detail or refusal.reason.value}")
    plain = all(isinstance(given.term, Column) for given in inputs)
    return Definition(name, kind, inputs, understood, chosen.writes, "", None if plain else context).keyed(schema)


def load(snapshot: Snapshot, host: Host) -> list[Definition | Unavailable]:
    """All indexes that the snapshot defines. Never raises for one that cannot be used: that is Unavailable."""
    return [_loaded(name, found, snapshot.schema, host) for name, found in snapshot.definitions.items()]


def _loaded(name: str, found: Mapping[str, Any], schema: Schema, host: Host) -> Definition | Unavailable:
    kind, key = str(found.get("kind")), str(found.get("key"))
    try:
        inputs = tuple(Input(term, _type(term)) for term in (decode_term(given, schema) for given in found["inputs"]))
    except (FuseIndexError, SchemaError, LookupError, TypeError) as problem:
        return Unavailable(name, kind, key, Refusal(Reason.LEAF_UNSUPPORTED, f"its definition is not understood: {problem}"), (), found)
    if kind not in host.kinds:
        missing = Refusal(Reason.PLUGIN_MISSING, f"no installed plugin brings index kind {kind!r}: install the one that does")
        return Unavailable(name, kind, key, missing, inputs, found)
    try:
        options = parse_options(host.kinds[kind], found.get("options", {}))
        context = Context(**found["context"]) if "context" in found else None
    except (DefinitionError, TypeError) as problem:
        return Unavailable(name, kind, key, Refusal(Reason.OPTION_MISMATCH, str(problem)), inputs, found)
    return Definition(name, kind, inputs, options, int(found["version"]), key, context)


def _kind(name: str, host: Host) -> IndexKind:
    if name not in host.kinds:
        near = difflib.get_close_matches(name, host.kinds, 3)
        hint = f"did you mean {near[0]!r}?" if near else f"installed are {', '.join(sorted(host.kinds)) or 'none'}"
        raise DefinitionError(f"no index kind {name!r}: {hint}")
    if host.kinds[name].implicit:
        raise DefinitionError(f"index kind {name!r} is on every column already and needs no definition")
    return host.kinds[name]


def _term(given: str | Term, schema: Schema, host: Host, context: Context) -> Term:
    """A column by its exact name, dots and spaces included, or else the text of a term."""
    if not isinstance(given, str):
        return given
    if given in schema.names:
        return Column((given,), schema.find([given]).type)
    from fuse_index.where import parse_term  # the SQL parser takes a while to import

    return parse_term(given, schema, context, host.functions)


def _type(term: Term) -> Any:
    return term.type


def parse_options(kind: IndexKind, given: Mapping[str, Any]) -> Any:
    """The kind's options, checked by name and type. Raises DefinitionError."""
    fields = {field.name: field for field in dataclasses.fields(kind.Options)}
    types = typing.get_type_hints(kind.Options)
    for name, value in given.items():
        if name not in fields:
            has = f"it has {', '.join(fields)}" if fields else "it has none"
            raise DefinitionError(f"index kind {kind.name!r} has no option {name!r}: {has}")
        if not _fits(value, types[name]):
            raise DefinitionError(f"option {name!r} of index kind {kind.name!r} is to be {_called(types[name])}, and is {value!r}")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    try:
        return kind.Options(**values)
    except (TypeError, ValueError) as problem:
        raise DefinitionError(f"options of index kind {kind.name!r}: {problem}") from problem


def _fits(value: Any, wanted: Any) -> bool:
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if wanted is Any:
        return True
    if origin is typing.Literal:
        return value in arguments
    if origin is tuple:
        return isinstance(value, list | tuple) and all(_fits(item, arguments[0]) for item in value)
    if arguments:  # a union
        return any(_fits(value, argument) for argument in arguments)
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, wanted)


def _called(wanted: Any) -> str:
    return getattr(wanted, "__name__", None) or str(wanted)
