"""Pages of foreign files without their compression: the same values, and no page that its header does not fit."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuse_storage.parquet.foreign.dictionaries import KeptDictionaries, uncompressed_page
from fuse_storage.parquet.foreign.thrift_footer import page_locations, parse_footer
from fuse_storage.parquet.page_subset import ColumnForm, PageSubset, decode_pages, footer_schema_bytes
from fuse_storage.store.cache import Cache

NUMBERS = {"snappy": 1, "gzip": 2, "brotli": 4, "zstd": 6, "lz4": 7}
WORDS = [np.random.default_rng(number).bytes(12).hex() for number in range(5000)]
VALUES = pa.array([WORDS[number % 5000] for number in range(20_000)])


def chunk_of(values: pa.Array, **options: object) -> tuple[bytes, list[memoryview]]:
    """The schema and the pages of a file of one column, the dictionary first."""
    file = io.BytesIO()
    settings = {"write_page_index": True, "write_page_checksum": True, "data_page_size": 8 << 10} | options
    pq.write_table(pa.table({"a": values}), file, **settings)
    data = file.getvalue()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") :]
    (chunk,) = parse_footer(footer, "here").groups[0].chunks
    assert chunk.offset_index is not None
    start, size = chunk.offset_index
    places = page_locations(data[start : start + size])
    first = [(chunk.start, places[0][0] - chunk.start)]
    ranges = first + [(offset, length) for offset, length, _ in places]
    return footer_schema_bytes(memoryview(footer)), [memoryview(data)[at : at + length] for at, length in ranges]


@pytest.mark.parametrize("codec", NUMBERS)
@pytest.mark.parametrize("with_nulls", [True, False])
def test_values_are_the_same_without_compression(codec: str, with_nulls: bool) -> None:
    values = pa.array(
        [None if with_nulls and number % 7 == 3 else each for number, each in enumerate(VALUES.to_pylist())]
    )
    schema, pages = chunk_of(values, compression=codec)
    dictionaries = KeptDictionaries(Cache(), ("file",))

    subset = dictionaries.plain_subset(0, pages[0], pages[1:], NUMBERS[codec], len(values))

    assert subset is not None
    form = ColumnForm(6, b"a", NUMBERS[codec])
    assert decode_pages(schema, [form], [{0: subset}]).column("a").combine_chunks() == values
    assert dictionaries.among([0, 1]) == [0]
    again = dictionaries.plain_subset(0, None, pages[1:2], NUMBERS[codec], 10)
    assert again is not None
    assert again.pages[0] is subset.pages[0]
    assert KeptDictionaries(dictionaries.cache, ("other",)).among([0]) == []


def test_pages_of_version_2_and_short_dictionaries_stay_as_they_are() -> None:
    schema, pages = chunk_of(VALUES, compression="snappy", data_page_version="2.0")
    _, short = chunk_of(pa.array(["a", "b"] * 10_000), compression="snappy")
    dictionaries = KeptDictionaries(Cache(), ("file",))

    assert dictionaries.plain_subset(0, pages[0], pages[1:], NUMBERS["snappy"], len(VALUES)) is None
    assert dictionaries.plain_subset(1, short[0], short[1:], NUMBERS["snappy"], 20_000) is None
    assert dictionaries.plain_subset(2, None, pages[1:], NUMBERS["snappy"], len(VALUES)) is None
    assert dictionaries.among([0, 1, 2]) == []
    compressed = PageSubset(pages, len(VALUES), len(pages[0]))
    read = decode_pages(schema, [ColumnForm(6, b"a", NUMBERS["snappy"])], [{0: compressed}])
    assert read.column("a").combine_chunks() == VALUES


@pytest.mark.parametrize("checksum", [True, False])
def test_a_page_whose_bytes_are_others_is_left_to_arrow(checksum: bool) -> None:
    """With a checksum whatever was changed is seen; without one, what makes the lengths or the codec's bytes wrong."""
    _, pages = chunk_of(VALUES, compression="zstd", write_page_checksum=checksum)
    page, draw = bytes(pages[0]), np.random.default_rng(7)
    sound = uncompressed_page(pages[0], NUMBERS["zstd"])
    assert sound is not None
    for cut in (page[:-1], page + b"\0", page[:3], b""):
        assert uncompressed_page(memoryview(cut), NUMBERS["zstd"]) is None
    assert uncompressed_page(pages[0], NUMBERS["snappy"]) is None
    assert uncompressed_page(pages[0], 5) is None
    for at in draw.integers(0, len(page), 300).tolist():
        spoilt = bytearray(page)
        spoilt[at] ^= 1 << int(draw.integers(8))
        found = uncompressed_page(memoryview(bytes(spoilt)), NUMBERS["zstd"])
        if checksum and at > 40:
            assert found is None
