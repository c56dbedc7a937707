"""Every page is true: what it says to do is done as it stands there, and what it shows is what is printed."""

import re
import shutil
from pathlib import Path

import pytest

import fuse_index
from tests.docs.pages import NOT_RUN, PAGES, ROOT, RUN, Block, Reader, blocks, masked

BLOCKS = [block for page in PAGES for block in blocks(page)]
README = ROOT / "README.md"
KNOWN = {(language, "") for language in RUN} | {("text", "output"), ("text", "drawing")}


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def clone(folder: Path) -> Path:
    """What a fresh clone has of what is built, so that nothing is written into the work tree."""
    folder.mkdir()
    for name in ("fuse_storage", "fuse_index", "plugins"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=named)
def test_what_a_page_says_is_done_as_it_stands_there(page: Path, tmp_path: Path) -> None:
    if page == README:
        clone(tmp_path / "work")
    reader = Reader(tmp_path, installed=page != README)

    for block in blocks(page):
        reader.follow(block, skip=block.needs_spark)  # tests/spark does what needs a session

    installed = list(tmp_path.glob("venv/lib/python*/site-packages/fuse_index-*.dist-info/licenses/LICENSE"))
    assert len(installed) == (page == README)


def test_every_block_is_run_or_says_why_it_is_not() -> None:
    def understood(block: Block) -> bool:
        if block.note.startswith(NOT_RUN):
            return len(block.note.split()) > 5
        return (block.language, block.note) in KNOWN

    assert [block.where for block in BLOCKS if not understood(block)] == []


def test_few_blocks_are_not_run() -> None:
    left = [(named(block.page), block.note.removeprefix(NOT_RUN)) for block in BLOCKS if block.note.startswith(NOT_RUN)]

    assert left == [
        ("README.md", "it installs Spark from the network"),
        ("README.md", "Delta's connector is for Spark 4.0 and 4.1, where tests/lakes does as it says"),
        ("README.md", "it runs until it is ended"),
        ("README.md", "it needs the server"),
        ("docs/format.md", "ids and hashes are cut"),
        ("docs/hot.md", "it needs a Kafka"),
        ("docs/serve.md", "it runs until it is ended"),
        ("docs/serve.md", "it needs the server"),
        ("docs/serve.md", "it needs the server"),
        ("docs/serve.md", "it needs a certificate"),
        ("docs/serve.md", "it needs a daemon of Docker"),
        ("docs/serve.md", "it needs free ports"),
        ("docs/start/delta-table.md", "it installs from the network"),
        ("docs/start/hot-table.md", "it installs from the network"),
        ("docs/start/log.md", "it installs from the network"),
        ("docs/start/sql.md", "it installs from the network"),
        ("docs/writing-a-plugin.md", "it is of a mutant that the tests of ours kill"),
    ]


def test_tutorials_install_the_wheel_of_this_version() -> None:
    named = [
        wheel
        for page in PAGES
        if page.parent.name == "start"
        for wheel in re.findall(r"\S*fuse_index-(\S+?)-py3-none-any\.whl", page.read_text("utf-8"))
    ]

    assert named == [fuse_index.__version__] * 4


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ("```python\nraise ValueError('wrong')\n```\n", "wrong"),
        ("```sh\nfalse\n```\n", "page.md:1"),
        ("```console\n$ echo 12 s\n13 s\n```\n", "13 s"),
        ("```console\n$ echo one; echo two\none\n```\n", "one"),
        ("```python\nprint(1)\n```\n\n```text output\n2\n```\n", "2"),
    ],
)
def test_what_is_not_true_is_found(told: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(told)
    monkeypatch.setattr("tests.docs.pages.ROOT", tmp_path)
    reader = Reader(tmp_path)
    *before, wrong = blocks(page)
    for block in before:
        reader.follow(block)

    with pytest.raises((AssertionError, ValueError), match=why):
        reader.follow(wrong)


def test_what_differs_from_run_to_run_is_no_difference(tmp_path: Path) -> None:
    told = "snapshot 01a204f27ec171d0a4d816eaf6e06f99 in 0.1 s, 3 kB\n│ bytes │ 1,234 │\n"
    held = "snapshot 01a204f2765a7462929e474d9b2d698d in 12.5 s, 17.2 MB\n│ bytes    │ 9 │\n"

    assert masked(told) == masked(held)
    assert masked("2 of 20 blocks") != masked("3 of 20 blocks")


def test_what_the_guide_for_authors_says_of_a_failure_is_what_is_said() -> None:
    [shown] = [
        block.text.strip()
        for block in blocks(ROOT / "docs/writing-a-plugin.md")
        if block.language == "text" and block.note != "output"
    ]

    mutants = (ROOT / "tests" / "plugins" / "mutants" / "test_mutants.py").read_text()
    assert all(f'"{line}",' in mutants for line in shown.splitlines())
