"""Building sidecars: what the storage room calls while it writes blocks, and when it is given old blocks to index.

A kind that fails on a block leaves that block unindexed, with a warning that names it; the rows are written all the
same. Only ``strict`` makes a failure an error.
"""

from __future__ import annotations

import pickle
import socket
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.errors import IndexFault
from fuse_index.expressions.evaluate import evaluate, evaluate_term
from fuse_index.expressions.function import Function
from fuse_index.expressions.traversal import column_names, predicate_terms
from fuse_index.indexes.definition import IndexDefinition, UnavailableIndex, load_definitions
from fuse_index.indexes.interface import Answers, IndexKind, RollsUp
from fuse_index.indexes.registry import Host, PluginWarning
from fuse_index.indexes.sandbox import describe_error
from fuse_index.predicate import Column, Context
from fuse_index.reasons import Reason
from fuse_index.signals.build_failures import BUILD_FAILURES
from fuse_index.signals.events import IndexFailed
from fuse_index.signals.listeners import emit
from fuse_storage import Pack, Sidecar, Snapshot


@dataclass(frozen=True)
class IndexBuilder:
    """One index, as the storage room sees it: a key, the columns that it needs, and sidecars for rows. Picklable.

    ``version``: the payload version that the kind wrote where the builder was made. Where another version of the
    kind is installed, nothing is indexed. ``source``: the distribution that brought the kind.
    """

    definition: IndexDefinition
    kind: IndexKind
    version: int
    functions: tuple[Function, ...] = ()
    source: str = ""
    strict: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Crosses to a process that lacks the kind's module, too: what arrives there builds nothing, and says why."""
        fields = (self.definition, self.kind, self.version, self.functions, self.source, self.strict)
        if type(self.kind).__module__ == "__main__":  # goes along by value
            return IndexBuilder, fields
        try:
            about = (self.definition.name, self.kind.name, self.source, self.strict)
            missing = MissingBuilder(self.key, self.version, self.columns, self.summary_type, self.roll_up_type, *about)
            return _unpickle_builder, (pickle.dumps(fields), missing)
        except Exception:  # so does what has no name to be found by
            return IndexBuilder, fields

    @classmethod
    def for_definition(cls, definition: IndexDefinition, host: Host, strict: bool = False) -> IndexBuilder:
        """A builder with those of the host's functions that the definition's terms may call."""
        kind = definition.kind_in(host)
        source = host.source_of(kind).source
        plain = definition.where is None and all(isinstance(given.term, Column) for given in definition.inputs)
        return cls(definition, kind, kind.writes, () if plain else tuple(host.functions.values()), source, strict)

    @property
    def key(self) -> str:
        return self.definition.key

    @property
    def columns(self) -> list[str]:
        """The top-level columns that the inputs are computed from."""
        terms = [*(given.term for given in self.definition.inputs), *predicate_terms(self.definition.where)]
        return column_names(terms)

    @property
    def summary_type(self) -> pa.DataType:
        return self.kind.summary_type(self.definition.inputs, self.definition.options)

    @property
    def roll_up_type(self) -> pa.DataType:
        return self.summary_type if isinstance(self.kind, RollsUp) else pa.null()

    def build(self, rows: pa.Table, zones: npt.NDArray[np.int64], block: str = "") -> Sidecar | None:
        """The sidecar of one block; None where the kind fails.

        ``rows`` has at least ``columns``; ``zones``: int64, shape (number of zones + 1,), zone z is
        ``rows[zones[z]:zones[z + 1]]``; ``block``: its name, for people.
        """
        try:
            if self.kind.writes != self.version:
                raise ValueError(
                    f"it writes payload version {self.kind.writes} here, not {self.version}: "
                    f"install one version everywhere"
                )
            if self.definition.where is not None:
                rows = rows.filter(evaluate(self.definition.where, rows, self._context, self._functions))
                zones = np.array([0, rows.num_rows], np.int64)
            return self._check_sidecar(self.kind.build(self.input_values(rows), zones, self.definition.options))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a plugin may raise anything, SystemExit included
            self._report_failure("build", block or f"a block of {rows.num_rows} rows", error)
            return None

    def input_values(self, rows: pa.Table) -> pa.Table:
        """One column per input, named by its number. Raises OpaqueError, or what a function of a plugin raises.

        An index that answers stands for Spark's own reading of every row, so that it has no input on which Spark
        raises.
        """
        strict = isinstance(self.kind, Answers)
        columns = [
            evaluate_term(given.term, rows, self._context, self._functions, strict) for given in self.definition.inputs
        ]
        return pa.table(columns, names=[str(number) for number in range(len(columns))])

    @property
    def _context(self) -> Context:
        return self.definition.context or Context()

    @property
    def _functions(self) -> dict[str, Function]:
        return {function.name: function for function in self.functions}

    def pack(self, sidecars: Sequence[Sidecar]) -> Pack | None:
        """The layout of a pack; None where the kind fails to make one: then none of these blocks is indexed."""
        try:
            return self._check_pack(self.kind.pack(sidecars), len(sidecars))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a plugin may raise anything, SystemExit included
            self._report_failure("pack", f"{len(sidecars)} blocks", error)
            return None

    def roll_up(self, summaries: pa.Array) -> pa.Scalar | None:
        """What the kind knows of a whole segment; None where it cannot say, knows nothing of some block, or fails."""
        if not isinstance(self.kind, RollsUp) or summaries.null_count or self.kind.writes != self.version:
            return None
        try:
            found = self.kind.roll_up(summaries)
            return None if found is None else pa.scalar(_to_python(found), self.roll_up_type)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a plugin may raise anything, SystemExit included
            self._report_failure("roll_up", f"a segment of {len(summaries)} blocks", error)
            return None

    def _check_sidecar(self, sidecar: object) -> Sidecar:
        if not isinstance(sidecar, Sidecar):
            raise TypeError(f"build() gave {type(sidecar).__name__}, not a Sidecar")
        if sidecar.payload is not None and not isinstance(sidecar.payload, bytes):
            raise TypeError(f"build() gave a payload of {type(sidecar.payload).__name__}, not bytes")
        pa.scalar(_to_python(sidecar.summary), self.summary_type)  # raises for a summary of another type
        return sidecar

    def _check_pack(self, pack: object, count: int) -> Pack:
        if not isinstance(pack, Pack):
            raise TypeError(f"pack() gave {type(pack).__name__}, not a Pack")
        if len(pack.summaries) != count or len(pack.spans) != count:
            raise ValueError(
                f"pack() gave {len(pack.summaries)} summaries and {len(pack.spans)} spans for {count} sidecars"
            )
        if not isinstance(pack.data, bytes) or not isinstance(pack.chunk, int) or pack.chunk < 1:
            raise TypeError(f"pack() gave {type(pack.data).__name__} in chunks of {pack.chunk!r}, not bytes in chunks")
        if wrong := [span for span in pack.spans if span is not None and not _is_span(span)]:
            raise TypeError(f"pack() gave {wrong[0]!r} as a span, not (offset, length)")
        if beyond := [
            span for span in pack.spans if span is not None and not 0 <= span[0] <= span[0] + span[1] <= len(pack.data)
        ]:
            raise ValueError(f"pack() put a payload at {beyond[0]}, outside of its {len(pack.data)} bytes")
        for summary in pack.summaries:
            pa.scalar(_to_python(summary), self.summary_type)
        return pack

    def _report_failure(self, verb: str, what: str, error: BaseException) -> None:
        name, kind = self.definition.name, self.kind.name
        told = describe_error(error)
        failure = f"{verb}() on {what}: {told}"
        BUILD_FAILURES.note(self.key, failure)
        emit(lambda: IndexFailed(table="", index=name, kind=kind, reason=Reason.PLUGIN_ERROR.value, detail=failure))
        if self.strict:
            raise IndexFault(name, kind, Reason.PLUGIN_ERROR, failure) from error
        effect = "which is not rolled up" if verb == "roll_up" else "unindexed for now"
        by = f"index {name!r} (kind {kind!r} of {self.source})"
        warnings.warn(f"{by} failed in {verb}() on {what}, {effect}: {told}", PluginWarning, stacklevel=3)


