"""Plugins on the command line: what a kind can do, whether all can be used, one file tried, and a new one begun."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import share_letters
from tests.index.strangers import BROKEN


def program(*arguments, folders=(), expect=0):
    path = os.pathsep.join([*map(str, folders), *(entry for entry in sys.path if entry)])
    code = "from fuse_index.cli.program import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_kind_is_shown_with_what_it_judges_its_options_and_where_it_is_from(run):
    bloom = run("plugins", "show", "bloom", "--json").json

    assert bloom["what"] == "One bloom filter for each zone of a column."
    assert bloom["from"].startswith("fuse-index ")
    [(conditions, types)] = bloom["votes"].items()
    assert conditions == "=, IN"
    assert {"int64", "string"} <= set(types.split(", "))
    assert {"option": "fpp", "type": "float", "default": "0.001"} in bloom["options"]
    assert run("plugins", "show", "full_text", "--json").json["ranks"] == "match"
    assert run("plugins", "show", "full_text", "--json").json["functions"] == ["match"]
    assert run("plugins", "show", "aggregate", "--json").json["answers"] == "aggregates that it keeps"
    assert "of every column" in run("plugins", "show", "min_max").out
    assert "terms of its own" in run("plugins", "show", "json_path").out
    assert "terms of its own" not in run("plugins", "show", "aggregate").out


def test_an_unknown_kind_is_an_error_with_near_names(run):
    failed = run("plugins", "show", "blom")

    assert "did you mean 'bloom'" in failed.err


def test_a_plugin_that_cannot_be_used_fails_the_check(run):
    assert run("plugins", "--check").code == 0
    assert "cannot be loaded" in program("plugins", "--check", folders=[BROKEN], expect=1)


@pytest.mark.any_spark
def test_a_new_plugin_passes_its_tests_and_can_be_tried_without_being_installed(tmp_path):
    folder = tmp_path / "endings"
    made = program("plugin", "new", "my_endings", "--into", folder)

    assert "pip install -e" in made
    assert sorted(path.name for path in folder.iterdir()) == [
        ".gitignore",
        "README.md",
        "fuse_index_my_endings.py",
        "pyproject.toml",
        "test_fuse_index_my_endings.py",
    ]
    shown = program("--plugin", folder / "fuse_index_my_endings.py", "plugins", "show", "my_endings")
    assert "=, IN on int64, string" in shown
    installed(folder)
    share_letters(folder)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
    assert "skipped" not in done.stdout


def installed(folder: Path) -> None:
    """What pip writes of the distribution, as far as it is asked for."""
    about = folder / "fuse_index_my_endings-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: fuse-index-my-endings\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text("[fuse_index.plugins]\nmy_endings = fuse_index_my_endings\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("plugin", "new", "Bad-Name"), "cannot be the name of a kind"),
        (("plugin", "new", "class"), "cannot be the name of a kind"),
        (("--plugin", "nothing.py", "plugins"), "nothing.py is no file"),
        (("--plugin", "{there}", "plugins"), "give it the name of a module"),
        (("plugin", "new", "fine", "--into", "{there}"), "is there already"),
    ],
)
def test_wrong_usage_says_what_to_do(run, tmp_path, arguments, says):
    there = tmp_path / "not a module.py"
    there.write_text("")

    failed = run(*(argument.format(there=there) for argument in arguments))

    assert failed.code == 1
    assert says in failed.err


def test_a_file_that_is_no_plugin_is_said_to_be_none(tmp_path):
    (tmp_path / "empty_kind.py").write_text("x = 1\n")

    told = program("--plugin", tmp_path / "empty_kind.py", "plugins", "--check", expect=1)

    assert "fuse_index_kinds" in told
