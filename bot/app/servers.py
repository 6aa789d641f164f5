"""Asks a Podium elsewhere for a person, as commands with `--server` and after `podium login` do."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.cli.client import Say, Signed
from bot.cli.context import LOCAL
from bot.domain.errors import SetupError, UserError
from bot.remote.address import Server, address, checked
from bot.remote.credentials import Credentials, Login, Logins
from bot.settings import Settings

if TYPE_CHECKING:
    from bot.remote.client import RemoteClient


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers that commands can go to, by the settings and the logins of a user."""

    settings: Settings

    def chosen(self, url: str | None) -> str | None:
        """The server that a command is for; None for this machine's own Podium."""
        named = self.settings.cli_server if url is None else url
        if named is not None:
            return None if named.strip() == LOCAL else named
        return None if self.settings.names_this_machine else self._logins().default

    @asynccontextmanager
    async def client_of(self, url: str, say: Say, *, named: bool) -> AsyncIterator["RemoteClient"]:
        """A person's way to a server; `named` says that further commands must name it too."""
        from bot.remote.client import entering  # noqa: PLC0415 - httpx: only who goes there waits

        there = self._server(url)
        async with entering(there, say, f" --server {there.url}" if named else "") as client:
            yield client

    async def login(
        self, url: str, token: str | None, ask: Callable[[], str], *, plain_http: bool
    ) -> Signed:
        """Check a token at a server and keep both; `ask` gives one where nobody has said it yet."""
        from bot.remote.client import entering  # noqa: PLC0415 - see above

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
        """Forget the login at a server, else at the one that commands go to."""
        there = None if url is None else address(url, insecure=True)
        name, gone = self._credentials().forget(there)
        return Signed(name, gone.name)

    def _server(self, url: str) -> Server:
        """The server with the token of the settings, else of the login there, else without one."""
        login = self._logins().servers.get(address(url, insecure=True))
        there = address(url, insecure=login is not None and login.plain_http)
        kept = "" if login is None else login.token
        return Server(there, checked(self._token or kept))

    @property
    def _token(self) -> str:
        token = self.settings.cli_token
        return "" if token is None else token.get_secret_value()

    def _logins(self) -> Logins:
        """What is kept; nothing for a user without a home."""
        path = self.settings.credentials
        return Logins() if path is None else Credentials(path).read()

    def _credentials(self) -> Credentials:
        path = self.settings.credentials
        if path is None:
            raise SetupError("this user has no home to keep a login in; set XDG_CONFIG_HOME")
        return Credentials(path)


def _quiet(_: str) -> None:
    """Nothing is waited for at a login that could be told of."""
