"""A producer: many threads send rows, and one thread commits them, a batch at a time, as hot commits.

A table takes about one commit in the time of a write, and rows per commit are free; so what comes together is committed
together, at most once in so many seconds.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

import fuse_storage as storage
from fuse_index.errors import InputError
from fuse_index.hot.append import hot_row_limit
from fuse_storage import Shown, Snapshot

_MAX_SILENT_ATTEMPTS = 5
"""How often a batch of a named application is tried whose commit got no answer."""
_MAX_NUMBERS = 100
"""How many numbers a batch is given while other producers of the same name are faster."""
_RANDOM_BITS = 32
"""How many bits of a batch's number tell it from those of other producers; those above count."""


class _RowStore(Protocol):
    def conform(self, data: Any, since: storage.Schema | None = None) -> pa.Table: ...


class Appendable(Protocol):
    """A table that rows are appended to."""

    @property
    def snapshot(self) -> Snapshot: ...

    @property
    def row_store(self) -> _RowStore: ...

    def append(self, data: Any, application: tuple[str, int] | None = ..., hot: bool | None = ...) -> Snapshot: ...

    def refresh(self) -> Any: ...


@dataclass(frozen=True, slots=True, eq=False)
class _Sent:
    """Rows of one call, in the columns that the table had then."""

    rows: pa.Table
    schema: storage.Schema
    future: Future[int] = field(default_factory=Future)


