"""Tables are kept by a command: once or for ever, by name or by warehouse, and what stands in the way is said."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import fuse_index as fuse

ROOT = Path(__file__).parents[2]


def grown(table: fuse.Table, commits: int = 6) -> fuse.Table:
    for number in range(commits):
        table.append([{"id": number}])
    return table


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    """Three tables: of one nobody says that it is kept, and of one that it is not."""
    place = str(tmp_path / "warehouse")
    catalog = fuse.catalog(place, create=True)
    for name, properties in (("kept", {"maintain": "on"}), ("unsaid", {}), ("off", {"maintain": "off"})):
        grown(catalog.create_table(name, "id BIGINT", properties=properties))
    return place


def test_what_is_due_is_shown_and_then_done(run, warehouse):
    assert [row["task"] for row in run("show", f"{warehouse}#unsaid", "due", "--json").json] == ["compact"]
    would = run("maintain", warehouse, "--dry-run")
    assert would.out.startswith("kept: compact would read ")
    assert would.out.endswith(": 6 of 6 blocks are small\n")

    done = run("maintain", warehouse)
    assert (done.code, done.err, done.out.count("\n")) == (0, "", 1)
    assert done.out.startswith("kept: compact in ")
    assert "read, " in done.out
    nothing = run("maintain", warehouse)
    assert (nothing.code, nothing.out) == (0, "")
    assert nothing.err.startswith("nothing to do: no table is due")
    assert run("show", f"{warehouse}#kept", "due", "--json").json == []
    (row,) = run("show", f"{warehouse}#kept", "maintenance", "--json").json
    assert (row["task"], row["bytes_ingested"]) == ("compact", row["bytes_read"])


def test_a_table_that_is_named_is_kept_unless_it_is_off(run, warehouse):
    lines = run("maintain", f"{warehouse}#unsaid", f"{warehouse}#off", "--json").json_lines
    assert [(line["table"], line["task"], line["outcome"]) for line in lines] == [("unsaid", "compact", "done")]

    place = str(Path(warehouse).parent / "alone")
    grown(fuse.create_table(place, "id BIGINT"))
    assert run("maintain", place, "--only", "tier,vacuum").out == ""
    assert run("maintain", place, "--bytes", "1kB").out == ""
    assert run("maintain", place, "--bytes", "1GB", "--budget", "10m").out.startswith(f"{place}: compact in ")


def test_a_warehouse_s_default_is_said_to_the_command(run, warehouse):
    lines = run("maintain", warehouse, "--default", "maintain=on", "--dry-run", "--json").json_lines
    assert {line["table"] for line in lines} == {"kept", "unsaid"}


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--every", "soon"), 1, "--every='soon' is no duration"),
        (("--budget", "10"), 1, "--budget='10' is no duration"),
        (("--bytes", "many"), 2, "'many' is no number of bytes: say 500MB, 100GB"),
        (("--only", "tears"), 1, "'tears': tasks are tier, sync"),
        (("--default", "maintain"), 2, "'maintain' is not of the form name=value"),
        (("--default", "maintain=often"), 1, "maintain = 'often' is neither on nor off"),
    ],
)
def test_what_is_no_limit_is_refused(run, warehouse, options, code, said):
    refused = run("maintain", warehouse, *options)
    assert (refused.code, refused.out) == (code, "")
    assert said in " ".join(refused.err.replace("│", " ").split())


def test_what_fails_is_told_and_leaves_the_others(run, warehouse, tmp_path):
    broken = tmp_path / "broken"
    fuse.create_table(str(broken), "id BIGINT")
    for file in (broken / "_ss").iterdir():
        file.unlink()
    told = run("maintain", broken, warehouse, tmp_path / "nowhere")

    assert told.code == 1
    assert f"error: {broken}" in told.err
    assert "look" not in told.err
    assert f"{tmp_path / 'nowhere'} is no table: there is nothing" in told.err
    assert told.out.startswith("kept: compact in ")


def test_an_index_that_is_broken_is_told_and_not_done(run, people):
    target = fuse.open_table(people)
    definition = dict(target.snapshot.definitions["by_name"])
    target.stored.transaction().drop_index("by_name").add_index("by_name", {**definition, "kind": "gone"}).commit()

    told = run("maintain", people)
    assert told.code == 0
    assert "repair by_name told: index 'by_name' cannot be used here: " in told.err


def test_it_goes_on_until_it_is_asked_to_stop(warehouse):
    program = "from fuse_index.cli.program import main; main()"
    command = [sys.executable, "-c", program, "maintain", warehouse, "--every", "0.05s", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["outcome"] == "done"
            grown(fuse.catalog(warehouse).load_table("kept"), 20)  # while it runs: four times what there is
            assert json.loads(process.stdout.readline())["table"] == "kept"
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0
    assert said.strip() == "to be stopped: the step that is being done is finished first"
    assert not list(Path(warehouse).rglob("*.lease"))


def test_a_table_that_vanishes_while_it_runs_is_told(run, warehouse):
    catalog = fuse.catalog(warehouse)
    shutil.rmtree(catalog.table_url("kept").removeprefix("file://"))
    told = run("maintain", warehouse)
    assert told.code == 1
    assert "table 'kept' has a name, and no files" in told.err


def test_a_place_where_nothing_is_is_told_in_one_sentence(run, tmp_path):
    nowhere = str(tmp_path / "nowhere")
    told = run("maintain", nowhere)

    assert (told.code, told.out) == (1, "")
    assert told.err == f"error: {nowhere} is no table: there is nothing; create it first\n"


def test_a_default_that_is_misspelt_is_refused(run, warehouse):
    told = run("maintain", warehouse, "--default", "maintian=on")

    assert (told.code, told.out) == (1, "")
    assert told.err == "error: 'maintian' is no default of upkeep: did you mean 'maintain'?\n"
