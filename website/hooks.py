"""What mkdocs is told besides its configuration: pages that are made, and links that leave the pages."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from posixpath import normpath
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "plugins"), str(ROOT / "website")]

from generated import command_line_page, kinds_page, properties_page  # noqa: E402  # found once the path is set
from plots import described, plots  # noqa: E402

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^( *)```([^\n`]*)\n", re.MULTILINE)
_MADE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/results": "benchmarks",
}
"""Files and folders of the repository that are pages though they are not among them, and where they are."""


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made of the code, and those whose files lie elsewhere."""
    made = {
        "index.md": (ROOT / "README.md").read_text("utf-8"),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text("utf-8"),
        "reference/kinds.md": kinds_page(),
        "reference/properties.md": properties_page(),
        "reference/command-line.md": command_line_page(),
        **{f"benchmarks/plots/{name}": drawn for name, drawn in plots().items()},
    }
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    for path in sorted((ROOT / "benchmarks" / "results").iterdir()):
        if path.suffix in (".md", ".png"):
            files.append(File.generated(config, f"benchmarks/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Let links lead to pages; what is in the repository alone is named, and not linked."""
    source = {"index.md": "README.md", "changelog.md": "CHANGELOG.md"}.get(page.file.src_uri)
    if source is None:
        name = page.file.src_uri
        source = f"benchmarks/results/{name.split('/')[1]}" if name.startswith("benchmarks/") else f"docs/{name}"

    def placed(link: re.Match[str]) -> str:
        mark, text, target, anchor = link[1], link[2], link[3], link[4] or ""
        if "://" in target or target.startswith("mailto:"):
            return link[0]
        inside = site_page(normpath(f"{Path(source).parent.as_posix()}/{target}"))
        if inside is None or files.get_file_from_path(inside) is None:
            return text if text.startswith("`") else f"{text} (`{target.lstrip('./')}` in the repository)"
        return f"{mark}[{text}]({relative(page.file.src_uri, inside)}{anchor})"

    text = _LINK.sub(placed, markdown)
    if page.file.src_uri == "benchmarks/README.md":
        heading, rest = text.split("\n", 1)
        text = f"{heading}\n\n{described()}\n{rest}"
    return _FENCE.sub(lambda fence: f"{fence[1]}```{fence[2].split(' ')[0]}\n", text)


def site_page(path: str) -> str | None:
    """Where a file of the repository is in the site; None if it is not."""
    for place, name in _MADE.items():
        if path == place or path.startswith(place + "/"):
            return name + path.removeprefix(place)
    return path.removeprefix("docs/") if path.startswith("docs/") else None


def relative(page: str, target: str) -> str:
    """A path from one page to another."""
    return "../" * page.count("/") + target
