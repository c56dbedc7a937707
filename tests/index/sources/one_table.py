"""A catalogue of Iceberg of one table, in the memory of a test: those of PyIceberg need a database.

And what engines with streams commit, and PyIceberg does not: files of equality deletes.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import load_file_io
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestWriter, ManifestWriterV2
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.typedef import Record


def _url(place: Path | str) -> str:
    return place if isinstance(place, str) and "://" in place else f"file://{place}"


class OneTable(MetastoreCatalog):
    """A catalogue of one table, in the memory of a test."""

    table: Table | None = None

    def create(self, place: Path | str, schema: pa.Schema, partition_by: str | None = None, **properties: str) -> Table:
        converted = self._convert_schema_if_needed(schema)
        staged = self._create_staged_table("db.t", converted, _url(place), properties=properties)
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        made = self._at(staged.metadata_location)
        if partition_by is not None:
            with made.update_spec() as update:
                update.add_identity(partition_by)
        return made

    def _at(self, location: str) -> Table:
        io = load_file_io(self.properties, location)
        metadata = FromInputFile.table_metadata(io.new_input(location))
        self.table = Table(("db", "t"), metadata, location, io, self)
        return self.table

    def load_table(self, identifier: Any) -> Table:
        if self.table is None:
            raise NoSuchTableError(identifier)
        return self.table

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        staged = self._update_and_stage_table(self.table, ("db", "t"), requirements, updates)
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        self._at(staged.metadata_location)
        return CommitTableResponse(metadata=staged.metadata, metadata_location=staged.metadata_location)

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(name)


OneTable.__abstractmethods__ = frozenset()  # most of a catalogue is of no use here


class _DeleteManifest(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _Deletes(_FastAppendFiles):
    """A commit of delete files."""

    def new_manifest_writer(self, spec: PartitionSpec) -> ManifestWriter:
        return _DeleteManifest(spec, self.schema(), self.new_manifest_output(), self.snapshot_id, self._compression)


def delete_equal_rows(table: Table, place: Path, keys: pa.Table, partition: Record | None = None) -> None:
    """Commit a delete of all rows that have these keys, as a stream with upserts does; of one partition, or of all."""
    ids = {name: table.schema().find_field(name).field_id for name in keys.column_names}
    fields = [each.with_metadata({b"PARQUET:field_id": str(ids[each.name]).encode()}) for each in keys.schema]
    pq.write_table(keys.cast(pa.schema(fields)), place)
    found = DataFile.from_args(
        _table_format_version=2,
        content=DataFileContent.EQUALITY_DELETES,
        file_path=f"file://{place}",
        file_format=FileFormat.PARQUET,
        partition=partition or Record(),
        record_count=len(keys),
        file_size_in_bytes=place.stat().st_size,
        equality_ids=list(ids.values()),
    )
    found.spec_id = table.spec().spec_id
    with table.transaction() as transaction:
        producer = _Deletes(operation=Operation.DELETE, transaction=transaction, io=table.io)
        producer.append_data_file(found)
        producer.commit()


def add_file(table: Table, place: Path, rows: pa.Table, partition: Record) -> None:
    """Commit a file of a partition. ``rows``: may lack its column, as those of a migration from Hive do."""
    ids = {field.name: str(field.field_id).encode() for field in table.schema().fields}
    fields = [each.with_metadata({b"PARQUET:field_id": ids[each.name]}) for each in rows.schema]
    pq.write_table(rows.cast(pa.schema(fields)), place)
    found = DataFile.from_args(
        _table_format_version=2,
        content=DataFileContent.DATA,
        file_path=f"file://{place}",
        file_format=FileFormat.PARQUET,
        partition=partition,
        record_count=len(rows),
        file_size_in_bytes=place.stat().st_size,
    )
    found.spec_id = table.spec().spec_id
    with table.transaction() as transaction:
        producer = _FastAppendFiles(operation=Operation.APPEND, transaction=transaction, io=table.io)
        producer.append_data_file(found)
        producer.commit()


def delete_rows_at(
    table: Table,
    place: Path,
    positions: list[int],
    path: str | None = None,
    bounds: bool = False,
    partition: Record | None = None,
) -> None:
    """Commit a delete of rows of a file, by default the first, by their positions, as merge-on-read does.

    ``bounds``: the manifest says which file it is of. ``partition``: that of the file, where it has one.
    """
    path = path or next(iter(table.scan().plan_files())).file.file_path
    fields = [
        pa.field("file_path", pa.string(), False, {b"PARQUET:field_id": b"2147483546"}),
        pa.field("pos", pa.int64(), False, {b"PARQUET:field_id": b"2147483545"}),
    ]
    rows = [[path] * len(positions), positions]
    pq.write_table(pa.table([pa.array(each) for each in rows], pa.schema(fields)), place)
    found = DataFile.from_args(
        _table_format_version=2,
        content=DataFileContent.POSITION_DELETES,
        file_path=f"file://{place}",
        file_format=FileFormat.PARQUET,
        partition=partition or Record(),
        record_count=len(positions),
        file_size_in_bytes=place.stat().st_size,
        **({name: {2147483546: path.encode()} for name in ("lower_bounds", "upper_bounds")} if bounds else {}),
    )
    found.spec_id = table.spec().spec_id
    with table.transaction() as transaction:
        producer = _Deletes(operation=Operation.DELETE, transaction=transaction, io=table.io)
        producer.append_data_file(found)
        producer.commit()
