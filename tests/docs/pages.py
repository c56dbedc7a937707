"""The pages of the documents as programs: their blocks in order, and what runs them.

A block's info string is its language, and after it what becomes of the block, if that is not plain:

- ``text output``: what the block before prints
- ``text drawing``: a picture in letters
- ``… not run: <why>``: the reason why no test runs it

A block that begins with ``# <name>`` of a file is written to that file, and one that begins with ``# at the end of
<name>`` behind what is there. In ``console`` blocks, what stands behind ``$ `` is typed, and the rest is printed.
"""

import contextlib
import difflib
import io
import os
import re
import subprocess
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
NOT_RUN = "not run: "
RUN = ("python", "sh", "console", "sql", "toml")
"""Languages of blocks that are run, or written to a file."""

_FENCE = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (at the end of )?([\w/]+\.(?:py|toml))\n")
_NEEDS_SPARK = {
    "python": re.compile(r"\bspark\b"),
    "sh": re.compile(r"\bpython \w+_in_spark\.py"),
    "sql": re.compile(""),
}
_VARYING = [
    (re.compile(r"\b[0-9a-f]{32}\b"), "<id>"),
    (re.compile(r"\b\d+\.\d+ s\b"), "<seconds>"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)"), "<time>"),
    (re.compile(r"\b(\d+(?:\.\d+)? (?:k|M|G)?B)\b"), "<bytes>"),
    (re.compile(r"^(│ bytes +│|bytes +\d)[^\n]*", re.MULTILINE), "<bytes>"),
    (re.compile(r"^table +\S*/", re.MULTILINE), "table "),
    (re.compile(r"[ ─━]{2,}"), " "),
]
"""What differs from run to run, and the room that it takes."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, with the number of the line where it begins."""

    page: Path
    line: int
    language: str
    note: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def needs_spark(self) -> bool:
        return self.language in _NEEDS_SPARK and bool(_NEEDS_SPARK[self.language].search(self.text))

    @property
    def runs(self) -> bool:
        return self.language in RUN and not self.note.startswith(NOT_RUN)


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    found = []
    for match in _FENCE.finditer(text):
        language, _, note = match[2].partition(" ")
        body = re.sub(f"^{match[1]}", "", match[3], flags=re.MULTILINE)
        found.append(Block(page, text.count("\n", 0, match.start()) + 1, language, note, body))
    return found


def masked(text: str) -> str:
    """Output without what differs from run to run."""
    for varying, name in _VARYING:
        text = varying.sub(name, text)
    return "\n".join(line.strip() for line in text.strip().splitlines())


def compare(shown: str, printed: str, where: str) -> None:
    """Raises AssertionError where a page shows something else than what was printed."""
    lines = [masked(text).splitlines() for text in (shown, printed)]
    assert lines[0] == lines[1], "\n".join([where, *difflib.unified_diff(*lines, "shown", "printed", lineterm="")])


def share_letters(folder: Path) -> None:
    """Hypothesis keeps a list of Unicode's letters where it works, and takes 3 s to write it."""
    (ROOT / ".hypothesis").mkdir(exist_ok=True)
    (folder / ".hypothesis").symlink_to(ROOT / ".hypothesis")


class Reader:
    """Somebody who does what a page says, in a folder of his own that takes the place of /tmp.

    ``installed``: whether he has this project already, so that pages need not say how it is installed.
    """

    def __init__(self, folder: Path, installed: bool = True) -> None:
        self.work, self.tmp, self._venv = folder / "work", folder / "tmp", folder / "venv"
        self.names: dict[str, Any] = {}
        self.printed: str | None = None
        """By the last block, if that was run."""
        self._installed = installed
        self.tmp.mkdir()
        self.work.mkdir(exist_ok=True)
        share_letters(self.work)

    def follow(self, block: Block, skip: bool = False) -> None:
        """Do what a block says. Raises AssertionError where it is not true."""
        if skip:
            self.printed = None
            return
        if block.note == "output" and self.printed is not None:
            compare(self._placed(block.text), self.printed, block.where)
        if not block.runs:
            return
        text = self._placed(block.text)
        if file := _FILE.match(text):
            with (self.work / file[2]).open("a" if file[1] else "w", encoding="utf-8") as written:
                written.write(text)
        elif block.language == "python":
            self.printed = self._python(text, block.where)
        elif block.language == "sql":
            self.names["spark"].sql(text).collect()
        elif block.language == "sh":
            self.printed = self.shell(text, block.where)
        elif block.language == "console":
            for typed, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
                compare(shown, self.shell(typed, block.where), f"{block.where}: {typed}")

    def _placed(self, text: str) -> str:
        return text.replace("/tmp/", f"{self.tmp}/")

    def _python(self, program: str, where: str) -> str:
        printed = io.StringIO()
        with contextlib.chdir(self.work), contextlib.redirect_stdout(printed):
            exec(compile(program, where, "exec"), self.names)
        return printed.getvalue()

    def shell(self, commands: str, where: str) -> str:
        """What these commands print. Raises AssertionError where one fails."""
        self._make_venv()
        clean = {
            name: os.environ[name]
            for name in ("HOME", "JAVA_HOME", "JDK_JAVA_OPTIONS", "SPARK_LOCAL_IP", "TZ")
            if name in os.environ
        }
        pip = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_COMPILE": "1"}  # most modules that it installs are never imported
        environment = clean | pip | {"PATH": f"{self._venv}/bin:/usr/bin:/bin"}
        run = subprocess.run(
            ["bash", "-euc", commands], cwd=self.work, env=environment, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, f"{where}\n{run.stdout}\n{run.stderr}"
        return run.stdout

    def _make_venv(self) -> None:
        """An environment that has all libraries, and whose pip asks no index and downloads no build tools."""
        if self._venv.exists():
            return
        venv.create(self._venv, symlinks=True)
        programs = self._venv / "bin"
        scripts = {"pip": '-m pip "$@" --no-index --no-build-isolation', "pytest": '-m pytest -p no:cacheprovider "$@"'}
        if self._installed:
            scripts["fuse-index"] = '-c "from fuse_index.cli.program import main; main()" "$@"'
        for name, command in scripts.items():
            (programs / name).write_text(f'#!/bin/sh\nexec "{programs}/python" {command}\n')
            (programs / name).chmod(0o755)
        paths = [sysconfig.get_path("purelib"), *([ROOT, ROOT / "plugins"] if self._installed else [])]
        site = sysconfig.get_path("purelib", vars={"base": str(self._venv)})
        (Path(site) / "elsewhere.pth").write_text("".join(f"{path}\n" for path in paths))
