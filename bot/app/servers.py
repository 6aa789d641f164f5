"""Chooses the Podium that a command uses; stores the logins of this machine's user.

The logins are servers and their tokens, in a file that only this user can read.
"""

import fcntl
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.domain.errors import SetupError, UserError
from bot.remote.http import Server, address, checked_token
from bot.settings import Settings

if TYPE_CHECKING:
    from bot.remote.client.client import RemoteClient


LOCAL = "local"
"""In place of a server's address: this machine's own Podium."""
_OTHERS_MODE = 0o077
"""The permission bits of a file for users other than its owner."""
_MOST_BYTES = 1 << 20

Say = Callable[[str], None]
"""Prints a line to the person, separate from the results."""


@dataclass(frozen=True, slots=True)
class LoginSummary:
    """A login: the server's address and the person's name there."""

    url: str
    name: str


@dataclass(frozen=True, slots=True)
class ServerDirectory:
    """The servers that commands can use, from the settings and the user's logins."""

    settings: Settings

    def chosen(self, url: str | None) -> str | None:
        """Return the server for a command: `url`, else the settings' server, else the login's.

        None means this machine: the URL is `local`, the settings name a data folder or a database,
        or no server is known.
        """
        named = self.settings.cli_server if url is None else url
        if named is not None:
            return None if named.strip() == LOCAL else named
        return None if self.settings.names_this_machine else self._logins().default

    @asynccontextmanager
    async def client_of(self, url: str, say: Say, *, named: bool) -> AsyncIterator["RemoteClient"]:
        """Open a client for a server, with the token of the settings or else of the login there.

        `named`: the command named the server, so further commands must name it too. `say` is
        called while the server is unavailable. UserError if the address must not be used.
        """
        from bot.remote.client.client import open_remote  # noqa: PLC0415 - its bodies take time to load

        server = self._server(url)
        async with open_remote(server, say, f" --server {server.url}" if named else "") as client:
            yield client

    async def login(
        self, url: str, token: str | None, ask: Callable[[], str], *, plain_http: bool
    ) -> LoginSummary:
        """Check a token at a server and store both; without a token, `ask` for one.

        UserError when the server refuses the token, SetupError when it cannot be reached.
        """
        from bot.remote.client.client import open_remote  # noqa: PLC0415 - see above

        server_url = address(url, insecure=plain_http)
        credentials = self._credentials()
        secret = checked_token(token or self._token or ask())
        if not secret:
            raise UserError("no-token", "a token is needed; type it, or set PODIUM_CLI_TOKEN")
        async with open_remote(Server(server_url, secret), _quiet) as client:
            name = await client.whoami()
        credentials.store(server_url, Login(token=secret, name=name, plain_http=plain_http))
        return LoginSummary(server_url, name)

    def logout(self, url: str | None) -> LoginSummary:
        """Remove the login at a server, by default at the one that commands use.

        UserError when there is no such login.
        """
        server_url = None if url is None else address(url, insecure=True)
        removed_url, login = self._credentials().remove(server_url)
        return LoginSummary(removed_url, login.name)

    def _server(self, url: str) -> Server:
        """Return the server with the token of the settings, else of the login, else with none."""
        login = self._logins().servers.get(address(url, insecure=True))
        server_url = address(url, insecure=login is not None and login.plain_http)
        stored = "" if login is None else login.token
        return Server(server_url, checked_token(self._token or stored))

    @property
    def _token(self) -> str:
        token = self.settings.cli_token
        return "" if token is None else token.get_secret_value()

    def _logins(self) -> "Logins":
        """Return the stored logins; none for a user without a home folder."""
        path = self.settings.credentials
        return Logins() if path is None else Credentials(path).read()

    def _credentials(self) -> "Credentials":
        path = self.settings.credentials
        if path is None:
            raise SetupError("this user has no home folder for logins; set XDG_CONFIG_HOME")
        return Credentials(path)


def _quiet(_: str) -> None:
    """Print nothing: a login reports no progress."""


class Login(BaseModel):
    """A token at a server, and its person; `plain_http`: the person allowed HTTP without TLS."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    token: str = Field(repr=False)
    name: str
    plain_http: bool = False


class Logins(BaseModel):
    """Every login by its server's address, and the default server for commands."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    default: str | None = None
    servers: dict[str, Login] = {}


@dataclass(frozen=True, slots=True)
class Credentials:
    """The file of the logins; it does not exist before the first one."""

    path: Path

    def read(self) -> Logins:
        """Return the stored logins; UserError for an unusable file says what to do."""
        try:
            with self.path.open("rb") as file:
                if os.fstat(file.fileno()).st_mode & _OTHERS_MODE:
                    raise self._unusable(f"others may read it; run: chmod 600 {self.path}")
                text = file.read(_MOST_BYTES)
        except FileNotFoundError:
            return Logins()
        except OSError as error:
            raise self._unusable(f"it cannot be read ({error.strerror})") from error
        try:
            return Logins.model_validate_json(text)
        except ValidationError:
            words = "it is not what `podium login` writes; delete it and sign in again"
            raise self._unusable(words) from None  # the cause would quote tokens

    def store(self, url: str, login: Login) -> None:
        """Store the login at this server, which becomes the default for commands."""
        with self._changing() as logins:
            self._write(Logins(default=url, servers={**logins.servers, url: login}))

    def remove(self, url: str | None) -> tuple[str, Login]:
        """Remove and return the login at a server, by default at the one that commands use.

        UserError when there is none.
        """
        with self._changing() as logins:
            name = logins.default if url is None else url
            if name is None or name not in logins.servers:
                servers = ", ".join(sorted(logins.servers)) or "none"
                server = "any server" if name is None else name
                words = f"you are not signed in to {server}; you are signed in to: {servers}"
                raise UserError("no-login", words)
            others = {url: login for url, login in logins.servers.items() if url != name}
            default = logins.default if logins.default in others else None
            self._write(Logins(default=default, servers=others))
            return name, logins.servers[name]

    @contextmanager
    def _changing(self) -> Iterator[Logins]:
        """Yield the stored logins, locked against other processes."""
        folder = self.path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise SetupError(f"{folder} cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield self.read()
        finally:
            os.close(descriptor)

    def _write(self, logins: Logins) -> None:
        """Replace the file atomically: readers get either the old one or the new one."""
        new_file = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        try:
            opened = os.open(new_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(opened, "w", encoding="utf-8") as file:
                file.write(logins.model_dump_json(indent=2))
                file.flush()
                os.fsync(file.fileno())
            new_file.replace(self.path)
        except OSError as error:
            raise SetupError(f"{self.path} cannot be written: {error.strerror}") from error
        finally:
            with suppress(OSError):
                new_file.unlink(missing_ok=True)

    def _unusable(self, words: str) -> UserError:
        return UserError("bad-credentials", f"the logins of {self.path} cannot be used: {words}")
