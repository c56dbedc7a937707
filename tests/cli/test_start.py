"""What a command loads first, what its help shows, what the shell completes, and how Ctrl-C ends it."""

import json
import os
import shlex
import signal
import subprocess
import sys
from importlib import import_module

import pytest
from typer.testing import CliRunner

import fuse_index as fuse
from fuse_index.cli.front.commands import ALIASES, COMMANDS, COMMANDS_BY_TASK
from fuse_index.cli.front.lazy_group import load_command
from fuse_index.cli.program import app

_PROGRAM = "from fuse_index.cli.program import main; main()"
_HEAVY = ("fuse_plugins", "pandas", "pyarrow.dataset", "pyspark", "rich.progress", "sqlglot", "typer.rich_utils")


def loaded_by(*arguments: object) -> list[str]:
    """The modules that a process has loaded when one command line has ended."""
    program = (
        "import json, sys\nfrom fuse_index.cli.program import main\n"
        "try:\n    main()\nfinally:\n    print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    names: list[str] = json.loads(done.stderr.splitlines()[-1])
    return names


def packages(modules: list[str]) -> set[str]:
    return {name for name in modules if name in _HEAVY or name in ("numpy", "pyarrow")}


def test_help_loads_no_command_and_nothing_that_reads_tables():
    loaded = loaded_by("--help")

    assert packages(loaded) == set()
    assert {name for name in loaded if name.startswith("fuse_") and not name.startswith("fuse_index.cli.front.")} == {
        "fuse_index",
        "fuse_index.cli",
        "fuse_index.cli.front",
        "fuse_index.cli.options",
        "fuse_index.cli.output",
        "fuse_index.cli.program",
        "fuse_index.errors",
        "fuse_index.ingest",
        "fuse_index.ingest.input_formats",
        "fuse_storage",
        "fuse_storage.errors",
        "fuse_storage.errors.sentence",
        "fuse_storage.front_door",
        "fuse_storage.source_options",
    }


def test_a_command_loads_what_it_needs(people):
    """Without a condition nobody parses SQL; plugins are loaded wherever a table is opened, as they may listen."""
    query = loaded_by("query", people, "-n", "1")
    asked = loaded_by("query", people, "-n", "1", "--where", "name = 'name 7'")

    assert packages(query) == {"numpy", "pyarrow", "fuse_plugins"}
    assert packages(loaded_by("log", people)) == {"numpy", "pyarrow", "fuse_plugins"}
    assert packages(loaded_by("show", people)) == {"numpy", "pyarrow", "fuse_plugins"}
    assert packages(asked) == {"numpy", "pyarrow", "fuse_plugins", "sqlglot"}
    assert {
        "fuse_index.export.iceberg",
        "fuse_index.hot.producer",
        "fuse_index.sources.sync",
        "fuse_index.table.inspection.inspect",
        "fuse_index.table.maintenance",
        "fuse_index.warehouse.catalog",
    } & set(asked) == set()
    assert len([name for name in query if name.startswith("fuse_")]) < 384


def test_pandas_is_known_to_pyarrow_as_soon_as_a_plugin_imports_it():
    pytest.importorskip("pandas")
    program = (
        "from fuse_index.cli.front.without_pandas import put_off_pandas\n"
        "put_off_pandas()\nimport sys, pyarrow as pa\npa.array([1])\nassert 'pandas' not in sys.modules\n"
        "import pandas as pd\nprint(pa.array(pd.Series([1.0, float('nan')])).null_count)"
    )

    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "1\n"


def test_help_lists_every_command_by_task_with_an_example(run):
    shown = run("--help").out

    for task, commands in COMMANDS_BY_TASK.items():
        assert task in shown
        assert f"fuse-index {next(iter(commands.values())).example}" in shown
        for name, command in commands.items():
            assert f" {name} " in shown
            assert command.summary in shown


def test_the_table_has_each_command_that_its_modules_have():
    groups = {"catalog", "index", "plugin", "plugins"}
    for command in {one.app: one for name, one in COMMANDS.items() if name not in groups}.values():
        module, _, name = command.app.partition(":")
        found = getattr(import_module(f"fuse_index.cli.{module}"), name).registered_commands

        assert {each.name for each in found} <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_command_lines_that_parse(name):
    command = load_command(name, COMMANDS[name])
    words = shlex.split(COMMANDS[name].example)

    assert words[0] == name
    arguments = words[1:]
    if hasattr(command, "commands"):
        command, arguments = command.commands[arguments[0]], arguments[1:]
    command.make_context(name, list(arguments), resilient_parsing=True)
    shown = CliRunner().invoke(app, [name, "--help"])
    assert shown.exit_code == 0
    assert "Example: fuse-index" in shown.output


@pytest.mark.parametrize("alias", ALIASES)
def test_names_that_python_has_are_taken(run, alias):
    assert run(alias, "--help").code == 0


def test_a_misspelt_command_gets_a_near_one(run):
    assert "query" in run("qery").err


@pytest.fixture
def complete(run, monkeypatch):
    def complete(*words: object) -> list[str]:
        monkeypatch.setenv("_FUSE_INDEX_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(map(str, words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        return run().out.split()

    return complete


def test_names_of_a_table_are_completed(complete, people):
    table = fuse.open_table(people)
    table.tag("release")
    table.branch("trial")

    assert complete("fuse-index", "query", people, "--columns", "ci") == ["city"]
    assert complete("fuse-index", "query", people, "--columns", "city,na") == ["city,name"]
    assert complete("fuse-index", "query", people, "--at", "r") == ["release"]
    assert complete("fuse-index", "query", people, "--branch", "t") == ["trial"]
    assert complete("fuse-index", "untag", people, "re") == ["release"]
    assert complete("fuse-index", "index", "show", people, "by") == ["by_name"]
    assert complete("fuse-index", "index", "create", people, "x", "--kind", "bl") == ["bloom"]
    assert complete("fuse-index", "rename-column", people, "na") == ["name"]
    assert complete("fuse-index", "query", people[:-2]) == [people]
    assert complete("fuse-index", "query", "/absent/table", "--columns", "c") == []


def test_tables_of_a_warehouse_are_completed_by_name(complete, tmp_path):
    warehouse = fuse.catalog(str(tmp_path / "w"), create=True)
    warehouse.create_namespace("shop")
    warehouse.create_table("shop.orders", "id BIGINT")

    assert complete("fuse-index", "query", tmp_path / "w") == [f"{tmp_path / 'w'}#"]
    assert complete("fuse-index", "query", f"{tmp_path / 'w'}#shop.o") == [f"{tmp_path / 'w'}#shop.orders"]


def test_ctrl_c_ends_with_a_word_and_leaves_the_table_as_it_was(people):
    """Rows come from a pipe that never ends; nothing of them is in the table, and it takes others."""
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # a job of a shell ignores it
    command = [sys.executable, "-c", f"{heeding}; {_PROGRAM}", "ingest", people, "-", "--format", "csv"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write("id,name,city\n" + "1,ann,Bonn\n" * 200_000)
        process.stdin.flush()
        os.kill(process.pid, signal.SIGINT)
        said = process.stderr.read()
        assert process.wait() == 130

    assert said == "interrupted\n"
    assert fuse.open_table(people).count() == 30
