"""Random lives of tables with writers of any age: what is read, here and by other engines, is what a model says."""

from pathlib import Path

import pytest

from tests.effort import effort
from tests.index.export.lives import live

pytestmark = pytest.mark.filterwarnings("error::fuse_index.ExportWarning")


@pytest.mark.alike
@pytest.mark.parametrize("keyed", [False, True], ids=["heap", "keyed"])
@pytest.mark.parametrize("seed", range(effort(3)))
def test_a_table_is_what_its_writers_made_it(tmp_path: Path, keyed: bool, seed: int) -> None:
    live(tmp_path, keyed, seed)
