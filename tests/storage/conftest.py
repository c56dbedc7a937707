"""What tests of the storage room begin with."""

import uuid
from collections.abc import Iterator

import boto3
import pytest
from moto.server import ThreadedMotoServer

from fuse_storage import process_cache


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    """Each test reads its own files."""
    process_cache.clear()


@pytest.fixture
def url() -> str:
    """Of an empty place in memory."""
    return f"memory://{uuid.uuid4().hex}"


@pytest.fixture(scope="session")
def s3() -> Iterator[dict[str, str]]:
    """A real HTTP server that speaks S3, with one bucket."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    keys = {"region_name": "us-east-1", "aws_access_key_id": "test", "aws_secret_access_key": "test"}
    boto3.client("s3", endpoint_url=endpoint, **keys).create_bucket(Bucket="tables")
    yield {"endpoint": endpoint, "access_key_id": "test", "secret_access_key": "test", "region": "us-east-1"}
    server.stop()
