"""Tables of catalogues, with the options of object stores that these give for their files.

Options are kept in this process alone, and only as long as the catalogue says that they hold.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from fuse_index.sources.iceberg.catalog_table import load_table_of_catalog
from fuse_index.sources.iceberg.metadata import UnknownColumns
from fuse_index.sources.source import StoreOptions

CATALOG_URL = re.compile(r"iceberg://(?P<catalog>[^/]+)/(?P<table>.+)")
_NAMES = {
    "s3.endpoint": "endpoint",
    "s3.access-key-id": "access_key_id",
    "s3.secret-access-key": "secret_access_key",
    "s3.session-token": "session_token",
    "s3.region": "region",
    "client.region": "region",
    "adls.account-name": "account_name",
    "adls.account-key": "account_key",
    "adls.sas-token": "sas_key",
}
"""By the names that PyIceberg has for options of a store, those that stores here have."""
_OTHER_NAMES = {"endpoint_url": "s3.endpoint", "token": "s3.session-token"}
"""Further names that stores here have, and what PyIceberg calls them."""
_EXPIRY = ("s3.session-token-expires-at-ms", "adls.sas-token-expires-at-ms")
_SECONDS = 300.0
"""How long options are kept that have no expiry; a catalogue that failed is not asked again sooner."""
_MARGIN = 60.0
_kept: dict[str, _Kept] = {}
_lock = Lock()
_logger = logging.getLogger("fuse_index")


@dataclass(frozen=True, slots=True)
class _Kept:
    options: Mapping[str, str]
    until: float


def pyiceberg_options(options: StoreOptions) -> Mapping[str, str]:
    """Options of a store as PyIceberg calls them, as far as it has them.

    >>> pyiceberg_options({"aws_region": "eu-west-1", "shared_places": "s3://lake"})
    {'s3.region': 'eu-west-1'}
    """
    names = {ours: theirs for theirs, ours in _NAMES.items() if theirs != "client.region"} | _OTHER_NAMES
    lower = {key.lower().removeprefix("aws_"): value for key, value in options.items()}
    return {names[key]: value for key, value in lower.items() if key in names}


def load_from_catalog(url: str) -> tuple[Any, UnknownColumns]:
    """The table of PyIceberg that ``iceberg://catalog/db.table`` names, and its columns of types unknown to PyIceberg.

    Raises what PyIceberg and its catalogues do.
    """
    match = CATALOG_URL.fullmatch(url)
    assert match is not None
    table, unknown = load_table_of_catalog(match["catalog"], match["table"])
    keep_options(url, table.io.properties)
    return table, unknown


def keep_options(url: str, properties: Mapping[str, Any]) -> Mapping[str, str]:
    """Keep what a catalogue says of the store of a table, as options that stores here have.

    Without a key there are none: then the options of whoever reads hold.
    """
    found = {_NAMES[name]: str(value) for name, value in properties.items() if name in _NAMES and value}
    if not found.keys() & {"access_key_id", "account_key", "sas_key"}:
        found = {}
    expiry = [int(properties[name]) / 1000 - _MARGIN for name in _EXPIRY if str(properties.get(name, "")).isdigit()]
    kept = _Kept(found, min([*expiry, time.time() + _SECONDS]))
    with _lock:
        _kept[url] = kept
    return found


def catalog_options(url: str) -> Mapping[str, str]:
    """The options for files of a table of a catalogue, ``iceberg://catalog/db.table``.

    The catalogue is asked where what it said before does not hold any more. None where it cannot be asked, as in a
    process that is not set up for it: the options of whoever reads hold there, and a line of the log says so.
    """
    kept = _kept.get(url)
    if kept is not None and time.time() < kept.until:
        return kept.options
    try:
        load_from_catalog(url)
    except Exception as problem:  # PyIceberg's errors have no common base, and its catalogues bring their own
        _logger.warning("%s is asked for no credentials, since its catalogue cannot be asked: %r", url, problem)
        with _lock:
            _kept[url] = _Kept({}, time.time() + _SECONDS)
    return _kept[url].options
