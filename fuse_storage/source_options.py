"""With which options are the files of a source asked, where its catalogue knows better than the table? Knows none."""

from __future__ import annotations

from collections.abc import Callable, Mapping

OptionsOfSource = Callable[[str], Mapping[str, str]]
"""A function of a source's URL: options of the object store that hold for its files, before those of the table."""
_askers: dict[str, OptionsOfSource] = {}


def set_source_options(scheme: str, ask: OptionsOfSource) -> None:
    """Have files of sources whose URL is of this scheme asked with the options that ``ask`` gives.

    It is asked whenever such a file is to be read, by many threads, and keeps what it was told as long as that holds:
    credentials that a catalogue vends expire, and are in no file of ours.
    """
    _askers[scheme] = ask


def options_of_source(source: str | None) -> Mapping[str, str]:
    """The options for files of a source; none where only the table's own count."""
    scheme, separator, _ = (source or "").partition("://")
    return _askers[scheme](source or "") if separator and scheme in _askers else {}
