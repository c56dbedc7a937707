"""The command ``serve``: servers for clients of Spark Connect and JDBC, from one process, until a signal ends it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from fuse_index import catalog
from fuse_index.cli import output
from fuse_index.cli.front.short_process import resume_garbage_collection
from fuse_index.cli.options import parse_texts, require_spark
from fuse_index.errors import InputError

if TYPE_CHECKING:
    from fuse_index.spark import Server

serve_app = typer.Typer(add_completion=False)

_CHECK_SECONDS = 5.0
_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
"""Settings of Spark that a server has unless others are given."""


@serve_app.command("serve")
def _serve(
    warehouse: Annotated[
        str | None, typer.Option("--warehouse", help="Path or URL of a warehouse, whose catalogue is fuse.")
    ] = None,
    catalogs: Annotated[
        list[str] | None,
        typer.Option(
            "--catalog", metavar="NAME=URL", help="Another warehouse, with the name of its catalogue; repeatable."
        ),
    ] = None,
    connect: Annotated[int, typer.Option(min=0, max=65535, help="Port for Spark Connect; 0 is any.")] = 15002,
    jdbc: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port for JDBC (the protocol of HiveServer2).")
    ] = None,
    address: Annotated[
        str, typer.Option(help="Where to listen; by default only programs of this machine reach it.")
    ] = "127.0.0.1",
    token_file: Annotated[
        Path | None,
        typer.Option(help="A file with the token that clients must present; those of JDBC, as their password."),
    ] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="A file with a certificate (PEM), by which the servers speak TLS.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(help="A file with the private key of the certificate (PEM, without a password).")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let whoever reaches the address run any code here, without a token.")
    ] = False,
    health: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port that answers health checks by HTTP.")
    ] = None,
    master: Annotated[str, typer.Option(help="Where Spark runs its tasks (local[4], spark://host:7077).")] = "local[*]",
    settings: Annotated[
        list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; repeatable.")
    ] = None,
    log_statements: Annotated[
        bool, typer.Option("--log-statements", help="Log each statement of SQL, and its session.")
    ] = False,
    stop_seconds: Annotated[
        int, typer.Option(min=0, help="For how many seconds statements that run may go on when the server is to end.")
    ] = 30,
) -> None:
    """Serve warehouses to clients of Spark Connect and JDBC, which need nothing of ours."""
    require_spark("serve")
    from fuse_index import spark as fuse_spark
    from fuse_index.spark.installation import check_catalog_name, start_spark
    from fuse_index.spark.server.address import Address, Certificate
    from fuse_index.spark.server.health import HealthServer
    from fuse_index.spark.server.statement_log import log_statements as log

    token = None if token_file is None else _read_token(token_file)
    if (tls_certificate is None) != (tls_key is None):
        raise InputError("--tls-certificate and --tls-key come together: give both")
    certificate = Certificate(tls_certificate, tls_key) if tls_certificate and tls_key else None
    endpoints = fuse_spark.Endpoints(connect, jdbc, address, token, insecure, certificate)
    endpoints.check_reach()
    named = _warehouses(warehouse, catalogs or [])
    for name in named:
        check_catalog_name(name)
    given = _QUIET | parse_texts(settings or [], "--conf")
    endpoints.check_free(*([health] if health else []))  # before Spark starts, which takes seconds
    spark = start_spark(master, given)
    try:
        stopping = _stop_signals()  # after Spark, which has signals of its own
        if log_statements:
            log(spark)
        server = fuse_spark.serve(spark, None, endpoints, catalogs=named)
        resume_garbage_collection()
        with HealthServer(Address(address, health), server.check) if health else nullcontext():
            _print_what_is_served(server, named, token_file)
            while not stopping.wait(_CHECK_SECONDS):
                server.check()
            output.print_note("waiting for the statements that run")
            server.stop(stop_seconds)
    finally:
        with suppress(Exception):  # a JVM that is gone cannot be asked to end
            spark.stop()


def _stop_signals() -> Event:
    """What is set when this process is asked to end."""
    stopping = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    return stopping


def _print_what_is_served(server: Server, named: Mapping[str, str], token_file: Path | None) -> None:
    connect = f"{server.connect}"
    if token_file is not None:
        connect += f"{';' if '/;' in connect else '/;'}token=(what is in {token_file})"
    output.print_text(f"Spark Connect  {connect}")
    output.print_text(f"JDBC           {server.jdbc or 'not served: give --jdbc PORT'}")
    catalogs = ", ".join(f"{name} = {place}" for name, place in named.items())
    output.print_text(f"catalogues     {catalogs or 'fuse, of tables by their places: give --warehouse for names'}")
    sys.stdout.flush()


def _read_token(file: Path) -> str:
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"--token-file {file}: {problem}") from problem


def _warehouses(warehouse: str | None, catalogs: Sequence[str]) -> Mapping[str, str]:
    """The places of warehouses by their names. Raises NotFound where there is none."""
    named = {} if warehouse is None else {"fuse": warehouse}
    for name, place in parse_texts(catalogs, "--catalog").items():
        if name in named:
            raise typer.BadParameter(f"{name!r} is the name of two warehouses", param_hint="--catalog")
        named[name] = place
    for place in named.values():
        catalog(place)
    return named
