"""The guide for index authors is true: its plugin is installed as it says, tested as it says, and used as it says."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import fuse_index

GUIDE = Path(fuse_index.__file__).parent.parent / "docs" / "writing-a-plugin.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with every file of the guide, and the metadata that pip would write."""
    folder = tmp_path_factory.mktemp("acme")
    for _, text in blocks():
        if named := re.match(r"# (\S+\.(py|toml))\n", text):
            (folder / named[1]).write_text(text)
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    metadata = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    for group, points in project["entry-points"].items():
        (metadata / "entry_points.txt").write_text(
            f"[{group}]\n" + "".join(f"{name} = {to}\n" for name, to in points.items())
        )
    return folder


def blocks():
    return BLOCK.findall(GUIDE.read_text())


def python(folder, *arguments):
    paths = [str(folder), *[path for path in sys.path if path]]
    environment = {"PYTHONPATH": ":".join(paths), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )


def test_every_block_has_a_language_and_every_program_a_name():
    languages = {language for language, _ in blocks()}
    unnamed = [text for language, text in blocks() if language == "python" and not re.match(r"# \w+\.py\n", text)]

    assert languages == {"python", "toml", "text"}
    assert unnamed == []


def test_the_tests_of_the_guide_pass(installed):
    run = python(installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", ".")

    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"\d\d passed", run.stdout)


def test_the_kind_of_the_guide_is_used_once_it_is_installed(installed):
    run = python(installed, "use.py")

    assert run.returncode == 0, run.stdout + run.stderr
    assert "by_domain" in run.stdout

    run = python(installed, "use_domains.py")

    assert run.returncode == 0, run.stdout + run.stderr


def test_what_the_guide_says_of_a_failure_is_what_is_said():
    [shown] = [text.strip() for language, text in blocks() if language == "text"]

    assert shown == "min_max: c <= -1 is TRUE on [{'c': -1}], but the vote was NONE on [{'c': -1}]"
    assert "min_max: c <= -1 is TRUE on" in (Path(__file__).parent / "test_mutants.py").read_text()
