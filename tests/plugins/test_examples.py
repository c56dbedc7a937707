"""Examples of plugins are distributions as strangers write them: built, installed into an environment, and used."""

import json
import shutil
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Reader

pytestmark = pytest.mark.any_spark

EXAMPLES = sorted((ROOT / "examples" / "plugins").iterdir())


def installed(folder: Path, *examples: Path) -> Reader:
    """An environment with the wheels of these examples, and their tests in the folder where it works."""
    reader = Reader(folder)
    for example in examples:
        shutil.copytree(example, folder / "sources" / example.name)
        for test in example.glob("test_*.py"):
            shutil.copy(test, reader.work)
        source = folder / "sources" / example.name
        reader.shell(f"pip wheel --quiet --no-deps -w wheels {source}", example.name)
    reader.shell("pip install --quiet wheels/*.whl", "the wheels")
    return reader


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_is_built_and_installed_and_passes_its_tests(example, tmp_path):
    kind = example.name.removeprefix("fuse-index-")

    reader = installed(tmp_path, example)

    reader.shell("fuse-index plugins --check", kind)
    shown = json.loads(reader.shell(f"fuse-index plugins show {kind} --json", kind))
    assert shown["from"] == f"{example.name} 0.1.0"
    assert "passed" in reader.shell("pytest -q -x", kind)
