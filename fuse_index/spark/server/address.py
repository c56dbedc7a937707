"""Where a server listens, and who may reach it there."""

from __future__ import annotations

import errno
import ipaddress
import socket
from dataclasses import dataclass, replace

from fuse_index.errors import InputError


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port of this machine; port 0 is any that is free."""

    host: str
    port: int

    def url(self, scheme: str) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}"

    def replace_host(self, host: str) -> Address:
        return replace(self, host=host)

    @property
    def is_local(self) -> bool:
        """Whether only programs of this machine reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:  # a name
            return False

    def check_free(self) -> None:
        """Raise InputError where nobody can listen there, or somebody does already."""
        try:
            family, kind, protocol, _, place = socket.getaddrinfo(
                self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
                probe.bind(place)
        except OSError as refusal:
            if refusal.errno == errno.EADDRINUSE:
                raise InputError(
                    f"port {self.port} of {self.host} is taken: end the program that listens there, which may be a "
                    f"former server, or choose another port"
                ) from refusal
            raise InputError(f"nothing can listen at {self.host!r}, port {self.port}: {refusal}") from refusal


@dataclass(frozen=True, slots=True)
class Endpoints:
    """What is served where, and who may come.

    ``connect``: the port for Spark Connect, 0 for any that is free, None for none. ``jdbc``: the port for JDBC, by the
    protocol of HiveServer2. ``address``: by default only programs of this machine reach it. ``token``: what clients of
    Spark Connect must present. ``insecure``: whether others may reach the address without a token: they may do all that
    this process may, and run code here.
    """

    connect: int | None = 15002
    jdbc: int | None = None
    address: str = "127.0.0.1"
    token: str | None = None
    insecure: bool = False

    def check_reach(self) -> None:
        """Raise InputError where nobody is served, or others than are meant to come."""
        if self.connect is None and self.jdbc is None:
            raise InputError("connect=None and jdbc=None serve nobody: give a port")
        if self.token is not None and not self.token.strip():
            raise InputError("the token is empty: give one of 16 letters or more, that nobody guesses")
        if self.insecure or Address(self.address, 0).is_local:
            return
        why = f"address={self.address!r} is reached by others, who may run any code in this process"
        if self.token is None:
            raise InputError(f"{why}: give a token, or say insecure=True where something else keeps strangers out")
        if self.jdbc is not None:
            raise InputError(
                f"{why}, and JDBC asks for no token: leave jdbc out, or say insecure=True where something else keeps "
                f"strangers out"
            )

    def check_free(self) -> None:
        """Raise InputError where somebody listens already, or nobody can."""
        for port in (self.connect, self.jdbc):
            if port is not None:
                Address(self.address, port).check_free()
