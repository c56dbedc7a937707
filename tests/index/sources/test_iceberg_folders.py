"""Iceberg tables of folders, without a catalogue: which of their files of metadata is the newest, and what is in it."""

import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import Table

import fuse_index as fuse
from fuse_index.sources.iceberg.lenient_io import LenientFileIO
from fuse_storage import VARIANT
from tests.index.sources.one_table import OneTable
from tests.index.sources.test_catalogs import VARIANTS, WITH_VARIANT, make_variants


def put_numbered(source: Table, number: int, compressed: bool) -> Path:
    """Write the newest metadata of a table by its number, as Iceberg's own tables of folders have it."""
    data = Path(source.metadata_location.removeprefix("file://")).read_bytes()
    folder = Path(source.location().removeprefix("file://")) / "metadata"
    place = folder / f"v{number}{'.gz' if compressed else ''}.metadata.json"
    place.write_bytes(gzip.compress(data) if compressed else data)
    return place


@pytest.mark.parametrize("compressed", [False, True])
def test_metadata_may_be_compressed_and_ahead_of_its_hint(tmp_path: Path, compressed: bool) -> None:
    source = OneTable("test").create(tmp_path / "lake", pa.schema([("id", pa.int64())]))
    for first in range(4):
        source.append(pa.table({"id": [first]}))
        put_numbered(
            source, first + 3, compressed is (first != 2)
        )  # each commit is compressed as the property says then
        if first == 0:
            (tmp_path / "lake" / "metadata" / "version-hint.text").write_text("3")
            table = fuse.attach(tmp_path / "lake", tmp_path / "table", "iceberg")
            votes = fuse.attach(tmp_path / "lake", tmp_path / "votes", "iceberg", votes_only=True)
            assert table.count() == 1
    assert table.sync().rows == votes.sync().rows == 4


def test_compressed_metadata_may_have_types_that_pyiceberg_does_not_know(tmp_path: Path) -> None:
    source = OneTable("test").create(tmp_path / "lake", WITH_VARIANT)
    make_variants(source)
    place = put_numbered(source, 1, compressed=True)
    (tmp_path / "lake" / "metadata" / "version-hint.text").write_text("1")
    table = fuse.attach(tmp_path / "lake", tmp_path / "table", "iceberg")
    assert table.schema.field("v").type == VARIANT
    assert table.to_arrow().column("v").to_pylist() == VARIANTS

    with LenientFileIO().new_input(f"file://{place}").open() as file:  # which PyIceberg unpacks by the file's name
        assert b'"variant"' not in gzip.decompress(file.read())


def test_a_number_that_no_metadata_has_is_named(tmp_path: Path) -> None:
    source = OneTable("test").create(tmp_path / "lake", pa.schema([("id", pa.int64())]))
    put_numbered(source, 1, compressed=False)
    (tmp_path / "lake" / "metadata" / "version-hint.text").write_text("7")
    with pytest.raises(fuse.StorageError, match=r"v7\.metadata\.json"):
        fuse.attach(tmp_path / "lake", tmp_path / "table", "iceberg")
