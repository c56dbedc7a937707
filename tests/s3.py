"""A server of S3 in this process: moto's, of which each request is answered before the next is looked at.

A write that is to fail where its object is there (``If-None-Match``) is one step in S3. In moto it is two, a look and
a write, and of two threads that take them in turn both are told that they created the object: one commit is lost.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Any

import boto3
from moto.server import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

REGION = "us-east-1"


class _OneAtATime:
    """The application, as a server with a thread for each connection calls it."""

    def __init__(self) -> None:
        self._application, self._lock = DomainDispatcherApplication(create_backend_app), Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        with self._lock:
            return list(self._application(environ, start_response))


class _Handler(MotoRequestHandler):
    def log_request(self, *args: Any) -> None:
        """Say nothing of it: werkzeug prints each request."""


@contextmanager
def s3_server(*buckets: str) -> Iterator[dict[str, str]]:
    """Start a server with these buckets, and give the options of a store there; it ends with the block."""
    server = make_server("127.0.0.1", 0, _OneAtATime(), threaded=True, request_handler=_Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    options = {
        "endpoint": f"http://127.0.0.1:{server.server_port}",
        "access_key_id": "test",
        "secret_access_key": "test",
        "region": REGION,
    }
    try:
        client = aws_client("s3", options)
        for bucket in buckets:
            client.create_bucket(Bucket=bucket)
        client.close()
        yield options
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def aws_client(service: str, options: dict[str, str]) -> Any:
    """A client of one of AWS' services at the server."""
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    return boto3.client(service, endpoint_url=options["endpoint"], region_name=REGION, **keys)
