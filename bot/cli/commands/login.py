"""`podium login` and `podium logout`: which server a user's commands use."""

import asyncio
import sys
from functools import partial
from typing import Annotated

import typer

from bot.app.servers import LOCAL
from bot.cli.context import AsJson, PlainHttp, command_line
from bot.reports.escaping import one_line

_LONGEST_LINE = 4096
"""The most characters of a token read from a pipe."""


def login(
    ctx: typer.Context,
    url: Annotated[str, typer.Argument(help="The server's address", metavar="URL")],
    *,
    token: Annotated[
        str | None,
        typer.Option(
            help="Your token; safer in PODIUM_CLI_TOKEN or typed at the prompt, because "
            "`ps` shows options",
            metavar="T",
        ),
    ] = None,
    plain_http: PlainHttp = False,
    as_json: AsJson = False,
) -> None:
    """Sign in to a server and use it for later commands."""
    line = command_line(ctx)
    ask = partial(_read_token, f"your token at {url}")
    session = asyncio.run(line.installation.servers.login(url, token, ask, plain_http=plain_http))
    words = one_line(f"signed in to {session.url} as {session.name}")
    line.answer(words, {"server": session.url, "person": session.name}, as_json=as_json)
    if not as_json:
        line.say(_server_in_use(session.url, line.installation.servers.chosen(None)))


def logout(
    ctx: typer.Context,
    url: Annotated[
        str | None,
        typer.Argument(help="Server address (default: the server in use)", metavar="URL"),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Sign out of a server; the token stays valid until it is revoked."""
    line = command_line(ctx)
    session = line.installation.servers.logout(url)
    words = f"signed out of {session.url}"
    line.answer(words, {"server": session.url, "person": session.name}, as_json=as_json)
    if not as_json:
        line.say("the token stays valid until you revoke it on the server")


def _server_in_use(url: str, chosen: str | None) -> str:
    """Return where commands go after the login; environment variables may override it."""
    if chosen == url:
        return f"commands now use this server; --server {LOCAL} uses this machine's own Podium"
    where = chosen or "this machine's own Podium"
    return (
        f"commands still use {where}, because PODIUM_CLI_SERVER, PODIUM_DATA_DIR or "
        f"DATABASE_URL is set; unset it, or use --server {url}"
    )


def _read_token(words: str) -> str:
    """Return a token typed without echo, or read from a pipe."""
    if sys.stdin.isatty():
        return str(typer.prompt(words, hide_input=True, err=True))
    return sys.stdin.readline(_LONGEST_LINE)
