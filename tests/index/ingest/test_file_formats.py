"""A text file that is closed is read by nobody any more: Arrow's threads read ahead, also while nobody wants more."""

import io
import time
from collections.abc import Callable
from threading import Event

import pyarrow as pa
import pytest

from fuse_index.ingest.file_formats import open_input_file
from fuse_index.ingest.input_files import InputFile, InputFileError, InputFormat

BLOCKS = 400  # Arrow reads up to 33 ahead
BLOCK = 4 << 20
LINES = {
    InputFormat.csv: b"1," + b"x" * 1000 + b"\n",
    InputFormat.jsonl: b'{"id": 1, "text": "' + b"x" * 1000 + b'"}\n',
}


class Source(io.RawIOBase):
    """Many lines, megabytes at a time. ``reads``: how often it was asked, ``closed_reads``: after it was closed."""

    def __init__(self, lines: bytes, before_read: Callable[[int], None] = lambda _: None) -> None:
        self.lines, self.before_read = lines, before_read
        self.reads = self.closed_reads = 0
        self.is_over = False

    def readable(self) -> bool:
        return True

    def readinto(self, into: memoryview) -> int:
        self.closed_reads += self.is_over
        self.reads += 1
        self.before_read(self.reads)
        count = max(len(into) // len(self.lines), 1) * len(self.lines)
        data = (self.lines * (count // len(self.lines)))[: len(into)]
        into[: len(data)] = data
        return len(data) if self.reads < BLOCKS else 0

    def close(self) -> None:
        self.is_over = True


def opened(source: Source, format_: InputFormat) -> InputFile:
    return InputFile(f"endless.{format_}", format_, lambda: io.BufferedReader(source, BLOCK))


@pytest.mark.parametrize("format_", LINES)
def test_who_closes_waits_for_threads_that_read(format_: InputFormat) -> None:
    is_reading = Event()

    def slow(reads: int) -> None:
        if reads > 3:
            is_reading.set()
            time.sleep(0.2)

    source = Source(LINES[format_], slow)
    stream = open_input_file(opened(source, format_), pa.schema([]))
    assert next(stream.batches).num_rows > 1000
    assert is_reading.wait(10)  # ahead of what is wanted, in the middle of a read
    stream.close()
    reads = source.reads
    time.sleep(0.5)

    assert reads == source.reads < BLOCKS
    assert source.closed_reads == 0


@pytest.mark.parametrize(("format_", "line"), [(InputFormat.csv, b"id,x\n"), (InputFormat.jsonl, b'{"id": 1, "te\n')])
def test_a_file_that_cannot_be_opened_is_read_no_further(format_: InputFormat, line: bytes) -> None:
    source = Source(line)
    with pytest.raises(InputFileError, match="not readable as"):
        open_input_file(opened(source, format_), pa.schema([("id", pa.int64())]))
    reads = source.reads
    time.sleep(0.3)

    assert reads == source.reads < BLOCKS
