"""Tables in Spark: native scans that ask indexes, ``format("fuse")``, jobs, SQL functions.

In: sessions, DataFrames, URLs of tables. Out: DataFrames, commits. The only room that imports PySpark.
"""

from typing import TYPE_CHECKING

from fuse_storage import lazy_names

if TYPE_CHECKING:
    from fuse_index.spark.explanations import Explanations, explain
    from fuse_index.spark.installation import install
    from fuse_index.spark.jobs.dml import delete, overwrite, update
    from fuse_index.spark.jobs.merge import merge
    from fuse_index.spark.jobs.upkeep import compact, recluster, tier
    from fuse_index.spark.jobs.upsert import upsert, upserting
    from fuse_index.spark.jobs.views import introspect
    from fuse_index.spark.jobs.write import build_index, write
    from fuse_index.spark.lakes.index import index
    from fuse_index.spark.lakes.use import use
    from fuse_index.spark.server.address import Certificate, Endpoints
    from fuse_index.spark.server.serve import Server, serve
    from fuse_index.spark.server.session_hook import install_in_new_sessions
    from fuse_index.spark.session import FallbackWarning, read, search
else:
    _load, __dir__ = lazy_names(__name__)

    def __getattr__(name: str) -> object:
        try:
            return _load(name)
        except ModuleNotFoundError as missing:
            if str(missing.name).partition(".")[0] not in ("pyspark", "py4j"):
                raise
            told = "fuse_index.spark needs PySpark: pip install 'pyspark>=4.0.1' 'pandas<3'"
            raise ModuleNotFoundError(told, name=missing.name) from missing


__all__ = [
    "Certificate",
    "Endpoints",
    "Explanations",
    "FallbackWarning",
    "Server",
    "build_index",
    "compact",
    "delete",
    "explain",
    "index",
    "install",
    "install_in_new_sessions",
    "introspect",
    "merge",
    "overwrite",
    "read",
    "recluster",
    "search",
    "serve",
    "tier",
    "update",
    "upsert",
    "upserting",
    "use",
    "write",
]
