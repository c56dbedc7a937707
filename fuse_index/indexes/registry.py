"""Which index kinds and functions there are: the only place that knows what is installed.

A host is made once, handed on, and never changes. Whatever a plugin does wrong while it is loaded becomes a sentence in
``problems`` that names its distribution, and everything else goes on without it.
"""

from __future__ import annotations

import difflib
import importlib.metadata
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from types import MappingProxyType, ModuleType
from typing import Any

import pluggy

from fuse_index.errors import DefinitionError
from fuse_index.expressions.function import Function
from fuse_index.indexes.interface import API, Hooks, IndexKind

ENTRY_POINT_GROUP = "fuse_index.plugins"
"""The entry-point group under which distributions announce their plugins."""
OWN_DISTRIBUTION = "fuse-index"
"""Its plugins come first, so that nobody can take the names of what is built in."""
HOOK_NAMES = ("fuse_index_kinds", "fuse_index_functions")


class PluginWarning(UserWarning):
    """A plugin could not be loaded, or did something wrong; queries go on without it."""


class _PluginRejected(Exception):
    """Why something that a plugin brings cannot be used."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A module or object with hooks, and where it is from; ``problem`` if it could not be loaded.

    ``reference``: how to load it in another process, as entry points write it (``package.module`` or ``…:name``).
    """

    implementation: Any
    distribution: str
    version: str = ""
    reference: str | None = None
    load_error: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        if self.reference is None:
            return Plugin, (self.implementation, self.distribution, self.version)
        return load_plugin, (self.reference, self.distribution, self.version)

    @property
    def source(self) -> str:
        return f"{self.distribution} {self.version}".strip()

    @classmethod
    def wrap(cls, plugin: Any) -> Plugin:
        """Something that was handed over, rather than installed."""
        if isinstance(plugin, Plugin):
            return plugin
        if isinstance(plugin, ModuleType):
            return cls(plugin, plugin.__name__, reference=plugin.__name__)
        return cls(plugin, getattr(plugin, "__module__", None) or type(plugin).__module__)


def load_plugin(reference: str, distribution: str, version: str = "") -> Plugin:
    """Import a plugin. Never raises, whatever the import does: the problem is noted."""
    plugin = Plugin(None, distribution, version, reference)
    try:
        held = importlib.metadata.EntryPoint(reference, reference, ENTRY_POINT_GROUP).load()
    except KeyboardInterrupt:
        raise
    except ModuleNotFoundError as missing:
        problem = (
            f"plugin {reference!r} of {plugin.source} cannot be loaded: it needs {missing.name!r}, which is "
            f"not installed ({missing})"
        )
        return Plugin(None, distribution, version, reference, problem)
    except BaseException as error:  # an import may raise anything, SystemExit included
        problem = f"plugin {reference!r} of {plugin.source} cannot be loaded: {type(error).__name__}: {error}"
        return Plugin(None, distribution, version, reference, problem)
    return Plugin(held, distribution, version, reference)


class Host:
    """Kinds and functions by name.

    ``plugins``: modules or objects with hooks, or index kinds themselves; ``Host.discover()`` has all that is
    installed. Picklable: where a host arrives, its plugins are imported anew, and one that is missing or of another
    payload version there is a problem, not an error.
    """

    kinds: Mapping[str, IndexKind]
    functions: Mapping[str, Function]
    problems: tuple[str, ...]
    sources: Mapping[str, Plugin]
    """By kind: which plugin brought it."""

    def __init__(self, plugins: Iterable[Any] = (), *, writes: Mapping[str, int] | None = None) -> None:
        self.plugins = tuple(Plugin.wrap(plugin) for plugin in plugins)
        found = _RegistryBuilder(dict(writes or {}))
        for plugin in self.plugins:
            found.add(plugin)
        self.kinds, self.functions = MappingProxyType(found.kinds), MappingProxyType(found.functions)
        self.problems, self.sources = tuple(found.load_errors), MappingProxyType(found.sources)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle_registry, (self.plugins, {name: kind.writes for name, kind in self.kinds.items()})

    def __repr__(self) -> str:
        return f"Host(kinds={sorted(self.kinds)}, functions={sorted(self.functions)}, problems={list(self.problems)})"

    @classmethod
    def discover(cls) -> Host:
        """All that is installed. Each problem is warned of, once a process."""
        host = cls([load_plugin(*found) for found in _installed_plugins()])
        for problem in host.problems:
            warnings.warn(problem, PluginWarning, stacklevel=1)  # of this line, so that Python says it once
        return host

    def kind(self, name: str) -> IndexKind:
        """Raises DefinitionError with near names, or with the reason why an installed one is not used."""
        if name in self.kinds:
            return self.kinds[name]
        raise DefinitionError(self.missing_kind_message(name))

    def missing_kind_message(self, name: str) -> str:
        """Why there is no such kind, and what to do."""
        if reasons := [problem for problem in self.problems if f"kind {name!r}" in problem]:
            return f"no index kind {name!r}: {reasons[0]}"
        near = difflib.get_close_matches(name, self.kinds, 3)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "install the plugin that brings it"
        unloaded = [plugin.load_error for plugin in self.plugins if plugin.load_error]
        return (
            f"no index kind {name!r}: {'; '.join([hint, *unloaded])}; installed are "
            f"{', '.join(sorted(self.kinds)) or 'none'}"
        )


