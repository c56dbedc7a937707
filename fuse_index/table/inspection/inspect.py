"""``table.inspect``: what there is to see of a table, for those who operate it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from fuse_index.clustering.report import ClusteringReport, measure_clustering, resolve_cluster_key
from fuse_index.operations.advise import suggest_indexes
from fuse_index.table.arguments import check_public_methods
from fuse_index.table.indexes import find_index
from fuse_index.table.inspection.blocks import blocks_table, partitions_table, segments_table
from fuse_index.table.inspection.columns import columns_table, statistics_table
from fuse_index.table.inspection.commits import refs_table, snapshots_table
from fuse_index.table.inspection.describe_indexes import describe_index, describe_indexes
from fuse_index.table.inspection.upkeep import InspectUpkeep


@check_public_methods
class Inspect(InspectUpkeep):
    """Views of a table's metadata: ``table.inspect``. No row is read, and nothing is written.

    All views are of the snapshot that the table reads. The same views are ``fuse-index show`` on the command line,
    and tables of Spark's catalogue, such as ``db.t.blocks``.
    """

    def snapshots(self, limit: int | None = None) -> pa.Table:
        """List the commits of this branch up to this snapshot, newest first, with what the table was then.

        Args:
            limit: At most so many; by default all.

        Returns:
            A row for each commit: ``snapshot``, ``sequence``, ``timestamp``, ``operation``, ``parent``, ``rows``,
            ``blocks``, ``segments``, ``bytes`` (of the blocks' files), ``schema``, ``cluster_by``, ``indexes`` and
            ``summary`` (JSON). Of a snapshot that was vacuumed only the first four are known; the others are NULL.

        Raises:
            InputError: ``limit`` is below 0.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://inspect-snapshots", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}])
            >>> table.inspect.snapshots().select(["operation", "rows"]).to_pylist()
            [{'operation': 'append', 'rows': 1}, {'operation': 'create', 'rows': 0}]
        """
        return snapshots_table(self._table.stored, limit)

    def refs(self) -> pa.Table:
        """List all branches and tags: what they name, since when, until when, and which clone needs it.

        Returns:
            A row for each: ``name``, ``kind`` (``branch`` or ``tag``), ``snapshot``, ``timestamp``, ``expires`` (NULL
            for never) and ``holder`` (the clone that a tag is kept for).

        Raises:
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://inspect-refs", "id BIGINT")
            >>> tag = table.tag("before")
            >>> table.inspect.refs().select(["name", "kind"]).to_pylist()
            [{'name': 'main', 'kind': 'branch'}, {'name': 'before', 'kind': 'tag'}]
        """
        return refs_table(self._table.stored)

    def left_out(self) -> Mapping[str, str]:
        """Tell which columns of its source an attached table lacks, since they cannot be read or voted on, and why.

        Returns:
            The reason by the name of each column; empty where there is none.

        Raises:
            StorageError: The store fails.

        Example:
            >>> fuse.create_table("memory://inspect-left-out", "id BIGINT").inspect.left_out()
            {}
        """
        return dict((self._table.snapshot.source or {}).get("left_out") or {})

    def segments(self) -> pa.Table:
        """List the segments: lists of up to about a thousand blocks.

        Returns:
            A row for each, in order: ``segment``, ``rows`` (those that count), ``blocks``, ``zones``, ``bytes`` (of its
            blocks' files) and ``added_by`` (the sequence of the commit).

        Raises:
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://inspect-segments", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}, {"id": 2}])
            >>> table.inspect.segments().select(["rows", "blocks", "zones"]).to_pylist()
            [{'rows': 2, 'blocks': 1, 'zones': 1}]
        """
        return segments_table(self._table.stored)

    def blocks(self) -> pa.Table:
        """List the blocks, which are Parquet files.

        Returns:
            A row for each, in order: ``block``, ``segment``, ``rows`` (those that count), ``zones``, ``bytes``,
            ``level`` (how often its rows were sorted by ``recluster``), ``schema`` (the id of the one it was written
            with), ``added_by`` (the sequence of the commit), ``indexes`` (names of those that cover it) and
            ``location`` (key of its file).

        Raises:
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://inspect-blocks", "id BIGINT", properties={"block_rows": 2})
            >>> snapshot = table.append([{"id": 1}, {"id": 2}, {"id": 3}])
            >>> table.inspect.blocks().select(["rows", "level", "indexes"]).to_pylist()
            [{'rows': 2, 'level': 0, 'indexes': []}, {'rows': 1, 'level': 0, 'indexes': []}]
        """
        return blocks_table(self._table.stored, self._table.host)

    def files(self) -> list[str]:
        """List the Parquet files of this snapshot, which another program may read by itself.

        They stay while no vacuum collects this snapshot. Columns have their physical names there, which are those of
        when they were made; and rows that were deleted since the file was written are still in it.

        Returns:
            Absolute paths or URLs, in the order of their blocks.

        Raises:
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://inspect-files", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}])
            >>> [file] = table.inspect.files()
            >>> file.startswith("memory://inspect-files/"), file.endswith(".parquet")
            (True, True)
        """
        return self._table.stored.block_files()[0]

    def partitions(self) -> pa.Table:
        """List the partitions, by their values.

        Returns:
            A row for each: ``partition`` (a struct of its values), ``blocks``, ``rows`` (those that count) and
            ``bytes``, sums over the blocks of the base: hot rows are of no partition before they are tiered. No row for
            a table without partitions.

        Raises:
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://partitions", "id BIGINT, land STRING", partition_by=["land"])
            >>> snapshot = table.append([{"id": 1, "land": "no"}, {"id": 2, "land": "de"}, {"id": 3, "land": "no"}])
            >>> table.inspect.partitions().select(["partition", "rows"]).to_pylist()
            [{'partition': {'land': 'de'}, 'rows': 1}, {'partition': {'land': 'no'}, 'rows': 2}]
        """
        return partitions_table(self._table.stored)

    def columns(self) -> pa.Table:
        """List columns and fields of structs, with what is known of each over all blocks.

        Returns:
            A row for each: ``name`` (with dots for fields of structs), ``id``, ``type``, ``nullable``, ``default``
            (what rows hold that come without the column), ``initial_default`` (what those hold that were written
            before the column was there), ``stored_as`` (its name in files), ``nulls``, ``nans``, ``min``, ``max``,
            ``bounds_exact`` (whether these are values, and not bounds that were cut) and ``bytes`` as stored.
            Statistics are NULL where they are unknown, as of a nested column as a whole.

        Raises:
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://inspect-columns", "id BIGINT, name STRING")
            >>> snapshot = table.append([{"id": 1, "name": "ann"}, {"id": 7}])
            >>> table.inspect.columns().select(["name", "nulls", "max"]).to_pylist()
            [{'name': 'id', 'nulls': 0, 'max': '7'}, {'name': 'name', 'nulls': 1, 'max': 'ann'}]
        """
        return columns_table(self._table.stored)

    def statistics(self, columns: Sequence[str] | None = None) -> pa.Table:
        """List what is known of each column in each block.

        Args:
            columns: Their names, with dots for fields of structs; by default all that have statistics.

        Returns:
            A row for each block and column: ``block``, ``column``, ``rows``, ``nulls``, ``nans``, ``distinct``,
            ``min``, ``max``, ``bounds_exact`` and ``bytes``; NULL where unknown.

        Raises:
            SchemaError: A column is unknown.
            InputError: A column has no statistics.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://inspect-statistics", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}, {"id": 7}])
            >>> table.inspect.statistics(["id"]).select(["column", "rows", "min", "max"]).to_pylist()
            [{'column': 'id', 'rows': 2, 'min': '1', 'max': '7'}]
        """
        return statistics_table(self._table.stored, columns)

    def indexes(self) -> pa.Table:
        """List the indexes: what each is on, its options, coverage, sizes, and what stands in its way.

        Returns:
            A row for each: ``name``, ``kind``, ``columns``, ``options`` (JSON), ``blocks_indexed``, ``blocks``,
            ``rows_indexed``, ``rows``, ``summary_bytes`` (in memory while planning), ``payload_bytes`` (in files),
            ``version``, ``key`` and ``problem`` (NULL if there is none).

        Raises:
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://inspect-indexes", "id BIGINT, email STRING")
            >>> snapshot = table.append([{"id": 1, "email": "ann@example.com"}])
            >>> snapshot = table.create_index("by_email", "bloom", ["email"])
            >>> table.inspect.indexes().select(["name", "kind", "blocks_indexed", "blocks"]).to_pylist()
            [{'name': 'by_email', 'kind': 'bloom', 'blocks_indexed': 1, 'blocks': 1}]
        """
        return describe_indexes(self._table.stored, self._table.host)

    def index(self, name: str) -> Mapping[str, Any]:
        """Describe one index, and what its kind says of its contents.

        Args:
            name: The name that it was created with.

        Returns:
            What ``indexes`` says of it by name, with ``columns`` and ``options`` as they are, and ``contents``.

        Raises:
            DefinitionError: There is no such index.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://inspect-index", "id BIGINT, email STRING")
            >>> snapshot = table.append([{"id": 1, "email": "ann@example.com"}])
            >>> snapshot = table.create_index("by_email", "bloom", ["email"])
            >>> table.inspect.index("by_email")["contents"]["zones"]
            1
        """
        find_index(self._table.stored, self._table.host, name)
        return describe_index(self._table.stored, self._table.host, name)

    def suggest(self) -> pa.Table:
        """Advise on each column that has statistics what might help ``column = value``.

        Only statistics are looked at, and no query is known: this is where to look, not what to do.

        Returns:
            A row for each column: ``column``, ``reads`` (the share of blocks within whose bounds a value lies, on
            average), ``distinct_per_block`` (the median), ``nulls`` (the share of rows), ``advice`` (``none``,
            ``cluster`` or ``index``), ``kinds`` (those installed that vote on equality) and ``why``.

        Raises:
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://inspect-suggest", "id BIGINT", properties={"block_rows": 2})
            >>> snapshot = table.append([{"id": number * 7 % 20} for number in range(20)])
            >>> table.inspect.suggest().select(["column", "advice"]).to_pylist()
            [{'column': 'id', 'advice': 'index'}]
        """
        return suggest_indexes(self._table)

    def clustering(self, by: Sequence[str] | None = None, method: str | None = None) -> ClusteringReport:
        """Measure how well blocks are clustered by the table's key, or would be if ``by`` were its key.

        Args:
            by: Columns to look at instead of the table's key.
            method: ``linear``, ``zorder`` or ``hilbert``, instead of the key's.

        Returns:
            How many blocks overlap each other; its ``to_arrow``, ``to_dict``, ``to_svg`` and ``print`` show it.

        Raises:
            InputError: The table has no key, and none is given.
            SchemaError: A column is unknown, or cannot be in an order.
            InvalidArgument: There is no such method, or it takes another number of columns.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://inspect-clustering", "id BIGINT", ["id"])
            >>> snapshot = table.append([{"id": 1}, {"id": 5}])
            >>> snapshot = table.append([{"id": 3}, {"id": 9}])
            >>> table.inspect.clustering().maximum_depth
            2
        """
        snapshot = self._table.snapshot
        return measure_clustering(self._table.stored, resolve_cluster_key(snapshot, by, method))
