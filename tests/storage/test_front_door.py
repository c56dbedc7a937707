"""Front doors give what they promise, from the module that has it, and load no more than that."""

import json
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from zipfile import ZipFile

import pytest

DOORS = ["fuse_storage", "fuse_index", "fuse_index.spark"]


def in_new_process(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    names: list[str] = json.loads(done.stdout)
    return names


@pytest.mark.parametrize("door", DOORS)
def test_every_name_is_there_and_listed(door: str) -> None:
    package = import_module(door)
    names = set(dir(package))

    assert {"StoredTable", "lazy_names"} <= names if door == "fuse_storage" else set(package.__all__) <= names
    assert [name for name in names if not hasattr(package, name)] == []


@pytest.mark.parametrize("door", DOORS)
def test_no_name_is_that_of_a_module(door: str) -> None:
    """Importing such a module would put it in the place of what is promised."""
    package = import_module(door)
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    loaded = {name for name, value in vars(package).items() if value is sys.modules.get(f"{door}.{name}")}

    assert modules & (set(dir(package)) - loaded) == set()


def test_what_is_not_promised_is_refused() -> None:
    package = import_module("fuse_storage")

    with pytest.raises(AttributeError, match="module 'fuse_storage' has no attribute 'StoredTabel'"):
        package.StoredTabel  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'StoredTabel' from 'fuse_storage'"):
        exec("from fuse_storage import StoredTabel", {})


def test_a_name_loads_what_it_needs_and_nothing_else() -> None:
    loaded = in_new_process(
        "import json, sys; from fuse_storage import Schema\n"
        "print(json.dumps([n for n in sys.modules if n.partition('.')[0] == 'fuse_storage']))"
    )

    assert "fuse_storage.schema.schema" in loaded
    assert [
        name for name in loaded if name.split(".")[1:2] not in ([], ["schema"], ["errors"], ["front_door"], ["lazy"])
    ] == []


def test_a_front_door_opens_in_a_zip_file(tmp_path: Path) -> None:
    """As Spark hands packages to executors, by ``--py-files``."""
    folder = Path(import_module("fuse_storage").__path__[0])
    with ZipFile(tmp_path / "packages.zip", "w") as packages:
        for path in folder.rglob("*.py"):
            packages.write(path, path.relative_to(folder.parent))

    found = in_new_process(
        f"import json, sys; sys.path.insert(0, {str(tmp_path / 'packages.zip')!r}); import fuse_storage\n"
        "print(json.dumps([fuse_storage.__file__, fuse_storage.Schema.__name__]))"
    )

    assert found == [str(tmp_path / "packages.zip" / "fuse_storage" / "__init__.py"), "Schema"]


def test_a_worker_that_writes_blocks_loads_neither_queries_nor_other_operations() -> None:
    """Each Python worker of Spark pays for what it imports, and starts anew after a minute of rest."""
    loaded = in_new_process(
        "import json, sys; import fuse_index.spark.source.batch_writer\n"
        "print(json.dumps([n for n in sys.modules if n.startswith(('fuse_', 'multiprocessing'))]))"
    )
    rooms = {name.rpartition(".")[0] for name in loaded}

    assert "fuse_storage.parquet" in rooms
    assert {
        "fuse_index.table",
        "fuse_index.sources",
        "fuse_index.spark.native",
        "fuse_storage.catalog",
    } & rooms == set()
    assert {
        "multiprocessing",
        "fuse_index.query.scan",
        "fuse_index.pruning.planner",
        "fuse_index.export.iceberg",
    } & set(loaded) == set()
