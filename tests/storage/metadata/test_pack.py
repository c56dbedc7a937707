"""Packs give back what was put in, or say that they are damaged; never other bytes."""

import tracemalloc
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuse_storage import Cache, Corrupt, NotFound, Pack, PackSlice, Sidecar, Store, meter_requests, open_store
from fuse_storage.metadata.pack import add_checksums, checksummed_size, logical_size

DATA = bytes(range(256)) * 2


@pytest.fixture
def store() -> Store:
    return open_store(f"memory://{uuid.uuid4().hex}")


def stored(store: Store, sealed: bytes, chunk: int, length: int | None = None) -> PackSlice:
    """A pack of which ``length`` bytes were written, and ``sealed`` are there now."""
    store.create("pack", sealed, overwrite=True)
    return PackSlice(store, "pack", chunk, len(sealed) if length is None else length, cache=Cache(1 << 20))


def test_payloads_are_laid_one_after_the_other() -> None:
    pack = Pack.concatenate([Sidecar(1, b"abc"), Sidecar(None), Sidecar("x", b""), Sidecar(2, b"de")], chunk=64)

    assert pack == Pack(b"abcde", 64, [1, None, "x", 2], [(0, 3), None, (3, 0), (3, 2)])


@given(st.binary(max_size=400), st.integers(1, 100), st.data())
def test_any_ranges_read_as_slices_do(data: bytes, chunk: int, draw: st.DataObject) -> None:
    store = open_store("memory://any-ranges")
    payload = stored(store, add_checksums(data, chunk), chunk)
    start = st.integers(0, len(data))
    ranges = [(min(pair), max(pair) - min(pair)) for pair in draw.draw(st.lists(st.tuples(start, start), max_size=8))]

    assert payload.size == len(data)
    assert payload.read(ranges) == [data[offset : offset + length] for offset, length in ranges]


@given(st.integers(0, 10_000), st.integers(1, 500))
def test_sizes_follow_from_each_other(size: int, chunk: int) -> None:
    assert len(add_checksums(bytes(size), chunk)) == checksummed_size(size, chunk)
    assert logical_size(checksummed_size(size, chunk), chunk) == size


def test_a_part_reads_as_a_file_of_its_own(store: Store) -> None:
    pack = Pack.concatenate(
        [Sidecar(None, b"a" * 100), Sidecar(None, b"0123456789"), Sidecar(None, b"z" * 100)], chunk=16
    )
    sealed = add_checksums(pack.data, pack.chunk)
    store.create("pack", sealed)

    part = PackSlice(store, "pack", 16, len(sealed), pack.spans[1])

    assert part.size == 10
    assert part.read([(0, 10), (9, 1), (3, 4)]) == [b"0123456789", b"9", b"3456"]
    for beyond in [(0, 11), (11, 0), (-1, 2), (5, -1)]:
        with pytest.raises(ValueError, match="it has 10"):
            part.read([beyond])


@pytest.mark.parametrize("place", range(len(add_checksums(DATA, 100))))
def test_a_flipped_byte_is_corrupt_wherever_it_is(store: Store, place: int) -> None:
    sealed = bytearray(add_checksums(DATA, 100))
    sealed[place] ^= 0x10
    payload = stored(store, bytes(sealed), 100)

    with pytest.raises(Corrupt, match="pack: chunk"):
        payload.read([(0, payload.size)])


def test_a_flipped_byte_in_another_chunk_harms_nobody(store: Store) -> None:
    sealed = bytearray(add_checksums(DATA, 100))
    sealed[0] ^= 1

    assert stored(store, bytes(sealed), 100).read([(100, 412)]) == [DATA[100:]]


@pytest.mark.parametrize("kept", [0, 1, 103, 104, 200, 208, 300, 531])
def test_a_truncated_pack_is_corrupt(store: Store, kept: int) -> None:
    sealed = add_checksums(DATA, 100)
    payload = stored(store, sealed[:kept], 100, length=len(sealed))

    with pytest.raises(Corrupt, match="pack"):
        payload.read([(0, payload.size)])


@pytest.mark.parametrize("change", [-5, -1, 1, 4, 104])
def test_a_pack_of_another_length_than_recorded_is_corrupt(store: Store, change: int) -> None:
    sealed = add_checksums(DATA, 100)
    payload = stored(store, sealed, 100, len(sealed) + change)

    with pytest.raises(Corrupt):
        payload.read([(0, payload.size)])


def test_a_span_beyond_its_pack_is_corrupt(store: Store) -> None:
    with pytest.raises(Corrupt, match="do not lie in"):
        PackSlice(store, "pack", 100, checksummed_size(400, 100), (390, 11))


