"""The options of ``format("fuse")``: what they are called, what they mean, and what is refused.

An unknown option is refused, not ignored: whoever misspells ``where`` would get every row.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from fuse_index.errors import InputError
from fuse_storage import Schema, StoredTable

_STATE_OPTIONS = ("at", "version", "tail")
BATCH_READ_OPTIONS = (
    *("path", "branch", *_STATE_OPTIONS, "where", "columns", "timezone", "read_changes", "preimages", "since", "key"),
)
STREAM_READ_OPTIONS = (
    *(name for name in BATCH_READ_OPTIONS if name not in _STATE_OPTIONS),
    "skip_changes",
    "max_blocks_per_trigger",
    "max_rows_per_trigger",
)
READ_OPTIONS = tuple(dict.fromkeys((*BATCH_READ_OPTIONS, *STREAM_READ_OPTIONS)))
"""Options of both, for who is asked before it is known which of them reads."""
BATCH_WRITE_OPTIONS = ("path", "branch", "mergeschema", "hot")
STREAM_WRITE_OPTIONS = (*BATCH_WRITE_OPTIONS, "checkpointlocation")
STORE_PREFIX = "store."
"""Options with this prefix go to the object store: credentials, region, endpoint."""

_OF_STREAMS = {"at": "since", "version": "since"}
"""What says in a stream what these options say in a batch."""
_COLUMN_NAME = re.compile(r"\s*+(?:`((?:[^`]|``)++)`\s*+|([^`,]++))(?:,|$)")


class OptionError(InputError):
    """An option of ``format("fuse")`` is missing, unknown or cannot be read; the message names it."""

    code = "INVALID_OPTION"


@dataclass(frozen=True, slots=True)
class TableLocation:
    """The URL of a table, and the branch and state that are meant. Picklable.

    ``tail``: whether rows are meant that are not tiered yet.
    """

    url: str
    branch: str = "main"
    at: str | None = None
    store_options: tuple[tuple[str, str], ...] = ()
    version: int | None = None
    tail: bool = True

    def open(self) -> StoredTable:
        """Open the table there. Raises StorageError."""
        options = dict(self.store_options)
        found = StoredTable.open(self.url, branch=self.branch, at=self.at, options=options, version=self.version)
        return found if self.tail else found.without_tail()


def parse_location(options: Mapping[str, str], known: tuple[str, ...]) -> TableLocation:
    """The table that the options name. Their keys are in lower case, as Spark hands them over. Raises OptionError."""
    for key in options:
        if key not in known and not key.startswith((STORE_PREFIX, "__")):  # Spark's own begin with "__"
            instead = _OF_STREAMS.get(key)
            near = [instead] if instead in known else difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {_list_known(known)} and {STORE_PREFIX}*"
            raise OptionError(f"format('fuse') has no option {key!r} here: {hint}")
    url = options.get("path", "").strip()
    if not url:
        raise OptionError(
            "format('fuse') needs the table's URL: load(url), save(url) or OPTIONS (path 'url'). "
            "CREATE TABLE ... USING fuse drops its options: use CREATE TEMPORARY VIEW ... USING "
            "fuse OPTIONS (path 'url')"
        )
    if url.startswith("memory:"):
        raise OptionError(
            f"{url!r} lives in one process, and Spark's tasks are others: use a folder or an object store"
        )
    if url.startswith("file:/") and not url.startswith("file://"):
        url = url.removeprefix("file:")  # as Hadoop prints local paths
    store = tuple(
        (key.removeprefix(STORE_PREFIX), value) for key, value in options.items() if key.startswith(STORE_PREFIX)
    )
    tail, version = parse_choice(options, "tail"), parse_count(options, "version")
    return TableLocation(url, options.get("branch", "main"), options.get("at"), store, version, tail is not False)


def parse_column_list(text: str | None, schema: Schema, case_sensitive: bool) -> tuple[str, ...]:
    """The columns that ``text`` lists, in the schema's spelling; all if there is no text.

    Separated by commas; a name with a comma or a back-quote in it stands in back-quotes, doubled within. Raises
    OptionError, SchemaError.
    """
    if text is None:
        return tuple(schema.names)
    columns = tuple(schema.find([name], case_sensitive).name for name in _split_names(text))
    if len(set(columns)) < len(columns):
        raise OptionError(f"option columns={text!r} names a column twice")
    return columns


def parse_flag(options: Mapping[str, str], name: str) -> bool:
    """An option as a bool, False if it is not there. Raises OptionError for a text that is neither true nor false."""
    text = options.get(name, "false").strip().lower()
    if text not in ("true", "false"):
        raise OptionError(f"option {name}={options[name]!r}: say true or false")
    return text == "true"


def parse_choice(options: Mapping[str, str], name: str) -> bool | None:
    """An option as a bool, None if it is not there. Raises OptionError for a text that is neither true nor false."""
    return parse_flag(options, name) if name in options else None


def parse_count(options: Mapping[str, str], name: str) -> int | None:
    """An option as a whole number above 0; None if it is not there. Raises OptionError."""
    text = options.get(name)
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) < 1:
        raise OptionError(f"option {name}={text!r}: say a whole number above 0")
    return int(text)


def _list_known(known: tuple[str, ...]) -> str:
    if known != READ_OPTIONS:
        return ", ".join(known)
    both = [name for name in BATCH_READ_OPTIONS if name in STREAM_READ_OPTIONS]
    batch, stream = ([name for name in each if name not in both] for each in (BATCH_READ_OPTIONS, STREAM_READ_OPTIONS))
    return f"{', '.join(both)}, of batches {', '.join(batch)}, of streams {', '.join(stream)}"


def _split_names(text: str) -> list[str]:
    names, start = [], 0
    while start < len(text):
        part = _COLUMN_NAME.match(text, start)
        if part is None:
            raise OptionError(
                f"option columns={text!r} cannot be read at {text[start:]!r}: write names separated by commas"
            )
        names.append(part[1].replace("``", "`") if part[1] else part[2].rstrip())
        start = part.end()
    if not names:
        raise OptionError("option columns is empty: leave it out to read all columns")
    return names
