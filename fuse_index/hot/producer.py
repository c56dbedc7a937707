"""A producer: many threads send rows, and one thread commits them, a batch at a time, as hot commits.

A table takes about one commit in the time of a write, and rows per commit are free; so what comes together is committed
together, at most once in so many seconds.
"""

from __future__ import annotations

import secrets
import threading
import time
from concurrent.futures import Future
from typing import Any, Protocol

import pyarrow as pa

import fuse_storage as storage
from fuse_index.errors import InputError
from fuse_index.ingest import arrow_input
from fuse_storage import Snapshot

_MAX_SILENT_ATTEMPTS = 5
"""How often a batch of a named application is tried whose commit got no answer."""
_MAX_NUMBERS = 100
"""How many numbers a batch is given while other producers of the same name are faster."""
_RANDOM_BITS = 32
"""How many bits of a batch's number tell it from those of other producers; those above count."""


class Appendable(Protocol):
    """A table that rows are appended to."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def snapshot(self) -> Snapshot: ...

    def append(self, data: Any, application: tuple[str, int] | None = ..., hot: bool | None = ...) -> Snapshot: ...

    def refresh(self) -> Any: ...


class Producer:
    """Takes rows from any thread, and gives a future for each call: the version that has them, or the error.

    ``linger``: seconds between two commits at least. ``rows``: so many are committed at once. ``application``: numbers
    its batches, so that each is committed once. A future can be cancelled until its rows are being committed.
    """

    def __init__(self, table: Appendable, linger: float, rows: int, application: str | None) -> None:
        if not linger >= 0 or rows < 1:
            raise InputError(f"linger={linger!r}, rows={rows!r}: give seconds from 0 on, and a number of rows above 0")
        self._table, self._linger, self._max_rows, self._application = table, linger, rows, application
        self._waiting: list[tuple[pa.Table, Future[int]]] = []
        self._row_count, self._busy, self._closed, self._urgent = 0, False, False, False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="fuse-producer", daemon=True)
        self._thread.start()

    def send(self, rows: Any) -> Future[int]:
        """Hand over rows, as ``append`` takes them; they are matched to the table's columns at once.

        Raises SchemaError, InputError. Waits while twice the rows of a batch wait already.
        """
        schema = self._table.schema
        batches = [batch for batch in arrow_input.to_record_batches(rows, schema) if batch.num_rows]
        conformed = [storage.conform_rows(batch, self._table.snapshot.schema) for batch in batches]
        future: Future[int] = Future()
        if not conformed:
            future.set_result(self._table.snapshot.version)
            return future
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._row_count < 2 * self._max_rows)
            if self._closed:
                raise InputError("this producer was closed: make another")
            self._waiting.append((pa.concat_tables(conformed), future))
            self._row_count += len(self._waiting[-1][0])
            self._changed.notify_all()
        return future

    def flush(self) -> None:
        """Commit what was sent, and wait until it is committed or refused."""
        with self._changed:
            self._urgent = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._waiting and not self._busy)
            self._urgent = False

    def close(self) -> None:
        """Flush, and end."""
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
                batch = [sent for sent in self._waiting if sent[1].set_running_or_notify_cancel()]
                self._waiting, self._row_count, self._busy = [], 0, True
                self._changed.notify_all()
            last = time.monotonic()
            try:
                self._commit(batch)
            finally:
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()

    def _is_due(self) -> bool:
        return self._urgent or self._closed or self._row_count >= self._max_rows

    def _commit(self, batch: list[tuple[pa.Table, Future[int]]]) -> None:
        """Commit a batch, and tell all who sent it."""
        if not batch:
            return
        try:
            version = self._append(pa.concat_tables([rows for rows, _ in batch]))
        except BaseException as problem:
            for _, future in batch:
                future.set_exception(problem)
            return
        for _, future in batch:
            future.set_result(version)

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
