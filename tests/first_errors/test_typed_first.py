"""The tables of what newcomers type first, beside this file: each input gets its sentence, on its surface."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Iterator
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest

import fuse_index as fuse
from fuse_index.cli.program import main
from fuse_storage import set_store_defaults

HERE = Path(__file__).parent
NUMBERS = count()
COLUMNS = "id BIGINT NOT NULL, city STRING, price DECIMAL(9,2), at TIMESTAMP, tags ARRAY<STRING>"


def rows(file: str, sign: str) -> Iterator[tuple[str, str, str]]:
    """The inputs of a table, each with the kind of its error, or its exit code, and the sentence."""
    lines = (HERE / file).read_text("utf-8").splitlines()
    for typed, said in pairwise(lines):
        if typed.startswith(sign):
            kind, _, sentence = said.partition(": ")
            yield typed.removeprefix(sign), kind, sentence


PYTHON, SHELL = list(rows("python.txt", ">>> ")), list(rows("shell.txt", "$ "))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("first")
    catalog = fuse.catalog(place / "warehouse", create=True)
    catalog.create_namespace("shop")
    catalog.create_table("shop.orders", "id BIGINT, city STRING").append([{"id": 1, "city": "Bonn"}])
    (place / "empty").mkdir()
    for name, text in {
        "file.txt": "x",
        "x.txt": "x",
        "a.csv": "id,city\n1,Bonn\n2,Köln\n",
        "bad.csv": "id,city\n1,NA\nNA,Bonn\n",
        "na.csv": "id,city\n1,Bonn\nNA,Köln\n",
        "ragged.csv": "id,city\n1,Bonn,3\n",
        "e.csv": "",
        "bad.parquet": "x",
        "bad.json": "{id:1}",
    }.items():
        (place / name).write_text(text)
    fuse.create_table(place / "t", "id BIGINT, city STRING").append(place / "a.csv")
    fuse.open_table(place / "t").create_index("by_city", "bloom", ["city"])
    fuse.create_table(place / "k", "id BIGINT, city STRING", primary_key=["id"]).append(place / "a.csv")
    fuse.catalog(place / "w", create=True).create_namespace("shop")
    fuse.catalog(place / "w").create_table("shop.orders", "id BIGINT")
    return place


class Names(SimpleNamespace):
    """What inputs in Python know; tables are made when they are asked for, and are anew for each input."""

    def __getattr__(self, name: str) -> Any:
        if name == "k":
            made = fuse.create_table(f"memory://first-{next(NUMBERS)}", "id BIGINT, city STRING", primary_key=["id"])
        elif name == "t":
            made = fuse.create_table(f"memory://first-{next(NUMBERS)}", COLUMNS)
        else:
            raise AttributeError(name)
        made.append([{"id": 1, "city": "Bonn"}])
        setattr(self, name, made)
        return made


def test_the_tables_are_long_enough() -> None:
    assert len(PYTHON) + len(SHELL) >= 800


@pytest.mark.parametrize(
    ("typed", "kind", "sentence"), PYTHON, ids=[f"{number} {row[0][:50]}" for number, row in enumerate(PYTHON)]
)
def test_python_says_what_is_wrong_and_what_to_do(typed: str, kind: str, sentence: str, place: Path) -> None:
    names = Names(fuse=fuse, pa=pa, p=place, c=fuse.catalog(place / "warehouse"))
    known = {name: getattr(names, name) for name in ("fuse", "pa", "p", "c")}
    known |= {name: getattr(names, name) for name in ("t", "k") if f"{name}." in typed}
    with pytest.raises(Exception) as raised, warnings.catch_warnings():  # noqa: PT012
        warnings.simplefilter("ignore")
        eval(typed, known)

    assert sentence in str(raised.value)
    assert type(raised.value).__name__ == kind


@pytest.mark.parametrize(("package", "kind"), [("deltalake", "delta"), ("pyiceberg", "iceberg")])
def test_a_package_that_is_missing_is_named_with_what_installs_it(
    package: str, kind: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(fuse.InputError, match=f": pip install {package}$"):
        fuse.attach(place / "empty", "memory://attached", kind)


@pytest.mark.parametrize(
    ("typed", "code", "sentence"), SHELL, ids=[f"{number} {row[0][:50]}" for number, row in enumerate(SHELL)]
)
def test_the_shell_says_what_is_wrong_and_what_to_do(
    typed: str,
    code: str,
    sentence: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "300")
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(typed))
    said = capsys.readouterr()
    set_store_defaults({})

    assert str(ended.value.code) == code
    assert sentence in " ".join(said.err.split()).replace("\\n", " ")
    assert "Traceback" not in said.err
    assert not said.out
