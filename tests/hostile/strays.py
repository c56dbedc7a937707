"""Files that others leave in a table's folders: those of desktops, editors, file systems and other engines."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

from fuse_storage.metadata.tags import may_hold_ref
from tests.hostile.trial import Trial, Wrong
from tests.hostile.world import OPERATIONS, Operation, attempt, check, create, open_table

NAMES = (".DS_Store", "Thumbs.db", "desktop.ini",
         "._{}", ".{}.crc", ".{}.swp", "{}~", "{}.bak", "{} (copy)", "_SUCCESS",
         ".nfs0000000000c3a1f500000021", "_temporary/0/part-0", "lost+found/x", "{}.tmp", "conflict {}", "{}.parquet",
         "ünïcode", "a b", "0")  # fmt: skip


def strays(seed: int) -> Generator[Trial, None, None]:
    """Every operation, with a few strays about."""
    for number in count(seed):
        draw = Random(number)
        for operation in draw.sample(OPERATIONS, len(OPERATIONS)):
            yield Trial(f"{operation.name} among strays", partial(among_strays, operation, number, draw.random()))


def among_strays(operation: Operation, number: int, chance: float) -> None:
    """Litter all folders of a table, and do one thing: nothing is refused, and nothing that is not ours is deleted."""
    folder, draw = Path(tempfile.mkdtemp(prefix="fuse-hostile-")), Random(chance)
    try:
        table, rows = create(str(folder / "table"))
        operation.prepare(table, number)
        outside = folder / "outside"
        outside.mkdir()
        (outside / "precious").write_bytes(b"not the table's")
        litter = _litter(folder / "table", outside, draw)
        if refusal := attempt(operation, open_table(str(folder / "table")), number):
            raise Wrong(f"refused: {refusal}")
        rows = operation.after(rows, number)
        if refusal := attempt(OPERATIONS[-1], open_table(str(folder / "table")), number):
            raise Wrong(f"a vacuum is refused: {refusal}")
        check(str(folder / "table"), rows)
        if not (outside / "precious").exists():
            raise Wrong("a file outside of the table was deleted through a link")
        if lost := [path.name for path in litter if not os.path.lexists(path)]:
            raise Wrong(f"strays of others were deleted: {lost}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _litter(root: Path, outside: Path, draw: Random) -> list[Path]:
    folders = sorted(path for path in [root, *root.rglob("*")] if path.is_dir())
    litter = []
    for _ in range(draw.randint(1, 6)):
        place = draw.choice(folders)
        siblings = sorted(path.name for path in place.iterdir() if path.is_file()) or ["x"]
        path = place / draw.choice(NAMES).format(draw.choice(siblings))
        if os.path.lexists(path):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = draw.randrange(5)
        if kind < 2 and may_hold_ref(path.relative_to(root).as_posix()):
            continue  # vacuum rightly refuses: it might stand for a branch
        if kind == 0:
            path.symlink_to(outside, target_is_directory=True)
        elif kind == 1:
            path.symlink_to(place, target_is_directory=True)  # a loop
        else:
            path.write_bytes(draw.randbytes(draw.choice((0, 1, 6148))))
        litter.append(path)
    return litter
