"""Examples in docstrings are run, so that what a newcomer reads first is true."""

import doctest
import importlib
from pathlib import Path

import pytest

import fuse_index as fuse

ROOT = Path(__file__).parents[1]
PACKAGES = {"fuse_storage": ROOT, "fuse_index": ROOT, "fuse_plugins": ROOT / "plugins"}


def modules_with_examples() -> list[str]:
    """Names of the modules whose text holds an example; the others need not be imported to know."""
    return [
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for package, root in PACKAGES.items()
        for path in sorted((root / package).rglob("*.py"))
        if ">>> " in path.read_text()
    ]


def test_there_are_examples():
    assert modules_with_examples() != []


@pytest.mark.parametrize("module", modules_with_examples())
def test_examples_in_docstrings_are_true(module):
    """Examples know ``fuse``, as every page imports it."""
    found = importlib.import_module(module)

    result = doctest.testmod(found, optionflags=doctest.NORMALIZE_WHITESPACE, extraglobs={"fuse": fuse})

    assert result.attempted == Path(found.__file__).read_text().count(">>> ")
    assert result.failed == 0
