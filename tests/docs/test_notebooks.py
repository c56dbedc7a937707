"""The notebooks of the documentation run, cell by cell, and what a cell ends with shows itself."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fuse_index.display.arrow import arrow_html

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def cells(notebook: Path) -> list[dict[str, Any]]:
    return json.loads(notebook.read_text("utf-8"))["cells"]


def run_cell(source: str, names: dict[str, Any], where: str) -> Any:
    """What the last expression of a cell is, if it ends with one."""
    tree = ast.parse(source, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, where, "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), where, "eval"), names)


def test_there_are_three() -> None:
    assert [notebook.stem for notebook in NOTEBOOKS] == ["delta-in-five-lines", "hot-table", "ten-minutes"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=[notebook.stem for notebook in NOTEBOOKS])
def test_a_notebook_runs_and_shows_what_its_cells_end_with(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    names: dict[str, Any] = {}
    for number, cell in enumerate(cells(notebook)):
        if cell["cell_type"] == "code":
            shown = run_cell("".join(cell["source"]), names, f"{notebook.name}:{number}")
            if isinstance(shown, pa.Table):
                assert "fuse-grid" in arrow_html(shown)
            elif hasattr(shown, "_repr_html_"):
                assert "<table>" in shown._repr_html_()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=[notebook.stem for notebook in NOTEBOOKS])
def test_a_notebook_is_kept_without_outputs(notebook: Path) -> None:
    assert [cell for cell in cells(notebook) if cell.get("outputs") or cell.get("execution_count")] == []
    lines = [line for cell in cells(notebook) for line in cell["source"]]
    assert max(map(len, lines)) <= 142
