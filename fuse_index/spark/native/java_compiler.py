"""The Java side: compiled in the driver's JVM, by the compiler that every Spark carries for its generated code.

So there is no jar to build or ship, and one source serves every Spark from 4.0 on. Knows nothing of tables or votes.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

_compiling = threading.Lock()


def jvm_bridge(spark: SparkSession) -> Any:
    """Our one object in the JVM of a classic session: a ``Bridge``, whose methods ``Bridge.java`` documents.

    Made once per JVM, and kept there: py4j remembers methods by the name of their class, so a second class of one name
    would be called through the first's methods. Another version of the source is another package.
    """
    jvm: Any = spark.sparkContext._jvm
    gateway = spark.sparkContext._gateway
    package, sources = _sources()
    with _compiling:
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        kept = jvm.java.lang.System.getProperties()
        found = kept.get(package)
        if found is None:
            kept.putIfAbsent(package, _compile_bridge(jvm, package, sources))  # another Python may have been faster
            found = kept.get(package)
    return found


def _compile_bridge(jvm: Any, package: str, sources: Mapping[str, str]) -> Any:
    texts = jvm.java.util.HashMap()
    for name, source in sources.items():
        texts[f"{package}/{name}.java"] = f"package {package};\n{source}".encode()
    finder = jvm.org.codehaus.commons.compiler.util.resource.MapResourceFinder(texts)
    parent = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    loader = jvm.org.codehaus.janino.JavaSourceClassLoader(parent, finder, "UTF-8")
    # All now, because classes are compiled when they are loaded, and an error should not wait for a query.
    classes = {name: loader.loadClass(f"{package}.{name}") for name in sources}
    return classes["Bridge"].getConstructors()[0].newInstance(jvm.java.util.ArrayList().toArray())


@cache
def _sources() -> tuple[str, dict[str, str]]:
    """The name of a package, and what goes into it: the name is a hash of the rest."""
    folder = resources.files("fuse_index.spark") / "java"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".java")), key=lambda file: file.name)
    sources = {file.name.removesuffix(".java"): file.read_text("utf-8") for file in files}
    return f"fuse_index_{sha256(repr(sources).encode()).hexdigest()[:16]}", sources
