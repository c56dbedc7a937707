"""``fuse-index … --spark``: in a process of its own, which is given its own sessions."""

import json
import os
import subprocess
import sys
from typing import NamedTuple

import pyarrow as pa
import pytest

import fuse_index
from fuse_index.spark import installation

SEVERAL = """
import json, sys
from fuse_index.cli.program import main
for arguments in json.loads(sys.argv[1]):
    sys.argv[1:], code = arguments, 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    for stream in (sys.stdout, sys.stderr):
        print(end=f"\\0{code}\\0", file=stream, flush=True)
"""
"""Command lines one after the other in a process, whose JVM outlives each session; behind its words is each's code."""


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str, **environment: str) -> Done:
    return run_all([arguments], **environment)[0]


def run_all(lines, **environment: str) -> list[Done]:
    done = subprocess.run(
        [sys.executable, "-c", SEVERAL, json.dumps(lines)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr
    out, err = (stream.split("\0") for stream in (done.stdout, done.stderr))
    return [Done(int(code), *said) for code, *said in zip(out[1::2], out[::2], err[::2], strict=False)]


def make_table(folder) -> str:
    made = fuse_index.create_table(str(folder), "id BIGINT, name STRING", properties={"block_rows": 100})
    made.create_index("by_name", "bloom", ["name"])
    made.append(pa.table({"id": range(1000), "name": [f"name {i}" for i in range(1000)]}))
    return str(folder)


@pytest.fixture
def table(tmp_path):
    return make_table(tmp_path / "t")


def test_commands_are_done_by_spark_jobs(tmp_path):
    rebuilt, deleted = make_table(tmp_path / "rebuilt"), make_table(tmp_path / "deleted")
    before = fuse_index.open_table(rebuilt).snapshot

    rebuild, delete, wrong = run_all(
        [
            ("index", "rebuild", rebuilt, "by_name", "--spark", "local[2]", "--json"),
            ("delete", deleted, "--where", "id < 250", "--spark", "local[2]", "--json"),
            ("index", "rebuild", deleted, "by_nmae", "--spark", "local[1]"),
        ]
    )

    assert rebuild.returncode == 0, rebuild.stderr
    assert json.loads(rebuild.stdout)["blocks_indexed"] == 10
    after = fuse_index.open_table(rebuilt)
    assert after.snapshot.sequence > before.sequence
    assert after.explain("name = 'name 7'").blocks.kept == 1

    assert delete.returncode == 0, delete.stderr
    assert json.loads(delete.stdout)["deleted_rows"] == 250
    assert fuse_index.open_table(deleted).scan().count() == 750

    assert wrong.returncode == 1
    *logged, told = wrong.stderr.splitlines()
    assert told == "error: no index 'by_nmae': did you mean 'by_name'?"
    # of Python 3.13 PySpark's own workers may log a failure of pkgutil's: frames of ours have no place there
    assert not any("fuse_index" in line or "fuse_storage" in line for line in logged)


def test_a_spark_that_cannot_be_had_is_said_in_a_line(table):
    done = run("index", "rebuild", table, "by_name", "--spark", "nonsense")

    assert done.returncode == 1
    assert done.stderr == "error: no Spark at 'nonsense': give one such as local[4], spark://host:7077 or sc://host\n"


def test_a_java_that_is_not_there_is_said_and_not_blamed_on_the_master(table, tmp_path):
    done = run("index", "rebuild", table, "by_name", "--spark", "local[1]", JAVA_HOME=str(tmp_path / "jdk"))

    assert done.returncode == 1
    assert f"JAVA_HOME is '{tmp_path}/jdk', and there is no program bin/java" in done.stderr.splitlines()[-1]
    assert "local[" not in done.stderr.splitlines()[-1]


def test_what_is_wrong_with_java_is_told_by_where_it_is_looked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "there is no Java: install" in installation._java_problem()
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "there is no program" in installation._java_problem()
    java.chmod(0o755)
    assert "ended at once" in installation._java_problem()
