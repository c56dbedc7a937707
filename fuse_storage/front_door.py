"""Front doors: packages whose names are imported when somebody asks for them, each from the module that has it.

A package names what it promises once, by imports under ``if TYPE_CHECKING:``, as type checkers and readers know them.
Whoever asks for few names so loads few modules: Spark starts Python workers by the dozen, and each pays for its own.
"""

from __future__ import annotations

import ast
import difflib
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, others: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package that imports its names under ``if TYPE_CHECKING:`` alone.

    ``others``: what other libraries call it, and how it is done here.

    No such name may be that of a module right below the package.
    """
    sources: dict[str, str] = {}

    def load(name: str) -> Any:
        if not sources:
            sources.update(_imported_names(package))
        if name not in sources:
            module = sys.modules[package]  # by which Python names near ones
            meant = f": {others[name]}" if others and name in others else ""
            raise missing_name(f"module {package!r} has no attribute {name!r}{meant}", name, module)
        value = getattr(import_module(sources[name]), name)
        setattr(sys.modules[package], name, value)  # the next time nobody asks here
        return value

    def names() -> list[str]:
        loaded = vars(sys.modules[package])
        if "__all__" in loaded:
            return sorted({*loaded["__all__"], *(name for name in loaded if name.startswith("__"))})
        return sorted({*loaded, *_imported_names(package)})

    return load, names


def missing_names(others: Mapping[str, str]) -> Callable[[Any, str], Any]:
    """The ``__getattr__`` of a class that says what to do for names which other libraries have; ``others``: by name.

    >>> class Rows:
    ...     __getattr__ = missing_names({"collect": "say to_arrow()"})
    >>> Rows().collect
    Traceback (most recent call last):
    AttributeError: 'Rows' object has no attribute 'collect': say to_arrow()
    """

    def refuse(self: Any, name: str) -> Any:
        meant = f": {others[name]}" if name in others else ""
        raise missing_name(f"{type(self).__name__!r} object has no attribute {name!r}{meant}", name, self)

    return refuse


def missing_name(said: str, name: str, holder: Any) -> AttributeError:
    """The error of a name that something lacks: Python names a near one, and so do notebooks, without our frames."""
    error = AttributeError(said, name=name, obj=holder)

    def lines() -> list[str]:
        shown = import_module("fuse_storage.errors.traceback")  # above this, and needed by nobody before
        near = difflib.get_close_matches(name, [each for each in dir(holder) if not each.startswith("_")], 1)
        told: list[str] = shown.without_our_frames(error)
        is_told = ": " in said or "Did you mean" in told[-1]  # as Python does from 3.12 on
        return told if is_told or not near else [*told, f"Did you mean: {near[0]!r}?"]

    error._render_traceback_ = lines  # type: ignore[attr-defined]  # IPython asks for it
    return error


def _imported_names(package: str) -> dict[str, str]:
    """The modules that names of a package, be it in a zip file, are to be imported from, by name."""
    get_source = getattr(sys.modules[package].__loader__, "get_source", None)
    source = None if get_source is None else get_source(package)
    if source is None:
        raise ImportError(
            f"{package} is here without its source, which says what it has: install it with its .py files"
        )
    tree = ast.parse(source)
    return {
        alias.name: str(statement.module)
        for branch in tree.body
        if isinstance(branch, ast.If) and isinstance(branch.test, ast.Name) and branch.test.id == "TYPE_CHECKING"
        for statement in branch.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
