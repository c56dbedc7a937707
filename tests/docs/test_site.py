"""The site: what is made of the code has all of it, links lead somewhere, and pages can be read.

`make docs` builds it with every warning an error; these tests need nothing that it installs.
"""

import re
import sys
from pathlib import Path

import pytest

from fuse_index.cli.front.commands import COMMANDS
from fuse_index.indexes.registry import Host
from fuse_storage import KNOWN_PROPERTIES
from tests.docs.pages import PAGES, ROOT

sys.path.insert(0, str(ROOT / "website"))

import generated  # it lies beside the configuration of the site

DOCS = ROOT / "docs"
NEW_PAGES = [
    DOCS / "comparison.md",
    DOCS / "upgrade.md",
    *(page for folder in ("start", "concepts", "reference") for page in sorted((DOCS / folder).glob("*.md"))),
]
MADE = {
    "reference/kinds.md": generated.kinds_page,
    "reference/properties.md": generated.properties_page,
    "reference/command-line.md": generated.command_line_page,
}
"""Pages that are made when the site is built, so that none is ever older than the code."""
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def without_code(text: str) -> str:
    return re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL)


def cells(text: str) -> list[str]:
    rows = [line for line in without_code(text).splitlines() if line.startswith("|")]
    return [cell for row in rows for cell in re.split(r"(?<!\\)\|", row.strip("| "))]


def test_every_property_is_on_its_page_and_no_other() -> None:
    described = [name for named in generated.PROPERTIES.values() for name in named]

    assert sorted(described) == sorted(KNOWN_PROPERTIES)
    assert all(f"| `{name}` |" in generated.properties_page() for name in described)


def test_every_kind_of_ours_is_on_its_page_with_its_options() -> None:
    host, page = Host.discover(), generated.kinds_page()
    ours = [kind for name, kind in host.kinds.items() if host.sources[name].built_in]

    assert len(ours) >= 5
    for kind in ours:
        assert f"\n## {kind.name}\n" in page
        assert [name for name in kind.Options.__dataclass_fields__ if f"| `{name}` |" not in page] == []


def test_every_command_is_on_its_page() -> None:
    page = generated.command_line_page()

    assert [name for name in COMMANDS if f"\n### {name}\n" not in page] == []
    assert "--where, -w" in page


@pytest.mark.parametrize("page", NEW_PAGES, ids=lambda page: page.name)
def test_new_pages_are_narrow(page: Path) -> None:
    wide = [line for line in without_code(page.read_text("utf-8")).splitlines() if len(line) > 110]

    assert [line for line in wide if not line.startswith("|")] == []


def test_no_cell_of_a_table_is_a_wall() -> None:
    texts = {str(page.relative_to(ROOT)): page.read_text("utf-8") for page in PAGES}
    texts |= {name: made() for name, made in MADE.items()}
    walls = {name: [cell for cell in cells(text) if len(cell.split()) > 40] for name, text in texts.items()}

    assert {name: found for name, found in walls.items() if found} == {}


def test_links_lead_to_files_that_are_there() -> None:
    lost = []
    for page in [page for page in PAGES if DOCS in page.parents or page.parent == ROOT]:
        for target in _LINK.findall(without_code(page.read_text("utf-8"))):
            path = target.partition("#")[0]
            if path and "://" not in target and not target.startswith("mailto:"):
                place = (page.parent / path).resolve()
                if str(place).removeprefix(f"{DOCS}/") not in MADE and not place.exists():
                    lost.append(f"{page.relative_to(ROOT)}: {target}")

    assert lost == []


def test_every_page_is_in_the_navigation() -> None:
    named = (ROOT / "website" / "mkdocs.yml").read_text("utf-8")
    pages = [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if "decisions" not in page.parts]

    assert [page for page in pages if not page.startswith("notebooks/") and page not in named] == []
