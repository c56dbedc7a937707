"""JSON that is no lines: an array of objects, or objects one after the other, as lines of one object each.

Documents are cut where Python's decoder finds their end, and handed on as they are written, so that numbers keep all
their digits. Memory holds the largest document, and what is read at a time.
"""

from __future__ import annotations

import codecs
import io
import json
from typing import Any, BinaryIO

_CHUNK = 1 << 20
_BETWEEN = " \t\r\n,"


class DocumentLines(io.RawIOBase):
    """A file of JSON documents as a file of lines. Raises ValueError, saying where, for what is no JSON."""

    def __init__(self, file: Any) -> None:
        self._file: BinaryIO = file
        self._decoder, self._utf8 = json.JSONDecoder(), codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._lines, self._read_characters = "", b"", 0
        self._in_array: bool | None = None
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._lines:
            self._lines = self._next_lines().encode()
            if not self._lines and self._ended:
                return 0
        data, self._lines = self._lines[: len(buffer)], self._lines[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def _next_lines(self) -> str:
        """The documents that are whole in what was read by now, after reading more."""
        more = self._file.read(max(_CHUNK, len(self._text)))  # twice as much, where a document is longer
        self._ended = not more
        self._text += self._utf8.decode(more, final=self._ended)
        lines, position = [], self._skip(0)
        if self._in_array is None and position < len(self._text):
            self._in_array = self._text[position] == "["
            position = self._skip(position + self._in_array)
        while position < len(self._text):
            if self._in_array and self._text[position] == "]":
                self._in_array, position = False, self._skip(position + 1)
                continue
            try:
                _, end = self._decoder.raw_decode(self._text, position)
            except json.JSONDecodeError as problem:
                if self._ended:
                    raise ValueError(f"{problem.msg} at character {self._read_characters + problem.pos}") from problem
                break
            if end == len(self._text) and not self._ended:
                break  # a number might go on
            lines.append(self._text[position:end].replace("\n", " ").replace("\r", " "))
            position = self._skip(end)
        if self._ended and self._in_array:
            raise ValueError(f"the array does not end, at character {self._read_characters + len(self._text)}")
        self._read_characters += position
        self._text = self._text[position:]
        return "".join(f"{line}\n" for line in lines)

    def _skip(self, position: int) -> int:
        while position < len(self._text) and self._text[position] in _BETWEEN:
            position += 1
        return position
