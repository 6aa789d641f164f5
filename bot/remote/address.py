"""Where a server is, and whether a token may be sent there."""

import ipaddress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from bot.domain.errors import UserError


@dataclass(frozen=True, slots=True)
class Server:
    """A Podium elsewhere, and the token with which it is asked."""

    url: str
    """Without a slash at its end."""
    token: str = field(repr=False)


def server(url: str, token: str, *, insecure: bool = False) -> Server:
    """The server for which a worker judges; UserError when nothing should be sent there."""
    there = address(url, insecure=insecure)
    if not token.strip():
        raise UserError(
            "no-token",
            "a worker needs a token: --token T or PODIUM_WORKER_TOKEN; an admin makes one: "
            "podium token create --worker NAME",
        )
    return Server(there, checked(token))


def address(url: str, *, insecure: bool = False) -> str:
    """An address that a person gave, as it is used; UserError when no token should be sent there.

    `insecure` allows plain HTTP to another machine, where everybody on the way can read the token.
    """
    parts = urlsplit(url.strip())
    try:
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise _bad(url) from error
    if parts.scheme not in {"http", "https"} or not host or parts.query or parts.fragment:
        raise _bad(url)
    if parts.username or parts.password:
        raise UserError("bad-server", "write no user and password into the server's address")
    if parts.scheme == "http" and not insecure and not _is_here(host):
        raise UserError(
            "plain-http",
            f"the token would travel to {host} for everybody to read; use https://, or "
            "--plain-http where the network is yours alone",
        )
    return url.strip().rstrip("/")


def _bad(url: str) -> UserError:
    return UserError(
        "bad-server",
        f"{url!r} is no server's address; write one such as https://podium.example.org",
    )


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def checked(token: str) -> str:
    """A token as it is sent; UserError for what is none."""
    words = token.strip()
    if not words.isascii() or not words.isprintable() or " " in words:
        raise UserError("bad-token", "this is no token: it has characters that none has")
    return words
