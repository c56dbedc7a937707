"""What some stores can do beyond the contract, and what is done where one cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fuse_storage.errors import RESTORE_HINT, Corrupt, NotFound
from fuse_storage.store.ranges import ObjectMeta
from fuse_storage.store.store import Store


def read_at_most(store: Store, key: str, limit: int) -> bytes:
    """All bytes of ``key``. Raises Corrupt if there are more than ``limit``: before they are read, if a store can tell.

    A store can that has a method ``read_at_most(key, limit)``.
    """
    bounded = getattr(type(store), "read_at_most", None)  # not the instance's, which may be another store's
    data: bytes = store.read(key) if bounded is None else bounded(store, key, limit)
    if len(data) > limit:
        raise Corrupt(f"{store.url}/{key} has {len(data)} bytes instead of at most {limit}: {RESTORE_HINT}")
    return data


def list_strays(store: Store, prefix: str = "") -> Iterator[str]:
    """The keys of what is in a store and is no file, such as links, which listings pass over; in folders only."""
    find = getattr(store, "strays", None)
    return iter(()) if find is None else find(prefix)


def list_keys_after(store: Store, key: str) -> list[str]:
    """List the keys of the folder of ``key``, and of no folder within, that are greater than it, in no promised order.

    One request where the store has a ``list_keys_after`` of its own, as those of this package have; else all is listed.
    """
    folder = key.rpartition("/")[0]
    lister: Callable[[str], Sequence[str]] | None = getattr(store, "list_keys_after", None)
    keys = [listed.key for listed in store.list(folder) if listed.key > key] if lister is None else lister(key)
    return [found for found in keys if found.rpartition("/")[0] == folder]


def object_meta(store: Store, key: str) -> ObjectMeta:
    """What a listing says of one key. Raises NotFound.

    One request where the store has an ``object_meta`` of its own; else its folder is listed.
    """
    ask: Callable[[str], ObjectMeta] | None = getattr(store, "object_meta", None)
    if ask is not None:
        return ask(key)
    listed = store.list(key.rpartition("/")[0])
    if (found := next((meta for meta in listed if meta.key == key), None)) is None:
        raise NotFound(f"{store.url}/{key}: there is no such object")
    return found


def remove_empty_folders(store: Store, prefix: str) -> None:
    """Remove what is left of folders whose files were deleted; only stores that are folders have any."""
    remove: Callable[[str], None] | None = getattr(store, "remove_empty_folders", None)
    if remove is not None:
        remove(prefix)
