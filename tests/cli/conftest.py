"""One command line, run as a shell would, without starting a process for each."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fuse_index.cli.program import main


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def run(capsys) -> Callable[..., Run]:
    def run(*arguments: object) -> Run:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Run(ended.value.code or 0, printed.out, printed.err)

    return run


@pytest.fixture
def people(tmp_path: Path, run) -> str:
    """Three rows a block, ten blocks, an index on the city."""
    table = str(tmp_path / "people")
    file = tmp_path / "people.csv"
    lines = [f"{i},name {i},{['Bonn', 'Oslo', 'Rome', 'Paris', 'Lima'][i // 6]}" for i in range(30)]
    file.write_text("\n".join(["id,name,city", *lines]) + "\n")
    schema = "id BIGINT, name STRING, city STRING"
    assert run("create", table, "--schema", schema, "--property", "block_rows=3").code == 0
    assert run("ingest", table, file).code == 0
    assert run("index", "create", table, "by_name", "--kind", "bloom", "--columns", "name").code == 0
    return table
