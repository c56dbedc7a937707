"""Files of apache/parquet-testing, by the writers of many years: each is read as Arrow reads it, or refused by name.

Arrow's own variable ``PARQUET_TEST_DATA`` names their folder ``data``; those beside it are read, too.
"""

from pathlib import Path
from shutil import copy

import pyarrow.parquet as pq
import pytest

import fuse_index as fuse
from tests.effort import effort
from tests.index.sources.corpora import assert_right, fitted, folder_of

DATA = folder_of("PARQUET_TEST_DATA")
FILES = [] if DATA is None else sorted(path for path in DATA.parent.rglob("*.parquet*") if path.suffix != ".json")
ENCRYPTED = "is encrypted, and no reader here decrypts"
HALF_FLOAT, NULL = "is of type halffloat", "is of type null"
REFUSED = {
    "ARROW-GH-41317": "does not hold the columns of its table",
    "ARROW-GH-41321": "does not hold the columns of its table",
    "ARROW-GH-45185": "does not hold the columns of its table",
    "ARROW-GH-47662": "does not hold the columns of its table",
    "ARROW-RS-GH-6229-DICTHEADER": "is no Parquet file that can be read",
    "ARROW-RS-GH-6229-LEVELS": NULL,
    "PARQUET-1481": "is no Parquet file that can be read",
    "datapage_v1-corrupt-checksum": "does not hold the columns of its table.*checksum",
    "float16_nonzeros_and_nans": HALF_FLOAT,
    "float16_zeros_and_nans": HALF_FLOAT,
    "incorrect_map_schema": "is no Parquet file that can be read",
    "large_string_map.brotli": "does not hold the columns of its table",
    "nation.dict-malformed": "does not hold the columns of its table",
    "null_list": NULL,
    "rle-dict-uncompressed-corrupt-checksum": "does not hold the columns of its table.*checksum",
}
"""Why a file cannot be read, by its name. Arrow itself reads none of those that are damaged."""
DEAR = {"large_string_map.brotli"}
"""Files of a few KB with 2 GiB in them: they take 13 s."""

pytestmark = [
    pytest.mark.skipif(DATA is None, reason="PARQUET_TEST_DATA names no folder of apache/parquet-testing"),
    pytest.mark.filterwarnings("ignore::fuse_index.LeftOutWarning"),
]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(DATA.parent)))
def test_rows_are_those_that_arrow_reads(file: Path, tmp_path: Path) -> None:
    name = file.name.removesuffix(".encrypted").removesuffix(".parquet")
    if name in DEAR and effort(1) == 1:
        return
    (tmp_path / "lake").mkdir()
    copy(file, tmp_path / "lake" / f"{name}.parquet")
    if message := ENCRYPTED if file.suffix == ".encrypted" else REFUSED.get(name):
        with pytest.raises(fuse.StorageError, match=rf"{name}.*{message}"):
            fuse.attach(tmp_path / "lake", tmp_path / "table").to_arrow()
        return
    table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    assert_right(table, fitted(pq.read_table(file, coerce_int96_timestamp_unit="us"), table))
