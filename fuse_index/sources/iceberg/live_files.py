"""The live files of a snapshot, as its manifests list them: those of rows, and those of deletes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from fuse_storage import Unsupported

_PATH_ID = 2147483546
"""The id of the column ``file_path`` in files of position deletes."""
_NAME_BYTES = 12


@dataclass(frozen=True, slots=True)
class DataFileEntry:
    """A file of rows. ``data_file``: as PyIceberg has it; ``partition``: as ``partition_key`` gives it."""

    data_file: Any
    location: str
    sequence: int
    partition: tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class DeleteFileEntry:
    """A file of deletes, or the part of one that is a deletion vector.

    ``equality_ids``: of the columns by whose values rows are deleted; empty where it is by positions. ``of``: the one
    data file that it is about; None where it may be any of its ``partition``, or any at all if that is None too.
    ``part``: offset and length of a deletion vector in its file.
    """

    data_file: Any
    location: str
    sequence: int
    partition: tuple[Hashable, ...] | None
    equality_ids: tuple[int, ...] = ()
    of: str | None = None
    part: tuple[int, int] | None = None

    @property
    def name(self) -> bytes:
        """What no other file of deletes, or part of one, is called."""
        return repr((self.location, self.sequence, self.part)).encode()

    def hits(self, file: DataFileEntry) -> bool:
        """Whether it may delete rows of a data file, by their sequence numbers and partitions."""
        newer = self.sequence > file.sequence if self.equality_ids else self.sequence >= file.sequence
        return newer and self.partition in (None, file.partition) and self.of in (None, file.location)


def names_digest(names: list[bytes]) -> str:
    """A digest of a set of names, in whatever order they come."""
    return blake2b(b"\n".join(sorted(names)), digest_size=_NAME_BYTES).hexdigest()


def partition_key(spec_id: int, values: Any) -> tuple[Hashable, ...]:
    """A partition, equal where Iceberg says that it is the same one: NaN is NaN, and -0.0 is not 0.0."""
    found = (values[position] for position in range(len(values)))
    return spec_id, *(repr(value) if isinstance(value, float) else value for value in found)


def path_location(path: str) -> str:
    """A path as it is written in metadata, as a location: a ``%`` in it is one in the file's name."""
    return "/" + path.removeprefix("file:").lstrip("/") if path.startswith("file:") else path


def live_data_files(table: Any, number: int) -> Iterator[DataFileEntry]:
    """The files of rows of a snapshot, whatever is deleted of them."""
    from pyiceberg.manifest import ManifestContent

    for manifest in table.snapshot_by_id(number).manifests(table.io):
        if manifest.content == ManifestContent.DATA:
            for entry in manifest.fetch_manifest_entry(table.io):
                file = entry.data_file
                partition = partition_key(file.spec_id, file.partition)
                yield DataFileEntry(file, path_location(file.file_path), entry.sequence_number or 0, partition)


def live_delete_files(table: Any, number: int) -> Iterator[DeleteFileEntry]:
    """The files of deletes of a snapshot. Raises Unsupported for one that is neither Parquet nor Puffin."""
    from pyiceberg.manifest import ManifestContent
    from pyiceberg.transforms import VoidTransform

    specs = table.specs()
    for manifest in table.snapshot_by_id(number).manifests(table.io):
        if manifest.content == ManifestContent.DELETES:
            fields = specs[manifest.partition_spec_id].fields
            unpartitioned = all(isinstance(each.transform, VoidTransform) for each in fields)  # dropped in format 1
            for entry in _entries(table.io, manifest):
                yield _delete_file(entry, manifest, unpartitioned)


def _entries(io: Any, manifest: Any) -> Iterator[Any]:
    """The live entries of a manifest, with what format 3 says of deletion vectors: PyIceberg leaves that out."""
    from pyiceberg.avro.file import AvroFile
    from pyiceberg.manifest import (
        MANIFEST_ENTRY_SCHEMAS,
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestEntry,
        ManifestEntryStatus,
    )

    with AvroFile[ManifestEntry](
        io.new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[3],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as entries:
        for each in entries:
            if each.status != ManifestEntryStatus.DELETED:
                each.data_file.spec_id = manifest.partition_spec_id
                yield each


def _delete_file(entry: Any, manifest: Any, unpartitioned: bool) -> DeleteFileEntry:
    from pyiceberg.manifest import DATA_FILE_TYPE, DataFileContent, FileFormat

    file, places = entry.data_file, {each.name: place for place, each in enumerate(DATA_FILE_TYPE[3].fields)}
    path, part = str(file.file_path), None
    if file.file_format not in (FileFormat.PARQUET, FileFormat.PUFFIN):
        raise Unsupported(f"{path} has deletes in format {file.file_format}, and only Parquet and Puffin are read")
    ids = tuple(file.equality_ids or ()) if file.content == DataFileContent.EQUALITY_DELETES else ()
    of = file[places["referenced_data_file"]]
    if file.file_format == FileFormat.PUFFIN:
        part = file[places["content_offset"]], file[places["content_size_in_bytes"]]
        if None in (of, *part):
            raise Unsupported(f"{path} has deletion vectors, and its manifest does not say of which file, and where")
    elif of is None and not ids:
        bounds = [(found or {}).get(_PATH_ID) for found in (file.lower_bounds, file.upper_bounds)]
        of = bounds[0].decode() if bounds[0] and bounds[0] == bounds[1] else None
    # an entry that its manifest added has the manifest's number, unless it says another
    sequence = manifest.sequence_number if entry.sequence_number is None else entry.sequence_number
    is_global = unpartitioned and bool(ids)
    partition = None if is_global else partition_key(manifest.partition_spec_id, file.partition)
    return DeleteFileEntry(file, path, sequence or 0, partition, ids, None if of is None else path_location(of), part)
