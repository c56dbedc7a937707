"""What a command shows while it works: its phase, bytes and rows or blocks, and time, on standard error.

Silent where that is no terminal, and gone when the work ends, so that the command's own sentence is what stays.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from fuse_index.cli.output import format_bytes, stderr_console

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.progress import Progress


class WorkProgress:
    """Use it in a ``with``. ``total_bytes``: of the input, None or 0 where nobody knows, as of a pipe.

    ``last_phase``: what happens once all rows were read.
    """

    def __init__(self, phase: str, total_bytes: int | None = None, last_phase: str = "commit") -> None:
        self._phase, self._last_phase = phase, last_phase
        self._total_bytes, self._bytes, self._rows = total_bytes or None, 0, 0
        self._shown: Progress | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            columns = (
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[count]}"),
                TimeElapsedColumn(),
            )
            self._shown = Progress(*columns, console=stderr_console(), transient=True)
            self._shown.add_task(self._phase, total=self._total_bytes, count="")
            self._shown.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._shown is not None:
            self._shown.stop()

    def add_bytes(self, count: int) -> None:
        """Tell that so many bytes of the input more were worked through."""
        self._bytes += count
        self._show(completed=self._bytes)

    def count_rows(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Count rows as they are read, and give them on; after the last one the last phase begins."""
        if self._shown is None:
            return rows
        import pyarrow as pa

        def counted() -> Iterator[pa.RecordBatch]:
            for batch in rows:
                self._rows += len(batch)
                self._show()
                yield batch
            if self._shown is not None:
                self._shown.update(self._shown.task_ids[0], description=self._last_phase, total=None)

        return pa.RecordBatchReader.from_batches(rows.schema, counted())

    def say(self, count: str) -> None:
        """Tell how far the work is, where nobody knows how far it goes."""
        if self._shown is not None:
            self._shown.update(self._shown.task_ids[0], count=count)

    def blocks_done(self, done: int, total: int, what: str = "blocks") -> None:
        """Tell that so many blocks are done, of so many; with the last of them the last phase begins."""
        if self._shown is not None:
            count = f"{done:,} of {total:,} {what}"
            phase = self._last_phase if done == total else self._phase
            self._shown.update(self._shown.task_ids[0], description=phase)
            self._shown.update(self._shown.task_ids[0], completed=done, total=total, count=count)

    def _show(self, completed: int | None = None) -> None:
        if self._shown is None:
            return
        read = format_bytes(self._bytes)
        of = f" of {format_bytes(self._total_bytes)}" if self._total_bytes else ""
        count = f"{read}{of}, {self._rows:,} rows"
        self._shown.update(self._shown.task_ids[0], completed=completed, count=count)
