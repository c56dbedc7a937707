"""What a newcomer types first and is not so: the input, where it is typed, and the sentence that comes back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuse_index as fuse
import fuse_storage

Doing = Callable[[Path, fuse.Table], object]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("first")
    catalog = fuse.catalog(made / "warehouse", create=True)
    catalog.create_namespace("shop")
    catalog.create_table("shop.orders", "id BIGINT, city STRING").append([{"id": 1, "city": "Bonn"}])
    (made / "files").mkdir()
    pq.write_table(pa.table({"a": [1]}), made / "files" / "x.parquet")
    return made


@pytest.fixture(scope="module")
def table(place: Path) -> fuse.Table:
    return fuse.catalog(place / "warehouse").load_table("shop.orders")


def create(ddl: str) -> Doing:
    return lambda place, table: fuse.create_table("memory://never-made", ddl)


PYTHON: list[tuple[str, Doing, type[Exception], str]] = [
    ("open a warehouse", lambda p, t: fuse.open_table(p / "warehouse"), fuse.NotFound, r"is a warehouse.*load_table\("),
    ("open a folder of Parquet", lambda p, t: fuse.open_table(p / "files"), fuse.NotFound, r"attach them: attach\("),
    (
        "a table of a warehouse by #",
        lambda p, t: fuse.open_table(f"{p}/warehouse#shop.orders"),
        fuse.NotFound,
        r"is opened by catalog\('.*/warehouse'\)\.load_table\('shop.orders'\)",
    ),
    (
        "a name without its namespace",
        lambda p, t: fuse.catalog(p / "warehouse").load_table("orders"),
        fuse.NotFound,
        r"did you mean \['shop.orders'\]",
    ),
    ("a state of another kind", lambda p, t: t.restore(1.5), fuse.InputError, "at=1.5: give a text"),
    ("a word without quotes", lambda p, t: t.update(None, {"city": "Berlin"}), fuse.WhereError, "missing: 'Berlin'"),
    ("WHERE before a condition", lambda p, t: t.scan("WHERE id = 1"), fuse.WhereError, "leave out the word WHERE"),
    ("LIMIT behind one", lambda p, t: t.scan("id = 1 LIMIT 5"), fuse.WhereError, "a condition ends before LIMIT"),
    ("ORDER BY behind one", lambda p, t: t.scan("id = 1 ORDER BY id"), fuse.WhereError, "ends before ORDER"),
    ("a misspelt function", lambda p, t: t.scan("uper(city) = 'A'"), fuse.OpaqueError, r"did you mean \['upper'"),
    ("no connection of DuckDB", lambda p, t: t.scan().to_duckdb("x"), fuse.InputError, "give a connection of DuckDB"),
    ("a primary key in DDL", create("id BIGINT PRIMARY KEY"), fuse.WhereError, r"primary_key=\['id'\]"),
    ("a primary key behind all", create("id BIGINT, PRIMARY KEY (id)"), fuse.WhereError, r"primary_key=\['id'\]"),
    ("a default in DDL", create("id BIGINT DEFAULT 5"), fuse.WhereError, "table.set_default"),
    ("a check in DDL", create("id BIGINT CHECK (id > 1)"), fuse.WhereError, "rows are not checked"),
    ("a generated column", create("id BIGINT GENERATED ALWAYS AS IDENTITY"), fuse.WhereError, "compute the values"),
    ("a unique column", create("id BIGINT UNIQUE"), fuse.WhereError, "only a primary key holds rows apart"),
    ("a constraint", create("id BIGINT, CONSTRAINT c CHECK (id > 0)"), fuse.WhereError, "only NOT NULL is checked"),
    ("a foreign key", create("id BIGINT REFERENCES a (b)"), fuse.WhereError, "no table knows of another"),
    ("a misspelt type", create("id BIGNIT"), fuse.WhereError, "did you mean BIGINT"),
]


@pytest.mark.parametrize(("doing", "error", "says"), [row[1:] for row in PYTHON], ids=[row[0] for row in PYTHON])
def test_python_says_what_to_do(
    place: Path, table: fuse.Table, doing: Doing, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        doing(place, table)


def test_columns_may_be_called_as_clauses_are() -> None:
    made = fuse.create_table("memory://named-as-clauses", "check INT, unique STRING, constraint STRUCT<a: INT>")

    assert made.snapshot.schema.names == ["check", "unique", "constraint"]


def test_a_table_is_read_as_a_stream_by_others(table: fuse.Table) -> None:
    assert pa.table(table).to_pylist() == [{"id": 1, "city": "Bonn"}]


def test_python_can_name_what_was_meant() -> None:
    with pytest.raises(AttributeError) as missing:
        _ = fuse.opn_table

    assert missing.value.name == "opn_table"
    assert missing.value.obj is fuse
    assert "open_table" in dir(fuse_storage) + dir(fuse)


@pytest.mark.parametrize(
    ("typed", "last"),
    [
        ("table.scan().to_panda", "Did you mean: 'to_pandas'?"),
        ("table.scan().collect", "a scan is read by to_arrow()"),
        ("table.maintenance.vacum", "Did you mean: 'vacuum'?"),
        ("table.apend", "Did you mean: 'append'?"),
        ("fuse.opn_table", "Did you mean: 'open_table'?"),
    ],
)
def test_a_notebook_shows_a_name_that_is_not_there_without_our_frames(table: fuse.Table, typed: str, last: str) -> None:
    with pytest.raises(AttributeError) as missing:
        eval(typed, {"table": table, "fuse": fuse})

    lines = missing.value._render_traceback_()  # type: ignore[attr-defined]
    assert last in lines[-1]
    assert not any("fuse_index/" in line or "fuse_storage/" in line for line in lines)


WITHOUT = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError("No module named " + name, name=name)
sys.meta_path.insert(0, Without())
"""
"""A process in which a package is not installed."""
MISSING = [
    ("pyspark", "from fuse_index.spark import install", "pip install 'pyspark>=4.0.1' 'pandas<3'"),
    ("pytest", "from fuse_index.testing import IndexTests", "pip install pytest hypothesis"),
    ("pandas", "fuse.create_table('memory://x', 'id BIGINT').scan().to_pandas()", "pip install 'pandas<3'"),
    ("polars", "fuse.create_table('memory://x', 'id BIGINT').scan().to_polars()", "pip install polars"),
    ("duckdb", "fuse.create_table('memory://x', 'id BIGINT').scan().to_duckdb()", "pip install duckdb"),
]


@pytest.mark.parametrize(("package", "code", "says"), MISSING, ids=[row[0] for row in MISSING])
def test_a_package_that_is_missing_is_named_with_how_to_get_it(package: str, code: str, says: str) -> None:
    program = f"{WITHOUT.format(package=package)}\nimport fuse_index as fuse\n{code}"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert says in found.stderr.splitlines()[-1]
