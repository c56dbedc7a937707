"""The part of ``table.explain`` that tries indexes which are not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from fuse_index.table.accounts.sample import SampledTable
from fuse_index.table.accounts.what_if import suggest_for, try_index
from fuse_index.table.inspection.card import TablePart


class TriedIndexes(TablePart):
    """Indexes that are not there, built in memory on a sample of blocks."""

    _table: SampledTable

    def what_if(
        self, kind: str, columns: Sequence[str], options: Mapping[str, Any] | None = None, where: Sequence[str] = ()
    ) -> pa.Table:
        """Tell what an index that is not there would leave out: it is built in memory, on a sample of blocks.

        The sample is of blocks that the conditions read today, so that what is there counts.

        Args:
            kind: As for ``create_index``.
            columns: As for ``create_index``.
            options: Of the kind.
            where: Conditions; by default those of late of this table in this process (``table.inspect.plans()``).

        Returns:
            A row for each condition: ``where``, ``blocks_now`` and, estimated, ``blocks_then``, that are read; of the
            sample, ``sampled`` blocks and those ``left``; ``reason`` and ``detail`` of the index's best vote; and the
            same in each row, ``bytes`` and ``seconds`` of processor time that it would take of all blocks.

        Raises:
            DefinitionError: There is no such kind, or it refuses the columns or options.
            WhereError: A condition is none.
            InputError: No condition is given or known.
            BuildError: The kind failed on every block.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://what-if", "id BIGINT", properties={"block_rows": 10})
            >>> snapshot = table.append([{"id": number * 7 % 100} for number in range(100)])
            >>> told = table.explain.what_if("bloom", ["id"], where=["id = 3"])
            >>> told.select(["blocks_now", "blocks_then"]).to_pylist()
            [{'blocks_now': 4, 'blocks_then': 1}]
        """
        return try_index(self._table, kind, columns, options or {}, where)

    def suggest(self, queries: Sequence[str] = ()) -> pa.Table:
        """Rank indexes by what they would leave out for queries: each is built in memory, on a sample of blocks.

        All kinds that are installed are tried, with their default options, on what conditions compare.

        Args:
            queries: Conditions; by default those of late of this table in this process (``table.inspect.plans()``).

        Returns:
            A row for each index, the best first: ``kind``, ``columns``, ``source`` (who brings the kind), ``queries``
            (how many conditions it could be asked about), ``blocks_now`` and ``blocks_then`` of these together,
            ``bytes`` and ``seconds`` as for ``what_if``, and ``problem`` of a kind that refused.

        Raises:
            WhereError: A condition is none.
            InputError: No condition is given or known.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://suggest", "id BIGINT", properties={"block_rows": 10})
            >>> snapshot = table.append([{"id": number * 7 % 100} for number in range(100)])
            >>> table.explain.suggest(["id = 3"]).select(["kind", "columns", "blocks_then"]).to_pylist()[0]
            {'kind': 'bloom', 'columns': ['id'], 'blocks_then': 1}
        """
        return suggest_for(self._table, queries)
