"""Iceberg tables by their names in catalogues that PyIceberg is set up for: Glue over HTTP, and a database of SQL."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer
from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config

import fuse_index as fuse
from tests.index.sources.walks import assert_same_rows

ROWS = pa.table({"id": range(100), "name": [f"n{n % 20}" for n in range(100)]})


@pytest.fixture(scope="module")
def glue() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["glue", "sql"])
def catalog(request: pytest.FixtureRequest, glue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a catalogue, which the environment describes as that of an operator does."""
    name = f"{request.param}{tmp_path.name.replace('_', '')}".lower()
    settings = {"TYPE": request.param, "WAREHOUSE": f"file://{tmp_path}/lake"}
    if request.param == "glue":
        keys = {"GLUE__ACCESS-KEY-ID": "k", "GLUE__SECRET-ACCESS-KEY": "s"}
        settings |= {"GLUE__ENDPOINT": glue, "GLUE__REGION": "us-east-1"} | keys
    else:
        pytest.importorskip("sqlalchemy")
        settings |= {"URI": f"sqlite:///{tmp_path}/catalog.db"}
    for key, value in settings.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{name.upper()}__{key}", value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    return name


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_table_is_found_by_its_name_and_followed(catalog: str, tmp_path: Path) -> None:
    known = load_catalog(catalog)
    known.create_namespace("db")
    source = known.create_table("db.t", ROWS.schema)
    source.append(ROWS)
    table = fuse.attach(f"iceberg://{catalog}/db.t", tmp_path / "table", "iceberg", max_age="0.001s")
    table.create_index("by_name", "bloom", ["name"])
    assert_same_rows(table, ROWS, ["name = 'n7'", "id = 33"])

    source.append(pa.table({"id": [500], "name": ["new"]}))
    assert fuse.open_table(tmp_path / "table").to_arrow("name = 'new'").to_pylist() == [{"id": 500, "name": "new"}]
    with pytest.raises(fuse.StorageError, match=r"db\.none cannot be read as an Iceberg table"):
        fuse.attach(f"iceberg://{catalog}/db.none", tmp_path / "other", "iceberg")
