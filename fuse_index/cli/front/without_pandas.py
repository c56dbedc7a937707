"""Pandas is left unimported in the command line until somebody imports it.

PyArrow imports pandas, where it is installed, with the first list that it converts, to ask whether the list is one of
pandas': a quarter of a second of processor time, and no command prints a DataFrame.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


def put_off_pandas() -> None:
    """Let PyArrow do without pandas until a plugin imports it: from then on PyArrow knows its objects as ever."""
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder = _PandasFinder()
    sys.meta_path.insert(0, finder)
    pa.array([None])
    finder.hides = False


class _PandasFinder:
    """Finds no pandas while PyArrow looks for it; whoever asks later gets it, and PyArrow then looks again."""

    hides = True

    def find_spec(
        self, fullname: str, path: Sequence[str | bytes] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Pandas' own place, once it is no longer hidden."""
        if fullname != "pandas":
            return None
        if self.hides:
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
        sys.meta_path.remove(self)
        if (spec := find_spec("pandas")) is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_tell(module: ModuleType) -> None:
                import pyarrow as pa

                execute(module)
                _ = pa.lib._pandas_api.pd  # noqa: SLF001  # PyArrow looks again when asked for it

            spec.loader.exec_module = execute_and_tell  # type: ignore[method-assign]
        return spec
