"""Iceberg tables in a catalogue of REST, Iceberg's own server, which vends the credentials of their store."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pyarrow as pa
import pyspark
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.utils.config import Config

import fuse_index as fuse
from fuse_index.sources.iceberg import credentials
from tests.s3 import s3_server
from tests.spark.servers import free_port

LAKES = Path(sys.prefix) / "lakes"
ROWS = pa.table({"id": range(100), "name": [f"n{n % 20}" for n in range(100)]})
KEYS = {"ACCESS__KEY__ID": "vended", "SECRET__ACCESS__KEY": "secret", "SESSION__TOKEN": "session"}

pytestmark = pytest.mark.skipif(
    not list((LAKES / "rest").glob("*.jar")), reason="no jars of Iceberg's REST server: run make install"
)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server of S3 with the bucket lake."""
    with s3_server("lake") as options:
        yield options["endpoint"]


@pytest.fixture(scope="module")
def rest(endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Iceberg's server over tables in the bucket, with credentials for whoever loads one."""
    port = free_port()
    # first, since Iceberg's tests have a class of hadoop-aws; its connector for Spark has all of its classes otherwise
    clients = [str(jar) for jar in LAKES.glob("*.jar") if not jar.name.startswith(("delta-", "iceberg-", "unity"))]
    jars = [*clients, f"{LAKES}/rest/*", f"{Path(pyspark.__file__).parent}/jars/*"]
    hadoop = {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.access.key": "test",
        "fs.s3a.secret.key": "test",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
    }
    settings = tmp_path_factory.mktemp("rest")
    properties = "".join(
        f"<property><name>{key}</name><value>{value}</value></property>" for key, value in hadoop.items()
    )
    (settings / "core-site.xml").write_text(f"<configuration>{properties}</configuration>")
    catalog = {"CATALOG__IMPL": "org.apache.iceberg.hadoop.HadoopCatalog", "WAREHOUSE": "s3a://lake/warehouse"}
    catalog |= {"REST_PORT": str(port), "INCLUDE__CREDENTIALS": "true"} | {f"S3_{key}": KEYS[key] for key in KEYS}
    command = ["java", "-Xmx256m", "-cp", ":".join([str(settings), *jars]), "org.apache.iceberg.rest.RESTCatalogServer"]
    log = settings / "log"
    environment = os.environ | {f"CATALOG_{key}": value for key, value in catalog.items()}
    with (
        log.open("wb") as written,
        subprocess.Popen(command, env=environment, stdout=written, stderr=written) as server,
    ):
        try:
            wait_for(f"http://127.0.0.1:{port}/v1/config", server, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def wait_for(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + 120
    while True:
        try:
            with urlopen(url, timeout=10):
                return
        except OSError:
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.2)


@pytest.fixture
def catalog(rest: str, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """The catalogue as the environment describes it, without a key of the store."""
    for key, value in {"TYPE": "rest", "URI": rest, "S3__ENDPOINT": endpoint, "S3__REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__REST__{key}", value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    return load_catalog("rest")


def test_a_table_is_read_with_credentials_that_its_catalogue_vends(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_namespace("db")
    source = catalog.create_table("db.t", ROWS.schema)
    source.append(ROWS)
    where = {"shared_places": "s3://lake/warehouse"}
    table = fuse.attach("iceberg://rest/db.t", tmp_path / "table", "iceberg", max_age="0.001s", options=where)
    table.create_index("by_name", "bloom", ["name"])
    assert credentials.catalog_options("iceberg://rest/db.t")["session_token"] == "session"
    assert table.to_arrow().sort_by("id").equals(ROWS)

    source.append(pa.table({"id": [500], "name": ["new"]}))
    source.delete("id < 50")
    credentials._kept.clear()  # as another process, or later
    again = fuse.open_table(tmp_path / "table", options=where)
    assert again.to_arrow("name = 'new'").to_pylist() == [{"id": 500, "name": "new"}]
    assert again.count() == 51
    kept = b"".join(file.read_bytes() for file in (tmp_path / "table").rglob("*") if file.is_file())
    assert b"vended" not in kept
    assert b"session" not in kept

    asked = []
    monkeypatch.setattr("fuse_index.sources.iceberg.credentials.load_from_catalog", asked.append)
    monkeypatch.setattr(credentials, "_kept", {"iceberg://rest/db.t": credentials._kept["iceberg://rest/db.t"]})
    assert again.count("id = 77") == 1
    assert not asked  # what was vended holds still
