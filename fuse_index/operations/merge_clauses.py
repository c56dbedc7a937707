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

from fuse_index.errors import InputError
from fuse_index.expressions.evaluable import check_evaluable
from fuse_index.expressions.traversal import columns_of, predicate_terms, substitute
from fuse_index.indexes.engine import Engine
from fuse_index.operations.rewrite_job import RowNumbers
from fuse_index.operations.row_edits import RowCondition
from fuse_index.predicate import Column, Predicate, Term
from fuse_index.sql.parse import parse_predicate
from fuse_storage import Schema, unpack_mask

_Mask = npt.NDArray[np.bool_]
MergeClauseSpec = str | Mapping[str, str | None] | None
"""An action; or by action the condition on which it is taken, None for always; or None for nothing."""

SOURCE, TARGET, _ROW_COUNT_COLUMN = "source", "target", "\0row"


@dataclass(frozen=True)
class MergeClause:
    """An action and its condition, on columns of two structs, ``source`` and ``target``; None if it is always taken."""

    action: str
    predicate: Predicate | None
    engine: Engine

    @property
    def columns(self) -> set[Column]:
        return {column for term in predicate_terms(self.predicate) for column in columns_of(term)}

    def matching_mask(self, rows: pa.Table) -> _Mask:
        """Mark rows of two structs on which the condition is true: booleans, shape (rows,)."""
        return unpack_mask(RowCondition(self.predicate, self.engine).matching_mask(rows))


@dataclass(frozen=True)
class MergeClauses:
    """Clauses for rows that match, for rows of the source that match none, and for such rows of the table."""

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
        """Read the clauses that a user gave. ``source`` and ``target``: the columns of either side.

        Raises InputError, WhereError, and OpaqueError for what only Spark can evaluate.
        """
        schemas = {SOURCE: source, TARGET: target}

        def read(name: str, spec: MergeClauseSpec, known: Sequence[str], *sides: str) -> tuple[MergeClause, ...]:
            schema = Schema.create(pa.schema([(side, pa.struct(list(schemas[side].arrow))) for side in sides]))
            texts = _validate_spec(name, spec, known)
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
        columns = [column for clause in (*self.matched, *self.not_matched) for column in clause.columns]
        return {column.path[1] for column in columns if column.path[0] == SOURCE}

    @property
    def unmatched_target_predicates(self) -> list[Predicate] | None:
        """Conditions, on the table's own columns, by which rows that match none of the source's are acted on.

        None if they are whatever they hold.
        """
        predicates: list[Predicate] = []
        for clause in self.not_matched_by_source:
            if clause.predicate is None:
                return None
            own_columns: dict[Term, Term] = {column: Column(column.path[1:], column.type) for column in clause.columns}
            predicates.append(substitute(clause.predicate, own_columns))
        return predicates


def action_masks(
    clauses: Sequence[MergeClause], row_count: int, sides: Mapping[str, tuple[pa.Table, RowNumbers]]
) -> dict[str, _Mask]:
    """Decide for each of so many rows, or pairs of rows, which action is taken: by action booleans.

    ``sides``: by ``SOURCE`` and ``TARGET``, a table and the numbers of its rows, int64, shape (row_count,), as that
    of the booleans. No row is in two masks.
    """
    undecided, masks = np.ones(row_count, np.bool_), {}
    conditioned_columns = {column.path[:2] for clause in clauses for column in clause.columns}
    structs: dict[str, Any] = {_ROW_COUNT_COLUMN: pa.nulls(row_count)}
    for side, (rows, row_numbers) in sides.items():
        if names := sorted(name for owner, name in conditioned_columns if owner == side):
            chosen = rows.select(names).take(pa.array(row_numbers)).combine_chunks()
            structs[side] = (
                pa.StructArray.from_arrays([column.chunk(0) for column in chosen.columns], names) if row_count else []
            )
    for clause in clauses if row_count else ():
        masks[clause.action] = undecided & clause.matching_mask(pa.table(structs))
        undecided &= ~masks[clause.action]
    return masks


def _validate_spec(name: str, spec: MergeClauseSpec, known: Sequence[str]) -> Mapping[str, str | None]:
    """The condition of each action. Raises InputError."""
    conditions = {} if spec is None else {spec: None} if isinstance(spec, str) else spec
    if not isinstance(conditions, Mapping) or not set(conditions) <= set(known):
        actions = " or ".join(map(repr, known))
        raise InputError(
            f"{name}={spec!r}: give {actions}, a dict that says on which condition, such as "
            f"{{{known[0]!r}: '…'}}, or None"
        )
    for action, text in conditions.items():
        if text is not None and not isinstance(text, str):
            raise InputError(
                f"{name}={spec!r}: the condition of {action!r} is Spark SQL text on source.… and target.…, or None"
            )
    return conditions


def _parse_condition(text: str | None, schema: Schema, engine: Engine) -> Predicate | None:
    if text is None:
        return None
    predicate = parse_predicate(text, schema, engine.context, engine.functions)
    check_evaluable(predicate, engine.context, engine.functions)
    return predicate
