"""Footers that are in order, and written as few writers do: readers look for row groups elsewhere than these lie."""

from collections.abc import Callable, Iterator

from fuse_storage.parquet.thrift import I64, STRUCT, encode_integer, read_list_size, skip_value


def with_columns_exchanged(data: bytes) -> bytes:
    """A file of two columns whose footer names them in the other order: the first one lies last in each row group."""

    def exchange(footer: bytes) -> bytes:
        for start in (
            _member(footer, 0, 2),
            *(_member(footer, at, 1) for at, _ in _elements(footer, _member(footer, 0, 4))),
        ):
            (a, b), (c, d) = list(_elements(footer, start))[-2:]  # of the schema the root is first
            footer = footer[:a] + footer[c:d] + footer[a:b] + footer[d:]
        return footer

    return _with_footer(data, exchange)


def with_dictionaries_at_0(data: bytes) -> bytes:
    """A file without dictionaries whose footer says, as some do, that those of first columns lie at byte 0."""

    def place(footer: bytes) -> bytes:
        for number in reversed(range(len(list(_elements(footer, _member(footer, 0, 4)))))):
            group, _ = list(_elements(footer, _member(footer, 0, 4)))[number]
            chunk, _ = next(_elements(footer, _member(footer, group, 1)))
            members = list(_members(footer, _member(footer, chunk, 3)))
            (last,) = (end for id_, _, end in members if id_ == 9)
            assert footer[last] >> 4 > 2, "the next member is 11 already"
            added = bytes([2 << 4 | I64]) + encode_integer(0)
            footer = footer[:last] + added + bytes([footer[last] - (2 << 4)]) + footer[last + 1 :]
        return footer

    return _with_footer(data, place)


def _with_footer(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    length = int.from_bytes(data[-8:-4], "little")
    footer = change(data[-8 - length : -8])
    return data[: -8 - length] + footer + len(footer).to_bytes(4, "little") + data[-4:]


def _members(data: bytes, at: int) -> Iterator[tuple[int, int, int]]:
    """The id of each member of a struct, and where its value begins and ends."""
    id_ = 0
    while head := data[at]:
        assert head >> 4, "an id that is written out"
        id_, kind = id_ + (head >> 4), head & 15
        end = at + 1 if kind <= 2 else skip_value(data, at + 1, kind)
        yield id_, at + 1, end
        at = end


def _member(data: bytes, at: int, wanted: int) -> int:
    (start,) = (start for id_, start, _ in _members(data, at) if id_ == wanted)
    return start


def _elements(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Where each element of a list of structs begins and ends."""
    size, at = read_list_size(data, at)
    for _ in range(size):
        end = skip_value(data, at, STRUCT)
        yield at, end
        at = end
