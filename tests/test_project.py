"""The project itself: what a newcomer meets first says what is missing, and the documents point to what is there."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import fuse_index
from tests.processor_time import spent
from tests.spark import class_archive

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

MADE_PAGES = ("kinds.md", "properties.md", "command-line.md")
"""Pages of the reference that are made when the site is built."""

CODE = ("fuse_storage", "fuse_index", "plugins", "benchmarks")


def make(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "MAKEFLAGS", "MAKELEVEL")}
    return subprocess.run(
        ["make", *arguments], cwd=ROOT, env=clean | environment, capture_output=True, text=True, check=False
    )


def java(folder: Path, version: str) -> str:
    """A JAVA_HOME whose java says that it is of this version."""
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-20' >&2\n")
    program.chmod(0o755)
    return str(folder)


def said(run: subprocess.CompletedProcess[str]) -> list[str]:
    """What was printed, without make's own last line."""
    return [line for line in (run.stdout + run.stderr).splitlines() if not line.startswith("make")]


@pytest.mark.parametrize("version", ["17.0.15", "21", "21.0.2"])
def test_java_17_and_21_are_taken(version, tmp_path):
    assert make("java", JAVA_HOME=java(tmp_path, version)).returncode == 0


@pytest.mark.parametrize(("version", "major"), [("11.0.2", "11"), ("1.8.0_402", "8"), ("25", "25")])
def test_another_java_is_refused_in_one_sentence_before_anything_is_installed(version, major, tmp_path):
    refused = make("demo", JAVA_HOME=java(tmp_path, version))

    assert refused.returncode != 0
    assert said(refused) == [
        f"Java 17 or 21 is needed for Spark, and '{tmp_path}/bin/java' is Java {major}: install one "
        f"of these or set JAVA_HOME."
    ]


def test_a_missing_java_is_said_in_one_sentence(tmp_path):
    refused = make("check", JAVA_HOME=str(tmp_path))

    assert refused.returncode != 0
    assert len(said(refused)) == 1
    assert "openjdk-17" in said(refused)[0]


def test_an_old_python_is_said_in_one_sentence(tmp_path):
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)

    refused = make("python", f"PYTHON={old}", JAVA_HOME=java(tmp_path, "17"))

    assert refused.returncode != 0
    assert said(refused) == [f"Python 3.11 or newer is needed, and '{old}' is not: run make PYTHON=/path/to/python."]


def test_the_demo_installs_a_kind_beside_the_environment_that_tests_use(tmp_path):
    home, python, calls = java(tmp_path, "17"), tmp_path / "bin/python", tmp_path / "calls"
    python.write_text(f'#!/bin/sh\necho "$PYTHONPATH|$*" >>{calls}\n')
    python.chmod(0o755)
    (tmp_path / ".demo").touch()

    make("demo", f"VENV={tmp_path}", "-o", f"{tmp_path}/.demo", PYTHONPATH="", JAVA_HOME=home)

    install, demo = calls.read_text().splitlines()
    assert "--target build/demo ./examples/plugins/fuse-index-trigram" in install
    assert demo == f"{ROOT}/build/demo|-m benchmarks.demo"


def test_help_lists_what_the_readme_and_ci_use():
    listed = re.findall(r"^  make (\S+) ", make("help").stdout, re.MULTILINE)

    assert listed == [
        "help",
        "demo",
        "test",
        "test-quick",
        "check-room",
        "check",
        "bench",
        "docs",
        "package",
        "soak",
        "hostile",
    ]


@pytest.mark.parametrize("content", [None, b"", b"no archive" * 1000])
def test_a_java_starts_without_a_word_where_its_archive_of_classes_is_missing_or_damaged(
    content, tmp_path, monkeypatch
):
    archive = tmp_path / "an archive.jsa"
    if content is not None:
        archive.write_bytes(content)
    monkeypatch.setattr(class_archive, "ARCHIVE", archive)
    monkeypatch.delenv("JDK_JAVA_OPTIONS", raising=False)  # Java names it first, and tests of Spark set it
    program = f"{os.environ['JAVA_HOME']}/bin/java" if "JAVA_HOME" in os.environ else "java"

    options = class_archive.jvm_options()
    run = subprocess.run([program, *shlex.split(options), "-version"], capture_output=True, text=True, check=True)

    assert run.stdout == ""
    assert " version " in run.stderr.splitlines()[0]
    assert (str(archive) in options) == (content is not None)