def test_a_read_of_more_chunks_than_a_payload_has_is_refused_before_memory_is_taken(store: Store) -> None:
    most = 1 << 18
    pack = PackSlice(store, "_i/p", 1, checksummed_size(most + 1, 1))
    tracemalloc.start()
    with pytest.raises(Corrupt, match="chunks are no payload"):
        pack.read([(0, most + 1)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 1 << 20


def test_chunks_in_each_others_place_are_corrupt(store: Store) -> None:
    sealed = add_checksums(DATA, 100)
    swapped = sealed[104:208] + sealed[:104] + sealed[208:]

    with pytest.raises(Corrupt, match="chunk 0"):
        stored(store, swapped, 100).read([(0, 50)])


@pytest.mark.parametrize("chunk", [0, -5])
def test_a_chunk_size_that_cannot_be_is_refused(store: Store, chunk: int) -> None:
    with pytest.raises(ValueError, match="too small"):
        add_checksums(DATA, chunk)
    with pytest.raises(Corrupt):
        PackSlice(store, "pack", chunk, 100)


def test_a_missing_pack_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound, match="gone"):
        PackSlice(store, "gone", 100, 104, cache=Cache(1000)).read([(0, 1)])


def test_what_was_read_is_not_read_again() -> None:
    store = meter_requests(open_store(f"memory://{uuid.uuid4().hex}"))
    cache = Cache(1 << 20)
    data = bytes(1_000_000)
    store.create("pack", add_checksums(data, 10_000))
    payload = PackSlice(store, "pack", 10_000, checksummed_size(len(data), 10_000), cache=cache)
    payload.read([(0, 10), (500_000, 10)])
    store.reset()

    payload.read([(9_000, 100), (500_500, 10)])

    assert store.reads == []
    payload.read([(9_990, 20)])
    assert store.reads == [("read_ranges", "pack", 10_004)]


def test_short_reads_of_a_large_pack_fetch_a_chunk_each() -> None:
    store = meter_requests(open_store(f"memory://{uuid.uuid4().hex}"))
    sealed = add_checksums(bytes(4_000_000), 4_000)
    store.create("pack", sealed)
    store.reset()

    PackSlice(store, "pack", 4_000, len(sealed), cache=Cache(0)).read(
        [(place, 8) for place in range(0, 4_000_000, 1_000_000)]
    )

    assert store.reads == [("read_ranges", "pack", 4_004)] * 4


def test_many_threads_read_one_payload(store: Store) -> None:
    payload = stored(store, add_checksums(DATA, 7), 7)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda start: payload.read([(start, 50)]), list(range(400)) * 3))

    assert found == [[DATA[start : start + 50]] for start in range(400)] * 3


def test_what_is_decoded_is_kept_and_counted(store: Store) -> None:
    cache = Cache(4000)
    store.create("pack", add_checksums(bytes(range(100)), 10))
    made: list[bytes] = []

    def decode(data: bytes) -> list[int]:
        made.append(data)
        return list(data)

    payload = PackSlice(store, "pack", 10, checksummed_size(100, 10), (20, 50), cache)
    same = PackSlice(store, "pack", 10, checksummed_size(100, 10), (0, 70), cache)

    assert payload.decoded((5, 3), decode, lambda found: 40) == [25, 26, 27]
    assert payload.decoded((5, 3), decode, lambda found: 40) == [25, 26, 27]
    assert same.decoded((25, 3), decode, lambda found: 40) == [25, 26, 27]
    assert same.decoded((25, 3), bytes.hex, len) == "191a1b"
    assert made == [bytes([25, 26, 27])]
    assert cache.total_bytes > 40 + 6
    with pytest.raises(ValueError, match="bytes 45 to 55"):
        payload.decoded((45, 10), decode, len)


def test_a_partial_function_is_the_same_each_time(store: Store) -> None:
    store.create("pack", add_checksums(bytes(range(100)), 10))
    made: list[int] = []

    def decode(base: int, data: bytes) -> int:
        made.append(base)
        return base + data[0]

    payload = PackSlice(store, "pack", 10, checksummed_size(100, 10), (0, 100), Cache(4000))
    found = [payload.decoded((5, 3), partial(decode, base), lambda found: 40) for base in (1, 1, 2)]

    assert found == [6, 6, 7]
    assert made == [1, 2]


def test_many_small_ranges_are_read_as_each_of_them_is(store: Store) -> None:
    payload = PackSlice(store, "pack", 10, checksummed_size(100, 10), (5, 80), Cache(4000))
    store.create("pack", add_checksums(bytes(range(100)), 10))
    offsets, lengths = np.array([0, 7, 79, 3, 12]), np.array([4, 1, 1, 0, 25])

    found = payload.read_spans(offsets, lengths)

    assert found == [payload.read([(start, length)])[0] for start, length in zip(offsets, lengths, strict=True)]
    assert payload.read_spans(offsets[:3], lengths[:3]) == found[:3]
    with pytest.raises(ValueError, match="bytes 79 to 81"):
        payload.read_spans(np.array([0, 79]), np.array([1, 2]))


def test_two_packs_that_were_swapped_are_not_taken_for_each_other(store: Store) -> None:
    for key, other in (("_i/k/one", "_i/k/other"), ("_i/k/other", "_i/k/one")):
        store.create(key, add_checksums(DATA, 100, other))
        with pytest.raises(Corrupt, match=f"{key}: chunk 0 fails its checksum"):
            PackSlice(store, key, 100, checksummed_size(len(DATA), 100)).read([(0, 10)])


def test_a_pack_is_known_by_its_id_wherever_it_lies(store: Store) -> None:
    store.create("else/where/one", add_checksums(DATA, 100, "_i/k/one"))

    assert PackSlice(store, "else/where/one", 100, checksummed_size(len(DATA), 100)).read([(0, 512)]) == [DATA]


def test_many_bytes_that_are_kept_decoded_are_not_kept_beside_it(store: Store) -> None:
    """Graphs of a hundred megabytes each, and their bytes, drove each other out: each search read them again."""
    size, chunk = 1 << 20, 1 << 14
    sealed = add_checksums(bytes(4 * size), chunk)
    store.create("pack", sealed, overwrite=True)
    metered = meter_requests(store)
    payload = PackSlice(metered, "pack", chunk, len(sealed), cache=Cache(5 * size))

    for _ in range(2):
        assert [payload.decoded((part * size, size), len, lambda found: size) for part in range(4)] == [size] * 4
        assert payload.cache.total_bytes == 4 * size
    assert metered.request_count == 4
    assert payload.decoded((0, size // 2), len, lambda found: 8) == size // 2
    assert payload.cache.total_bytes > 4 * size + size // 2
