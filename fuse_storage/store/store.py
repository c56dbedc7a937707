"""A store is where bytes live: written once, read many times.

A key is written once and never changes, so whatever was read may be kept for ever. ``create`` is put-if-absent and
succeeds for equal bytes; it is the only conditional operation, and the only one that a commit needs.
Knows no file format, no table and no snapshot. The only module that imports obstore, and only for remote stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable
from urllib.parse import unquote, urlsplit

from fuse_storage.errors import RESTORE_HINT, AlreadyExists, Corrupt, NotFound, StorageError
from fuse_storage.lazy import cached_property
from fuse_storage.store.client_options import client_options, is_client_option
from fuse_storage.store.local import LocalStore
from fuse_storage.store.memory import MemoryStore
from fuse_storage.store.ranges import MAX_FILE_BYTES, ByteRange, ObjectMeta, coalesce_ranges, slice_ranges, validate_key
from fuse_storage.store.refusals import (
    REMOTE_SCHEMES,
    describe_malformed_url,
    describe_refusal,
    describe_unknown_option,
    retry_cut_answers,
)

_T = TypeVar("_T")


@runtime_checkable
class Store(Protocol):
    """Bytes by key. Keys are relative, with "/" between their parts; a prefix is whole parts ("_refs/branch").

    Safe to use from several threads, and picklable. Raises NotFound (naming the URL) for a missing key, StorageError
    (naming it too) for anything else that a store refuses.
    """

    @property
    def url(self) -> str:
        """The URL that ``open_store`` takes; without secrets."""
        ...

    @property
    def coalesce_gap(self) -> int:
        """The number of bytes that are cheaper read than skipped by another request."""
        ...

    def read(self, key: str) -> bytes:
        """All bytes of ``key``."""
        ...

    def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """The bytes of each (offset, length), in order; near ranges are fetched together.

        Raises Corrupt past the end.
        """
        ...

    def list(self, prefix: str = "") -> Iterator[ObjectMeta]:
        """All objects under ``prefix``, in no promised order; what is written meanwhile may or may not be seen."""
        ...

    def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
        """Write all of ``data`` or nothing, durably; raise AlreadyExists if ``key`` holds other bytes.

        Creating equal bytes twice is no conflict, so a retry after a lost answer is safe. ``overwrite`` is for
        advisory hints only.
        """
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Remove these; a missing one is no error."""
        ...

    def path(self, key: str) -> str | None:
        """The path of ``key`` on this machine's file system; None in a store that is not a folder."""
        ...


_defaults: dict[str, str] = {}


def set_store_defaults(options: Mapping[str, str]) -> None:
    """Have remote stores that are opened from now on take these where they are given none of the name.

    Raises StorageError for an option that no store has.
    """
    _refuse_unknown(options)
    _defaults.clear()
    _defaults.update(options)


def open_store(url: str | Path, options: Mapping[str, str] | None = None) -> Store:
    """The store at a URL: nothing is asked of it yet.

    ``url``: a folder, ``file:///``, ``file:/``, ``memory://name`` (shared within the process), ``s3://``, ``gs://`` or
    ``az://``.
    ``options`` are obstore's configuration keys (``endpoint``, ``access_key_id``, ``region``, ``allow_http``, …); what
    they lack is taken from the environment (``AWS_*``, ``GOOGLE_*``, ``AZURE_*``). One is our own: ``shared_places``,
    the URLs of other stores, or of folders there, in which a clone may have files. Raises StorageError for other URLs,
    and for options that no store has.
    """
    text = str(url)
    if said := describe_malformed_url(text):
        raise StorageError(said)
    place, path = parse_url(text)
    scheme = place.partition("://")[0]
    if scheme in ("file", "memory"):
        _refuse_unknown(options or {})  # a remote store refuses its own
    if scheme == "file":
        return LocalStore(path, options)
    if scheme == "memory":
        return MemoryStore(path.strip("/"), options)
    return RemoteStore(f"{place}{path.rstrip('/')}", {**_defaults, **(options or {})})


def _refuse_unknown(options: Mapping[str, str]) -> None:
    """Raise StorageError for an option that no remote store has: a misspelt one would else be passed over."""
    for name in options:
        if not any(_knows(place, name) for place in ("s3://any", "gs://any", "az://any")):
            raise StorageError(describe_unknown_option(name))


@lru_cache(maxsize=256)
def _knows(place: str, option: str) -> bool:
    try:
        RemoteStore(place, {option: "true"})
    except StorageError as refusal:  # that may be of the value
        return describe_unknown_option(option.lower()) not in str(refusal)
    return True


