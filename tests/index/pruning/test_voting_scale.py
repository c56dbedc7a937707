"""Planning over very many blocks with payload indexes: requests grow with packs, and the next plan makes none."""

import pytest

import fuse_index as fuse
from benchmarks import voting
from fuse_index.indexes.definition import load_definitions
from fuse_storage import StoredTable, meter_requests, process_cache

BLOCKS = 1500


@pytest.fixture(scope="module", params=["local", "s3"])
def place(request):
    """Where the table is, and the options that its store is opened with."""
    with voting.place(request.param) as (url, options):
        voting.make(url, BLOCKS, options)
        yield url, options


@pytest.mark.parametrize(
    ("where", "most_requests", "most_bytes_read", "most_bytes_kept"),
    [
        (f"c1 = {voting.WANTED}", 30, 300, 700),
        (voting.all_of(" AND "), 60, 400, 1600),
        (voting.all_of(" OR "), 90, 700, 1900),
    ],
    ids=["one", "and", "or"],
)
def test_five_payload_indexes_are_asked_in_few_requests_and_none_the_second_time(
    place, where, most_requests, most_bytes_read, most_bytes_kept
):
    """Bytes are those of a block, on the average."""
    url, options = place
    process_cache.clear()
    store = meter_requests(StoredTable.open(url, options=options).store)
    table = fuse.Table(StoredTable.open(store), voting.HOST)

    explained = table.explain(where)
    cold, read = store.request_count, store.bytes_read
    kept = process_cache.total_bytes
    store.reset()
    again = table.explain(where)

    assert explained.blocks.kept == again.blocks.kept == 1
    assert cold <= most_requests
    assert read <= most_bytes_read * BLOCKS
    assert kept <= most_bytes_kept * BLOCKS
    assert process_cache.total_bytes == kept
    assert store.request_count == 0


def test_payloads_that_are_read_at_once_are_those_that_are_read_one_by_one(place):
    url, options = place
    stored = StoredTable.open(url, options=options)
    blocks = stored.blocks()
    [key] = [found.key for found in load_definitions(stored.snapshot, voting.HOST) if found.name == "by_c2"]
    sidecars = blocks.sidecars(key)
    one_by_one = [sidecars.payload(block).read([(0, 64)])[0] for block in range(0, BLOCKS, 100)]

    assert sidecars.read_payloads()[::100] == one_by_one
