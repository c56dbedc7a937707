"""Structs of Thrift that are passed over: they end where they end value by value, whatever their bytes are."""

import io
import re
from collections.abc import Callable
from itertools import accumulate

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuse_storage.parquet import thrift
from fuse_storage.parquet.column_chunks import read_column_chunks
from tests.effort import effort

ROWS = pa.table(
    {
        "n": [1, None, 300],
        "t": ["a", "long " * 30, None],
        "l": [[1], [], [2, 3]],
        "s": pa.array(
            [{"when": 1, "ü" * 40: True}] * 3, pa.struct({"when": pa.timestamp("us", "UTC"), "ü" * 40: pa.bool_()})
        ),
        "d": pa.array([1, 2, 3]).cast(pa.decimal128(21, 2)),
        "i": pa.array([1, 2, 3], pa.int8()),
    }
)


def footer_of(rows: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink, row_group_size=2, **options)
    data = sink.getvalue()
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


def end(data: bytes) -> int | None:
    """Where the struct at the beginning ends; None for bytes that are none."""
    try:
        return thrift.skip_value(data, 0, thrift.STRUCT)
    except (LookupError, ValueError):
        return None


NUMBERS = st.integers(0, 2**62) | st.integers(0, 300)
TYPED = st.one_of(
    st.tuples(st.sampled_from([thrift.I16, thrift.I32, thrift.I64]), NUMBERS.map(thrift.encode_integer)),
    st.tuples(st.sampled_from([thrift.BOOL_TRUE, thrift.BOOL_FALSE]), st.just(b"")),
    st.tuples(st.just(thrift.BYTE), st.binary(min_size=1, max_size=1)),
    st.tuples(st.just(thrift.BINARY), st.binary(max_size=60).map(thrift.encode_binary)),
    st.tuples(
        st.just(thrift.LIST),
        st.lists(NUMBERS, max_size=6).map(
            lambda found: thrift.encode_list(thrift.I64, map(thrift.encode_integer, found))
        ),
    ),
    st.tuples(
        st.just(thrift.LIST),
        st.lists(st.binary(max_size=9), max_size=4).map(
            lambda found: thrift.encode_list(thrift.BINARY, map(thrift.encode_binary, found))
        ),
    ),
)


def struct_of(fields: list[tuple[int, tuple[int, bytes]]]) -> bytes:
    places = accumulate(delta for delta, _ in fields)
    return thrift.encode_struct(
        *((place, kind, value) for place, (_, (kind, value)) in zip(places, fields, strict=True))
    )


def structs_of(values: st.SearchStrategy[tuple[int, bytes]]) -> st.SearchStrategy[bytes]:
    return st.lists(st.tuples(st.integers(1, 15), values), max_size=5).map(struct_of)


STRUCTS = st.recursive(
    structs_of(TYPED),
    lambda inner: structs_of(
        TYPED
        | st.tuples(st.just(thrift.STRUCT), inner)
        | st.tuples(
            st.just(thrift.LIST),
            st.lists(inner, max_size=4).map(lambda found: thrift.encode_list(thrift.STRUCT, found)),
        )
    ),
    max_leaves=5,
)


@given(STRUCTS, st.binary(max_size=9))
@settings(max_examples=effort(50), deadline=None)
def test_any_struct_ends_where_it_ends(struct: bytes, more: bytes) -> None:
    assert end(struct + more) == len(struct)


@pytest.mark.parametrize("kind", [thrift.I32, thrift.I64, thrift.BINARY, thrift.STRUCT])
@pytest.mark.parametrize("value", [b"\x00", b"\x02\xff\x00"])
def test_lists_of_few_end_after_the_last(kind: int, value: bytes) -> None:
    """An element of one byte 0 is a number, a text or a struct, and looks like the end of the struct around it."""
    element = {thrift.BINARY: value, thrift.STRUCT: b"\x00"}.get(kind, value[:1])
    for size in range(17):
        values = thrift.encode_list(kind, [element] * size)
        inner = thrift.encode_struct((1, thrift.LIST, values), (2, thrift.I32, b"\x80\xff\x00"))
        struct = thrift.encode_struct((3, thrift.STRUCT, inner), (5, thrift.STRUCT, inner))

        assert end(struct + bytes(9)) == len(struct), (size, struct.hex(" "))


@pytest.fixture
def value_by_value(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], int | None]:
    nothing = re.compile(b"(?!)")

    def plain_end(data: bytes) -> int | None:
        with monkeypatch.context() as patch:
            patch.setattr(thrift, "_common_struct", lambda: nothing)
            return end(data)

    return plain_end


@pytest.mark.parametrize(
    "options", [{}, {"write_statistics": False}, {"write_page_index": True, "compression": "zstd"}]
)
def test_any_changed_byte_of_a_footer(
    options: dict[str, object], value_by_value: Callable[[bytes], int | None]
) -> None:
    footer = footer_of(ROWS.select(["n", "t"]), **options)
    assert end(footer) == value_by_value(footer) == len(footer)

    for place in range(len(footer)):
        for bit in (0, 4, 7):
            changed = bytearray(footer)
            changed[place] ^= 1 << bit
            assert end(bytes(changed)) == value_by_value(bytes(changed))


def test_chunks_of_metadata_files_are_common() -> None:
    footer, common = footer_of(ROWS, write_statistics=False), thrift._common_struct()
    found = [common.match(footer, place) for place in range(len(footer))]

    assert sum(each is not None and each.end() - each.start() > 40 for each in found) >= 14  # of two row groups


@pytest.mark.parametrize("columns", [[], [0], [6, 2, 2], range(7)])
def test_chosen_chunks_are_those_of_all(columns: list[int]) -> None:
    footer = memoryview(footer_of(ROWS))
    everything = read_column_chunks(footer, 2, 7)

    assert read_column_chunks(footer, 2, 7, columns) == [
        [group[n] for n in sorted(set(columns))] for group in everything
    ]
    with pytest.raises(ValueError, match="not each of 2 row groups has 6 columns"):
        read_column_chunks(footer, 2, 6, [0])
