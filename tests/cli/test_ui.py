"""Tables in a browser: pages that only read, for this machine alone, and one page as a file."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode

import pytest

import fuse_index as fuse
from fuse_index.cli.servers.pages import MAX_LISTED, PageServer, TablePages
from fuse_index.cli.servers.ui import _pages
from fuse_index.table.report.sections import PAGE_ROWS

NAME = "shop.<b>'&"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("ui") / "warehouse"
    catalog = fuse.catalog(place, create=True)
    catalog.create_namespace("shop")
    table = catalog.create_table(NAME, "id BIGINT, city STRING", properties={"block_rows": 2, "<i>": "<script>"})
    table.append([{"id": number, "city": "<script>alert(1)</script>"} for number in range(2 * PAGE_ROWS + 10)])
    table.create_index("by_city", "bloom", ["city"])
    return place


class Served:
    def __init__(self, pages: TablePages) -> None:
        self.server = PageServer(pages)
        Thread(target=self.server.serve_forever, daemon=True).start()

    def get(self, path: str, headers: dict[str, str] | None = None, method: str = "GET") -> tuple[int, Page, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=60)
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, Page(answer.read().decode()), answer.headers


class Page(HTMLParser):
    """A page as elements: their names, links, the inputs of forms, and what text it has."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html, self.text, self.alert = html, "", ""
        self.tags: set[str] = set()
        self.links: dict[str, str] = {}
        self.inputs: list[dict[str, str | None]] = []
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "input":
            self.inputs.append(dict(attrs))
        elif tag != "meta":
            self._open.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._open and self._open[-1][0] == "a":
            self.links[data] = str(self._open[-1][1]["href"])
        if self._open and self._open[-1][1].get("role") == "alert":
            self.alert += data


@pytest.fixture(scope="module")
def served(warehouse: Path) -> Iterator[Served]:
    served = Served(_pages(str(warehouse)))
    yield served
    served.server.shutdown()
    served.server.server_close()


def table_path(**query: Any) -> str:
    return "/table?" + urlencode({"name": NAME, **query})


def test_a_warehouse_links_to_its_tables(served: Served) -> None:
    status, page, _ = served.get("/")

    assert status == 200
    status, page, _ = served.get(page.links[NAME])
    assert status == 200
    assert NAME in page.text
    assert "script" not in page.tags
    assert "by_city" in page.text


def test_a_condition_is_explained_with_its_blocks(served: Served) -> None:
    _, page, _ = served.get(table_path(where="id < 4"))

    assert "blocks2of 30 to read" in page.text
    assert "28 left out by min_max: id < 4" in page.text
    typed = next(each for each in page.inputs if each["name"] == "where" and each["type"] == "text")
    assert typed["value"] == "id < 4"
    assert {each["value"] for each in page.inputs if each["name"] == "name"} == {NAME}


BAD = [
    ("id <", "cannot be read near '<'"),
    ("city = Bonn", "Is there a quote missing: 'Bonn'"),
    ("id = 1 ORDER BY id", "ends before ORDER"),
    ("<script>alert(1)</script>", ""),
    ("(" * 5000, ""),
    ("\x00", ""),
]


@pytest.mark.parametrize(("where", "says"), BAD, ids=[f"bad {number}" for number in range(len(BAD))])
def test_a_bad_condition_gets_its_sentence_and_the_page_stays(served: Served, where: str, says: str) -> None:
    status, page, _ = served.get(table_path(where=where))

    assert status == 200
    assert page.alert
    assert says in page.alert
    assert "script" not in page.tags
    assert "Commits" in page.text


def test_a_misspelt_function_is_explained(served: Served) -> None:
    assert "did you mean ['upper'" in served.get(table_path(where="uper(city) = 'A'"))[1].text


def test_blocks_and_zones_are_paged(served: Served) -> None:
    _, page, _ = served.get(table_path(where="id < 4"))
    assert f"1 to {PAGE_ROWS} of 30" in page.text
    _, page, _ = served.get(page.links["later"].partition("#")[0])

    assert f"{PAGE_ROWS + 1} to 30 of 30" in page.text
    assert "28 left out by min_max" in page.text
    _, page, _ = served.get(table_path(block=3))
    assert "6 – 7" in page.text
    for number, says in (("30", "there is no block 30: give a number from 0 to 29"),):
        assert says in served.get(table_path(block=number))[1].alert