@dataclass(frozen=True)
class MissingBuilder:
    """What an ``IndexBuilder`` is where its kind is not installed: it indexes nothing, and says why.

    ``source``: the distribution that brings the kind; ``problem``: what its import said.
    """

    key: str
    version: int
    columns: Sequence[str]
    summary_type: pa.DataType
    roll_up_type: pa.DataType
    index: str
    kind: str
    source: str
    strict: bool = False
    problem: str = ""

    def __str__(self) -> str:
        lack = f"its kind {self.kind!r} cannot be loaded on {socket.gethostname()} ({self.problem})"
        return f"index {self.index!r} is not built: {lack}; install {self.source} on every executor, and refresh it"

    def build(self, rows: pa.Table, zones: npt.NDArray[np.int64], block: str = "") -> Sidecar | None:
        """None, with a warning; ``zones``: int64, shape (zones + 1,). Raises IndexFault where it is strict."""
        if self.strict:
            raise IndexFault(self.index, self.kind, Reason.PLUGIN_MISSING, str(self))
        warnings.warn(str(self), PluginWarning, stacklevel=2)
        return None

    def pack(self, sidecars: Sequence[Sidecar]) -> Pack | None:
        return None

    def roll_up(self, summaries: pa.Array) -> pa.Scalar | None:
        return None


