"""Pages of HTML: a title, sections, and a style for both grounds; nothing is loaded from anywhere."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from fuse_storage import CARD_STYLE

_STYLE = (
    "<style>:root{color-scheme:light dark}"
    "body{font:14px/1.5 system-ui,sans-serif;margin:0 auto;padding:1.2em;max-width:78em}"
    "h1{font-size:1.35em;margin:.2em 0;overflow-wrap:anywhere}h2{font-size:1.05em;margin:1.6em 0 .3em}"
    "nav a,.go a{margin-right:1em}a{color:#2f7fd6}a:focus-visible,input:focus-visible,button:focus-visible"
    "{outline:2px solid #e4572e;outline-offset:2px}"
    "form{display:flex;gap:.5em;flex-wrap:wrap;margin:.5em 0}"
    "input[type=text]{flex:1 1 20em;font:13px ui-monospace,monospace;padding:.45em .6em;border-radius:4px;"
    "border:1px solid rgba(127,127,127,.6)}button{padding:.45em 1em}"
    ".problem{border-left:4px solid #e4572e;padding:.3em .8em;overflow-wrap:anywhere;white-space:pre-wrap}"
    ".skip{position:absolute;left:-99em}.skip:focus{left:1em}</style>"
)


def html_page(title: str, sections: Iterable[str]) -> str:
    """A whole document."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title>{_STYLE}{CARD_STYLE}</head><body>"
        f'<a class="skip" href="#main">To the content</a><main id="main">{"".join(sections)}</main></body></html>'
    )


def section(title: str, body: str, anchor: str = "") -> str:
    """A section with a heading; nothing where there is nothing to say."""
    place = f' id="{anchor}"' if anchor else ""
    return f'<section class="fuse"{place}><h2>{escape(title)}</h2>{body}</section>' if body else ""


def problem(text: str) -> str:
    """What went wrong, in a sentence."""
    return f'<p class="problem" role="alert">{escape(text[:4000])}</p>'
