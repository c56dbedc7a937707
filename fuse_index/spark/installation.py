"""Sessions that know us: ``install``, and sessions of a program's own.

In: a session, and where its tables are. Out: the same session, which reads and writes them, by name and by place.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fuse_index.errors import InputError
from fuse_index.indexes.registry import Host
from fuse_index.spark import functions
from fuse_index.spark.catalog.endpoint import install_catalog
from fuse_index.spark.native.java_compiler import jvm_bridge
from fuse_index.spark.placement import is_connect
from fuse_index.spark.server.served_read import server_catalog
from fuse_index.spark.session import register_session
from fuse_index.spark.source import data_source
from fuse_index.table.arguments import check_arguments
from fuse_index.warehouse.catalog import Catalog
from fuse_index.warehouse.catalog import catalog as open_catalog

_MASTER_PATTERN = re.compile(r"local(\[(\*|\d+)(, *\d+)?\]|-cluster\[.*\])?|yarn|(spark|k8s|sc)://.+")
_CATALOG_PATTERN = re.compile(r"[\w-]+")
_SPARK_CATALOGS = ("spark_catalog", "system", "session", "global_temp")
_MASTER_HINT = "give one such as local[4], spark://host:7077 or sc://host"


def start_session(master: str) -> SparkSession:
    """Start a session of a program's own, with this Python for its workers, and install us in it.

    ``master``: such as ``local[4]`` or ``sc://host``. Raises InputError where Spark cannot be had.
    """
    spark = start_spark(master)
    install(spark)
    return spark


def start_spark(master: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start a session as ``start_session`` does, with these settings, and without us. Raises InputError."""
    if not _MASTER_PATTERN.fullmatch(master):  # or the JVM says so, in a page
        raise InputError(f"no Spark at {master!r}: {_MASTER_HINT}")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # or workers take any python3 on the PATH
    builder = SparkSession.builder.appName("fuse-index").config(map=dict(settings or {}))
    try:
        return (builder.remote(master) if master.startswith("sc://") else builder.master(master)).getOrCreate()
    except (PySparkException, Py4JError) as refusal:
        if "JAVA_GATEWAY_EXITED" in str(refusal):
            raise InputError(f"Spark did not start: {_java_problem()}") from refusal
        first_line = str(refusal).strip().split("\n")[0]
        raise InputError(f"no Spark at {master!r}: {first_line}; {_MASTER_HINT}") from refusal


def _java_problem() -> str:
    """Why the JVM did not come up, and what to do, as far as the place of its program tells."""
    home = os.environ.get("JAVA_HOME")
    if home and not os.access(Path(home) / "bin" / "java", os.X_OK):
        return f"JAVA_HOME is {home!r}, and there is no program bin/java: set it to a Java 17 or later, or unset it"
    if not home and shutil.which("java") is None:
        return "there is no Java: install Java 17 or later, and set JAVA_HOME to it or put it on the PATH"
    return f"{home or shutil.which('java')} ended at once, and what it said stands above; Spark needs Java 17 or later"


@check_arguments
def install(
    spark: SparkSession,
    host: Host | None = None,
    catalog: str = "fuse",
    warehouse: str | Path | None = None,
    *,
    options: Mapping[str, str] | None = None,
) -> None:
    """Make a session know ``format("fuse")`` and, if it is a classic one, let SQL name tables and ask indexes.

    Safe to call twice: a host or warehouse given later replaces the former, a host also for DataFrames that are there
    already; another warehouse is told of in the log.

    Args:
        spark: A session, classic or Connect.
        host: The index kinds and functions to use; by default those that are installed.
        catalog: The name under which SQL has the tables of ``warehouse``.
        warehouse: A path or URL that is made if there is nothing; without one, tables are named by their places,
            ``fuse.`/path` ``.
        options: Of the object store.

    Raises:
        InputError: A warehouse on Spark Connect, or a name that Spark has a catalogue of.
        StorageError: The store fails.

    Example:
        fuse_spark.install(spark, warehouse="/data/warehouse")
        spark.sql("CREATE TABLE fuse.orders (id BIGINT)")
    """
    check_catalog_name(catalog)
    if not is_connect(spark):
        names = None if warehouse is None else open_catalog(warehouse, options, create=True, host=host)
        install_catalogs(spark, host, [NamedWarehouse(catalog, names, options)])
        return
    if host is not None or server_catalog(spark) is None:  # what a server has asks indexes, and a client's does not
        _register_names(spark, host)
    if warehouse is not None:
        raise InputError(
            "Spark Connect has no JVM here that could have a catalogue: find a table by fuse_index.catalog(warehouse)"
            ".table_url(name), and read it by spark.read.format('fuse').load(url)"
        )


@dataclass(frozen=True, slots=True)
class NamedWarehouse:
    """The name of a catalogue and the warehouse behind it, if any. ``options``: of the object store."""

    name: str
    warehouse: Catalog | None = None
    options: Mapping[str, str] | None = None


def install_catalogs(spark: SparkSession, host: Host | None, catalogs: Iterable[NamedWarehouse]) -> None:
    """Install us in a classic session, with catalogues whose warehouses are open already."""
    _register_names(spark, host)
    session = register_session(spark, host)
    for each in catalogs:
        install_catalog(spark, each.name, each.warehouse, each.options, host)
        if each.warehouse is not None:
            session.source_indexes.use_warehouse(each.name, each.warehouse)
            jvm_bridge(spark).renewSourceIndexes(spark._jsparkSession, session.key)


def check_catalog_name(name: str) -> None:
    """Raise InputError for a name that no catalogue of ours can have."""
    if name.lower() in _SPARK_CATALOGS or not _CATALOG_PATTERN.fullmatch(name):
        raise InputError(f"catalog={name!r}: give a name of letters, digits, - and _ that Spark has no catalogue of")


def _register_names(spark: SparkSession, host: Host | None) -> None:
    data_source.register_source(spark, host)
    functions.register_functions(spark, host or Host.discover())
