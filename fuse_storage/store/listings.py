"""Listings that begin after a key: what a store can do in one request, and is done by a whole listing if it cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuse_storage.store.store import Store


def list_keys_after(store: Store, key: str) -> list[str]:
    """List the keys of the folder of ``key``, and of no folder within, that are greater than it, in no promised order.

    One request where the store has a ``list_keys_after`` of its own, as those of this package have; else all is listed.
    """
    folder = key.rpartition("/")[0]
    lister: Callable[[str], Sequence[str]] | None = getattr(store, "list_keys_after", None)
    keys = [listed.key for listed in store.list(folder) if listed.key > key] if lister is None else lister(key)
    return [found for found in keys if found.rpartition("/")[0] == folder]
