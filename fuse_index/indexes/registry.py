"""Which index kinds and functions there are, and which is meant by a name: the only place that knows what is installed.

A host is made once, handed on, and never changes. Whatever a plugin does wrong while it is loaded becomes a sentence in
``problems`` that names its distribution, and everything else goes on without it.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

import pluggy

from fuse_index.errors import DefinitionError
from fuse_index.expressions.function import Function
from fuse_index.indexes.interface import IndexKind
from fuse_index.indexes.plugins import (
    OWN_DISTRIBUTION,
    Plugin,
    PluginRejected,
    hook_results,
    installed_plugins,
    instantiate_kind,
    load_plugin,
)
from fuse_index.signals.listeners import HOOK, add_listener

_Member = TypeVar("_Member")


class PluginWarning(UserWarning):
    """A plugin could not be loaded, or did something wrong; queries go on without it."""


@dataclass(frozen=True, slots=True)
class _Claim(Generic[_Member]):
    """A kind or a function, and the plugin that brings it under this name."""

    name: str
    member: _Member
    plugin: Plugin


class Host:
    """Kinds and functions by name.

    ``plugins``: modules or objects with hooks, or index kinds themselves; ``Host.discover()`` has all that is
    installed. A name that several distributions bring means none of them, except that what is built in comes first;
    ``kind_by`` finds the one that a definition was made with. Picklable: where a host arrives, its plugins are imported
    anew, and one that is missing or of another payload version there is a problem, not an error.
    """

    kinds: Mapping[str, IndexKind]
    functions: Mapping[str, Function]
    problems: tuple[str, ...]
    sources: Mapping[str, Plugin]
    """By kind: which plugin brought it."""
    function_sources: Mapping[str, Plugin]
    """By function: which plugin brought it."""
    _discovered: ClassVar[tuple[list[Plugin], list[Any], Host] | None] = None
    """The host of what was installed when it was asked for last, with the plugins and hooks that it was made of."""

    def __init__(self, plugins: Iterable[Any] = (), *, writes: Mapping[tuple[str, str], int] | None = None) -> None:
        self.plugins = tuple(Plugin.wrap(plugin) for plugin in plugins)
        found = _RegistryBuilder(dict(writes or {}))
        for plugin in self.plugins:
            found.add(plugin)
        self._kind_claims = tuple(found.kinds)
        kinds, disputed_kinds = _undisputed(found.kinds, "index kind", type)
        functions, disputed_functions = _undisputed(found.functions, "function", id)
        self.kinds = MappingProxyType({name: claim.member for name, claim in kinds.items()})
        self.sources = MappingProxyType({name: claim.plugin for name, claim in kinds.items()})
        self.functions = MappingProxyType({name: claim.member for name, claim in functions.items()})
        self.function_sources = MappingProxyType({name: claim.plugin for name, claim in functions.items()})
        self.problems = (*found.load_errors, *disputed_kinds, *disputed_functions)

    def __reduce__(self) -> tuple[Any, ...]:
        writes = {(claim.name, claim.plugin.distribution): claim.member.writes for claim in self._kind_claims}
        return _unpickle_registry, (self.plugins, writes)

    def __repr__(self) -> str:
        return f"Host(kinds={sorted(self.kinds)}, functions={sorted(self.functions)}, problems={list(self.problems)})"

    @classmethod
    def discover(cls) -> Host:
        """All that is installed. Each problem is warned of, once a process.

        Where the same is installed as before, the host of before is given: whoever opens a table asks, and to ask all
        hooks takes 4 ms of the 5 that this costs. A host with problems is not kept: what it lacks may come.
        """
        plugins = [load_plugin(*found) for found in installed_plugins()]
        hooks = [plugin.hooks for plugin in plugins]
        if (known := cls._discovered) is not None and known[:2] == (plugins, hooks):
            return known[2]
        host = cls(plugins)
        cls._discovered = None if host.problems else (plugins, hooks, host)
        for plugin in host.plugins:
            if hasattr(plugin.implementation, HOOK):
                add_listener(plugin.implementation)
        for problem in host.problems:
            warnings.warn(problem, PluginWarning, stacklevel=1)  # of this line, so that Python says it once
        return host

    def kind(self, name: str) -> IndexKind:
        """Raises DefinitionError with near names, or with the reason why an installed one is not used."""
        if name in self.kinds:
            return self.kinds[name]
        raise DefinitionError(self.missing_kind_message(name))

    def kind_by(self, name: str, distribution: str | None) -> IndexKind | None:
        """The kind of this name that a distribution brings, whoever else brings one; None if it brings none.

        ``distribution``: as definitions name it; None: whichever the name alone means.
        """
        if distribution is None:
            return self.kinds.get(name)
        own = [claim for claim in self._kind_claims if (claim.name, claim.plugin.distribution) == (name, distribution)]
        return own[0].member if len({type(claim.member) for claim in own}) == 1 else None

    def source_of(self, kind: IndexKind) -> Plugin:
        """The plugin that brought a kind of this host."""
        return next(claim.plugin for claim in self._kind_claims if claim.member is kind)

    def missing_kind_message(self, name: str, distribution: str | None = None) -> str:
        """Why there is no such kind, or none of this distribution, and what to do."""
        others = sorted({claim.plugin.source for claim in self._kind_claims if claim.name == name})
        unloaded = [plugin.load_error for plugin in self.plugins if plugin.load_error]
        if distribution is not None and others:
            own = [plugin.load_error for plugin in self.plugins if plugin.distribution == distribution]
            there = "; ".join(filter(None, own)) or f"{distribution} does not bring it here"
            bring = f"{' and '.join(others)} {'brings' if len(others) == 1 else 'bring'} another kind of that name"
            advice = f"install {distribution}, or rebuild the index"
            return f"it was made with the {name!r} of {distribution}; {there}, and {bring}: {advice}"
        if reasons := [problem for problem in self.problems if f"kind {name!r}" in problem]:
            return f"no index kind {name!r}: {reasons[0]}"
        near = difflib.get_close_matches(name, self.kinds, 3)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "install the plugin that brings it"
        hint = _OTHERS_KINDS.get(name.lower(), hint)
        if distribution is not None:
            hint = f"install {distribution}, which it was made with"
        return (
            f"no index kind {name!r}: {'; '.join([hint, *unloaded])}; installed are "
            f"{', '.join(sorted(self.kinds)) or 'none'}"
        )


_RANGES = "ranges and order need no index, as every column has min_max; for equality say bloom"
_OTHERS_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("btree", "b-tree", "b_tree", "sorted", "range", "clustered", "zonemap", "brin"), _RANGES),
    **dict.fromkeys(("hash", "bitmap", "set", "token", "secondary", "bloom_filter", "bloomfilter"), "say bloom"),
    **dict.fromkeys(("inverted", "fulltext", "text", "gin", "fts", "ngram", "tantivy"), "say full_text"),
    **dict.fromkeys(("json", "variant"), "say json_path"),
}
"""Kinds of other databases, and what is taken in their place."""


def _unpickle_registry(plugins: Sequence[Plugin], writes: Mapping[tuple[str, str], int]) -> Host:
    return Host(plugins, writes=writes)


def _undisputed(
    claims: Sequence[_Claim[_Member]], what: str, identity: Callable[[_Member], Any]
) -> tuple[dict[str, _Claim[_Member]], list[str]]:
    """What each name means, and a problem for each name that several distributions bring.

    What is built in comes first. Of others none is taken: which one came first would hang on their names, or on what
    is installed today.
    """
    meant: dict[str, _Claim[_Member]] = {}
    problems = []
    for name in dict.fromkeys(claim.name for claim in claims):
        by_identity = {identity(claim.member): claim for claim in reversed(claims) if claim.name == name}
        rivals = list(reversed(by_identity.values()))
        own = [claim for claim in rivals if claim.plugin.distribution == OWN_DISTRIBUTION]
        if len(rivals) == 1 or len(own) == 1:
            meant[name] = chosen = (own or rivals)[0]
            problems += [
                f"{what} {name!r} of {rival.plugin.source} is not used: {chosen.plugin.source} brings one of that name"
                for rival in rivals
                if rival is not chosen
            ]
        else:
            sources = " and ".join(f"by {rival.plugin.source}" for rival in rivals)
            problems.append(
                f"{what} {name!r} is brought {sources}, so the name means none of them: uninstall all but one"
            )
    return meant, problems


@dataclass
class _RegistryBuilder:
    """What plugins bring, while they are looked at one after the other.

    ``expected``: versions that kinds must write, by name and distribution.
    """

    expected: Mapping[tuple[str, str], int]
    kinds: list[_Claim[IndexKind]] = field(default_factory=list)
    functions: list[_Claim[Function]] = field(default_factory=list)
    load_errors: list[str] = field(default_factory=list)

    def add(self, plugin: Plugin) -> None:
        if plugin.load_error is not None:
            self.load_errors.append(plugin.load_error)
            return
        try:
            kinds, functions = hook_results(plugin)
        except Exception as error:
            said = (
                str(error)
                if isinstance(error, PluginRejected | pluggy.PluginValidationError)
                else f"{type(error).__name__}: {error}"
            )
            self.load_errors.append(f"the plugin of {plugin.source} is not used: {said}")
            return
        for kind in kinds:
            self._attempt(plugin, lambda kind=kind: self._add_kind(plugin, kind))
        for function in functions:
            self._attempt(plugin, lambda function=function: self._add_function(plugin, function))

    def _attempt(self, plugin: Plugin, add: Any) -> None:
        try:
            add()
        except PluginRejected as refusal:
            self.load_errors.append(str(refusal))
        except Exception as error:
            self.load_errors.append(
                f"the plugin of {plugin.source} brings something broken: {type(error).__name__}: {error}"
            )

    def _add_kind(self, plugin: Plugin, given: Any) -> None:
        kind = instantiate_kind(given, plugin)
        known = (claim.member for claim in self.kinds if claim.name == kind.name and type(claim.member) is type(kind))
        kind = next(known, kind)
        expected = self.expected.get((kind.name, plugin.distribution), kind.writes)
        if expected != kind.writes:
            versions = f"it writes payload version {kind.writes} here, and {expected} where the query was planned"
            raise PluginRejected(
                f"index kind {kind.name!r} of {plugin.source} is not used: {versions}; install one version everywhere"
            )
        self.kinds.append(_Claim(kind.name, kind, plugin))

    def _add_function(self, plugin: Plugin, function: Any) -> None:
        if not isinstance(function, Function):
            raise PluginRejected(
                f"the plugin of {plugin.source} brings {function!r} as a function: give Function objects"
            )
        self.functions.append(_Claim(function.name, function, plugin))
