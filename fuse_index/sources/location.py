"""Where a source is, in one spelling: what Spark, Hadoop and Python call by several names."""

from __future__ import annotations

import os
import re

_LOCAL = re.compile(r"file:/*(?=/)", re.IGNORECASE)
_STORE = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<place>[^/]*)(?P<path>.*)", re.DOTALL)
_SCHEMES = {"s3a": "s3", "s3n": "s3", "abfss": "az", "abfs": "az", "wasbs": "az", "wasb": "az"}
"""What Hadoop calls stores that go by another name here."""


def normal_location(location: str) -> str:
    """A path or URL as all spellings of it are written here: absolute, without ``file:``, and with ``s3`` for ``s3a``.

    >>> normal_location("file:///lake/orders/"), normal_location("s3a://Bucket/lake//orders")
    ('/lake/orders', 's3://Bucket/lake/orders')
    """
    if found := _STORE.fullmatch(location):
        scheme = found["scheme"].lower()
        if scheme != "file":
            return f"{_SCHEMES.get(scheme, scheme)}://{found['place']}{_path(found['path'])}"
    return _path(os.path.abspath(_LOCAL.sub("", location)))


def _path(path: str) -> str:
    return re.sub("/+", "/", path).rstrip("/")
