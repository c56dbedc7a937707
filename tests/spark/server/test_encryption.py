"""A server that speaks TLS and asks for a token, for Spark Connect and as the password of JDBC."""

import datetime
import ipaddress
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import fuse_index as fuse
from fuse_index.spark import Certificate
from tests.spark import servers
from tests.spark.server.served import TOKEN, Served, start


def make_certificate(folder: Path) -> Certificate:
    """One that vouches for itself, for this machine."""
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]),
    )
    hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
    builder = builder.not_valid_after(now + datetime.timedelta(days=1))
    builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
    signed = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(
        key, hashes.SHA256()
    )
    (folder / "server.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "server.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, *private))
    return Certificate(folder / "server.pem", folder / "server.key")


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("encrypted")
    certificate = make_certificate(folder)
    files = ["--tls-certificate", str(certificate.chain), "--tls-key", str(certificate.private_key)]
    # Any address: a token is enough, for JDBC too.
    yield from start(folder, "--jdbc", "{jdbc}", "--address", "0.0.0.0", *files)


def test_a_client_of_connect_that_trusts_the_certificate_is_served(encrypted, monkeypatch):
    monkeypatch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(encrypted.lake.parent / "server.pem"))
    url = encrypted.connect.replace("/;", "/;use_ssl=true;")

    assert encrypted.told("refused", "SHOW NAMESPACES IN lake", url) == ""
    assert "Invalid authentication token" in encrypted.told("refused", "SELECT 1", url.replace(TOKEN, "wrong"))
    log = encrypted.log.read_text()
    assert "/;use_ssl=true;token=(what is in" in log
    assert TOKEN not in log


def beeline(served: Served, *options: str, password: str | None = TOKEN) -> subprocess.CompletedProcess[str]:
    url = served.jdbc + "/" + "".join(f";{each}" for each in options)
    command = [str(servers.SPARK_HOME / "bin" / "beeline"), "-u", url, "--outputformat=csv2", "--silent=true"]
    command += [
        "-n",
        "ann",
        *([] if password is None else ["-p", password]),
        "-e",
        "SHOW NAMESPACES IN lake",
        "-e",
        "SELECT 40 + 2 AS n",
    ]
    return subprocess.run(command, capture_output=True, text=True, env=servers.environment(), timeout=100, check=False)


@pytest.fixture(scope="module")
def trusted(encrypted: Served) -> str:
    """Options by which a JDBC driver trusts the server."""
    folder, password = encrypted.lake.parent, "of-no-secret"
    store = ["-keystore", str(folder / "trusted.p12"), "-storetype", "PKCS12", "-storepass", password]
    command = ["keytool", "-importcert", "-noprompt", "-alias", "server", "-file", str(folder / "server.pem"), *store]
    subprocess.run(command, check=True, capture_output=True)
    return f"ssl=true;sslTrustStore={folder / 'trusted.p12'};trustStorePassword={password}"


def test_a_jdbc_driver_gives_the_token_for_a_password(encrypted, trusted):
    done = beeline(encrypted, trusted)

    assert done.returncode == 0, done.stderr[-3000:]
    assert "n\n42\n" in done.stdout


@pytest.mark.parametrize("password", ["wrong", None])
def test_a_jdbc_driver_without_the_token_is_refused(encrypted, trusted, password):
    done = beeline(encrypted, trusted, password=password)

    assert done.returncode != 0
    assert "42" not in done.stdout
    assert "Peer indicated failure" in done.stderr


def test_a_driver_that_speaks_no_tls_is_not_served(encrypted):
    done = beeline(encrypted)

    assert done.returncode != 0
    assert "42" not in done.stdout


def test_a_certificate_and_a_key_that_are_not_of_each_other_are_refused(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    mixed = Certificate(make_certificate(tmp_path / "one").chain, make_certificate(tmp_path / "two").private_key)

    with pytest.raises(fuse.InputError, match=r"server\.key are of no use: .*KEY_VALUES_MISMATCH"):
        fuse.spark.Endpoints(certificate=mixed).check_reach()
    with pytest.raises(fuse.InputError, match="No such file"):
        Certificate(tmp_path / "none", tmp_path / "none").check()


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ((serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()), "keys in PKCS#8's format"),
        ((serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")), "without a password"),
    ],
)
def test_a_key_that_servers_cannot_read_is_refused_before_they_start(tmp_path, form, words):
    certificate = make_certificate(tmp_path)
    key = serialization.load_pem_private_key((tmp_path / "server.key").read_bytes(), None)
    (tmp_path / "server.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))

    with pytest.raises(fuse.InputError, match=words):
        certificate.check()
