"""Pages of foreign files without their compression: dictionaries so are kept in memory.

A lookup decodes some thousand values of a column, and before them the dictionary of its row group, of up to 1 MB. To
take off its compression takes most of that time, and is the same work each time. A page of a chunk without compression
is its header, with other lengths, and its bytes as they were before they were compressed.
Source of the structures: Parquet's ``parquet.thrift``. Knows no schema.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from fuse_storage.parquet.footer import UNREADABLE
from fuse_storage.parquet.page_subset import PageSubset
from fuse_storage.parquet.thrift import I32, STRUCT, encode_integer, encode_struct, read_selected, skip_value
from fuse_storage.store.cache import Cache

_UNCOMPRESSED = 0
_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
"""Arrow's names of Parquet's codecs by number, but for LZ4, which writers understood differently."""
_TYPE_FIELD, _SIZE_FIELD, _COMPRESSED_SIZE_FIELD, _CHECKSUM_FIELD = 1, 2, 3, 4
_PARTS = {0: 5, 2: 7}
"""Fields of a PageHeader that describe the page, by its type: of data in version 1, and of a dictionary."""
_LEAST_BYTES = 16 << 10
"""Dictionaries that are shorter are decoded sooner than they are looked for."""
_MOST_BYTES = 64 << 20
"""Longer than any page that writers make: a header that says so is not believed."""


@dataclass(frozen=True, slots=True)
class KeptDictionaries:
    """The dictionaries of one file without compression, by the numbers of their pages.

    ``file``: what tells it from all others.
    """

    cache: Cache
    file: tuple[object, ...]

    def among(self, pages: Iterable[int]) -> list[int]:
        """Numbers of the pages that are kept, among these."""
        return [page for page in pages if self._find(page) is not None]

    def plain_subset(
        self, number: int, dictionary: memoryview | None, data: Sequence[memoryview], codec: int, row_count: int
    ) -> PageSubset | None:
        """Pages of data and the dictionary that they refer to, without compression, and the dictionary is kept.

        ``number``: of the dictionary among the pages of the file. ``dictionary``: None where it was not read, as it is
        kept. Returns None where pages are decoded as soon as they are, or cannot be decompressed here.
        """
        first = self._find(number)
        if first is None and dictionary is not None and codec in _CODECS and len(dictionary) >= _LEAST_BYTES:
            first = uncompressed_page(dictionary, codec)
        if first is None:
            return None
        pages = [page for each in data if (page := uncompressed_page(each, codec)) is not None]
        if len(pages) < len(data):
            return None
        self.cache.put(self._key(number), first, len(first))
        return PageSubset([first, *pages], row_count, len(first), codec=_UNCOMPRESSED)

    def _find(self, page: int) -> bytes | None:
        found: bytes | None = self.cache.find(self._key(page))
        return found

    def _key(self, page: int) -> tuple[object, ...]:
        return ("plain dictionary", *self.file, page)


def uncompressed_page(page: memoryview, codec: int) -> bytes | None:
    """A page as a chunk without compression has it; None for one that is damaged, or of another version than 1."""
    try:
        header, start = read_selected(page, 0, dict.fromkeys((1, 2, 3, 4)))
        body, size = page[start : start + header[_COMPRESSED_SIZE_FIELD]], header[_SIZE_FIELD]
        checksum = header.get(_CHECKSUM_FIELD)
        if start + header[_COMPRESSED_SIZE_FIELD] != len(page) or not 0 <= size <= _MOST_BYTES:
            return None
        if checksum is not None and zlib.crc32(body) != checksum & 0xFFFFFFFF:
            return None
        field = _PARTS[header[_TYPE_FIELD]]
        described = _struct_bytes(page, field)
        plain: bytes = pa.decompress(body, decompressed_size=size, codec=_CODECS[codec], asbytes=True)
    except (LookupError, ValueError, *UNREADABLE):
        return None
    if len(plain) != size:
        return None
    lengths = [(number, I32, encode_integer(size)) for number in (_SIZE_FIELD, _COMPRESSED_SIZE_FIELD)]
    head = (_TYPE_FIELD, I32, encode_integer(header[_TYPE_FIELD]))
    return encode_struct(head, *lengths, (field, STRUCT, described)) + plain


def _struct_bytes(header: memoryview, wanted: int) -> bytes:
    """The bytes of a struct that is this field of a PageHeader. Raises LookupError where there is none."""
    at = field = 0
    while head := header[at]:
        if head < 0x10:
            break  # an id that is written out: no writer does
        field, at = field + (head >> 4), at + 1
        end = skip_value(header, at, head & 0x0F)
        if field == wanted and head & 0x0F == STRUCT:
            return bytes(header[at:end])
        at = end
    raise LookupError(f"a page has no field {wanted} in its header")
