"""Java classes in the driver's JVM, compiled by Janino, the compiler that every Spark carries for its generated code.

So there is no jar to build or ship, and one source serves every Spark from 4.0 on. Janino drops type arguments: where
``javac`` finds a cast redundant, it may be needed here. Knows nothing of tables or votes.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

_SOURCE_PACKAGE = "fuse_index.spark.java"
"""What the sources call the package in whose place each version of them has one of its own."""

_compile_lock = threading.Lock()
_bridges: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""By the gateway to their JVM: to be asked for one is to ask the JVM twice."""


def jvm_bridge(spark: SparkSession) -> Any:
    """Our one object in the JVM of a classic session: a ``Bridge``, whose methods ``Bridge.java`` documents.

    Made once per JVM, and kept there: py4j remembers methods by the name of their class, so a second class of one name
    would be called through the first's methods. Another version of the source is another package.
    """
    gateway: Any = spark.sparkContext._gateway
    if (known := _bridges.get(gateway)) is not None:
        return known
    jvm: Any = spark.sparkContext._jvm
    package, sources = java_sources()
    with _compile_lock:
        properties = java_class(jvm, "java.lang.System").getProperties()
        bridge = properties.get(package)
        if bridge is None:
            constructor = load_java_classes(jvm, package, sources)["Bridge"].getConstructors()[0]
            properties.putIfAbsent(package, constructor.newInstance(java_class(jvm, "java.util.ArrayList")().toArray()))
            bridge = properties.get(package)  # another Python may have been faster
        _bridges[gateway] = bridge
    return bridge


def java_class(jvm: Any, name: str) -> Any:
    """The class of this full name, for calls of its constructor and static methods.

    Asked for at once: ``jvm.java.lang.System`` asks for ``java`` and ``java.lang`` first, and a class that does not
    exist is looked for in each of Spark's 250 jars: 20 ms in place of 1.
    """
    return getattr(jvm, name)


def load_java_classes(jvm: Any, package: str, sources: Mapping[str, str]) -> dict[str, Any]:
    """The classes of these sources, by their names without a room, compiled in this JVM as members of ``package``.

    ``sources``: by room and name, as ``read/FuseScan``. What is in the folder ``older`` stands for interfaces that this
    Spark may lack: its own come first. What is in ``named`` is for ``load_named_class``.
    """
    sources = {name: source for name, source in sources.items() if not name.startswith("named/")}
    source_bytes = java_class(jvm, "java.util.HashMap")()
    for file in _java_folder().joinpath("older").iterdir():
        source_bytes[f"org/apache/spark/sql/connector/catalog/{file.name}"] = file.read_bytes()
    for name, source in sources.items():
        source_bytes[f"{package}/{name}.java"] = source.replace(_SOURCE_PACKAGE, package).encode()
    finder = java_class(jvm, "org.codehaus.commons.compiler.util.resource.MapResourceFinder")(source_bytes)
    parent = java_class(jvm, "org.apache.spark.util.Utils").getContextOrSparkClassLoader()
    loader = java_class(jvm, "org.codehaus.janino.JavaSourceClassLoader")(parent, finder, "UTF-8")
    loader.setTargetVersion(8)  # so that static methods of interfaces can be called
    # All now, because classes are compiled when they are loaded, and an error should not wait for a query.
    return {name.rpartition("/")[2]: loader.loadClass(f"{package}.{name.replace('/', '.')}") for name in sources}


def load_named_class(jvm: Any, name: str) -> str | None:
    """Let Spark find one of the classes of ``java/named`` by its name, and give that name; None where it cannot.

    Spark's own loader takes places of class files as it takes jars. The class is loaded before its file goes.
    """
    package, sources = java_sources()
    full_name = f"{package}.named.{name}"
    spark_loader = java_class(jvm, "org.apache.spark.util.Utils").getContextOrSparkClassLoader()
    find = java_class(jvm, "java.lang.Class").forName
    with _compile_lock, tempfile.TemporaryDirectory() as folder:
        compiler = java_class(jvm, "org.codehaus.janino.SimpleCompiler")()
        compiler.setParentClassLoader(spark_loader)
        compiler.cook(sources[f"named/{name}"].replace(_SOURCE_PACKAGE, package))
        file = Path(folder, *package.split("."), "named", f"{name}.class")
        file.parent.mkdir(parents=True)
        file.write_bytes(compiler.getBytecodes()[full_name])
        try:
            spark_loader.addURL(java_class(jvm, "java.io.File")(folder).toURI().toURL())
            find(full_name, True, spark_loader)
        except (Py4JError, TypeError):  # a loader of somebody else's, that takes none
            return None
    return full_name


def _java_folder() -> Traversable:
    return resources.files("fuse_index.spark") / "java"


@cache
def java_sources() -> tuple[str, dict[str, str]]:
    """The name of a package, a hash of what goes into it, and the sources of its classes by their rooms and names."""
    sources = dict(sorted(_sources_in(_java_folder(), "")))
    return f"fuse_index_{sha256(repr(sources).encode()).hexdigest()[:16]}", sources


def _sources_in(folder: Traversable, room: str) -> Iterator[tuple[str, str]]:
    for file in folder.iterdir():
        if file.is_dir() and file.name != "older":
            yield from _sources_in(file, f"{file.name}/")
        elif file.name.endswith(".java") and file.name != "package-info.java":
            yield room + file.name.removesuffix(".java"), file.read_text("utf-8")
