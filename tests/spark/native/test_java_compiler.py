"""Our Java classes are compiled once for a build of Spark, and taken from a jar by the JVMs that follow."""

import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fuse_index.spark.native.java_compiler import java_sources, load_java_classes

pytestmark = pytest.mark.every_spark

PACKAGE = "fuse_index_of_a_test"
SOURCES = {
    "one/One": "package fuse_index.spark.java.one; public class One { public static int number() { return 1; } }",
    "two/Two": """package fuse_index.spark.java.two;
        public class Two {
            static class Within { int number = 1; }
            public static int number() { return new Within().number + fuse_index.spark.java.one.One.number(); }
        }""",
}


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where Python's bytecode, and jars beside it, are in this test."""
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path


def loaded(spark: SparkSession, package: str = PACKAGE) -> tuple[str, int]:
    """What the classes were loaded by, and what a method of them gives that calls another class."""
    classes: dict[str, Any] = load_java_classes(spark.sparkContext._jvm, package, SOURCES)
    assert list(classes) == ["One", "Two"]
    two = classes["Two"]
    return two.getClassLoader().getClass().getSimpleName(), two.getMethods()[0].invoke(None, None)


def jars(cache: Path) -> list[Path]:
    return sorted(cache.rglob("*.jar"))


def test_classes_are_compiled_once(spark: SparkSession, cache: Path) -> None:
    assert loaded(spark) == ("CachingJavaSourceClassLoader", 2)
    (jar,) = jars(cache)
    with zipfile.ZipFile(jar) as written:
        assert sorted(written.namelist()) == [
            f"{PACKAGE}/one/One.class",
            f"{PACKAGE}/two/Two$Within.class",
            f"{PACKAGE}/two/Two.class",
        ]
    assert spark.version in jar.name
    changed = jar.stat().st_mtime_ns

    assert loaded(spark) == ("URLClassLoader", 2)
    assert jar.stat().st_mtime_ns == changed
    assert [each.name for each in jar.parent.iterdir()] == [jar.name]


def truncated(jar: Path) -> None:
    jar.write_bytes(jar.read_bytes()[:-100])


def with_a_flipped_bit(jar: Path) -> None:
    content = bytearray(jar.read_bytes())
    content[content.index(b"\x04\xac")] ^= 1  # it returns 2 in place of 1, and Java sees nothing wrong
    jar.write_bytes(content)


def without_a_class(jar: Path) -> None:
    with zipfile.ZipFile(jar) as whole:
        one = whole.read(f"{PACKAGE}/one/One.class")
    with zipfile.ZipFile(jar, "w") as part:
        part.writestr(f"{PACKAGE}/one/One.class", one)


def with_what_is_no_class(jar: Path) -> None:
    with zipfile.ZipFile(jar, "w") as other:
        for name in SOURCES:
            other.writestr(f"{PACKAGE}/{name}.class", b"no class")


def empty(jar: Path) -> None:
    jar.write_bytes(b"")


@pytest.mark.parametrize("damage", [truncated, with_a_flipped_bit, without_a_class, with_what_is_no_class, empty])
def test_a_damaged_jar_is_written_anew(spark: SparkSession, cache: Path, damage: Callable[[Path], None]) -> None:
    loaded(spark)
    (jar,) = jars(cache)
    sound = jar.read_bytes()
    damage(jar)
    assert jar.read_bytes() != sound

    assert loaded(spark) == ("CachingJavaSourceClassLoader", 2)
    assert loaded(spark) == ("URLClassLoader", 2)


def test_jars_of_other_sources_go_and_those_of_another_spark_stay(spark: SparkSession, cache: Path) -> None:
    loaded(spark)
    (former,) = jars(cache)
    elsewhere = former.with_name(former.name.replace(spark.version, "9.9.9"))
    elsewhere.write_bytes(former.read_bytes())

    assert loaded(spark, "fuse_index_of_later") == ("CachingJavaSourceClassLoader", 2)
    assert jars(cache) == sorted([elsewhere, former.with_name(former.name.replace(PACKAGE, "fuse_index_of_later"))])


def test_nothing_is_written_where_python_writes_no_bytecode(
    spark: SparkSession, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert loaded(spark) == loaded(spark) == ("CachingJavaSourceClassLoader", 2)
    assert jars(cache) == []


def test_each_jvm_compiles_where_nobody_can_write(
    spark: SparkSession, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache / "file").touch()
    monkeypatch.setattr(sys, "pycache_prefix", str(cache / "file"))  # no folder, so that nobody can make one in it
    assert loaded(spark) == loaded(spark) == ("CachingJavaSourceClassLoader", 2)
    assert os.listdir(cache) == ["file"]


def test_our_own_classes_are_those_that_are_compiled(spark: SparkSession, cache: Path) -> None:
    package, sources = java_sources()
    jvm = spark.sparkContext._jvm
    compiled, taken = (load_java_classes(jvm, package, sources) for _ in range(2))

    assert {each.getClassLoader().getClass().getSimpleName() for each in taken.values()} == {"URLClassLoader"}
    for name, each in compiled.items():
        assert members(each) == members(taken[name]), name


def members(of: Any) -> list[str]:
    return sorted(str(method.toString()) for method in of.getDeclaredMethods())
