"""``fuse-index … --spark``: in a process of its own, which is given its own session."""

import json
import os
import subprocess
import sys

import pyarrow as pa
import pytest

import fuse_index
from fuse_index.spark import installation


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = "from fuse_index.cli.program import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env=os.environ | environment,
    )


@pytest.fixture
def table(tmp_path):
    made = fuse_index.create_table(str(tmp_path / "t"), "id BIGINT, name STRING", properties={"block_rows": 100})
    made.create_index("by_name", "bloom", ["name"])
    made.append(pa.table({"id": range(1000), "name": [f"name {i}" for i in range(1000)]}))
    return str(tmp_path / "t")


def test_an_index_is_rebuilt_by_a_spark_job_from_the_command_line(table):
    before = fuse_index.open_table(table).snapshot

    done = run("index", "rebuild", table, "by_name", "--spark", "local[2]", "--json")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["blocks_indexed"] == 10
    after = fuse_index.open_table(table)
    assert after.snapshot.sequence > before.sequence
    assert after.explain("name = 'name 7'").blocks.kept == 1


def test_rows_are_deleted_by_a_spark_job_from_the_command_line(table):
    done = run("delete", table, "--where", "id < 250", "--spark", "local[2]", "--json")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["deleted_rows"] == 250
    assert fuse_index.open_table(table).scan().count() == 750


def test_an_index_that_is_not_there_is_said_in_a_line_by_spark_too(table):
    done = run("index", "rebuild", table, "by_nmae", "--spark", "local[1]")

    assert done.returncode == 1
    assert "by_name" in done.stderr
    assert "Traceback" not in done.stderr


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
