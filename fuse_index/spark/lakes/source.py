"""Which source is meant: by its name in a catalogue of Spark's, by its path or URL, or by a DataFrame that reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from fuse_index.errors import InputError
from fuse_index.sources.formats import detect_format
from fuse_index.sources.location import normal_location
from fuse_index.spark.native.java_compiler import jvm_bridge
from fuse_storage import NotFound


@dataclass(frozen=True, slots=True)
class NamedSource:
    """A source that is meant. ``location``: as ``normal_location`` writes it.

    ``columns``: what the source calls the columns of a view or query that reads it, by the names there; None for one
    that is computed. None where the source itself is named.
    """

    format: str
    location: str
    columns: Mapping[str, str | None] | None = None


def find_source(
    spark: SparkSession, source: str | DataFrame, format_: str | None, options: Mapping[str, str]
) -> NamedSource:
    """Find the source that a name, a path, a URL or a DataFrame means. ``options``: of the object store for us.

    Raises NotFound where there is none, InputError for one that no connector reads which is known here.
    """
    if isinstance(source, str) and (source.startswith(("/", "file:/")) or "://" in source):
        return NamedSource(format_ or detect_format(source, dict(options)), normal_location(source))
    try:
        rows = spark.table(source) if isinstance(source, str) else source
        found, columns = jvm_bridge(spark).source(rows._jdf), dict(jvm_bridge(spark).sourceColumns(rows._jdf))
    except (PySparkException, Py4JJavaError) as refusal:
        raise NotFound(f"source {source!r} cannot be read: {str(refusal).strip().splitlines()[0]}") from refusal
    if found is None:
        raise InputError(
            f"source {source!r} is not read by a connector that is known here: give a table of Parquet files, Delta or "
            f"Iceberg (none of its metadata), or a path"
        )
    read_as, location = list(found)
    if format_ not in (None, read_as):
        raise InputError(f"format={format_!r}: {source!r} is read as {read_as}")
    return NamedSource(read_as, normal_location(location), columns)
