"""Pages about tables for a browser on this machine, by a server that only reads.

In: a table or a catalogue. Out: HTML over HTTP, on the loopback address. A page of another site could have its name
lead here (DNS rebinding), so that a request must name the address that is printed, and come from no other site.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from fuse_index import Catalog, Table
from fuse_index.errors import FuseIndexError, InputError
from fuse_index.table.report.mixin import table_page
from fuse_index.table.report.page import html_page, problem
from fuse_index.table.report.sections import PageQuestion
from fuse_storage import InvalidArgument, NotFound, StorageError

MAX_LISTED = 500
"""Tables on one page of a warehouse."""

_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_PAGED = ("blocks_from", "commits_from", "block")
_SECONDS_OF_SILENCE = 30


class TablePages:
    """What is answered to a path and a query. ``open_table``: opens a table anew, the only one or by its name."""

    def __init__(self, open_table: Callable[[str], Table], catalog: Catalog | None = None) -> None:
        self._open_table, self._catalog = open_table, catalog

    def page(self, target: str) -> tuple[int, str]:
        """The status and the page of a request's target."""
        address = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(address.query, max_num_fields=20).items()}
        try:
            if address.path == "/":
                return 200, self._warehouse(query) if self._catalog is not None else self._table("", query)
            if address.path == "/table" and self._catalog is not None:
                return 200, self._table(query.get("name", ""), query)
        except NotFound as missing:
            return 404, _problem_page(str(missing))
        except (InputError, InvalidArgument) as wrong:
            return 400, _problem_page(str(wrong))
        except (FuseIndexError, StorageError) as failed:
            return 500, _problem_page(str(failed))
        return 404, _problem_page(f"there is no page {address.path}")

    def _table(self, name: str, query: dict[str, str]) -> str:
        blocks, commits, block = (_number(each, query[each]) if query.get(each) else None for each in _PAGED)
        question = PageQuestion(query.get("where", ""), blocks or 0, commits or 0, block, name)
        return table_page(self._open_table(name), replace(question, link=partial(_link, question)))

    def _warehouse(self, query: dict[str, str]) -> str:
        assert self._catalog is not None
        first, found = _number("from", query.get("from", "0")), query.get("find", "")
        return html_page(self._catalog.url, _tables(self._catalog, max(first, 0), found))


def _tables(catalog: Catalog, first: int, found: str) -> Iterator[str]:
    names = sorted(".".join(each) for namespace in _namespaces(catalog) for each in catalog.list_tables(namespace))
    names = [name for name in names if found.lower() in name.lower()]
    yield f"<h1>{escape(catalog.url)}</h1>"
    yield (
        '<form method="get" action="/" role="search"><input type="text" name="find" aria-label="Part of a name" '
        f'placeholder="Part of a name" value="{escape(found)}"><button>Find</button></form>'
    )
    shown = names[first : first + MAX_LISTED]
    yield f"<ul>{''.join(f'<li><a href=/table?name={quote(name)}>{escape(name)}</a></li>' for name in shown)}</ul>"
    if len(names) > len(shown):
        later = urlencode({"from": first + MAX_LISTED, "find": found})
        link = f'<a href="/?{escape(later)}">later</a> ' if first + MAX_LISTED < len(names) else ""
        yield f'<p class="go">{link}{first + 1:,} to {first + len(shown):,} of {len(names):,}</p>'
    if not names:
        yield "<p>There is no such table.</p>" if found else "<p>There are no tables yet.</p>"


def _namespaces(catalog: Catalog) -> Iterator[tuple[str, ...]]:
    """All namespaces, each before those within it."""
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        yield (namespace := waiting.pop())
        waiting += catalog.list_namespaces(namespace)


def _link(question: PageQuestion, **changed: int) -> str:
    """The address of a table's page with some members changed."""
    members: dict[str, Any] = {"name": question.table, "where": question.where, "block": question.block}
    members |= {"blocks_from": question.blocks_from, "commits_from": question.commits_from, **changed}
    return ("/table?" if question.table else "/?") + urlencode({key: each for key, each in members.items() if each})


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InputError(f"{name}={text[:100]!r}: give a number")
    return int(text)


def _problem_page(text: str) -> str:
    return html_page("fuse-index", ['<h1>fuse-index</h1><p><a href="/">To the start</a></p>', problem(text)])


class PageServer(ThreadingHTTPServer):
    """Pages on a port of the loopback address. Raises InputError for a port that cannot be had."""

    daemon_threads = True

    def __init__(self, pages: TablePages, port: int = 0) -> None:
        try:
            super().__init__(("127.0.0.1", port), partial(_Handler, pages))
        except OSError as taken:
            raise InputError(f"port {port} of 127.0.0.1 cannot be had: {taken.strerror}; give another") from taken

    @property
    def url(self) -> str:
        """The address for a browser."""
        return f"http://127.0.0.1:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    timeout = _SECONDS_OF_SILENCE
    server_version, sys_version = "fuse-index", ""

    def __init__(self, pages: TablePages, *of_server: Any) -> None:
        self._pages = pages
        super().__init__(*of_server)

    def do_GET(self) -> None:
        self._answer(*(self._refusal() or self._pages.page(self.path)))

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self._answer(405, _problem_page("this server only reads: ask by GET"))

    def _refusal(self) -> tuple[int, str] | None:
        """What is answered to a request that did not come by the address of this server, or from another site."""
        port = self.server.server_port
        names = {f"127.0.0.1:{port}", f"localhost:{port}"}
        if (host := self.headers.get("Host", "")) not in names or len(self.headers.get_all("Host", [])) != 1:
            return 421, _problem_page(f"the name {host[:200]!r} is not of this server: open {self.server.url}")
        origin, site = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site", "none")
        if origin not in (None, *(f"http://{name}" for name in names)) or site in ("cross-site", "same-site"):
            return 403, _problem_page("pages of other sites are not answered")
        return None

    def _answer(self, status: int, page: str) -> None:
        body = page.encode("utf-8", "replace")
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002  # of http.server
        """Log nothing: conditions may hold what is nobody's business."""
