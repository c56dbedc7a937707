"""Tables in Spark: native scans that ask indexes, ``format("fuse")``, SQL functions. The only folder that imports
pyspark.
"""

from fuse_index.spark.jobs.dml import compact, delete, merge, overwrite, recluster, update
from fuse_index.spark.jobs.views import introspect
from fuse_index.spark.jobs.write import build_index, write
from fuse_index.spark.session import Explanations, FallbackWarning, explain, install, read, search

__all__ = [
    "Explanations",
    "FallbackWarning",
    "build_index",
    "compact",
    "delete",
    "explain",
    "install",
    "introspect",
    "merge",
    "overwrite",
    "read",
    "recluster",
    "search",
    "update",
    "write",
]
