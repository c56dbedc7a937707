"""Examples of plugins are distributions as strangers write them: built, installed into an environment, and used."""

import json
import shutil
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Reader

pytestmark = pytest.mark.any_spark

EXAMPLES = sorted((ROOT / "examples" / "plugins").iterdir())


def installed(folder: Path, *examples: Path) -> Reader:
    """An environment with these examples, of which pip builds wheels, and their tests in the folder where it works."""
    reader, sources = Reader(folder), folder / "sources"
    for example in examples:
        shutil.copytree(example, sources / example.name)
        for test in example.glob("test_*.py"):
            shutil.copy(test, reader.work)
    reader.shell(f"pip install --quiet {sources}/*", "the examples")
    return reader


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_is_built_and_installed_and_passes_its_tests(example, tmp_path):
    kind = example.name.removeprefix("fuse-index-")

    reader = installed(tmp_path, example)

    reader.shell("fuse-index plugins --check", kind)
    shown = json.loads(reader.shell(f"fuse-index plugins show {kind} --json", kind))
    assert shown["from"] == f"{example.name} 0.1.0"
    assert "passed" in reader.shell("pytest -q -x", kind)