class Producer(Shown):
    """Takes rows from any thread, and gives a future for each call: the version that has them, or the error.

    ``linger``: seconds between two commits at least. ``rows``: so many are committed at once, or fewer if the table's
    ``tail_rows`` are. ``application``: numbers its batches, so that each is committed once. A future can be cancelled
    until its rows are being committed.
    """

    def __init__(self, table: Appendable, linger: float, rows: int, application: str | None) -> None:
        if not linger >= 0 or rows < 1:
            raise InputError(f"linger={linger!r}, rows={rows!r}: give seconds from 0 on, and a number of rows above 0")
        self._table, self._linger, self._max_rows, self._application = table, linger, rows, application
        self._waiting: list[_Sent] = []
        self._row_count, self._busy, self._closed, self._urgent = 0, False, False, False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="fuse-producer", daemon=True)
        self._thread.start()

    def _facts(self) -> Mapping[str, Any]:
        return {"linger": self._linger, "rows": self._max_rows, "waiting rows": self._row_count, "closed": self._closed}

    def send(self, rows: Any) -> Future[int]:
        """Hand over rows, which are matched to the table's columns at once.

        Waits while twice the rows of a batch wait already.

        Args:
            rows: As ``Table.append`` takes them; of a table with a primary key they may lack columns, as for
                ``upsert``.

        Returns:
            A future of the version that has them, or of the error; it can be cancelled until its rows are being
            committed.

        Raises:
            SchemaError: The rows do not fit the columns.
            InputError: The rows are none, or the producer was closed.

        Example:
            >>> table = fuse.create_table("memory://send", "id BIGINT")
            >>> with table.producer(linger=0.01) as producer:
            ...     futures = [producer.send([{"id": number}]) for number in range(3)]
            >>> sorted(table.refresh().to_arrow().column("id").to_pylist())
            [0, 1, 2]
        """
        snapshot = self._table.snapshot
        conformed = self._table.row_store.conform(rows)
        if not len(conformed):
            future: Future[int] = Future()
            future.set_result(snapshot.version)
            return future
        sent = _Sent(conformed, snapshot.schema)
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._row_count < 2 * self._max_rows)
            if self._closed:
                raise InputError("this producer was closed: make another")
            self._waiting.append(sent)
            self._row_count += len(sent.rows)
            self._changed.notify_all()
        return sent.future

    def flush(self) -> None:
        """Commit what was sent, and wait until it is committed or refused; the futures have the errors.

        Example:
            >>> table = fuse.create_table("memory://flush", "id BIGINT")
            >>> with table.producer(linger=60) as producer:
            ...     future = producer.send([{"id": 1}])
            ...     producer.flush()
            ...     future.done()
            True
        """
        with self._changed:
            self._urgent = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._waiting and not self._busy)
            self._urgent = False

    def close(self) -> None:
        """Flush, and end; a ``with`` does it.

        Example:
            >>> table = fuse.create_table("memory://close", "id BIGINT")
            >>> producer = table.producer()
            >>> future = producer.send([{"id": 1}])
            >>> producer.close()
            >>> future.done()
            True
        """
        self.flush()
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _run(self) -> None:
        last = -self._linger
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                self._changed.wait_for(self._is_due, max(last + self._linger - time.monotonic(), 0))
                batch, self._busy = self._take(), True
                self._changed.notify_all()
            last = time.monotonic()
            try:
                self._commit(batch)
            finally:
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()

    def _is_due(self) -> bool:
        return self._urgent or self._closed or self._row_count >= self._batch_rows()

    def _batch_rows(self) -> int:
        return min(self._max_rows, hot_row_limit(self._table.snapshot, hot=True))

    def _take(self) -> list[_Sent]:
        """Take what is first, at least one, and no more rows than a batch has; what was cancelled is left out.

        All have the same columns: rows of a table with a primary key may lack some.
        """
        limit, count, taken = self._batch_rows(), 0, 0
        for sent in self._waiting:
            other = sent.rows.column_names != self._waiting[0].rows.column_names
            if taken and (other or count + len(sent.rows) > limit):
                break
            count, taken = count + len(sent.rows), taken + 1
        batch, self._waiting = self._waiting[:taken], self._waiting[taken:]
        self._row_count -= count
        return [sent for sent in batch if sent.future.set_running_or_notify_cancel()]

    def _commit(self, batch: list[_Sent]) -> None:
        """Commit a batch, and tell all who sent it."""
        fitting, tables = list[_Sent](), list[pa.Table]()
        for sent in batch:
            try:
                tables.append(_in_columns(sent, self._table))
                fitting.append(sent)
            except BaseException as problem:
                sent.future.set_exception(problem)
        if not fitting:
            return
        try:
            version = self._append(pa.concat_tables(tables))
        except BaseException as problem:
            with suppress(Exception):  # what stands in the way now is told to the next batch
                self._table.refresh()
            for sent in fitting:
                sent.future.set_exception(problem)
            return
        for sent in fitting:
            sent.future.set_result(version)

    def _append(self, rows: pa.Table) -> int:
        """Append a batch; of an application by a number that only it has, so that none is taken for another's."""
        name = self._application
        if name is None:
            return self._table.append(rows, hot=True).version
        for _ in range(_MAX_NUMBERS):
            number = _next_number(self._table.snapshot.applications.get(name, 0))
            snapshot = self._append_numbered(rows, name, number)
            if snapshot.applications.get(name) == number:
                return snapshot.version
        raise storage.Conflict(
            f"other producers of application {name!r} were faster {_MAX_NUMBERS} times: nothing was committed; give "
            f"each a name of its own, or send the rows again"
        )

    def _append_numbered(self, rows: pa.Table, name: str, number: int) -> Snapshot:
        """The table after it; it may know a later number of another producer instead, if all attempts were answered.

        Raises CommitUnknown, whatever comes after a commit without an answer, as long as that may still have happened.
        """
        silence: storage.CommitUnknown | None = None
        for _ in range(_MAX_SILENT_ATTEMPTS):
            try:
                if silence is not None:
                    self._table.refresh()
                snapshot = self._table.append(rows, (name, number), True)
            except storage.CommitUnknown as unknown:
                silence = unknown
            except Exception as problem:
                if silence is None:
                    raise
                raise storage.CommitUnknown(f"{silence} (and then: {problem})", silence.commit_id) from problem
            else:
                if silence is not None and snapshot.applications.get(name) != number:
                    raise silence
                return snapshot
        assert silence is not None
        raise silence


def _next_number(last: int) -> int:
    """A number after the last, which no other producer has: of two that take the same, one would lose its rows."""
    return (((last >> _RANDOM_BITS) + 1) << _RANDOM_BITS) + secrets.randbits(_RANDOM_BITS)


def _in_columns(sent: _Sent, table: Appendable) -> pa.Table:
    """The rows in the columns that the table has by now. Raises Conflict if theirs were changed, SchemaError."""
    snapshot = table.snapshot
    if sent.schema == snapshot.schema:
        return sent.rows
    names = {part.id: part.name for top in snapshot.schema.fields for part in top.walk()}
    for top in sent.schema.fields:
        for part in top.walk() if top.name in sent.rows.column_names else ():
            if names.get(part.id) != part.name:
                raise storage.Conflict(
                    f"column {part.name!r} was changed since these rows were sent: send them again", snapshot.id
                )
    return table.row_store.conform(sent.rows, sent.schema)