def _unpickle_builder(data: bytes, missing: MissingBuilder) -> IndexBuilder | MissingBuilder:
    try:
        return IndexBuilder(*pickle.loads(data))
    except (ImportError, AttributeError) as error:
        return replace(missing, problem=describe_error(error))


@contextmanager
def recorded_warnings() -> Iterator[list[str]]:
    """What plugins are warned of within, each once: in a task, where nobody would see it, to be told by the driver."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield texts
        finally:
            found = (str(warning.message) for warning in caught if issubclass(warning.category, PluginWarning))
            texts += dict.fromkeys(found)


def unavailable_indexes(snapshot: Snapshot, host: Host) -> tuple[str, ...]:
    """A sentence for each index that cannot be built here as rows are written."""
    return tuple(
        f"index {found.name!r} is not built: {found.refusal.detail or found.refusal.reason}"
        for found in load_definitions(snapshot, host)
        if isinstance(found, UnavailableIndex)
    )


def warn_of_unindexed(snapshot: Snapshot, reasons: Iterable[str] = ()) -> None:
    """Warn of each index that does not know blocks that the snapshot's commit added, with the reasons of tasks."""
    told = "".join(f"; {reason}" for reason in dict.fromkeys(reasons))
    for name, count in snapshot.summary.get("unindexed_blocks", {}).items():
        text = f"index {name!r} does not know {count} of the blocks that were written: refresh it"
        warnings.warn(f"{text}{told}", PluginWarning, stacklevel=2)


def index_builders(snapshot: Snapshot, host: Host, strict: bool = False) -> tuple[IndexBuilder, ...]:
    """What indexes rows as they are written: a builder for each index that can be built here, one for each key."""
    usable = {found.key: found for found in load_definitions(snapshot, host) if isinstance(found, IndexDefinition)}
    return tuple(IndexBuilder.for_definition(definition, host, strict) for definition in usable.values())


def _is_span(span: object) -> bool:
    return isinstance(span, tuple) and len(span) == 2 and all(isinstance(part, int | np.integer) for part in span)


def _to_python(value: Any) -> Any:
    return value.as_py() if isinstance(value, pa.Scalar) else value
