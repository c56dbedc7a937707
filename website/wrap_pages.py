"""Wrap the prose of pages that is wider than a page may be: `python website/wrap_pages.py [FILE.md …]`.

Code, tables and headings stay as they are, and so does what is narrow already.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WIDTH = 110
BY_LINES = "CHANGELOG.md"
"""Its entries are a line each, so that they can be sorted and merged."""
_FENCE = re.compile(r" *(```|~~~)")
_APART = re.compile(r"\s*(\||#|<|\[[^\]]+\]: |-{3,}$|$)|.*  $|    .*[^-* ]")
"""Lines that belong to no paragraph, or end one by two blanks, or are code by their indentation."""
_ITEM = re.compile(r"(\s*(?:[-*+]|\d+[.)])\s+|\s*>\s*)(?=\S)")
_WORD = re.compile(r"(?:`+[^`]+`+|\S)+")
"""A word has the code within it, with its blanks."""
_MARK = re.compile(r"(?:>.*|[|].*|[-+*=]+|#+|\d+[.)])")
"""What a line of a paragraph may not begin with, since it would be the beginning of something else."""


def wrap_page(text: str) -> str:
    """The page with each paragraph that has a wide line wrapped anew."""
    made: list[str] = []
    paragraph: list[str] = []
    within = ""
    for line in [*text.split("\n"), ""]:
        fence = _FENCE.match(line)
        if within or fence or _APART.match(line) or _ITEM.match(line):
            made += _wrapped(paragraph)
            paragraph = []
            if fence and (not within or within == fence[1]):
                within = "" if within else fence[1]
                made.append(line)
                continue
            if not within and _ITEM.match(line) and not line.startswith("    "):
                paragraph = [line]
            else:
                made.append(line)
        else:
            paragraph.append(line)
    return "\n".join(made[:-1])


def _wrapped(lines: list[str]) -> list[str]:
    if all(len(line) <= WIDTH for line in lines):
        return lines
    item = _ITEM.match(lines[0])
    first = item[1] if item else re.match(r"\s*", lines[0])[0]  # type: ignore[index]
    indent = first if ">" in first else " " * len(first)
    words = list[str]()
    for word in _WORD.findall(" ".join([lines[0][len(first) :], *(line.strip(" >") for line in lines[1:])])):
        if words and _MARK.fullmatch(word):
            words[-1] += f" {word}"
        else:
            words.append(word)
    made, current = [], first + words[0]
    for word in words[1:]:
        if len(current) + 1 + len(word) <= WIDTH:
            current += f" {word}"
        else:
            made.append(current)
            current = indent + word
    return [*made, current]


def main() -> None:
    """Wrap the pages that are named, or all."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for page in [Path(name) for name in sys.argv[1:]] or [page for page in pages if page.name != BY_LINES]:
        text = page.read_text("utf-8")
        if (wrapped := wrap_page(text)) != text:
            page.write_text(wrapped, "utf-8")


if __name__ == "__main__":
    main()
