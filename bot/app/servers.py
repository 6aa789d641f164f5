"""Which Podium a command uses, and the logins of this machine's user."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.domain.errors import SetupError, UserError
from bot.remote.client.credentials import Credentials, Login, Logins
from bot.remote.http import Server, address, checked
from bot.settings import Settings

if TYPE_CHECKING:
    from bot.remote.client.client import RemoteClient


LOCAL = "local"
"""Stands for a server's address and means this machine's own Podium."""

Say = Callable[[str], None]
"""Prints a line for the person, apart from the results."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A login: the server's address and the person's name there."""

    url: str
    name: str


@dataclass(frozen=True, slots=True)
class ServerDirectory:
    """The servers that commands can use, from the settings and the user's logins."""

    settings: Settings

    def chosen(self, url: str | None) -> str | None:
        """Return the server for a command: this one, else the settings', else the login's.

        None for this machine: no server is known, the settings name a data folder or a database, or
        the URL is `local`.
        """
        named = self.settings.cli_server if url is None else url
        if named is not None:
            return None if named.strip() == LOCAL else named
        return None if self.settings.names_this_machine else self._logins().default

    @asynccontextmanager
    async def client_of(self, url: str, say: Say, *, named: bool) -> AsyncIterator["RemoteClient"]:
        """Open a client for a server, with the token of the settings, else of the login there.

        `named`: the command named the server, so further commands must name it too. `say` is
        called while the server is unavailable. UserError if the address must not be used.
        """
        from bot.remote.client.client import entering  # noqa: PLC0415 - httpx takes time to load

        there = self._server(url)
        async with entering(there, say, f" --server {there.url}" if named else "") as client:
            yield client

    async def login(
        self, url: str, token: str | None, ask: Callable[[], str], *, plain_http: bool
    ) -> Signed:
        """Check a token at a server and store both; without a token, `ask` for one.

        UserError when the server refuses the token, SetupError when it cannot be reached.
        """
        from bot.remote.client.client import entering  # noqa: PLC0415 - see above

        there = address(url, insecure=plain_http)
        kept = self._credentials()
        secret = checked(token or self._token or ask())
        if not secret:
            raise UserError("no-token", "a token is needed; type it, or set PODIUM_CLI_TOKEN")
        async with entering(Server(there, secret), _quiet) as client:
            name = await client.whoami()
        kept.keep(there, Login(token=secret, name=name, plain_http=plain_http))
        return Signed(there, name)

    def logout(self, url: str | None) -> Signed:
        """Remove the login at a server, else at the one that commands talk to.

        UserError when there is no such login.
        """
        there = None if url is None else address(url, insecure=True)
        name, gone = self._credentials().forget(there)
        return Signed(name, gone.name)

    def _server(self, url: str) -> Server:
        """Return the server with the token of the settings, else of the login, else without."""
        login = self._logins().servers.get(address(url, insecure=True))
        there = address(url, insecure=login is not None and login.plain_http)
        kept = "" if login is None else login.token
        return Server(there, checked(self._token or kept))

    @property
    def _token(self) -> str:
        token = self.settings.cli_token
        return "" if token is None else token.get_secret_value()

    def _logins(self) -> Logins:
        """Return the stored logins; none for a user without a home folder."""
        path = self.settings.credentials
        return Logins() if path is None else Credentials(path).read()

    def _credentials(self) -> Credentials:
        path = self.settings.credentials
        if path is None:
            raise SetupError("this user has no home to keep a login in; set XDG_CONFIG_HOME")
        return Credentials(path)


def _quiet(_: str) -> None:
    """A login reports no progress."""