def _unpickle_registry(plugins: Sequence[Plugin], writes: Mapping[str, int]) -> Host:
    return Host(plugins, writes=writes)


def _installed_plugins() -> list[tuple[str, str, str]]:
    """Each plugin as (reference, distribution, version), ours first.

    A distribution may be found twice on ``sys.path``.
    """
    found = {
        (entry.value, entry.dist.name, entry.dist.version) if entry.dist else (entry.value, entry.value, "")
        for entry in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
    }
    return sorted(found, key=lambda plugin: (plugin[1] != OWN_DISTRIBUTION, plugin[1], plugin[0]))


@dataclass
class _RegistryBuilder:
    """What plugins bring, while they are looked at one after the other.

    ``expected``: versions that kinds must write.
    """

    expected: Mapping[str, int]
    kinds: dict[str, IndexKind] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    sources: dict[str, Plugin] = field(default_factory=dict)
    load_errors: list[str] = field(default_factory=list)

    def add(self, plugin: Plugin) -> None:
        if plugin.load_error is not None:
            self.load_errors.append(plugin.load_error)
            return
        try:
            kinds, functions = _hook_results(plugin)
        except Exception as error:
            said = (
                str(error)
                if isinstance(error, _PluginRejected | pluggy.PluginValidationError)
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
        except _PluginRejected as refusal:
            self.load_errors.append(str(refusal))
        except Exception as error:
            self.load_errors.append(
                f"the plugin of {plugin.source} brings something broken: {type(error).__name__}: {error}"
            )

    def _add_kind(self, plugin: Plugin, given: Any) -> None:
        kind = _instantiate_kind(given, plugin)
        name = kind.name
        if name in self.kinds:
            if type(self.kinds[name]) is type(kind):
                return
            other = self.sources[name].source
            raise _PluginRejected(
                f"index kind {name!r} of {plugin.source} is not used: {other} brings one of that "
                f"name; uninstall one of them"
            )
        if (expected := self.expected.get(name, kind.writes)) != kind.writes:
            versions = f"it writes payload version {kind.writes} here, and {expected} where the query was planned"
            raise _PluginRejected(
                f"index kind {name!r} of {plugin.source} is not used: {versions}; install one version everywhere"
            )
        self.kinds[name], self.sources[name] = kind, plugin

    def _add_function(self, plugin: Plugin, function: Any) -> None:
        if not isinstance(function, Function):
            raise _PluginRejected(
                f"the plugin of {plugin.source} brings {function!r} as a function: give Function objects"
            )
        if self.functions.setdefault(function.name, function) is not function:
            raise _PluginRejected(
                f"function {function.name!r} of {plugin.source} is not used: another plugin brings one of that name"
            )


def _hook_results(plugin: Plugin) -> tuple[list[Any], list[Any]]:
    """What a plugin's hooks give. A manager of its own, so that one misspelt hook cannot spoil the other plugins."""
    if isinstance(plugin.implementation, type) and issubclass(plugin.implementation, IndexKind):
        return [plugin.implementation], []
    manager = pluggy.PluginManager("fuse_index")
    manager.add_hookspecs(Hooks)
    manager.register(plugin.implementation, plugin.source)
    manager.check_pending()
    if not manager.get_hookcallers(plugin.implementation):
        raise _PluginRejected(
            f"it implements neither {' nor '.join(HOOK_NAMES)}: decorate one with fuse_index.plugin.hookimpl"
        )
    kinds, functions = manager.hook.fuse_index_kinds(), manager.hook.fuse_index_functions()
    return [kind for some in kinds for kind in some], [function for some in functions for function in some]


def _instantiate_kind(kind: Any, plugin: Plugin) -> IndexKind:
    """An instance of the kind. Raises _Refused if it does not keep to the interface."""
    if not (isinstance(kind, type) and issubclass(kind, IndexKind)):
        raise _PluginRejected(
            f"the plugin of {plugin.source} brings {kind!r} as an index kind: fuse_index_kinds() "
            f"gives subclasses of IndexKind"
        )
    name = getattr(kind, "name", None)
    if not isinstance(name, str) or not name:
        raise _PluginRejected(f"index kind {kind.__qualname__} of {plugin.source} is not used: it has no name")
    about = f"index kind {name!r} of {plugin.source} is not used:"
    if kind.api != API:
        older = kind.api < API if isinstance(kind.api, int) else True
        advice = f"upgrade {plugin.distribution}" if older else f"upgrade {OWN_DISTRIBUTION}"
        raise _PluginRejected(
            f"{about} it is written for version {kind.api} of the plugin interface, and this is {API}; {advice}"
        )
    if kind.writes not in kind.reads:
        raise _PluginRejected(f"{about} it writes payload version {kind.writes} and reads only {sorted(kind.reads)}")
    if not (is_dataclass(kind.Options) and kind.Options.__dataclass_params__.frozen):  # type: ignore[attr-defined]
        raise _PluginRejected(f"{about} its Options are no frozen dataclass")
    if bare := [option.name for option in fields(kind.Options) if not _has_default(option)]:
        raise _PluginRejected(f"{about} its option {bare[0]!r} has no default")
    return kind()


def _has_default(option: Field[Any]) -> bool:
    return option.default is not MISSING or option.default_factory is not MISSING
