"""A store and a machine whose clocks differ, and go on when they are told to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from fuse_storage import ObjectMeta

BEGAN = datetime(2026, 6, 1, tzinfo=UTC)


class Clocks:
    """A store with a clock of its own, and one of this machine that differs from it by ``skew``.

    ``dates_with_skew``: the store is a disk of this machine, and has no other clock.
    """

    def __init__(self, store: Any) -> None:
        self.within, self.now, self.skew, self.dates_with_skew = store, BEGAN, timedelta(0), False
        self.modified: dict[str, datetime] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.within, name)

    def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
        self.within.create(key, data, overwrite)
        self.modified[key] = self.now + (self.skew if self.dates_with_skew else timedelta(0))

    def list(self, prefix: str = "") -> Iterator[ObjectMeta]:
        for found in self.within.list(prefix):
            yield replace(found, modified=self.modified[found.key])

    def machine(self) -> datetime:
        return self.now + self.skew
