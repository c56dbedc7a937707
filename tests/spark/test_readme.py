"""The README's programs run as they are printed, in folders of the test's own."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_readme_has_programs():
    assert len(PROGRAMS) == 2


@pytest.mark.parametrize("program", PROGRAMS, ids=["with Spark", "without Spark"])
def test_a_program_of_the_readme_runs_and_skips_blocks(program, spark, tmp_path, capsys):
    exec(compile(program.replace('"/tmp/', f'"{tmp_path}/'), "README.md", "exec"), {})

    printed = capsys.readouterr().out
    assert "blocks   1 of 10 to read" in printed or "Grace" in printed
