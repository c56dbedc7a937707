"""Plugins: where each is from, how it is imported, and what its hooks bring, in the form that the interface asks for.

Sits below ``registry``, which decides what is meant by a name. Nothing here ends the process, whatever an import does.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
import time
from collections.abc import Set
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy

from fuse_index.errors import InputError
from fuse_index.indexes.interface import API, APIS, Hooks, IndexKind

ENTRY_POINT_GROUP = "fuse_index.plugins"
"""The entry-point group under which distributions announce their plugins."""
OWN_DISTRIBUTION = "fuse-index"
"""Its plugins come first, so that nobody can take the names of what is built in."""
HOOK_NAMES = ("fuse_index_kinds", "fuse_index_functions", "fuse_index_events")


class PluginRejected(Exception):
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

    @property
    def built_in(self) -> bool:
        """Whether it came with this package, however it was handed over."""
        return self.distribution == OWN_DISTRIBUTION or self.reference in _own_references()

    @property
    def hooks(self) -> tuple[Any, ...]:
        """Its functions of each hook, or None: others after the module was loaded again."""
        return tuple(getattr(self.implementation, name, None) for name in HOOK_NAMES)

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


_TRIED: list[tuple[str, str, str]] = []
"""Plugins of this process that are not installed, as ``installed_plugins`` gives those that are."""


def try_plugin(file: Path) -> None:
    """Have the plugin of one file beside those that are installed, in this process and those that it starts.

    Raises InputError for a file that is not there, or whose name no module can have.
    """
    if not file.is_file():
        raise InputError(f"{file} is no file: give the Python file of a plugin")
    if file.suffix != ".py" or not file.stem.isidentifier():
        raise InputError(f"{file} cannot be imported: give it the name of a module, such as my_kind.py")
    sys.path.insert(0, str(file.resolve().parent))
    _TRIED.append((file.stem, file.name, ""))


@cache
def _own_references() -> frozenset[str]:
    return frozenset(
        reference for reference, distribution, _ in installed_plugins() if distribution == OWN_DISTRIBUTION
    )


def installed_plugins() -> list[tuple[str, str, str]]:
    """Each plugin as (reference, distribution, version), ours first.

    Read anew after a folder of ``sys.path`` has changed, as it does when something is installed there or removed: to
    read what all distributions say takes 8 to 30 ms, and whoever opens a table asks. A folder that changed just now
    may change again within the same tick of its clock, so nothing is remembered of it.
    """
    folders = tuple(_folder_state(path) for path in sys.path)
    is_fresh = any(abs(time.time_ns() - changed) < _CLOCK_TICK_NS for _, changed, *_ in folders)
    read = _read_entry_points.__wrapped__ if is_fresh else _read_entry_points
    return [*read(folders, tuple(sys.meta_path)), *_TRIED]


_CLOCK_TICK_NS = 3_000_000_000
"""The coarsest clock of a file system in use has ticks of two seconds."""


def _folder_state(path: str) -> tuple[str, int, int, int]:
    """What changes with a folder of ``sys.path``: when it was last changed, and which folder is there."""
    try:
        found = os.stat(path or os.curdir)
    except OSError:
        return path, 0, 0, 0
    return path, found.st_mtime_ns, found.st_ino, found.st_dev


@lru_cache(maxsize=1)
def _read_entry_points(folders: tuple[Any, ...], finders: tuple[Any, ...]) -> tuple[tuple[str, str, str], ...]:
    """Read what is installed in these folders, by these finders: what Python looks at anyway, so both are only a key.

    A distribution may be found twice on ``sys.path``.
    """
    found = {
        (entry.value, entry.dist.name, entry.dist.version) if entry.dist else (entry.value, entry.value, "")
        for entry in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
    }
    return tuple(sorted(found, key=lambda plugin: (plugin[1] != OWN_DISTRIBUTION, plugin[1], plugin[0])))


def hook_results(plugin: Plugin) -> tuple[list[Any], list[Any]]:
    """What a plugin's hooks give. A manager of its own, so that one misspelt hook cannot spoil the other plugins."""
    if isinstance(plugin.implementation, type) and issubclass(plugin.implementation, IndexKind):
        return [plugin.implementation], []
    manager = pluggy.PluginManager("fuse_index")
    manager.add_hookspecs(Hooks)
    manager.register(plugin.implementation, plugin.source)
    manager.check_pending()
    if not manager.get_hookcallers(plugin.implementation):
        raise PluginRejected(
            f"it implements none of {', '.join(HOOK_NAMES)}: decorate one with fuse_index.plugin.hookimpl"
        )
    kinds, functions = manager.hook.fuse_index_kinds(), manager.hook.fuse_index_functions()
    return [kind for some in kinds for kind in some], [function for some in functions for function in some]


def instantiate_kind(kind: Any, plugin: Plugin) -> IndexKind:
    """An instance of the kind. Raises PluginRejected if it does not keep to the interface."""
    if not (isinstance(kind, type) and issubclass(kind, IndexKind)):
        raise PluginRejected(
            f"the plugin of {plugin.source} brings {kind!r} as an index kind: fuse_index_kinds() "
            f"gives subclasses of IndexKind"
        )
    name = getattr(kind, "name", None)
    if not isinstance(name, str) or not name:
        raise PluginRejected(f"index kind {kind.__qualname__} of {plugin.source} is not used: it has no name")
    about = f"index kind {name!r} of {plugin.source} is not used:"
    if kind.api not in APIS:
        older = kind.api < API if isinstance(kind.api, int) else True
        advice = f"upgrade {plugin.distribution}" if older else f"upgrade {OWN_DISTRIBUTION}"
        raise PluginRejected(
            f"{about} it is written for version {kind.api} of the plugin interface, and this is {API}; {advice}"
        )
    if not isinstance(kind.reads, Set) or not all(type(version) is int for version in (kind.writes, *kind.reads)):
        raise PluginRejected(
            f"{about} payload versions are whole numbers, and it writes {kind.writes!r} and reads {kind.reads!r}"
        )
    if kind.writes not in kind.reads:
        raise PluginRejected(f"{about} it writes payload version {kind.writes} and reads only {sorted(kind.reads)}")
    if not (is_dataclass(kind.Options) and kind.Options.__dataclass_params__.frozen):  # type: ignore[attr-defined]
        raise PluginRejected(f"{about} its Options are no frozen dataclass")
    if bare := [option.name for option in fields(kind.Options) if not _has_default(option)]:
        raise PluginRejected(f"{about} its option {bare[0]!r} has no default")
    return kind()


def _has_default(option: Field[Any]) -> bool:
    return option.default is not MISSING or option.default_factory is not MISSING
