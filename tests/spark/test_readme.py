"""Programs in the documents run as they are printed, in folders of the test's own."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def programs(document: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)


def run(program: str, folder: Path) -> None:
    exec(compile(program.replace('"/tmp/', f'"{folder}/'), "a document", "exec"), {})


def test_the_readme_has_programs():
    assert len(programs("README.md")) == 2


@pytest.mark.parametrize("program", programs("README.md"), ids=["with Spark", "without Spark"])
def test_a_program_of_the_readme_runs_and_skips_blocks(program, spark, tmp_path, capsys):
    run(program, tmp_path)

    printed = capsys.readouterr().out
    assert "blocks   1 of 10 to read" in printed or "Grace" in printed


def test_the_programs_about_spark_run_one_after_the_other(spark, tmp_path, capsys):
    parts = programs("docs/spark.md")
    run("\n".join(parts), tmp_path)

    assert len(parts) == 5
    assert capsys.readouterr().out == "72\n9900\n"
