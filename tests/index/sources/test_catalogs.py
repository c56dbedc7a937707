"""Iceberg tables by their names in catalogues that PyIceberg is set up for: Glue over HTTP, SQL's, and REST's."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.table import Table
from pyiceberg.utils.config import Config

import fuse_index as fuse
from fuse_index.expressions.variant.columns import encode_values
from fuse_storage import VARIANT
from tests.index.sources.walks import assert_same_rows
from tests.s3 import s3_server

ROWS = pa.table({"id": range(100), "name": [f"n{n % 20}" for n in range(100)]})


@pytest.fixture(scope="module")
def glue() -> Iterator[str]:
    with s3_server() as options:  # which has Glue beside S3
        yield options["endpoint"]


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
    with load_catalog(catalog) as known:
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


@pytest.mark.parametrize("catalog", ["sql"], indirect=True)
def test_no_connection_stays_open_to_a_catalogue_in_a_database(
    catalog: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with load_catalog(catalog) as known:
        known.create_namespace("db")
        known.create_table("db.t", ROWS.schema)
        make_variants(known.create_table("db.v", WITH_VARIANT))
    opened: list[Any] = []

    def open_catalog(name: str, **properties: str) -> Any:
        opened.append(load_catalog(name, **properties))
        return opened[-1]

    monkeypatch.setattr("pyiceberg.catalog.load_catalog", open_catalog)
    for name in ("t", "v"):  # PyIceberg reads t, and not v as it is
        assert fuse.attach(f"iceberg://{catalog}/db.{name}", tmp_path / name, "iceberg").schema.names[0] == "id"
    assert len(opened) >= 3
    assert [one.engine.pool.checkedin() for one in opened] == [0] * len(opened)


VARIANTS = ['{"a":1}', None, '[1,"x"]', '{"a":7}']


def make_variants(source: Table) -> None:
    """Fill a table whose column ``v`` is a struct of two binaries, and say in its metadata that it is VARIANT."""
    values = encode_values(VARIANTS, "v").storage
    source.append(pa.table({"id": range(4), "v": values.cast(BINARIES)}))
    place = Path(source.metadata_location.removeprefix("file://"))
    described = json.loads(place.read_text())
    for schema in described["schemas"]:
        next(field for field in schema["fields"] if field["name"] == "v")["type"] = "variant"
    place.write_text(json.dumps(described))


def check_variants(url: str, place: Path) -> None:
    table = fuse.attach(url, place, "iceberg", max_age="0.001s")
    assert not table.inspect.left_out()
    assert table.schema.field("v").type == VARIANT
    assert table.to_arrow().column("v").to_pylist() == VARIANTS
    table.create_index("by_path", "json_path", ["v"], paths=["$.a"])
    assert table.to_arrow("v:a::int = 7").column("id").to_pylist() == [3]
    table.sync()
    assert fuse.open_table(place).count() == 4


BINARIES = pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary())])
WITH_VARIANT = pa.schema([("id", pa.int64()), ("v", BINARIES)])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_variant_of_a_table_in_a_catalogue_is_one_of_ours(catalog: str, tmp_path: Path) -> None:
    with load_catalog(catalog) as known:
        known.create_namespace("other")
        make_variants(known.create_table("other.t", WITH_VARIANT))
    check_variants(f"iceberg://{catalog}/other.t", tmp_path / "table")
    with pytest.raises(fuse.StorageError, match=r"other\.none cannot be read as an Iceberg table"):
        fuse.attach(f"iceberg://{catalog}/other.none", tmp_path / "other", "iceberg")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What a catalogue of REST answers, by path; the environment calls it ``restful``."""
    told: dict[str, Any] = {"/v1/config": {"defaults": {}, "overrides": {}}}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = told.get(self.path.partition("?")[0])
            self.send_response(404 if found is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(found or {"error": {"message": "none", "type": "none", "code": 404}}).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        for key, value in {"TYPE": "rest", "URI": f"http://127.0.0.1:{server.server_port}"}.items():
            monkeypatch.setenv(f"PYICEBERG_CATALOG__RESTFUL__{key}", value)
        monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
        yield told
        server.shutdown()
        thread.join()


def test_a_variant_of_a_table_of_rest_is_one_of_ours(answers: dict[str, Any], tmp_path: Path) -> None:
    with InMemoryCatalog("maker", warehouse=f"file://{tmp_path}/lake") as maker:
        maker.create_namespace("db")
        source = maker.create_table("db.t", WITH_VARIANT)
        make_variants(source)
        location = source.metadata_location
    metadata = json.loads(Path(location.removeprefix("file://")).read_text())
    answers["/v1/namespaces/db/tables/t"] = {"metadata-location": location, "metadata": metadata, "config": {}}
    check_variants("iceberg://restful/db.t", tmp_path / "table")
    with pytest.raises(fuse.StorageError, match=r"db\.none cannot be read as an Iceberg table"):
        fuse.attach("iceberg://restful/db.none", tmp_path / "other", "iceberg")
