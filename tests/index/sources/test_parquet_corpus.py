"""Files of apache/parquet-testing, by the writers of many years: each is read as Arrow reads it, or refused by name.

Arrow's own variable ``PARQUET_TEST_DATA`` names their folder ``data``; those beside it are read, too.
"""

from pathlib import Path
from shutil import copy

import pyarrow.parquet as pq
import pytest

import fuse_index as fuse
from fuse_index.expressions.variant.decode import decode
from fuse_storage import is_variant
from tests.effort import everything
from tests.index.sources.corpora import assert_right, fitted, folder_of

DATA = folder_of("PARQUET_TEST_DATA")
FILES = [] if DATA is None else sorted(path for path in DATA.parent.rglob("*.parquet*") if path.suffix != ".json")
SHREDDED = [file for file in FILES if file.parent.name == "shredded_variant"]
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
TWICE, NO_OBJECT = "a value is there twice, shredded and not", "members of an object beside a value that is none"
CONTRADICTORY = {"case-040": TWICE, "case-042": TWICE, "case-087": NO_OBJECT, "case-128": NO_OBJECT}
UNKNOWN = {"case-127": r"typed_value is uint32", "case-137": r"typed_value is fixed_size_binary\[4\]"}
DEAR = {"large_string_map.brotli"}
"""Files of a few KB with 2 GiB in them: they take 13 s."""

pytestmark = [
    pytest.mark.skipif(DATA is None, reason="PARQUET_TEST_DATA names no folder of apache/parquet-testing"),
    pytest.mark.filterwarnings("ignore::fuse_index.LeftOutWarning"),
]


@pytest.mark.parametrize(
    "file", [file for file in FILES if file not in SHREDDED], ids=lambda file: str(file.relative_to(DATA.parent))
)
def test_rows_are_those_that_arrow_reads(file: Path, tmp_path: Path) -> None:
    name = file.name.removesuffix(".encrypted").removesuffix(".parquet")
    if name in DEAR and not everything():
        return
    (tmp_path / "lake").mkdir()
    copy(file, tmp_path / "lake" / f"{name}.parquet")
    if message := ENCRYPTED if file.suffix == ".encrypted" else REFUSED.get(name):
        with pytest.raises(fuse.StorageError, match=rf"{name}.*{message}"):
            fuse.attach(tmp_path / "lake", tmp_path / "table").to_arrow()
        return
    table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    assert_right(table, fitted(pq.read_table(file, coerce_int96_timestamp_unit="us"), table))


def binaries(file: Path) -> list[tuple[bytes, bytes] | None]:
    """The value and the metadata of each row of a file with shredded variants, as its authors say they are."""
    found = list[tuple[bytes, bytes] | None]()
    for row in range(pq.read_metadata(file).num_rows):
        whole = file.with_name(f"{file.stem}_row-{row}.variant.bin")
        if not whole.exists():
            found.append(None)
            continue
        data = whole.read_bytes()
        width = (data[0] >> 6) + 1
        count = int.from_bytes(data[1 : 1 + width], "little")
        edges = 1 + (count + 1) * width
        end = edges + width + int.from_bytes(data[edges : edges + width], "little")
        found.append((data[end:], data[:end]))
    return found


@pytest.mark.parametrize("file", SHREDDED, ids=lambda file: file.stem)
def test_shredded_variants_are_what_they_were(file: Path, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    copy(file, tmp_path / "lake" / file.name)
    table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    if reason := UNKNOWN.get(file.stem):
        with pytest.raises(fuse.Unsupported, match=rf"{file.name}.*{reason}.*without shredding"):
            fuse.attach(tmp_path / "lake", tmp_path / "other", columns=["var"])
        assert list(table.inspect.left_out()) == ["var"]
        return
    assert is_variant(table.schema.field("var").type)
    if reason := CONTRADICTORY.get(file.stem):
        with pytest.raises(fuse.StorageError, match=rf"{file.name}: column 'var' .*{reason}"):
            table.to_arrow()
        return
    found = table.stored.read_block(table.stored.blocks(), 0, ["var"])
    rows = found.column("var").combine_chunks().storage.to_pylist()
    for row, expected in zip(rows, binaries(file), strict=True):
        if row is None or expected is None:
            assert row is expected is None
            continue
        tree, right = decode(row["value"], row["metadata"]), decode(*expected)
        assert (repr(tree), type(tree)) == (repr(right), type(right))
        assert isinstance(right, dict | list) or row["value"] == expected[0]


def test_the_corpus_has_all_kinds_of_shredding() -> None:
    assert len(SHREDDED) > 130
    assert {*CONTRADICTORY, *UNKNOWN} <= {file.stem for file in SHREDDED}
