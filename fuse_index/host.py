"""Which index kinds and functions there are: the only place that knows what is installed.

A host is made once, handed on, and never changes. What a plugin does wrong while it is loaded becomes a sentence in
``problems`` that names its distribution; everything else goes on without it.
"""

from __future__ import annotations

import importlib.metadata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pluggy

from fuse_index.plugin import API, Function, Hooks, IndexKind

GROUP = "fuse_index.plugins"
"""The entry-point group under which distributions announce their plugins."""


class PluginWarning(UserWarning):
    """A plugin could not be loaded, or did something wrong; queries go on without it."""


@dataclass(frozen=True)
class Host:
    """Kinds and functions by name. Picklable: kinds travel by reference, so they must be importable where they arrive."""

    kinds: Mapping[str, IndexKind] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    """By kind, the distribution that brought it and its version, such as ``acme-index 1.2``."""

    def __reduce__(self) -> tuple[Any, ...]:
        classes = {name: type(kind) for name, kind in self.kinds.items()}
        return _rebuilt, (classes, dict(self.functions), self.problems, dict(self.versions))

    @classmethod
    def of(cls, *plugins: object) -> Host:
        """A host of these modules or objects with hooks, without any entry point: for tests, or a closed set."""
        return _hosted([(plugin, getattr(plugin, "__name__", type(plugin).__name__)) for plugin in plugins], [])

    @classmethod
    def discover(cls) -> Host:
        """A host of all that is installed. What cannot be loaded is warned of, and noted in ``problems``."""
        problems: list[str] = []
        host = _hosted(list(_installed(problems)), problems)
        for problem in host.problems:
            warnings.warn(problem, PluginWarning, stacklevel=2)
        return host


def _rebuilt(
    classes: Mapping[str, type[IndexKind]], functions: Mapping[str, Function], problems: tuple[str, ...], versions: Mapping[str, str]
) -> Host:
    return Host({name: kind() for name, kind in classes.items()}, functions, problems, versions)


def _installed(problems: list[str]) -> Iterator[tuple[object, str]]:
    """Each plugin module with the distribution it is from, built-ins first, so that a stranger cannot take their names."""
    found = importlib.metadata.entry_points(group=GROUP)
    unique = {(entry.name, entry.value): entry for entry in found}.values()  # a path may stand in sys.path twice
    for entry in sorted(unique, key=lambda entry: (not entry.value.startswith("fuse_plugins"), entry.name, entry.value)):
        source = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
        try:
            yield entry.load(), source
        except BaseException as error:  # an import may raise anything
            if isinstance(error, KeyboardInterrupt):
                raise
            problems.append(f"plugin {entry.name!r} of {source} cannot be loaded: {type(error).__name__}: {error}")


def _hosted(plugins: Sequence[tuple[object, str]], problems: list[str]) -> Host:
    kinds: dict[str, IndexKind] = {}
    functions: dict[str, Function] = {}
    sources: dict[str, str] = {}
    for plugin, source in plugins:
        try:
            offered_kinds, offered_functions = _hooks(plugin, source)
        except Exception as error:
            problems.append(f"plugin of {source} does not keep to the hooks: {type(error).__name__}: {error}")
            continue
        for kind in offered_kinds:
            if (problem := _refusal(kind, kinds, sources, source)) is not None:
                problems.append(problem)
            else:
                kinds[kind.name], sources[kind.name] = kind(), source
        for function in offered_functions:
            if function.name in functions:
                first = sources["()" + function.name]
                problems.append(f"function {function.name!r} of {source} is not used: {first} brings one of that name")
            else:
                functions[function.name], sources["()" + function.name] = function, source
    versions = {name: source for name, source in sources.items() if name in kinds}
    return Host(MappingProxyType(kinds), MappingProxyType(functions), tuple(problems), MappingProxyType(versions))


def _hooks(plugin: object, source: str) -> tuple[list[type[IndexKind]], list[Function]]:
    """What one plugin offers. A manager of its own, so that one misspelt hook cannot spoil the others."""
    manager = pluggy.PluginManager("fuse_index")
    manager.add_hookspecs(Hooks)
    manager.register(plugin, source)
    manager.check_pending()
    kinds = [kind for offered in manager.hook.fuse_index_kinds() for kind in _iterable(offered)]
    functions = [function for offered in manager.hook.fuse_index_functions() for function in _iterable(offered)]
    return kinds, functions


def _iterable(offered: Iterable[Any]) -> list[Any]:
    return list(offered)


def _refusal(kind: Any, kinds: Mapping[str, IndexKind], sources: Mapping[str, str], source: str) -> str | None:
    if not (isinstance(kind, type) and issubclass(kind, IndexKind)):
        return f"{source} offers {kind!r} as an index kind, which is no subclass of IndexKind"
    if not isinstance(getattr(kind, "name", None), str):
        return f"index kind {kind.__qualname__} of {source} has no name"
    if kind.api != API:
        return f"index kind {kind.name!r} of {source} is written for plugin interface {kind.api}, not {API}: update one of them"
    if kind.name in kinds:
        return f"index kind {kind.name!r} of {source} is not used: {sources[kind.name]} brings one of that name; uninstall one of them"
    return None
