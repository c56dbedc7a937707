"""What a remote store refuses, in words that say what to do. Knows texts of errors, and no store."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Callable

_CREDENTIALS = {
    "s3": (
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (`aws configure export-credentials` has "
        "a profile's), or the options access_key_id and secret_access_key; for a public bucket "
        "AWS_SKIP_SIGNATURE=true"
    ),
    "gs": (
        "set GOOGLE_APPLICATION_CREDENTIALS to a file of credentials, or the option service_account; for a public "
        "bucket GOOGLE_SKIP_SIGNATURE=true"
    ),
    "az": (
        "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or the options account_name and account_key; "
        "for a public container AZURE_SKIP_SIGNATURE=true"
    ),
}
"""How credentials are given, by the scheme of a store's URL."""
_METADATA_SERVICE = re.compile(
    r"/latest/api/token|/latest/meta-data|/computeMetadata/|/metadata/identity|169\.254\.\d+\.\d+|token request"
)
"""Requests to the service that gives a cloud's own machines their credentials: who has none is sent there."""
_REFUSED = re.compile(r"\b(?:401 Unauthorized|403 Forbidden)\b|Account must be specified")


STORE_OPTIONS = (
    *("access_key_id", "secret_access_key", "session_token", "region", "endpoint", "allow_http", "skip_signature"),
    *("virtual_hosted_style_request", "default_region", "request_payer", "account_name", "account_key", "sas_token"),
    *("service_account", "service_account_key", "timeout", "proxy_url", "shared_places"),
)
"""Options of stores that people give; obstore knows more."""
_UNKNOWN_OPTION = re.compile(r"Configuration key: '([^']*)' is not valid")
_NO_ANSWER = re.compile(r"performing \w+ (https?://[^/ ?]+)\S* .*HTTP error: error sending request")


REMOTE_SCHEMES = {
    **{"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs"},
    **{"az": "az", "azure": "az", "abfs": "abfs", "abfss": "abfss"},
}
"""Schemes of remote stores, and what obstore calls them."""
_ONE_SLASH = re.compile(r"(s3a?|gs|gcs|az|azure|abfss?|hdfs|dbfs|https?|memory):/(?!/)(.*)", re.DOTALL)
"""A URL that would else be a folder of this name in the working directory."""


def describe_malformed_url(url: str) -> str:
    """Why no store can be at a URL, and what to write; empty if one can."""
    if not url:
        return "an empty URL names no table"
    one_slash = _ONE_SLASH.match(url)
    scheme, separator, rest = (one_slash[1], "/", one_slash[2]) if one_slash else url.partition("://")
    if separator and scheme not in (*REMOTE_SCHEMES, "file", "memory"):
        known = "://, ".join(REMOTE_SCHEMES)
        return f"{url!r}: no store speaks {scheme!r}; use a folder, file://, memory://, {known}://"
    if one_slash:
        return f"{url!r} has one slash behind {scheme}: write {scheme}://{rest}"
    return f"{url!r} names no bucket: write {scheme}://bucket/folder" if separator and not rest else ""


def describe_refusal(url: str, key: str, refusal: BaseException) -> str:
    """The message of an error about ``key`` of the store at ``url``: what happened, and what to do about it.

    ``key``: empty for the store itself.
    """
    name, said = f"{url}/{key}" if key else url, " ".join(str(refusal).split("\n\nDebug source")[0].split())
    how = _CREDENTIALS["az" if url.startswith("ab") else url.partition("://")[0]] + ", or the option skip_signature"
    if (unknown := _UNKNOWN_OPTION.search(said)) is not None:
        return f"{name}: {describe_unknown_option(unknown[1])}"
    if (silent := _NO_ANSWER.search(said)) is not None and not _METADATA_SERVICE.search(said):
        return f"{name}: nothing answers at {silent[1]}: is the endpoint right, and does this machine reach it?"
    if _METADATA_SERVICE.search(said):
        return f"{name}: there are no credentials for it, and this machine has none of its own: {how}"
    return (
        f"{name}: {said}; if the credentials are wrong or missing: {how}"
        if _REFUSED.search(said)
        else f"{name}: {said}"
    )


def describe_unknown_option(option: str) -> str:
    """The message about an option that stores do not know, with those of near names."""
    near = difflib.get_close_matches(option.lower(), STORE_OPTIONS, n=2, cutoff=0.6)
    known = f"did you mean {' or '.join(near)}?" if near else f"such as {', '.join(STORE_OPTIONS)}"
    return f"no option of the store is called {option!r}: {known}"


_CUT_ANSWER = "request or response body error"
"""What obstore says of an answer that ended in the middle."""
_SECONDS_BEFORE_READING_AGAIN = (0.1, 0.3, 1.0)


def retry_cut_answers(read: Callable[[], bytes]) -> bytes:
    """Read, and again if an answer ended in the middle: obstore does so itself only where a store gives ETags."""
    for wait in _SECONDS_BEFORE_READING_AGAIN:
        try:
            return read()
        except Exception as refusal:
            if _CUT_ANSWER not in str(refusal):
                raise
        time.sleep(wait)
    return read()
