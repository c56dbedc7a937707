"""A store of PyIceberg in which metadata has no column of a type that PyIceberg does not know.

PyIceberg's catalogues are given it by name, as an operator names one of his own (``py-io-impl``).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any

from pyiceberg.io import PY_IO_IMPL, FileIO, InputFile, InputStream, OutputFile, load_file_io

from fuse_index.sources.iceberg.metadata import drop_unknown_columns, is_compressed, parse_metadata

_METADATA = ".metadata.json"


def without_lenience(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of a store of PyIceberg's own."""
    return {name: value for name, value in properties.items() if name != PY_IO_IMPL}


class LenientFileIO(FileIO):
    """All files as they are, but for metadata."""

    def new_input(self, location: str) -> InputFile:
        found = self._own(location).new_input(location)
        return _LenientMetadata(found) if location.endswith(_METADATA) else found

    def new_output(self, location: str) -> OutputFile:
        return self._own(location).new_output(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        self._own(location if isinstance(location, str) else location.location).delete(location)

    def _own(self, location: str) -> FileIO:
        return load_file_io(without_lenience(self.properties), location)


class _LenientMetadata(InputFile):
    def __init__(self, file: InputFile) -> None:
        super().__init__(file.location)
        self.file = file

    def __len__(self) -> int:
        return len(self.file)

    def exists(self) -> bool:
        return self.file.exists()

    def open(self, seekable: bool = True) -> InputStream:
        with self.file.open(seekable) as file:
            data = file.read()
        drop_unknown_columns(described := parse_metadata(data))
        written = json.dumps(described).encode()
        return BytesIO(gzip.compress(written) if is_compressed(data) else written)