@pytest.mark.parametrize("room", ["nowhere", "golden", ""])
def test_a_room_without_tests_is_refused_with_the_names_of_those_that_have_some(room, tmp_path):
    (tmp_path / ".dev").touch()

    refused = make("check-room", f"VENV={tmp_path}", "-o", f"{tmp_path}/.dev", f"ROOM={room}")

    assert refused.returncode != 0
    (line,) = said(refused)
    start, _, rooms = line.removesuffix(".").partition("; rooms are ")
    assert start == "Name a room: make check-room ROOM=commit"
    assert {"commit", "catalog", "spark", "native", "cli"} <= set(rooms.split())
    assert "golden" not in rooms.split()


def test_every_pin_is_exact_and_names_no_place_to_get_it_from():
    pins = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]

    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9_.\-]+==[0-9][A-Za-z0-9.]*", pin)] == []


def test_all_that_the_package_asks_for_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    pinned = {name(line) for line in (ROOT / "constraints.txt").read_text().splitlines()}

    assert sorted({name(each) for each in wanted} - pinned) == ["fuse-index"]


def name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9_.\-]", requirement)[0].lower().replace("_", "-")


def test_nobody_is_sent_to_an_index_of_packages_for_what_is_not_there():
    """The project is in no index: hints name packages of others, or the folder of a checkout."""
    texts = [*DOCUMENTS, *(path for folder in CODE for path in (ROOT / folder).rglob("*.py"))]

    assert [path.name for path in texts if re.search(r"pip install[^`\n]*fuse-index", path.read_text("utf-8"))] == []


def test_the_licence_is_in_what_is_installed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["license"] == "Apache-2.0"
    assert "Apache License" in (ROOT / project["license-files"][0]).read_text()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(document):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text())

    assert [link for link in links if not (document.parent / link).exists() and Path(link).name not in MADE_PAGES] == []


def test_the_readme_leads_to_every_page():
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md", *ROOT.glob("SECURITY.md"), ROOT / "LICENSE"]
    links = re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text())

    assert {str(page.relative_to(ROOT)) for page in pages} - set(links) == set()


def test_a_number_names_one_decision():
    numbers = [int(path.name[:3]) for path in sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))]

    assert numbers
    assert len(set(numbers)) == len(numbers)


def test_the_index_of_decisions_names_each_once():
    folder = ROOT / "docs" / "decisions"
    links = re.findall(r"\[(\d{3})\]\(([^)]+)\)", (folder / "README.md").read_text())

    assert sorted(name for _, name in links) == sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert all(name.startswith(number) for number, name in links)


def test_the_page_on_architecture_names_every_layer():
    page = (ROOT / "docs" / "architecture.md").read_text()
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rooms = [contract for contract in contracts if contract["name"].startswith("Rooms of")]
    layers = [name.strip() for room in rooms for layer in room["layers"] for name in layer.split("|")]

    named = set(re.findall(r"`(\w+)/?`", page))
    assert len(rooms) == 2
    assert set(layers) - named == set()


def test_the_changelog_is_by_area_and_a_line_an_entry() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    releases = dict(zip(*[iter(re.split(r"^## (.*)$", text, flags=re.MULTILINE)[1:])] * 2, strict=True))
    first, *others = releases
    entries = [line for line in text.splitlines() if line.startswith(("- ", "  "))]

    assert first == "[Unreleased]"
    assert [
        name for name in others if not re.fullmatch(r"\[\d+\.\d+\.\d+\] - (unreleased|\d{4}-\d\d-\d\d)", name)
    ] == []
    assert f"[{fuse_index.__version__}]" in " ".join(others)
    assert [line for line in entries if line.startswith("  ") or len(line) > 140] == []
    for name in others:
        assert "- " not in re.split(r"^### ", releases[name], flags=re.MULTILINE)[0]


def test_a_failure_is_shown_when_it_happens_and_again_at_the_end(tmp_path):
    (tmp_path / "test_two.py").write_text(
        "def test_first():\n    assert 1 == 2\n\n\ndef test_second():\n    print('second')\n"
    )

    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-sq", str(tmp_path)]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout

    before, _, after = printed.partition("second\n")
    assert before.splitlines()[:2] == ["F", f"{' call of test_two.py::test_first ':_^80}"]
    assert "assert 1 == 2" in before
    assert "assert 1 == 2" in after


def test_what_a_command_of_a_test_takes_of_the_processor_counts():
    before = spent()

    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True)

    assert spent() - before > 0.25
