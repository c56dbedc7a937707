"""Examples of plugins are distributions as strangers write them: built, installed into an environment, and used."""

import json
import shutil
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Reader
from tests.effort import everything
from tests.plugins.some_types import OF_USUAL_OPTIONS

pytestmark = pytest.mark.any_spark

EXAMPLES = sorted((ROOT / "examples" / "plugins").iterdir())
CHOSEN = "" if everything() else f"-k 'not ({' or '.join(sorted(OF_USUAL_OPTIONS))})'"
"""Without what suites of the built-in kinds ask, unless EFFORT says more."""


def installed(folder: Path, *examples: Path) -> Reader:
    """An environment with these examples, of which pip builds wheels, and their tests in the folder where it works."""
    reader, sources = Reader(folder), folder / "sources"
    for example in examples:
        shutil.copytree(example, sources / example.name)
        for test in example.glob("test_*.py"):
            shutil.copy(test, reader.work)
    reader.shell(f"pip install --quiet {sources}/*", "the examples")
    return reader


@pytest.mark.timeout(900)
def test_examples_are_built_and_installed_and_pass_their_tests(tmp_path):
    """All in one environment: a third would be what processes of each do before they work."""
    reader = installed(tmp_path, *EXAMPLES)

    listed = json.loads(reader.shell("fuse-index plugins --check --json", "the examples"))["kinds"]
    told = reader.shell(f"pytest -q -x -rp {CHOSEN}", "the examples")
    sources = {kind["kind"]: kind["from"] for kind in listed}
    for example in EXAMPLES:
        assert sources[example.name.removeprefix("fuse-index-")] == f"{example.name} 0.1.0"
        assert f"PASSED test_{example.name.replace('-', '_')}.py" in told
