"""Tables by their places for clients of Spark Connect: read natively by a server that has us in its sessions."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from fuse_index.spark.native.relation import quote_path
from fuse_index.spark.source.options import TableLocation

SERVER_CATALOG_SETTING = "spark.fuse.index.server.catalog"
"""By this setting a session of a server's client says that it has us, in a catalogue of this name."""

_SNAPSHOT_ID = re.compile(r"[0-9a-f]{32}")
_NOT_NATIVE = "FUSE_NOT_NATIVE"


def server_catalog(spark: SparkSession) -> str | None:
    """The catalogue in which the server of a Connect client has tables by their places; None where it lacks us."""
    value = str(spark.sql(f"SET {SERVER_CATALOG_SETTING}").collect()[0][1])  # parsed, so that the session has us
    return None if value == "<undefined>" else value


def read_on_server(spark: SparkSession, location: TableLocation) -> DataFrame | str:
    """A DataFrame over the table that the server's own scan reads; or why there is none, for people."""
    catalog = server_catalog(spark)
    if catalog is None:
        return "this server has nothing of ours, as one has that fuse-index serve starts"
    if "/" not in location.url:
        return f"{location.url!r} has no slash, and so is no place to a server"
    if location.store_options:
        return "a server is not given options of the object store by its clients"
    if location.version is not None or (location.at is not None and not _SNAPSHOT_ID.fullmatch(location.at)):
        return "a server finds a state of a table by its id alone: give at=snapshot_id"
    parts = [catalog, location.url]
    if location.branch != "main":
        parts.append(f"branch_{location.branch}")
    if not location.tail:
        parts.append("base")
    name = quote_path(parts)
    table = (
        spark.table(name) if location.at is None else spark.sql(f"SELECT * FROM {name} VERSION AS OF '{location.at}'")
    )
    try:
        table.schema  # noqa: B018 - asks the server
    except PySparkException as refusal:
        if refusal.getCondition() == _NOT_NATIVE:
            return str(refusal).split("\n")[0]
        raise
    return table
