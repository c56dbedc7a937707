"""Options of a store that are its HTTP client's. Knows no store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

_HTTP_CLIENT_OPTIONS = (
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "proxy_url",
    "timeout",
    "user_agent",
)
"""Options that are of the HTTP client, not of the store."""


def is_client_option(key: str) -> bool:
    """Tell whether an option is of the HTTP client, and not of the store."""
    return _client_key(key) in _HTTP_CLIENT_OPTIONS


def _client_key(key: str) -> str:
    return key.lower().removeprefix("aws_")


def client_options(options: Mapping[str, str]) -> dict[str, Any]:
    """The options of the HTTP client; plain HTTP is allowed where an endpoint is named by it, or an option says so."""
    client: dict[str, Any] = {
        _client_key(key): value for key, value in options.items() if _client_key(key) in _HTTP_CLIENT_OPTIONS
    }
    by_key = {_client_key(key): value for key, value in options.items()}
    endpoints = (
        by_key.get("endpoint"),
        by_key.get("endpoint_url"),
        os.environ.get("AWS_ENDPOINT_URL"),
        os.environ.get("AWS_ENDPOINT"),
    )
    endpoint = next(filter(None, endpoints), "")
    allowed = str(client.get("allow_http", os.environ.get("AWS_ALLOW_HTTP", endpoint.startswith("http://"))))
    return {**client, "allow_http": allowed.lower() == "true"}
