"""Java classes in the driver's JVM, compiled by Janino, the compiler that every Spark carries for its generated code.

So there is no jar to build or ship, and one source serves every Spark from 4.0 on. Janino drops type arguments: where
``javac`` finds a cast redundant, it may be needed here. What was compiled lies in a jar beside the bytecode of this
module, for the next JVM of the same Spark and Java. Knows nothing of tables or votes.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable
from importlib.util import cache_from_source
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
    """The classes of these sources, by their names without a room, as members of ``package`` in this JVM.

    ``sources``: by room and name, as ``read/FuseScan``. What is in the folder ``older`` stands for interfaces that this
    Spark may lack: its own come first. What is in ``named`` is for ``load_named_class``. All are loaded now, as an
    error should not wait for a query.
    """
    names = [f"{package}.{name.replace('/', '.')}" for name in sources if not name.startswith("named/")]
    jar = _jar_of_classes(jvm, package)
    if jar is not None and _is_sound(jar):
        with suppress(Py4JError):  # it lacks some: it is written anew
            return _load(_jar_loader(jvm, jar), names)
    bytecodes = java_class(jvm, "java.util.HashMap")()
    classes = _load(_source_loader(jvm, package, sources, bytecodes), names)
    if jar is not None and not sys.dont_write_bytecode:
        with suppress(OSError):  # nobody can write there: each JVM compiles for itself
            _write_jar(jar, ((name, bytecodes[name]) for name in bytecodes))
    return classes


def _load(loader: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name.rpartition(".")[2]: loader.loadClass(name) for name in names}


def _source_loader(jvm: Any, package: str, sources: Mapping[str, str], bytecodes: Any) -> Any:
    """A loader that compiles a class when it is loaded, and puts its bytes into ``bytecodes``, a ``java.util.Map``."""
    source_bytes = java_class(jvm, "java.util.HashMap")()
    for file in _java_folder().joinpath("older").iterdir():
        source_bytes[f"org/apache/spark/sql/connector/catalog/{file.name}"] = file.read_bytes()
    for name, source in sources.items():
        if not name.startswith("named/"):
            source_bytes[f"{package}/{name}.java"] = source.replace(_SOURCE_PACKAGE, package).encode()
    resource = "org.codehaus.commons.compiler.util.resource.MapResource"
    loader = java_class(jvm, "org.codehaus.janino.CachingJavaSourceClassLoader")(
        _spark_loader(jvm),
        java_class(jvm, f"{resource}Finder")(source_bytes),
        "UTF-8",
        java_class(jvm, f"{resource}Finder")(),  # nothing is compiled yet
        java_class(jvm, f"{resource}Creator")(bytecodes),
    )
    loader.setTargetVersion(8)  # so that static methods of interfaces can be called
    return loader


def _jar_of_classes(jvm: Any, package: str) -> Path | None:
    """Where these classes lie once they are compiled for this Spark and this Java; None where Spark names no build."""
    try:
        build = java_class(jvm, "org.apache.spark.SparkBuildInfo")
        spark = f"{build.spark_version()}-{build.spark_revision()[:12]}"
    except (Py4JError, TypeError):
        return None
    java = java_class(jvm, "java.lang.System").getProperty("java.specification.version")
    return Path(cache_from_source(__file__)).with_name(f"{package}.spark-{spark}.java-{java}.jar")


def _is_sound(jar: Path) -> bool:
    """Whether it is there, and all its members have the checksums that they were written with (1 ms)."""
    try:
        with zipfile.ZipFile(jar) as found:
            return found.testzip() is None
    except (OSError, zipfile.BadZipFile, NotImplementedError):
        return False


def _write_jar(jar: Path, bytecodes: Iterable[tuple[str, bytes]]) -> None:
    """Write it whole, or not at all, and remove those of other sources. Raises OSError."""
    jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jar.parent) as folder:
        unfinished = Path(folder, jar.name)
        with zipfile.ZipFile(unfinished, "w") as written:
            for name, code in bytecodes:
                written.writestr(name, code)
        unfinished.replace(jar)
    _, _, same = jar.name.partition(".")
    for other in jar.parent.glob(f"fuse_index_*.{same}"):
        if other != jar:
            other.unlink(missing_ok=True)


def _jar_loader(jvm: Any, jar: Path) -> Any:
    array = java_class(jvm, "java.lang.reflect.Array")
    places = array.newInstance(java_class(jvm, "java.lang.Class").forName("java.net.URL"), 1)
    array.set(places, 0, java_class(jvm, "java.io.File")(str(jar)).toURI().toURL())
    return java_class(jvm, "java.net.URLClassLoader")(places, _spark_loader(jvm))


def _spark_loader(jvm: Any) -> Any:
    return java_class(jvm, "org.apache.spark.util.Utils").getContextOrSparkClassLoader()


def load_named_class(jvm: Any, name: str) -> str | None:
    """Let Spark find one of the classes of ``java/named`` by its name, and give that name; None where it cannot.

    Spark's own loader takes places of class files as it takes jars. The class is loaded before its file goes.
    """
    package, sources = java_sources()
    full_name = f"{package}.named.{name}"
    spark_loader = _spark_loader(jvm)
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
