"""The endpoint behind a session's SQL catalogue: statements are requests, and what one raises is its error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from fuse_index.errors import InputError
from fuse_index.spark.native.java_compiler import jvm_bridge
from fuse_index.spark.native.request_server import serve_requests
from fuse_index.spark.native.snapshot_planner import INDEXED_MODE
from fuse_index.spark.session import native_scan
from fuse_storage import NotFound, StoredTable


def install_catalog(spark: SparkSession, name: str) -> None:
    """Make a classic session know a catalogue ``name``, in which a table's URL, quoted, is its name."""
    key = f"{spark._jsparkSession.sessionUUID()}/{name}"
    serve_requests(spark, key, CatalogEndpoint(spark, name).answer)
    jvm_bridge(spark).catalog(spark._jsparkSession, name, key)


class CatalogEndpoint:
    """What a catalogue answers to its session. Requests come on threads of their own, several at once."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._spark = spark
        self._name = name

    def answer(self, body: str) -> bytes:
        """The reply to a request, an object of JSON with its ``operation``; raises what the statement is to raise."""
        request = json.loads(body)
        match request["operation"]:
            case "load":
                return self._load(request)
            case operation:
                raise InputError(f"the catalogue {self._name!r} has no {operation}")

    def _load(self, request: Mapping[str, Any]) -> bytes:
        """A table: int length of its description, the description, its files; nothing where there is no such table."""
        try:
            table = StoredTable.open(request["name"], at=request["at"] or None)
        except NotFound:
            return b""
        scan = native_scan(self._spark, table, "", INDEXED_MODE, None)
        description = scan.describe().encode()
        return len(description).to_bytes(4, "big") + description + scan.file_listing
