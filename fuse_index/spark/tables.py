"""Who judges: the tables of a session, opened once each, and the planner that all ways of reading share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fuse_index.catalyst import decode
from fuse_index.host import Host
from fuse_index.plan import plan
from fuse_index.predicate import Context
from fuse_index.spark.listing import packed
from fuse_index.spark.voting import Judgement, Moved, Recent
from fuse_storage import SchemaError, Table

INDEXES = "indexes"
"""The mode in which indexes are asked; in any other, every block is read."""


@dataclass(frozen=True, slots=True)
class _Place:
    """What a URL does not say: the scheme that Spark knows it by, and how our store reaches it."""

    scheme: str
    options: Mapping[str, str]


class Tables:
    """The snapshots that queries ask about, by URL and id. Implements ``voting.Judge``."""

    MOST: ClassVar[int] = 16

    def __init__(self, host: Host) -> None:
        self._host = host
        self._open: Recent[tuple[str, str], Table] = Recent(self.MOST)
        self._places: dict[str, _Place] = {}

    def keep(self, table: Table, scheme: str, options: Mapping[str, str]) -> bytes:
        """Remember an open table, that Spark reads its files as ``scheme``, and our store's options. Gives its files, packed."""
        self._places[table.store.url] = _Place(scheme, options)
        self._open.put((table.store.url, table.snapshot.id), table)
        return self._listing(table)

    def judge(self, question: Mapping[str, Any]) -> Judgement:
        table = self._table(question["url"], question["snapshot"])
        context = Context(**question["context"])
        predicate = decode(question["filters"], table.snapshot.schema, context) if question["filters"] else None
        made = plan(table, predicate, self._host, context, indexes=question["mode"] == INDEXES)
        return Judgement(made.block_mask, made.explanation)

    def move(self, url: str, branch: str, snapshot: str) -> Moved | None:
        head = Table.open(url, branch=branch, options=self._place(url).options)
        if head.snapshot.id == snapshot:
            return None
        if head.snapshot.schema.fields != self._table(url, snapshot).snapshot.schema.fields:
            raise SchemaError(f"the schema of {url} has changed since this DataFrame was made: read the table again")
        self._open.put((url, head.snapshot.id), head)
        return Moved(head.snapshot.id, self._listing(head))

    def _table(self, url: str, snapshot: str) -> Table:
        return self._open.get((url, snapshot), lambda: Table.open(url, at=snapshot, options=self._place(url).options))

    def _place(self, url: str) -> _Place:
        return self._places.get(url, _Place("", {}))

    def _listing(self, table: Table) -> bytes:
        paths, sizes = table.listing()
        scheme = self._place(table.store.url).scheme
        return packed([_for_spark(path, scheme) for path in paths], sizes)


def _for_spark(path: str, scheme: str) -> str:
    """As Hadoop opens it: local paths are URLs to it, and some object stores have another scheme."""
    return f"file:{path}" if path.startswith("/") else f"{scheme}:{path.partition(':')[2]}"
