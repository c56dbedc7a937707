"""Building sidecars: what the storage room calls while it writes blocks, and when it is given old blocks to index.

A kind that fails on a block leaves that block unindexed, with a warning that names it; the rows are written all the
same. Only ``strict`` makes a failure an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.definitions import Definition
from fuse_index.errors import IndexFault
from fuse_index.host import Host, PluginWarning
from fuse_index.oracle import evaluate_term
from fuse_index.plugin import Function, IndexKind, RollsUp
from fuse_index.predicate import Column, Context
from fuse_index.questions import columns_of
from fuse_index.reasons import Reason
from fuse_storage import Pack, Sidecar


@dataclass(frozen=True)
class Builder:
    """One index, as the storage room sees it: a key, the columns that it needs, and sidecars for rows. Picklable."""

    definition: Definition
    kind: IndexKind
    functions: tuple[Function, ...] = ()
    strict: bool = False

    @classmethod
    def of(cls, definition: Definition, host: Host, strict: bool = False) -> Builder:
        """A builder with those of the host's functions that the definition's terms may call."""
        plain = all(isinstance(given.term, Column) for given in definition.inputs)
        return cls(definition, host.kinds[definition.kind], () if plain else tuple(host.functions.values()), strict)

    @property
    def key(self) -> str:
        return self.definition.key

    @property
    def version(self) -> int:
        return self.kind.writes

    @property
    def columns(self) -> list[str]:
        """The top-level columns that the inputs are computed from."""
        return list(dict.fromkeys(column.path[0] for given in self.definition.inputs for column in columns_of(given.term)))

    @property
    def summary_type(self) -> pa.DataType:
        return self.kind.summary_type(self.definition.inputs, self.definition.options)

    @property
    def roll_up_type(self) -> pa.DataType:
        return self.summary_type if isinstance(self.kind, RollsUp) else pa.null()

    def build(self, rows: pa.Table, zones: npt.NDArray[np.int64]) -> Sidecar | None:
        """The sidecar of one block, None where the kind fails. ``rows`` has at least ``columns``."""
        try:
            sidecar = self.kind.build(self.inputs(rows), zones, self.definition.options)
            return self._checked(sidecar)
        except Exception as error:
            self._failed("build", f"a block of {rows.num_rows} rows", error)
            return None

    def inputs(self, rows: pa.Table) -> pa.Table:
        """One column per input, named by its number."""
        context = self.definition.context or Context()
        functions = {function.name: function for function in self.functions}
        columns = [evaluate_term(given.term, rows, context, functions) for given in self.definition.inputs]
        return pa.table(columns, names=[str(number) for number in range(len(columns))])

    def pack(self, sidecars: Sequence[Sidecar]) -> Pack:
        """The layout of a pack; where the kind fails to lay one out, nothing of it is indexed."""
        try:
            pack = self.kind.pack(sidecars)
            if len(pack.summaries) != len(sidecars) or len(pack.spans) != len(sidecars):
                raise ValueError(f"pack() gave {len(pack.summaries)} summaries and {len(pack.spans)} spans for {len(sidecars)} sidecars")
            return pack
        except Exception as error:
            self._failed("pack", f"{len(sidecars)} blocks", error)
            return Pack(b"", 1, [None] * len(sidecars), [None] * len(sidecars))

    def roll_up(self, summaries: pa.Array) -> pa.Scalar | None:
        if not isinstance(self.kind, RollsUp):
            return None
        try:
            return self.kind.roll_up(summaries)
        except Exception as error:
            self._failed("roll_up", f"{len(summaries)} blocks", error)
            return None

    def _checked(self, sidecar: object) -> Sidecar:
        if not isinstance(sidecar, Sidecar):
            raise TypeError(f"build() gave {type(sidecar).__name__}, not a Sidecar")
        if sidecar.payload is not None and not isinstance(sidecar.payload, bytes):
            raise TypeError(f"build() gave a payload of {type(sidecar.payload).__name__}, not bytes")
        pa.array([sidecar.summary], self.summary_type)  # raises for a summary of another type
        return sidecar

    def _failed(self, verb: str, what: str, error: Exception) -> None:
        name, kind = self.definition.name, self.kind.name
        if self.strict:
            raise IndexFault(name, kind, Reason.PLUGIN_ERROR, f"{verb}() on {what}: {error}") from error
        warnings.warn(
            f"index {name!r} of kind {kind!r} failed in {verb}() on {what}, which stays unindexed: {type(error).__name__}: {error}",
            PluginWarning,
            stacklevel=3,
        )
