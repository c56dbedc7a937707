"""Where a server listens, and who may reach it there."""

from __future__ import annotations

import errno
import ipaddress
import socket
import ssl
from dataclasses import dataclass, replace
from pathlib import Path

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
            raise self.refusal(refusal) from refusal

    def refusal(self, problem: OSError) -> InputError:
        """What a user is told of ``problem``, by which the system refused to let a server listen there."""
        if problem.errno == errno.EADDRINUSE:
            return InputError(
                f"port {self.port} of {self.host} is taken: end the program that listens there, which may be a former "
                f"server, or choose another port"
            )
        return InputError(f"nothing can listen at {self.host!r}, port {self.port}: {problem}")


@dataclass(frozen=True, slots=True)
class Certificate:
    """Files in PEM's format: a certificate, with those that vouch for it, and its private key."""

    chain: str | Path
    private_key: str | Path

    def check(self) -> None:
        """Raise InputError where they cannot be read, are not of each other, or in a format that Java does not read."""
        why = f"the certificate {self.chain} and the key {self.private_key} are of no use"
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.chain, self.private_key, password="")
            key = Path(self.private_key).read_text("ascii")
        except (OSError, ValueError) as problem:  # ssl.SSLError is the former
            raise InputError(f"{why}: {problem}; give files in PEM's format, the key without a password") from problem
        if "-----BEGIN PRIVATE KEY-----" not in key:
            raise InputError(
                f"{why}: Java reads keys in PKCS#8's format: openssl pkcs8 -topk8 -nocrypt makes one of it"
            )


@dataclass(frozen=True, slots=True)
class Endpoints:
    """What is served where, and who may come.

    ``connect``: the port for Spark Connect, 0 for any that is free, None for none. ``jdbc``: the port for JDBC, by the
    protocol of HiveServer2. ``address``: by default only programs of this machine reach it. ``token``: what clients of
    Spark Connect must present, and those of JDBC, as the password of any user. ``insecure``: whether others may reach
    the address without a token: they may do all that this process may, and run code here. ``certificate``: by it both
    speak TLS.
    """

    connect: int | None = 15002
    jdbc: int | None = None
    address: str = "127.0.0.1"
    token: str | None = None
    insecure: bool = False
    certificate: Certificate | None = None

    def check_reach(self) -> None:
        """Raise InputError where nobody is served, or others than are meant to come."""
        if self.connect is None and self.jdbc is None:
            raise InputError("connect=None and jdbc=None serve nobody: give a port")
        if self.token is not None and not self.token.strip():
            raise InputError("the token is empty: give one of 16 letters or more, that nobody guesses")
        if self.certificate is not None:
            self.certificate.check()
        if self.token is None and not self.insecure and not Address(self.address, 0).is_local:
            raise InputError(
                f"address={self.address!r} is reached by others, who may run any code in this process: give a token, "
                f"or say insecure=True where something else keeps strangers out"
            )

    def check_free(self, *others: int) -> None:
        """Raise InputError where somebody listens already, or nobody can, at these and ``others`` of this server."""
        ports = [port for port in (self.connect, self.jdbc, *others) if port is not None]
        for number, port in enumerate(ports):
            if port and port in ports[:number]:
                raise InputError(f"port {port} is given twice: give each of Connect, JDBC and health one of its own")
            Address(self.address, port).check_free()
