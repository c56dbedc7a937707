"""What kinds failed at of late: who asks why an index lacks blocks finds the sentence here."""

from __future__ import annotations


class BuildFailures:
    """What kinds failed at of late in this process, by the keys of definitions: why an index lacks blocks."""

    MAX = 1_000

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def note(self, key: str, failure: str) -> None:
        """Remember what an index failed at."""
        if len(self._said) >= self.MAX:
            self._said.clear()
        self._said[key] = failure

    def forget(self, key: str) -> None:
        """Forget it, since a block was indexed."""
        self._said.pop(key, None)

    def find(self, key: str) -> str | None:
        """Find what an index failed at; None if it did not."""
        return self._said.get(key)


BUILD_FAILURES = BuildFailures()
"""The failures of this process."""
