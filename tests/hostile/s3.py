"""A store that loses, delays, cuts and refuses: a proxy before a real S3 server."""

from __future__ import annotations

import http.client
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

from tests.s3 import s3_server

FAULTS = ("500", "503", "429", "lost before", "lost after", "cut")
"""Answers of an overloaded server; connections that end before the request, after it, or within the answer."""
_HOP_HEADERS = ("connection", "transfer-encoding", "content-length", "keep-alive")


class FaultyProxy(ThreadingHTTPServer):
    """Hands requests on to ``address``; of each request, ``share`` (0 to 1) is the chance that something goes wrong."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], seed: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address, self.share, self.faults = address, 0.0, Counter[str]()
        self._draw, self._lock = Random(seed), threading.Lock()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def next_fault(self) -> str | None:
        with self._lock:
            if self._draw.random() >= self.share:
                return None
            fault = self._draw.choice(FAULTS)
            self.faults[fault] += 1
            return fault

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients hang up on cut answers: nothing to say about it."""


class _Handler(BaseHTTPRequestHandler):
    server: FaultyProxy
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        fault = self.server.next_fault()
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if fault == "lost before":
            return self._hang_up()
        if fault is not None and fault.isdigit():
            return self._answer(int(fault), [], b"")
        connection = http.client.HTTPConnection(*self.server.address, timeout=60)
        connection.request(self.command, self.path, body, dict(self.headers))
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        if fault == "lost after":
            return self._hang_up()
        headers = [(name, value) for name, value in answer.getheaders() if name.lower() not in _HOP_HEADERS]
        self._answer(answer.status, headers, data, answer.getheader("content-length"), cut=fault == "cut")

    do_PUT = do_POST = do_DELETE = do_HEAD = do_GET  # noqa: N815 - the names that http.server calls

    def _answer(
        self, status: int, headers: list[tuple[str, str]], data: bytes, length: str | None = None, cut: bool = False
    ) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", length if self.command == "HEAD" and length else str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)
        if cut:
            self._hang_up()

    def _hang_up(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(2)

    def log_message(self, *args: Any) -> None:
        """Requests are counted, not printed."""


@contextmanager
def faulty_server(seed: int) -> Iterator[tuple[FaultyProxy, dict[str, str]]]:
    """A server with a bucket ``tables`` and a proxy before it that does no harm yet; and the options to reach it."""
    with s3_server("tables") as options:
        host, _, port = options["endpoint"].removeprefix("http://").partition(":")
        proxy = FaultyProxy((host, int(port)), seed)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        try:
            yield proxy, {**options, "endpoint": proxy.endpoint}
        finally:
            proxy.shutdown()
