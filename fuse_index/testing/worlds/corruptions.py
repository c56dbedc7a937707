"""Damage to what was written: truncations, zeros, single bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

__tracebackhide__ = True  # authors look for nothing here: pytest shows frames of theirs


def byte_corruptions(length: int) -> Iterator[Callable[[bytes], bytes]]:
    """Ways in which bytes go wrong."""
    yield lambda data: data[: len(data) // 2]
    yield lambda data: data[:-1]
    yield lambda data: b""
    yield lambda data: bytes(len(data))
    for position in np.unique(np.linspace(0, max(length - 1, 0), 24).astype(int)).tolist():
        yield partial(_flip_bit, position)


def _flip_bit(position: int, data: bytes) -> bytes:
    """The bytes with one bit flipped at ``position``; as they are if they are shorter."""
    if position >= len(data):
        return data
    return data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :]
