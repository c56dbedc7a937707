"""Namespaces in SQL. In: requests of ``FuseCatalog.java``. Out: bytes; nothing where there is nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fuse_index.errors import InputError
from fuse_index.spark.catalog.table_names import TableNames
from fuse_index.spark.protocol.requests import (
    AlterNamespaceRequest,
    CreateNamespaceRequest,
    DropNamespaceRequest,
    ListNamespacesRequest,
    LoadNamespaceRequest,
    NamespaceExistsRequest,
)

_YES, _NO = b"1", b""


@dataclass(frozen=True, slots=True)
class NamespaceRequests:
    """The namespaces of a catalogue's warehouse; without one there is the outermost alone, which has no name."""

    names: TableNames

    def children(self, request: ListNamespacesRequest) -> bytes:
        if self.names.warehouse is None:
            return _json([])
        return _json(self.names.warehouse.list_namespaces(request.namespace))

    def exists(self, request: NamespaceExistsRequest) -> bytes:
        namespace = request.namespace
        if not namespace:
            return _YES
        return _YES if self.names.warehouse and self.names.warehouse.namespace_exists(namespace) else _NO

    def properties(self, request: LoadNamespaceRequest) -> bytes:
        namespace = request.namespace
        if not namespace:
            url = {} if self.names.warehouse is None else {"location": self.names.warehouse.url}
            return _json(url)
        return _json(self.names.require_warehouse().load_namespace_properties(namespace))

    def create(self, request: CreateNamespaceRequest) -> bytes:
        _check_properties(request.properties)
        self.names.require_warehouse().create_namespace(request.namespace, request.properties)
        return _YES

    def alter(self, request: AlterNamespaceRequest) -> bytes:
        _check_properties(request.updates)
        warehouse = self.names.require_warehouse()
        warehouse.update_namespace_properties(request.namespace, request.removals, request.updates)
        return _YES

    def drop(self, request: DropNamespaceRequest) -> bytes:
        warehouse = self.names.require_warehouse()
        if not warehouse.namespace_exists(request.namespace):
            return _NO
        warehouse.drop_namespace(request.namespace, cascade=request.cascade)
        return _YES


def _check_properties(properties: Mapping[str, str]) -> None:
    """Raise InputError for a LOCATION, which no table would follow."""
    if "location" in properties:
        raise InputError(
            f"a namespace has no LOCATION, and this one would be {properties['location']!r}: leave it out; its tables "
            f"are folders of the warehouse, or each says its own LOCATION"
        )


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
