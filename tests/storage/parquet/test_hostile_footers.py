"""A footer that contradicts itself is refused, or read: it never ends a process, and each kind has one here."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("kind", ["block", "metadata"])
def test_each_bit_of_a_footer_may_be_another(kind: str) -> None:
    program = [sys.executable, "-m", "tests.storage.parquet.hostile_footers", kind]

    ended = subprocess.run(
        program, cwd=Path(__file__).parents[3], capture_output=True, text=True, timeout=280, check=False
    )

    assert ended.returncode == 0, ended.stderr[-2000:]
    tried, refused = (int(word) for word in ended.stdout.split() if word.isdigit())
    assert tried > refused > tried // 4
