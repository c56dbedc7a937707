"""What a server is refused before Spark starts: ports, addresses, tokens, warehouses and names."""

import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import fuse_index as fuse
from fuse_index.cli.program import main
from fuse_index.spark import Endpoints
from fuse_index.spark.server.address import Address
from fuse_index.spark.server.health import HealthServer
from tests.spark.servers import SPARK_HOME, environment, free_port


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    fuse.catalog(tmp_path / "warehouse", create=True)
    return str(tmp_path / "warehouse")


def refusal(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """What ``fuse-index serve`` says, and that it fails."""
    with pytest.raises(SystemExit) as ended:
        main(["serve", *options])
    assert ended.value.code == 1
    return capsys.readouterr().err.replace("\n", " ").strip()


def test_a_port_that_is_taken_is_named(capsys, warehouse, taken_port):
    told = refusal(capsys, "--warehouse", warehouse, "--connect", str(taken_port))

    assert told == (
        f"error: port {taken_port} of 127.0.0.1 is taken: end the program that listens there, which may be a former "
        "server, or choose another port"
    )


@pytest.mark.parametrize("second", ["--jdbc", "--health"])
def test_a_port_that_is_given_twice_is_named(capsys, warehouse, second):
    port = str(free_port())
    told = refusal(capsys, "--warehouse", warehouse, "--connect", port, second, port)

    assert told == f"error: port {port} is given twice: give each of Connect, JDBC and health one of its own"


def test_a_warehouse_that_is_none_is_named(capsys, tmp_path):
    told = refusal(capsys, "--warehouse", str(tmp_path / "none"))

    assert told == f"error: {tmp_path / 'none'} is no warehouse: there is nothing; to make one there, run catalog init"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--address", "0.0.0.0"], "is reached by others, who may run any code in this process: give a token, or"),
        (["--address", "nowhere.invalid", "--insecure"], "nothing can listen at 'nowhere.invalid', port"),
        (["--token-file", "/nowhere/token"], "--token-file /nowhere/token: "),
        (["--tls-certificate", "/nowhere/c", "--tls-key", "/nowhere/k"], "the certificate /nowhere/c and the key"),
        (["--tls-key", "/nowhere/k"], "--tls-certificate and --tls-key come together: give both"),
        (["--master", "nothing"], "no Spark at 'nothing': give one such as local[4]"),
    ],
)
def test_what_else_is_wrong_is_said_in_a_sentence(capsys, warehouse, options, words):
    assert words in refusal(capsys, "--warehouse", warehouse, "--connect", str(free_port()), *options)


def test_a_catalogue_cannot_have_a_name_of_spark_s(capsys, warehouse):
    assert "catalog='spark_catalog'" in refusal(capsys, "--catalog", f"spark_catalog={warehouse}")


def test_a_spark_that_is_too_old_is_named(capsys, tmp_path, monkeypatch):
    installed = tmp_path / "pyspark-3.5.7.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: pyspark\nVersion: 3.5.7\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    assert refusal(capsys) == (
        "error: serve needs PySpark 4.0.1 or later, and this is 3.5.7: pip install 'pyspark>=4.0.1' 'pandas<3'"
    )


@pytest.mark.parametrize(
    ("jar", "options"), [("spark-connect", []), ("spark-hive-thriftserver", ["--jdbc", str(free_port())])]
)
def test_a_spark_without_the_jar_of_a_server_is_told_by_its_name(tmp_path, warehouse, jar, options):
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    for place in SPARK_HOME.iterdir():
        if place.name != "jars":
            (home / place.name).symlink_to(place)
    for place in (SPARK_HOME / "jars").iterdir():
        if not place.name.startswith(f"{jar}_"):
            (home / "jars" / place.name).symlink_to(place)
    command = [sys.executable, "-c", "from fuse_index.cli.program import main; main()", "serve", "--connect", "0"]
    command += ["--warehouse", warehouse, "--master", "local[1]", *options]
    told = environment() | {"SPARK_HOME": str(home)}
    done = subprocess.run(command, capture_output=True, text=True, env=told, timeout=100, check=False)

    assert done.returncode == 1
    assert f"error: this Spark has no {jar} among its jars: take the PySpark" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("endpoints", "words"),
    [
        (Endpoints(connect=None), "serve nobody"),
        (Endpoints(token="  "), "the token is empty"),
    ],
)
def test_endpoints_that_serve_nobody_or_strangers_are_refused(endpoints, words):
    with pytest.raises(fuse.InputError, match=words):
        endpoints.check_reach()


@pytest.mark.parametrize(
    "endpoints",
    [
        Endpoints(),
        Endpoints(address="::1"),
        Endpoints(address="0.0.0.0", insecure=True),
        Endpoints(address="10.0.0.1", token="s"),
        Endpoints(address="10.0.0.1", jdbc=10000, token="s"),
    ],
)
def test_endpoints_that_let_in_who_is_meant_to_come_are_taken(endpoints):
    endpoints.check_reach()


def test_a_port_for_health_that_was_taken_since_it_was_checked_is_named(taken_port):
    with pytest.raises(fuse.InputError, match=f"^port {taken_port} of 127.0.0.1 is taken: end the program"):
        HealthServer(Address("127.0.0.1", taken_port), dict)


def test_a_health_check_is_answered_503_where_the_server_is_not_well():
    def gone() -> dict[str, int]:
        raise fuse.InputError("Spark's JVM is gone: start the server again")

    address = Address("127.0.0.1", free_port())
    with HealthServer(address, gone), pytest.raises(urllib.error.HTTPError) as answer:
        urllib.request.urlopen(address.url("http"), timeout=10)
    with answer.value:
        assert answer.value.code == 503
        assert json.load(answer.value) == {"healthy": False, "problem": "Spark's JVM is gone: start the server again"}
