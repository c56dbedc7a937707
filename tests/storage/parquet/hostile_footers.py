"""Parquet footers that somebody changed, of a block and of a metadata file: read one after the other in this process.

Run as a program, with the file to change, "block" or "metadata". Each byte of the footer is changed in some of its
bits, all checksums are right, and what is read must be rows or an error of ours. It prints how many were tried, and how
many were refused; a footer that ends the process ends this one.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterator

import pyarrow as pa

from fuse_storage import Cache, StorageError, StoredTable
from fuse_storage.metadata.file_ref import FileRef, new_id
from fuse_storage.metadata.metadata_table import MetadataFile, encode_metadata, read_all_columns
from fuse_storage.parquet.footer import BlockFile
from fuse_storage.parquet.reader import read_block
from fuse_storage.store.memory import MemoryStore
from tests.effort import everything
from tests.storage.small import COLUMNS, append
from tests.storage.tampering import reseal


def bit_flips(data: bytes) -> Iterator[bytes]:
    """The file, with one bit of its Parquet footer changed: two of each byte in turn, all with EFFORT."""
    end = len(data) - 8
    for place in range(end - int.from_bytes(data[-8:-4], "little"), end):
        for bit in (place % 4, place % 4 + 4) if not everything() else range(8):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            yield bytes(changed)


def block_reader() -> tuple[bytes, Callable[[bytes], object]]:
    """A block, and what reads another in its place: whole, and the pages of one row of it."""
    url = f"memory://{uuid.uuid4().hex}"
    table = append(StoredTable.create(url, COLUMNS, properties={"zone_rows": 2}), *range(4))
    blocks = table.blocks()
    file, schema = blocks.file(0), table.snapshot.schema

    def read(data: bytes) -> None:
        store = MemoryStore(uuid.uuid4().hex)
        store.create("b", reseal(data, file.footer_offset))
        block = BlockFile("b", file.footer_offset, file.footer_length)
        for mask in (None, pa.array([False, True, False, False]).to_numpy(zero_copy_only=False)):
            read_block(store, block, schema, schema.arrow.names, cache=Cache(0), row_mask=mask)

    return table.store.read(blocks.locations[0]), read


def metadata_reader() -> tuple[bytes, Callable[[bytes], object]]:
    """A metadata file, and what reads another in its place."""
    rows = pa.table({"n": [1, 2], "t": ["a", "b"], "l": [[1], [2, None]], "k": pa.array([b"x" * 4] * 2, pa.binary(4))})

    def read(data: bytes) -> None:
        store, name = MemoryStore(uuid.uuid4().hex), new_id()
        store.create(name, data)
        read_all_columns(store, MetadataFile(FileRef.for_data(name, data), 2), Cache(0))

    return encode_metadata(rows, keep_arrow_types=True), read


def main(kind: str) -> None:
    data, read = {"block": block_reader, "metadata": metadata_reader}[kind]()
    read(data)
    tried = refused = 0
    for changed in bit_flips(data):
        tried += 1
        try:
            read(changed)
        except StorageError:
            refused += 1
    print(f"{tried} tried, {refused} refused")


if __name__ == "__main__":
    main(sys.argv[1])
