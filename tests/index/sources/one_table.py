"""A catalogue of Iceberg of one table, in the memory of a test: those of PyIceberg need a database."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import load_file_io
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, Table


class OneTable(MetastoreCatalog):
    """A catalogue of one table, in the memory of a test."""

    table: Table | None = None

    def create(self, place: Path, schema: pa.Schema, partition_by: str | None = None, **properties: str) -> Table:
        converted = self._convert_schema_if_needed(schema)
        staged = self._create_staged_table("db.t", converted, f"file://{place}", properties=properties)
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        made = self._at(staged.metadata_location)
        if partition_by is not None:
            with made.update_spec() as update:
                update.add_identity(partition_by)
        return made

    def _at(self, location: str) -> Table:
        io = load_file_io({}, location)
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
