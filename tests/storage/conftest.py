"""What tests of the storage room begin with."""

import uuid

import pytest

from fuse_storage import shared


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    """Each test reads its own files."""
    shared.clear()


@pytest.fixture
def url() -> str:
    """Of an empty place in memory."""
    return f"memory://{uuid.uuid4().hex}"
