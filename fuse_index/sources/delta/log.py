"""A Delta table's log, as far as ``deltalake`` does not show it: which deletion vector each live file has.

The newest checkpoint is read, of it the columns that say this alone, and the commits after it.

Source: "Checkpoints" and "Action Reconciliation" in Delta's protocol.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from fuse_storage import NotFound, StorageError, Store

_LOG = "_delta_log"
_CHECKPOINT = re.compile(
    r"_delta_log/(?P<version>\d{20})\.checkpoint"
    r"(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<unique>[0-9a-fA-F-]{36}))?\.(?P<kind>parquet|json)"
)
_VERSION = re.compile(_LOG + r"/(\d{20})\.")
_WANTED = ("path", "deletionVector")


@dataclass(frozen=True, slots=True)
class VectorPlace:
    """Where a deletion vector is: ``storage`` is ``u`` (a file beside the table's), ``p`` (any) or ``i`` (``text``)."""

    storage: str
    text: str
    offset: int | None
    size: int

    @property
    def name(self) -> str:
        """What Delta calls it, in which no two vectors agree."""
        return f"{self.storage}{self.text}" + ("" if self.offset is None else f"@{self.offset}")

    @staticmethod
    def of(described: Mapping[str, Any] | None) -> VectorPlace | None:
        if described is None or described.get("storageType") is None:
            return None
        offset = described.get("offset")
        return VectorPlace(
            described["storageType"],
            described["pathOrInlineDv"],
            None if offset is None else int(offset),
            int(described["sizeInBytes"]),
        )


def commit_key(version: int) -> str:
    """The key of a commit of the log, in the table's folder."""
    return f"{_LOG}/{version:020}.json"


def log_version(key: str) -> int | None:
    """The version that a file of the log is of: a commit, a checkpoint; None of any other.

    >>> log_version("_delta_log/00000000000000000007.json"), log_version("_delta_log/_last_checkpoint")
    (7, None)
    """
    found = _VERSION.match(key)
    return None if found is None else int(found[1])


def read_commit(store: Store, version: int) -> Iterator[Mapping[str, Any]]:
    """The actions of a commit, in their order. Raises NotFound, StorageError."""
    key = commit_key(version)
    try:
        for line in store.read(key).splitlines():
            if line.strip():
                yield orjson.loads(line)
    except orjson.JSONDecodeError as problem:
        raise StorageError(f"{store.url}/{key} is no commit of Delta: {problem}") from problem


def live_vectors(store: Store, version: int) -> Mapping[str, VectorPlace]:
    """The deletion vectors of a version's live files, by their paths as the log has them.

    Raises StorageError where the log cannot be read.
    """
    keys = [meta.key for meta in store.list(_LOG)]
    start, parts = _newest_checkpoint(keys, version)
    live: dict[str, dict[str | None, VectorPlace | None]] = defaultdict(dict)
    for action in _checkpoint_actions(store, parts):
        _replay(live, action)
    for number in range(start + 1, version + 1):
        try:
            actions = list(read_commit(store, number))
        except NotFound as missing:
            raise StorageError(
                f"{store.url} lacks the commit {number} of its log, which version {version} needs"
            ) from missing
        for action in sorted(actions, key=lambda each: "add" in each):  # a path may go and come in one commit
            _replay(live, action)
    return {path: place for path, found in live.items() for place in found.values() if place is not None}


def _replay(live: dict[str, dict[str | None, VectorPlace | None]], action: Mapping[str, Any]) -> None:
    for kind in ("add", "remove"):
        if (file := action.get(kind)) is None or file.get("path") is None:
            continue
        place = VectorPlace.of(file.get("deletionVector"))
        name = None if place is None else place.name
        if kind == "add":
            live[file["path"]][name] = place
        else:
            live[file["path"]].pop(name, None)


def _newest_checkpoint(keys: Iterable[str], version: int) -> tuple[int, list[str]]:
    """The newest whole checkpoint up to a version, and its files; -1 and none where there is none."""
    found: dict[tuple[int, str], list[str]] = defaultdict(list)
    wanted: dict[tuple[int, str], int] = {}
    for key in keys:
        if (match := _CHECKPOINT.fullmatch(key)) is not None and int(match["version"]) <= version:
            which = int(match["version"]), match["unique"] or match["parts"] or ""
            found[which].append(key)
            wanted[which] = int(match["parts"] or 1)
    whole = [which for which, files in found.items() if len(files) == wanted[which]]
    if not whole:
        return -1, []
    newest = max(whole)
    return newest[0], sorted(found[newest])


def _checkpoint_actions(store: Store, parts: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    """The files that a checkpoint adds, those of its sidecars included."""
    for key in parts:
        actions = (
            map(orjson.loads, store.read(key).splitlines()) if key.endswith(".json") else _parquet_actions(store, key)
        )
        for action in actions:
            if (sidecar := action.get("sidecar")) is not None and sidecar.get("path") is not None:
                yield from _parquet_actions(store, f"{_LOG}/_sidecars/{sidecar['path']}")
            elif action.get("add") is not None:
                yield {"add": action["add"]}


def _parquet_actions(store: Store, key: str) -> Iterator[Mapping[str, Any]]:
    try:
        with pq.ParquetFile(pa.BufferReader(store.read(key))) as file:
            leaves = [file.schema.column(number).path for number in range(len(file.schema))]
            wanted = [
                leaf
                for leaf in leaves
                if leaf == "sidecar.path" or (leaf.startswith("add.") and leaf.split(".")[1] in _WANTED)
            ]
            for batch in file.iter_batches(columns=wanted):
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as problem:
        raise StorageError(f"{store.url}/{key} is no checkpoint of Delta that can be read: {problem}") from problem
