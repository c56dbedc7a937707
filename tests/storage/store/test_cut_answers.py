"""A store whose answers end in the middle is asked again, as often as one asks a store that is busy."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import ClassVar

import pytest

from fuse_storage import StorageError, Store, open_store

DATA = bytes(range(256)) * 40


class CuttingServer(BaseHTTPRequestHandler):
    """Speaks as much S3 as a GET needs; so many answers end in the middle."""

    protocol_version = "HTTP/1.1"
    gives_etags: ClassVar[bool]
    cuts: ClassVar[int]
    requests: ClassVar[int]

    def do_GET(self) -> None:
        type(self).requests += 1
        span = self.headers.get("Range")
        first, last = (int(number) for number in span[6:].split("-")) if span else (0, len(DATA) - 1)
        body = DATA[first : last + 1]
        self.send_response(206 if span else 200)
        self.send_header("Content-Length", str(len(body)))
        if type(self).gives_etags:
            self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        if span:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(DATA)}")
        self.end_headers()
        cut = type(self).cuts > 0
        type(self).cuts -= 1
        self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self.close_connection = True

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(params=[True, False], ids=["ETag", "no ETag"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), CuttingServer)
    Thread(target=server.serve_forever, daemon=True).start()
    CuttingServer.cuts, CuttingServer.requests, CuttingServer.gives_etags = 0, 0, request.param
    options = {"endpoint": f"http://127.0.0.1:{server.server_port}", "region": "us-east-1", "skip_signature": "true"}
    yield open_store("s3://tables/t", options)
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("cuts", [0, 2])
def test_what_was_cut_is_asked_for_again(store: Store, cuts: int) -> None:
    CuttingServer.cuts = cuts
    assert store.read("k") == DATA
    CuttingServer.cuts = cuts
    assert store.read_ranges("k", [(10, 500), (3000, 20)]) == [DATA[10:510], DATA[3000:3020]]


def test_what_is_always_cut_is_an_error_after_a_few_requests(store: Store) -> None:
    CuttingServer.cuts = 1000
    with pytest.raises(StorageError):
        store.read("k")
    assert CuttingServer.requests < 30
