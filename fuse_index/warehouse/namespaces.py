"""Namespaces are made, listed, described and dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import fuse_storage as storage
from fuse_index.warehouse.handle import CatalogHandle, namespaces_within
from fuse_storage import (
    AlreadyExists,
    CreateNamespace,
    DropNamespace,
    Identifier,
    MaintenancePolicy,
    NotFound,
    UpdateNamespace,
)


class NamespacesMixin(CatalogHandle):
    """The part of ``fuse_index.Catalog`` that is about namespaces. A name is text with dots, or a list of its parts."""

    def create_namespace(self, namespace: str | Sequence[str], properties: Mapping[str, str] | None = None) -> None:
        """Make a namespace, within one that is there.

        Args:
            namespace: Its name, such as ``"shop"`` or ``"shop.eu"``.
            properties: Such as ``comment`` and ``owner``, and how its tables are kept: ``maintain`` and others.

        Raises:
            AlreadyExists: There is one, or a table of this name.
            NotFound: There is no namespace around it.
            InvalidArgument: What is no name, or a property ``maintain…`` that cannot be meant.
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://namespace-create", create=True)
            >>> catalog.create_namespace("shop", {"owner": "ann"})
            >>> catalog.list_namespaces()
            [('shop',)]
        """
        MaintenancePolicy.from_properties(properties or {})
        action = CreateNamespace(storage.parse_identifier(namespace), dict(properties or {}))
        self.warehouse.commit(lambda state: [action])

    def create_namespace_if_not_exists(
        self, namespace: str | Sequence[str], properties: Mapping[str, str] | None = None
    ) -> None:
        """Make a namespace unless it is there; then nothing happens.

        Args:
            namespace: Its name.
            properties: Such as ``comment`` and ``owner``.

        Raises:
            AlreadyExists: A table has this name.
            NotFound: There is no namespace around it.
            InvalidArgument: What is no name.
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://namespace-if-not-exists", create=True)
            >>> for _ in range(2):
            ...     catalog.create_namespace_if_not_exists("shop")
        """
        if not self.namespace_exists(namespace):
            try:
                self.create_namespace(namespace, properties)
            except AlreadyExists:
                return

    def namespace_exists(self, namespace: str | Sequence[str]) -> bool:
        """Say whether there is such a namespace.

        Args:
            namespace: Its name.

        Returns:
            True if there is one now.

        Raises:
            InvalidArgument: What is no name.
            StorageError: The store fails.

        Example:
            >>> fuse.catalog("memory://namespace-exists", create=True).namespace_exists("shop")
            False
        """
        try:
            self.warehouse.state().find_namespace(storage.parse_identifier(namespace))
        except NotFound:
            return False
        return True

    def list_namespaces(self, namespace: str | Sequence[str] = ()) -> list[Identifier]:
        """List the namespaces within one, by name.

        Args:
            namespace: Its name; by default the outermost.

        Returns:
            Names, as tuples of their parts.

        Raises:
            NotFound: There is no such namespace.
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://namespace-list", create=True)
            >>> catalog.create_namespace("shop")
            >>> catalog.create_namespace("shop.eu")
            >>> catalog.list_namespaces("shop")
            [('shop', 'eu')]
        """
        return [each.identifier for each in namespaces_within(self.warehouse.state(), _parse_namespace(namespace))]

    def load_namespace_properties(self, namespace: str | Sequence[str]) -> dict[str, str]:
        """The properties of a namespace.

        Args:
            namespace: Its name.

        Returns:
            Texts by name.

        Raises:
            NotFound: There is no such namespace; near names are said.
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://namespace-properties", create=True)
            >>> catalog.create_namespace("shop", {"owner": "ann"})
            >>> catalog.load_namespace_properties("shop")
            {'owner': 'ann'}
        """
        return dict(self.warehouse.state().find_namespace(storage.parse_identifier(namespace)).properties)

    def update_namespace_properties(
        self,
        namespace: str | Sequence[str],
        removals: Sequence[str] | None = None,
        updates: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Remove and set properties of a namespace, at once.

        Args:
            namespace: Its name.
            removals: Names to remove.
            updates: Texts to set, by name.

        Returns:
            The properties then.

        Raises:
            NotFound: There is no such namespace.
            InvalidArgument: A property ``maintain…`` cannot be meant.
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://namespace-update-properties", create=True)
            >>> catalog.create_namespace("shop")
            >>> catalog.update_namespace_properties("shop", updates={"owner": "ann"})
            {'owner': 'ann'}
        """
        MaintenancePolicy.from_properties(updates or {})
        action = UpdateNamespace(storage.parse_identifier(namespace), dict(updates or {}), tuple(removals or ()))
        self.warehouse.commit(lambda state: [action])
        return self.load_namespace_properties(namespace)

    def drop_namespace(self, namespace: str | Sequence[str], *, cascade: bool = False) -> None:
        """Drop a namespace that is empty.

        Args:
            namespace: Its name.
            cascade: Drop all that is in it, too; tables can be undropped.

        Raises:
            NotFound: There is no such namespace.
            NotEmpty: Something is in it, which is named.
            StorageError: The store fails.

        Example:
            >>> catalog = fuse.catalog("memory://namespace-drop", create=True)
            >>> catalog.create_namespace("shop")
            >>> catalog.drop_namespace("shop")
        """
        action = DropNamespace(storage.parse_identifier(namespace), cascade)
        self.warehouse.commit(lambda state: [action])


def _parse_namespace(namespace: str | Sequence[str]) -> Identifier:
    """A namespace, of which the outermost has no name."""
    return storage.parse_identifier(namespace) if namespace else ()
