"""The clauses of a merge: what becomes of rows that match and of those that do not, and on which conditions.

A condition names columns as ``source.x`` and ``target.x``. Of several clauses, the first whose condition is true on a
row counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.errors import InputError, OpaqueError
from fuse_index.expressions.traversal import columns_of, predicate_leaves, predicate_terms, substitute
from fuse_index.indexes.engine import Engine
from fuse_index.operations.row_edits import RowCondition
from fuse_index.predicate import Column, Opaque, Predicate
from fuse_index.sql.parse import parse_predicate
from fuse_storage import Schema

_Mask = npt.NDArray[np.bool_]
_RowNumbers = npt.NDArray[np.int64]
MergeClauseSpec = str | Mapping[str, str | None] | None
"""An action; or by action the condition on which it is taken, None for always; or None for nothing."""

SOURCE, TARGET, _ROW_COUNT_COLUMN = "source", "target", "\0row"


@dataclass(frozen=True)
class MergeClause:
    """``predicate`` is on columns of two structs, ``source`` and ``target``; without one the action is always taken."""

    action: str
    predicate: Predicate | None
    engine: Engine

    @property
    def columns(self) -> set[Column]:
        return {column for term in predicate_terms(self.predicate) for column in columns_of(term)}

    def matching_mask(self, rows: pa.Table) -> _Mask:
        return np.asarray(RowCondition(self.predicate, self.engine).matching_mask(rows), np.bool_)


@dataclass(frozen=True)
class MergeClauses:
    """For rows that match, for those of the source that match none, and for those of the table that match none."""

    matched: tuple[MergeClause, ...]
    not_matched: tuple[MergeClause, ...]
    not_matched_by_source: tuple[MergeClause, ...]

    @staticmethod
    def parse(
        matched: MergeClauseSpec,
        not_matched: MergeClauseSpec,
        not_matched_by_source: MergeClauseSpec,
        source: Schema,
        target: Schema,
        engine: Engine,
    ) -> MergeClauses:
        """Raises InputError, WhereError, and OpaqueError for what only Spark can evaluate."""
        whole = {SOURCE: source, TARGET: target}

        def read(name: str, given: MergeClauseSpec, known: Sequence[str], *sides: str) -> tuple[MergeClause, ...]:
            schema = Schema.create(pa.schema([(side, pa.struct(list(whole[side].arrow))) for side in sides]))
            texts = _validate_spec(name, given, known)
            return tuple(
                MergeClause(action, _parse_condition(text, schema, engine), engine) for action, text in texts.items()
            )

        return MergeClauses(
            read("matched", matched, ("update", "delete"), SOURCE, TARGET),
            read("not_matched", not_matched, ("insert",), SOURCE),
            read("not_matched_by_source", not_matched_by_source, ("delete",), TARGET),
        )

    @property
    def source_columns(self) -> set[str]:
        """The columns of the source that conditions look at."""
        found = [column for clause in (*self.matched, *self.not_matched) for column in clause.columns]
        return {column.path[1] for column in found if column.path[0] == SOURCE}

    @property
    def unmatched_target_predicates(self) -> list[Predicate] | None:
        """On the table's own columns: what may become of rows that match none of the source's; None: anything."""
        found: list[Predicate] = []
        for clause in self.not_matched_by_source:
            if clause.predicate is None:
                return None
            found.append(
                substitute(
                    clause.predicate, {column: Column(column.path[1:], column.type) for column in clause.columns}
                )
            )
        return found


def action_masks(
    clauses: Sequence[MergeClause], row_count: int, sides: Mapping[str, tuple[pa.Table, _RowNumbers]]
) -> dict[str, _Mask]:
    """For each action, on which of so many rows it is taken. ``sides``: rows, and which of them these are on that
    side.
    """
    left, found = np.ones(row_count, np.bool_), {}
    needed = {column.path[:2] for clause in clauses for column in clause.columns}
    columns: dict[str, Any] = {_ROW_COUNT_COLUMN: pa.nulls(row_count)}
    for side, (rows, places) in sides.items():
        if names := sorted(name for where, name in needed if where == side):
            chosen = rows.select(names).take(pa.array(places)).combine_chunks()
            columns[side] = (
                pa.StructArray.from_arrays([column.chunk(0) for column in chosen.columns], names) if row_count else []
            )
    for clause in clauses if row_count else ():
        found[clause.action] = left & clause.matching_mask(pa.table(columns))
        left &= ~found[clause.action]
    return found


def _validate_spec(name: str, given: MergeClauseSpec, known: Sequence[str]) -> Mapping[str, str | None]:
    found = {} if given is None else {given: None} if isinstance(given, str) else given
    if not isinstance(found, Mapping) or not set(found) <= set(known):
        known_ = " or ".join(map(repr, known))
        raise InputError(
            f"{name}={given!r}: give {known_}, a dict that says on which condition, such as "
            f"{{{known[0]!r}: '…'}}, or None"
        )
    for action, text in found.items():
        if text is not None and not isinstance(text, str):
            raise InputError(
                f"{name}={given!r}: the condition of {action!r} is Spark SQL text on source.… and target.…, or None"
            )
    return found


def _parse_condition(text: str | None, schema: Schema, engine: Engine) -> Predicate | None:
    if text is None:
        return None
    found = parse_predicate(text, schema, engine.context, engine.functions)
    for leaf in predicate_leaves(found):
        if isinstance(leaf, Opaque):
            raise OpaqueError(f"{text!r}: only Spark can evaluate {leaf.sql}")
    return found
