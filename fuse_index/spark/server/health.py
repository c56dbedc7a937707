"""Answers of a server to health checks: by HTTP, as containers and load balancers ask."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any

from fuse_index.errors import InputError
from fuse_index.spark.server.address import Address


class HealthServer:
    """While it is entered, any GET is answered 200 with what ``check`` returns as JSON, or 503 with what it raises.

    Raises InputError where nothing can listen at ``address``, which somebody may have taken since it was checked.
    """

    def __init__(self, address: Address, check: Callable[[], Mapping[str, Any]]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                try:
                    status, said = 200, {"healthy": True, **check()}
                except InputError as problem:
                    status, said = 503, {"healthy": False, "problem": str(problem)}
                body = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Log nothing: checks come every few seconds."""

        try:
            self._server = ThreadingHTTPServer((address.host, address.port), Handler)
        except OSError as problem:
            raise address.refusal(problem) from problem

    def __enter__(self) -> HealthServer:
        Thread(target=self._server.serve_forever, name="fuse-index-health", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
