"""Manifests of Iceberg: which data files there are, with bounds of columns, and which files say what was deleted."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import pyarrow as pa
import pyarrow.types as is_

from fuse_index.export.iceberg_deletes import write_delete_files
from fuse_index.export.iceberg_schema import iceberg_type
from fuse_index.export.live_files import LiveFiles, has_plain_bounds
from fuse_storage import Store

if TYPE_CHECKING:
    from pyiceberg.schema import Schema

METADATA_FOLDER = "metadata"
_COMPRESSION = {"write.avro.compression-codec": "deflate"}
_ENTRIES_TOGETHER = 1000
"""Entries of a manifest that are compressed together: each by itself takes longer than all else."""


@dataclass(frozen=True)
class ManifestWriter:
    """Writes the manifests of one snapshot. ``version``: of Iceberg's format.

    ``sequence``: the number of the snapshot. ``first_row_id``: of its first row, which format version 3 has.
    """

    files: LiveFiles
    schema: Schema
    version: Literal[2, 3]
    snapshot_id: int
    sequence: int
    first_row_id: int

    def write(self) -> str:
        """Write the manifests of all files and of their deleted rows, and the list of them; give the list's URL."""
        from pyiceberg.manifest import MANIFEST_LIST_FILE_SCHEMAS, ManifestContent

        # a manifest of no file cannot be
        contents = [(ManifestContent.DATA, self._data_files()), (ManifestContent.DELETES, self._delete_files())]
        manifests = [self._write_manifest(content, entries) for content, entries in contents if entries]
        name = f"snap-{self.snapshot_id}-{uuid4()}.avro"
        described = {
            "snapshot-id": str(self.snapshot_id),
            "parent-snapshot-id": "null",
            "sequence-number": str(self.sequence),
        }
        schema = MANIFEST_LIST_FILE_SCHEMAS[self.version]
        return str(self._write_avro(name, "manifest_file", schema, described, manifests).location)

    def _write_manifest(self, content: Any, data_files: Sequence[Any]) -> Any:
        """Write the manifest of some files, and describe it as lists of manifests do."""
        from pyiceberg.manifest import (
            ManifestContent,
            ManifestEntry,
            ManifestEntryStatus,
            ManifestFile,
            data_file_with_partition,
            manifest_entry_schema_with_data_file,
        )
        from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC as NO_PARTITIONS

        is_data = content == ManifestContent.DATA
        described = {
            "schema": self.schema.model_dump_json(),
            "partition-spec": "[]",
            "partition-spec-id": str(NO_PARTITIONS.spec_id),
            "content": "data" if is_data else "deletes",
        }
        data_file = data_file_with_partition(NO_PARTITIONS.partition_type(self.schema), self.version)
        schema = manifest_entry_schema_with_data_file(self.version, data_file)
        added = {"status": ManifestEntryStatus.ADDED, "snapshot_id": self.snapshot_id}
        entries = [ManifestEntry.from_args(self.version, **added, data_file=each) for each in data_files]
        file = self._write_avro(f"{uuid4()}-m0.avro", "manifest_entry", schema, described, entries)
        row_ids = {"first_row_id": self.first_row_id} if is_data and self.version == 3 else {}
        return ManifestFile.from_args(
            self.version,
            manifest_path=file.location,
            manifest_length=len(file),
            partition_spec_id=NO_PARTITIONS.spec_id,
            content=content,
            sequence_number=self.sequence,
            min_sequence_number=self.sequence,
            added_snapshot_id=self.snapshot_id,
            added_files_count=len(data_files),
            existing_files_count=0,
            deleted_files_count=0,
            added_rows_count=sum(each.record_count for each in data_files),
            existing_rows_count=0,
            deleted_rows_count=0,
            partitions=[],
            **row_ids,
        )

    def _write_avro(self, name: str, kind: str, schema: Schema, described: dict[str, str], rows: Sequence[Any]) -> Any:
        from pyiceberg.avro.file import AvroOutputFile

        file = _store_file(self.files.table.store, self.files.root, f"{METADATA_FOLDER}/{name}")
        described = {**described, "format-version": str(self.version), **_COMPRESSION}
        with AvroOutputFile[Any](file, schema, kind, metadata=described) as written:
            for first in range(0, len(rows), _ENTRIES_TOGETHER):
                written.write_block(list(rows[first : first + _ENTRIES_TOGETHER]))
        return file

    def _data_files(self) -> list[Any]:
        from pyiceberg.conversions import to_bytes
        from pyiceberg.manifest import DataFileContent, FileFormat

        files = self.files
        columns = {field.id: field for field in files.table.snapshot.schema.fields}
        nulls = {column_id: each.null_count.to_pylist() for column_id, each in files.statistics.items()}
        bounds = {
            column_id: tuple(
                [None if value is None else to_bytes(kind, value) for value in _plain(bound).to_pylist()]
                for bound in (statistics.min, statistics.max)
            )
            for column_id, statistics in files.statistics.items()
            if has_plain_bounds(statistics.type)
            for kind in [iceberg_type(columns[column_id])]
        }
        found = []
        for block, (url, size, rows) in enumerate(zip(files.urls, files.sizes, files.row_counts, strict=True)):
            lower, upper = (
                {column_id: pair[side][block] for column_id, pair in bounds.items() if pair[side][block] is not None}
                for side in (0, 1)
            )
            found.append(
                self._data_file(
                    content=DataFileContent.DATA,
                    file_path=url,
                    file_format=FileFormat.PARQUET,
                    record_count=rows,
                    file_size_in_bytes=size,
                    value_counts=dict.fromkeys(nulls, rows),
                    null_value_counts={
                        key: counts[block] for key, counts in nulls.items() if counts[block] is not None
                    },
                    lower_bounds=lower,
                    upper_bounds=upper,
                )
            )
        return found

    def _delete_files(self) -> list[Any]:
        from pyiceberg.manifest import DataFileContent, FileFormat

        has_vectors = self.version == 3
        return [
            self._data_file(
                content=DataFileContent.POSITION_DELETES,
                file_path=f"{self.files.root}/{each.key}",
                file_format=FileFormat.PUFFIN if has_vectors else FileFormat.PARQUET,
                record_count=each.row_count,
                file_size_in_bytes=each.size,
                lower_bounds=each.path_bounds,
                upper_bounds=each.path_bounds,
                **(each.vector_place if has_vectors else {}),
            )
            for each in write_delete_files(self.files, METADATA_FOLDER, has_vectors)
        ]

    def _data_file(self, **described: Any) -> Any:
        from pyiceberg.manifest import DataFile
        from pyiceberg.typedef import Record

        return DataFile.from_args(self.version, partition=Record(), **described)


def _plain(bounds: pa.Array) -> pa.Array:
    """Bounds with dates as days since 1970: Python has not all that a file may hold."""
    return bounds.cast(pa.int32()) if is_.is_date(bounds.type) else bounds


def _store_file(store: Store, root: str, key: str) -> Any:
    """A file of our store as PyIceberg writes one."""
    from pyiceberg.io import OutputFile

    class Written(io.BytesIO):
        def close(self) -> None:
            if not self.closed:
                data = self.getvalue()
                super().close()  # first: Python closes once more what it forgets open, after a failure too
                file.size = len(data)
                store.create(key, data)

    class StoreFile(OutputFile):
        size = 0

        def __len__(self) -> int:
            return self.size

        def exists(self) -> bool:
            return False

        def to_input_file(self) -> Any:
            raise NotImplementedError("it is only written")

        def create(self, overwrite: bool = False) -> Any:
            return Written()

    file = StoreFile(f"{root}/{key}")
    return file