WRONG = [
    ("/nowhere", 404, "there is no page /nowhere"),
    ("/table?name=shop.none", 404, "there is no table 'shop.none'"),
    ("/table", 400, ""),
    ("/table?name=shop.%3Cb%3E%27%26&block=x", 400, "block='x': give a number"),
    ("/table?name=shop.%3Cb%3E%27%26&blocks_from=99999999999999999999", 400, "give a number"),
    ("/?from=-1", 400, "give a number"),
]


@pytest.mark.parametrize(("path", "status", "says"), WRONG)
def test_wrong_addresses_get_a_sentence(served: Served, path: str, status: int, says: str) -> None:
    answered, page, _ = served.get(path)

    assert answered == status
    assert says in page.alert


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1.evil.example:{port}", ""]
)
def test_whoever_comes_by_another_name_is_refused(served: Served, host: str) -> None:
    status, page, _ = served.get("/", {"Host": host.format(port=served.server.server_port)})

    assert status == 421
    assert NAME not in page.text


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
)
def test_pages_of_other_sites_are_refused(served: Served, headers: dict[str, str]) -> None:
    assert served.get("/", headers)[0] == 403


def test_its_own_pages_by_either_name_are_answered(served: Served) -> None:
    port = served.server.server_port
    for name in (f"localhost:{port}", f"127.0.0.1:{port}"):
        assert served.get("/", {"Host": name, "Origin": f"http://{name}", "Sec-Fetch-Site": "same-origin"})[0] == 200


def test_nothing_is_loaded_and_nothing_is_kept(served: Served) -> None:
    _, page, headers = served.get(table_path())

    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"
    assert not page.tags & {"script", "link", "img", "iframe"}
    assert "Server" not in headers or "Python" not in headers["Server"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_whatever_might_write_is_refused(served: Served, method: str) -> None:
    assert served.get("/", method=method)[0] in (405, 501)


def test_many_tables_are_found_by_a_part_of_their_name(tmp_path: Path) -> None:
    catalog = fuse.catalog(tmp_path / "w", create=True)
    for number in range(3):
        catalog.create_table(f"t{number}", "id BIGINT")
    pages = TablePages(lambda name: catalog.load_table(name), catalog)

    assert MAX_LISTED > 3
    assert "t1" in pages.page("/?find=T1")[1]
    assert ">t2<" not in pages.page("/?find=T1")[1]
    assert "no such table" in pages.page("/?find=x")[1]


def test_a_table_that_is_gone_gets_a_sentence(tmp_path: Path) -> None:
    fuse.create_table(tmp_path / "t", "id BIGINT")
    pages = _pages(str(tmp_path / "t"))
    assert pages.page("/")[0] == 200
    (tmp_path / "t").rename(tmp_path / "away")

    status, page = pages.page("/")
    assert status == 404
    assert "is no table" in Page(page).alert


def test_the_command_serves_until_it_is_interrupted(warehouse: Path) -> None:
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # a job of a shell ignores it
    command = [
        sys.executable,
        "-c",
        f"{heeding}; from fuse_index.cli.program import main; main()",
        "ui",
        f"{warehouse}#{NAME}",
        "--port",
        "0",
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as run:
        assert run.stdout is not None
        address = run.stdout.readline().strip()
        connection = http.client.HTTPConnection(address.removeprefix("http://").rstrip("/"), timeout=60)
        connection.request("GET", "/")
        answer = connection.getresponse()
        page = Page(answer.read().decode())
        run.send_signal(signal.SIGINT)
        said = run.communicate(timeout=60)

    assert answer.status == 200
    assert NAME in page.text
    assert run.returncode == 0
    assert said == ("", "ended\n")


def test_a_report_is_one_file_that_needs_nothing(run: Any, warehouse: Path, tmp_path: Path) -> None:
    printed = run("report", f"{warehouse}#{NAME}", tmp_path / "page.html", "--where", "id < 4")
    page = Page((tmp_path / "page.html").read_text("utf-8"))

    assert (printed.code, printed.out) == (0, f"{tmp_path}/page.html\n")
    assert "28 left out by min_max: id < 4" in page.text
    assert not page.tags & {"script", "link", "img", "form", "input"}
    assert len(page.html) < 200_000


def test_a_report_says_what_is_wrong_with_its_condition_or_its_file(tmp_path: Path) -> None:
    table = fuse.create_table(tmp_path / "t", "id BIGINT")

    assert "did you mean" in Page(table.report(tmp_path / "page.html", "idd = 1").read_text("utf-8")).alert
    with pytest.raises(fuse.InputError, match=r"the report cannot be written to .*: No such file or directory"):
        table.report(tmp_path / "none" / "page.html")
