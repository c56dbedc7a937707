"""What tests of the storage room begin with."""

import uuid
from collections.abc import Iterator

import pytest

from fuse_storage import process_cache
from tests.s3 import s3_server


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
    with s3_server("tables") as options:
        yield options
