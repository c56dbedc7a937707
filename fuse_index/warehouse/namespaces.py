"""Namespaces are made, listed, described and dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import fuse_storage as storage
from fuse_index.warehouse.handle import CatalogHandle
from fuse_storage import AlreadyExists, CreateNamespace, DropNamespace, Identifier, NotFound, UpdateNamespace


class NamespacesMixin(CatalogHandle):
    """The part of ``fuse_index.Catalog`` that is about namespaces. A name is text with dots, or a list of its parts."""

    def create_namespace(self, namespace: str | Sequence[str], properties: Mapping[str, str] | None = None) -> None:
        """Make a namespace, within one that is there. ``properties``: such as ``comment`` and ``owner``.

        Raises AlreadyExists, NotFound for the namespace around it, InvalidArgument for what is no name.
        """
        action = CreateNamespace(storage.parse_identifier(namespace), dict(properties or {}))
        self.warehouse.commit(lambda state: [action])

    def create_namespace_if_not_exists(
        self, namespace: str | Sequence[str], properties: Mapping[str, str] | None = None
    ) -> None:
        """Make a namespace unless it is there; then nothing happens. Raises as ``create_namespace`` does otherwise."""
        if not self.namespace_exists(namespace):
            try:
                self.create_namespace(namespace, properties)
            except AlreadyExists:
                return

    def namespace_exists(self, namespace: str | Sequence[str]) -> bool:
        """Whether there is such a namespace."""
        try:
            self.warehouse.state().find_namespace(storage.parse_identifier(namespace))
        except NotFound:
            return False
        return True

    def list_namespaces(self, namespace: str | Sequence[str] = ()) -> list[Identifier]:
        """The namespaces within one, by default the outermost, as tuples, by name. Raises NotFound."""
        state, within = self.warehouse.state(), _parse_namespace(namespace)
        state.find_namespace(within)
        return sorted(found.identifier for found in state.namespaces_in(within))

    def load_namespace_properties(self, namespace: str | Sequence[str]) -> dict[str, str]:
        """The properties of a namespace. Raises NotFound naming near names."""
        return dict(self.warehouse.state().find_namespace(storage.parse_identifier(namespace)).properties)

    def update_namespace_properties(
        self,
        namespace: str | Sequence[str],
        removals: Sequence[str] | None = None,
        updates: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Remove and set properties at once, and return what they are then. Raises NotFound."""
        action = UpdateNamespace(storage.parse_identifier(namespace), dict(updates or {}), tuple(removals or ()))
        self.warehouse.commit(lambda state: [action])
        return self.load_namespace_properties(namespace)

    def drop_namespace(self, namespace: str | Sequence[str], *, cascade: bool = False) -> None:
        """Drop a namespace that is empty; with ``cascade`` all that is in it is dropped, too, and can be undropped.

        Raises NotFound, and NotEmpty naming something that is in it.
        """
        action = DropNamespace(storage.parse_identifier(namespace), cascade)
        self.warehouse.commit(lambda state: [action])


def _parse_namespace(namespace: str | Sequence[str]) -> Identifier:
    """A namespace, of which the outermost has no name."""
    return storage.parse_identifier(namespace) if namespace else ()
