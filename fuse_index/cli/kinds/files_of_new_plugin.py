"""The files of a new plugin, as templates: ``$name``, ``$module``, ``$kind`` and others stand for what was chosen."""

from __future__ import annotations

_PYPROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "$distribution"
version = "0.1.0"
description = "The index kind $name for fuse-index"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["fuse-index>=$version"]

[project.optional-dependencies]
test = ["fuse-index[testing]"]

[project.entry-points."fuse_index.plugins"]
$name = "$module"

[tool.hatch.build.targets.wheel]
include = ["$module.py"]
"""

_KIND = '''"""The index kind $name. It begins as the distinct values of each block, for = and IN: make it yours."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fuse_index.plugin import ALL, NONE, SOME, Ballot, IndexKind, Probe, Reason, Refusal, Sidecar, hookimpl
from fuse_index.predicate import Compare, In, Literal


@dataclass(frozen=True)
class ${kind}Options:
    most: int = 40
    """A block with more values is always read."""

    def __post_init__(self):
        if self.most < 1:
            raise ValueError(f"most is {self.most}, and a block has at least one value")


class $kind(IndexKind):
    """The distinct values of each block, as long as they are few."""

    name = "$name"
    Options = ${kind}Options

    def accepts(self, inputs, options):
        if len(inputs) == 1 and inputs[0].type in (pa.int64(), pa.string()):
            return None
        return Refusal(Reason.TYPE_MISMATCH, "$name is on one column of bigint or string")

    def summary_type(self, inputs, options):
        return pa.list_(pa.list_(inputs[0].type))

    def build(self, rows, zones, options):
        values = rows.column(0).drop_null().unique().to_pylist()
        short = len(values) <= options.most and not any(isinstance(value, str) and len(value) > 20 for value in values)
        return Sidecar([values] if short else [])

    def compile(self, what, inputs, options, context):
        match what:
            case Compare("=", term, Literal(value)) if term == inputs[0].term:
                return Probe(frozenset([value]))
            case In(term, values) if term == inputs[0].term:
                return Probe(frozenset(value.value for value in values))
        return Refusal(Reason.LEAF_UNSUPPORTED, "$name answers = and IN")

    def probe(self, probe, batch):
        return Ballot(np.array([self.judge(probe.what, held) for held in batch.summaries.to_pylist()], np.uint8))

    def judge(self, wanted, held):
        if not held:  # the block is not indexed, or has too many values
            return SOME
        [values] = held
        return NONE if wanted.isdisjoint(values) else ALL if wanted.issuperset(values) else SOME


@hookimpl
def fuse_index_kinds():
    return [$kind]
'''

_TESTS = '''from $module import $kind

import fuse_index as fuse
from fuse_index.plugin import Refusal
from fuse_index.testing import IndexTests


class Test$kind(IndexTests):
    """All that fuse-index asks of a kind. ``pytest -rP -k how_long`` tells how long a vote takes."""

    index = $kind
    summary_bytes = 4096


def test_a_table_skips_blocks_by_it(tmp_path):
    table = fuse.create_table(str(tmp_path / "people"), "city STRING", properties={"block_rows": 2})
    table.create_index("by_city", "$name", ["city"])
    table.append([{"city": city} for city in ("Bonn", "Lima", "Cork", "Bern")])

    explanation = table.explain("city = 'Cork'")

    assert table.scan("city = 'Cork'").to_arrow().num_rows == 1
    assert explanation.blocks.kept == 1
    assert "USED" in [vote.reason for vote in explanation.votes if vote.index == "by_city"]


def test_what_it_cannot_answer_it_refuses():
    assert isinstance($kind().accepts([], $kind.Options()), Refusal)
'''

_README = """# $distribution

The index kind `$name` for fuse-index.

```sh
pip install -e '.[test]'
pytest
fuse-index plugins show $name
```

```python
table.create_index("by_city", "$name", ["city"])
print(table.explain("city = 'Cork'"))
```

Without installing it, one file can be tried: `fuse-index --plugin $module.py plugins show $name`.
"""

FILES = {
    "pyproject.toml": _PYPROJECT,
    "README.md": _README,
    "$module.py": _KIND,
    "test_$module.py": _TESTS,
    ".gitignore": "__pycache__/\n.pytest_cache/\n.hypothesis/\ndist/\n",
}
"""By path, the text of each file."""
