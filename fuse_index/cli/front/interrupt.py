"""Ctrl-C while rows are read, which Arrow does in threads of its own that may wait for a pipe for ever."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from select import select

INTERRUPTED = 130
"""The exit code that shells know of whom Ctrl-C ended."""
INTERRUPTED_WORD = "interrupted"

_SECONDS_TO_END = 1.0


@contextmanager
def ended_by_interrupt() -> Iterator[None]:
    """End the process by Ctrl-C within a second, though it waits for input: a commit is whole or not there."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    import pyarrow as pa

    pa.enable_signal_handlers(False)  # it would take the signal, and go on waiting
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_end, args=(reader,), daemon=True)
    watcher.start()
    try:
        yield
    except KeyboardInterrupt:
        _exit()  # at once: Python would wait for Arrow's threads, and these for the pipe
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)
        watcher.join()
        os.close(reader)
        pa.enable_signal_handlers(True)


def _end(reader: int) -> None:
    while signals := os.read(reader, 1):
        if signals[0] == signal.SIGINT:
            ended, _, _ = select([reader], [], [], _SECONDS_TO_END)
            if not ended:
                _exit()


def _exit() -> None:
    os.write(2, f"{INTERRUPTED_WORD}\n".encode())
    os._exit(INTERRUPTED)