def parse_url(url: str) -> tuple[str, str]:
    """Which store a URL is of, and the path there: two URLs are of one store if they have scheme and bucket in common.

    >>> parse_url("/data/t"), parse_url("file:///data/t"), parse_url("s3a://bucket/data/t")
    (('file://', '/data/t'), ('file://', '/data/t'), ('s3://bucket', '/data/t'))
    >>> parse_url("file:/data/t")  # as Hadoop prints it, which would else be a folder called "file:"
    ('file://', '/data/t')
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return "file://", url.removeprefix("file:") if url.startswith("file:/") else url
    if scheme == "file":
        return "file://", unquote(urlsplit(url).path)
    if scheme == "memory":
        return "memory://", f"/{rest}"
    bucket, slash, path = rest.partition("/")
    return f"{REMOTE_SCHEMES.get(scheme, scheme)}://{bucket}", slash + path


SHARED_PLACES_OPTION = "shared_places"
"""The option of a store that names others, with white space or commas between, in which its table may have files."""


class RemoteStore:
    """A bucket, or a folder of one, through obstore."""

    coalesce_gap = 256 << 10

    def __init__(self, url: str, options: Mapping[str, str] | None = None) -> None:
        from obstore import exceptions, store  # not needed for local tables, and 20 ms to import

        self.url, self.options = url, dict(options or {})
        config: Any = {
            key: value
            for key, value in self.options.items()
            if not is_client_option(key) and key.lower() != SHARED_PLACES_OPTION
        }
        client: Any = {"timeout": "120s", **client_options(self.options)}
        # left to itself, obstore tries for three minutes: longer than a commit may take
        retries: Any = {"max_retries": 6, "retry_timeout": timedelta(seconds=45)}
        try:
            self._store = store.from_url(url, config=config, client_options=client, retry_config=retries)
        except (exceptions.BaseError, ValueError) as refusal:
            raise StorageError(describe_refusal(url, "", refusal)) from refusal

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteStore, (self.url, self.options)

    def __repr__(self) -> str:
        return f"RemoteStore({self.url!r})"  # options may hold secrets

    def read(self, key: str) -> bytes:
        return self.read_at_most(key, MAX_FILE_BYTES)

    def read_at_most(self, key: str, limit: int) -> bytes:
        import obstore

        def read() -> bytes:
            answer = obstore.get(self._store, validate_key(key))
            if (size := answer.meta["size"]) > limit:
                raise Corrupt(f"{self.url}/{key} has {size} bytes instead of at most {limit}: {RESTORE_HINT}")
            return bytes(answer.bytes())

        return self._translate_errors(key, partial(retry_cut_answers, read))

    def read_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        spans = coalesce_ranges(ranges, self.coalesce_gap)
        if len(spans) < 2:
            fetched = [self._read_range(key, span) for span in spans]
        else:
            fetched = list(self._threads.map(partial(self._read_range, key), spans))
        return slice_ranges(ranges, spans, fetched, f"{self.url}/{key}")

    def _read_range(self, key: str, span: ByteRange) -> bytes:
        import obstore  # one by one: its get_ranges panics past the end

        def read() -> bytes:
            return bytes(obstore.get_range(self._store, validate_key(key), start=span[0], length=span[1]))

        return self._translate_errors(key, partial(retry_cut_answers, read))

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(16, "fuse-store")

    def list(self, prefix: str = "") -> Iterator[ObjectMeta]:
        import obstore

        pages = obstore.list(self._store, prefix.strip("/") or None)
        while page := self._translate_errors(prefix, lambda: next(iter(pages), None)):
            for entry in page:
                yield ObjectMeta(entry["path"], entry["size"], entry["last_modified"], entry.get("e_tag"))

    def object_meta(self, key: str) -> ObjectMeta:
        import obstore

        entry = self._translate_errors(key, lambda: obstore.head(self._store, validate_key(key)))
        return ObjectMeta(key, entry["size"], entry["last_modified"], entry.get("e_tag"))

    def list_keys_after(self, key: str) -> Sequence[str]:
        import obstore

        pages = obstore.list(self._store, key.rpartition("/")[0], offset=key, chunk_size=1000)
        keys = []
        while page := self._translate_errors(key, lambda: next(iter(pages), None)):
            keys += [str(entry["path"]) for entry in page]
        return keys

    def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
        import obstore

        def put(mode: Any) -> None:
            obstore.put(self._store, validate_key(key), data, mode=mode, use_multipart=False)

        if overwrite:
            return self._translate_errors(key, lambda: put("overwrite"))
        for _ in range(3):
            try:
                return self._translate_errors(key, lambda: put("create"))
            except AlreadyExists:
                try:
                    existing = self.read(key)
                except NotFound:
                    continue  # it was there and is gone, or the answer was stale: ask again
                if existing == data:
                    return None
                raise
        raise StorageError(f"{self.url}/{key}: the store says by turns that it is there and that it is not")

    def delete(self, keys: Iterable[str]) -> None:
        import obstore

        names = [validate_key(key) for key in keys]
        for start in range(0, len(names), 1000):
            some = names[start : start + 1000]
            try:
                self._translate_errors(some[0], partial(obstore.delete, self._store, some))
            except NotFound:  # some stores stop at the first that is missing
                for name in some:
                    with suppress(NotFound):
                        self._translate_errors(name, partial(obstore.delete, self._store, name))

    def path(self, key: str) -> None:
        return None

    def _translate_errors(self, key: str, ask: Callable[[], _T]) -> _T:
        from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError

        try:
            return ask()
        except FileNotFoundError as missing:
            raise NotFound(f"{self.url}/{key}: there is no such object") from missing
        except AlreadyExistsError as there:
            raise AlreadyExists(f"{self.url}/{key} already holds other bytes") from there
        except (BaseError, OSError) as refusal:
            if "416 Range Not Satisfiable" in str(refusal):
                raise Corrupt(
                    f"{self.url}/{key} ends before the bytes that were asked for: it was truncated; {RESTORE_HINT}"
                ) from refusal
            error = StorageError(describe_refusal(self.url, key, refusal))
            error.not_permitted = isinstance(refusal, PermissionDeniedError)
            raise error from refusal
