"""Lives of tables with exports and with writers of any age, read back here and by other engines after each step."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from functools import partial
from itertools import count
from pathlib import Path

from tests.hostile.trial import Trial, Wrong
from tests.index.export.lives import live


def lives(seed: int) -> Generator[Trial, None, None]:
    """Draw a life of a heap table and one of a keyed table, in turns."""
    for number in count(seed):
        for keyed in (False, True):
            yield Trial(f"life {number} of a {'keyed' if keyed else 'heap'} table", partial(_judge, keyed, number))


def _judge(keyed: bool, number: int) -> None:
    with tempfile.TemporaryDirectory(prefix="fuse-hostile-") as folder:
        try:
            live(Path(folder), keyed, number)
        except AssertionError as wrong:
            raise Wrong(str(wrong)) from wrong
