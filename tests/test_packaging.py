"""What is published: a wheel and a source archive that hold what they must, and nothing else."""

import email
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

import fuse_index

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
PACKAGES = ("fuse_storage", "fuse_index", "fuse_plugins")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both, built without a network by the tool that pip would use."""
    folder = tmp_path_factory.mktemp("built")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, check=True, capture_output=True
    )
    return folder


@pytest.fixture(scope="module")
def names(built: Path) -> list[str]:
    return ZipFile(next(built.glob("*.whl"))).namelist()


def test_the_wheel_has_three_typed_packages_and_nothing_else(names: list[str]) -> None:
    assert {name.partition("/")[0] for name in names} == {*PACKAGES, f"fuse_index-{fuse_index.__version__}.dist-info"}
    assert [package for package in PACKAGES if f"{package}/py.typed" not in names] == []
    assert [name for name in names if name.endswith((".pyc", ".ipynb", ".log"))] == []
    assert any(name.endswith(".java") for name in names)
    assert len([name for name in names if name.endswith(".py")]) > 400


def test_metadata_says_what_is_true(built: Path, names: list[str]) -> None:
    wheel = ZipFile(next(built.glob("*.whl")))
    metadata = email.message_from_bytes(wheel.read(next(name for name in names if name.endswith("/METADATA"))))

    assert metadata["Version"] == fuse_index.__version__
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert str(metadata.get_payload()).startswith("# fuse-index")
    assert metadata.get_all("Project-URL") is None  # a URL that nobody can open is worse than none
    assert set(metadata.get_all("Provides-Extra") or ()) == set(EXTRAS)
    points = wheel.read(next(name for name in names if name.endswith("/entry_points.txt"))).decode()
    assert "fuse-index = fuse_index.cli.program:main" in points
    assert "bloom = fuse_plugins.bloom" in points


def test_the_source_archive_has_what_builds_and_tests_it(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}

    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile", "tests/conftest.py"} <= inside
    assert [name for name in inside if name.startswith((".venv", "build/"))] == []


def test_extras_that_messages_and_pages_name_are_there() -> None:
    code = [path for package in ("fuse_storage", "fuse_index", "plugins") for path in (ROOT / package).rglob("*.py")]
    pages = [ROOT / "README.md", *(ROOT / "docs" / "start").glob("*.md"), *(ROOT / "docs" / "reference").glob("*.md")]
    lists = [
        found for path in (*code, *pages) for found in re.findall(r"fuse-index\[([a-z,]+)\]", path.read_text("utf-8"))
    ]
    lists += [found for path in pages for found in re.findall(r"'\.\[([a-z,]+)\]", path.read_text("utf-8"))]
    named = {extra for found in lists for extra in found.split(",")}

    assert {"spark", "delta"} <= named
    assert named <= set(EXTRAS)


def test_packages_are_imported_without_a_warning() -> None:
    program = "import fuse_storage, fuse_index, fuse_plugins, fuse_index.plugin, fuse_index.predicate\nfuse_index.Table"

    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
