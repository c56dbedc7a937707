"""The site: what is made of the code has all of it, links lead somewhere, and pages can be read.

`make docs` builds it with every warning an error; these tests need nothing that it installs.
"""

import json
import re
import sys
from xml.etree import ElementTree

from fuse_index.cli.front.commands import COMMANDS
from fuse_index.indexes.registry import Host
from fuse_storage import KNOWN_PROPERTIES
from tests.docs.pages import PAGES, ROOT

sys.path.insert(0, str(ROOT / "website"))

import generated  # these lie beside the configuration of the site
import plots
import wrap_pages

DOCS = ROOT / "docs"
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


def test_plots_show_what_was_measured_on_light_and_dark_ground() -> None:
    drawn = plots.plots()
    measured = json.loads((plots.RESULTS / "tables.json").read_text("utf-8"))["tables"]
    [lookup] = [
        row["seconds"]
        for row in measured
        if (row["engine"], row["rows"], row["workload"]) == ("fuse, local", 10_000_000, "lookup, hit")
    ]

    assert sorted(drawn) == sorted(re.findall(r"\(plots/(\S+)\)", plots.described()))
    for text in drawn.values():
        svg = ElementTree.fromstring(text)
        bars = list(svg.iter("{http://www.w3.org/2000/svg}rect"))
        assert len(bars) >= 8
        assert all(0 < float(bar.get("width")) <= plots.WIDTH - plots.LABELS - plots.VALUES for bar in bars)
        assert "prefers-color-scheme: dark" in text
    assert plots.told_seconds(lookup) in drawn["lookups.svg"]


def test_every_command_is_on_its_page() -> None:
    page = generated.command_line_page()

    assert [name for name in COMMANDS if f"\n### {name}\n" not in page] == []
    assert "--where, -w" in page


def test_pages_are_narrow() -> None:
    """What is wider is wrapped by ``python website/wrap_pages.py``; tables and headings are lines."""
    wide = [
        f"{page.relative_to(ROOT)}: {line}"
        for page in PAGES
        if page.name != wrap_pages.BY_LINES
        for line in without_code(page.read_text("utf-8")).splitlines()
        if len(line) > wrap_pages.WIDTH and not line.startswith(("|", "#"))
    ]

    assert wide == []


def test_wrapping_changes_nothing_but_where_lines_end() -> None:
    words = " ".join(f"word{n} `a b`" for n in range(30))
    page = f"# {words}\n\n{words}\n\n- {words} - 1. done\n  on\n\n> {words}\n\n| {words} |\n\n```sh\n{words}\n```\n"
    wrapped = wrap_pages.wrap_page(page)

    assert re.sub(r"[\s>]+", "", wrapped) == re.sub(r"[\s>]+", "", page)
    wide = [line for line in wrapped.splitlines() if len(line) > wrap_pages.WIDTH]
    assert wide == [f"# {words}", f"| {words} |", words]
    assert wrapped.count(words) == 3  # the heading, the table and the code
    assert all(line.count("`") % 2 == 0 for line in wrapped.splitlines() if not line.startswith("```"))
    assert wrap_pages.wrap_page(wrapped) == wrapped
    texts = {page: page.read_text("utf-8") for page in PAGES if page.name != wrap_pages.BY_LINES}
    assert [page.name for page, text in texts.items() if wrap_pages.wrap_page(text) != text] == []


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
