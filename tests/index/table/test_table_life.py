"""The page about a table's whole life runs as it stands."""

import re
from pathlib import Path

import fuse_index

PAGE = Path(fuse_index.__file__).parent.parent / "docs" / "table-life.md"


def test_its_programs_run_one_after_the_other():
    programs = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    names: dict = {}

    for program in programs:
        exec(compile(program, str(PAGE), "exec"), names)

    assert len(programs) > 2
