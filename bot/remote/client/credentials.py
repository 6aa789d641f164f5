"""A user's logins: servers and their tokens, in a file that only this user can read."""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.domain.errors import SetupError, UserError

_OTHERS = 0o077
"""The permission bits of a file for users other than its owner."""
_READ_AT_MOST = 1 << 20


class Login(BaseModel):
    """A token at a server, and its person; `plain_http` is whether the person allowed that."""

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
                if os.fstat(file.fileno()).st_mode & _OTHERS:
                    raise self._unusable(f"others may read it; run: chmod 600 {self.path}")
                text = file.read(_READ_AT_MOST)
        except FileNotFoundError:
            return Logins()
        except OSError as error:
            raise self._unusable(f"it cannot be read ({error.strerror})") from error
        try:
            return Logins.model_validate_json(text)
        except ValidationError:
            words = "it is not what `podium login` writes; delete it and sign in again"
            raise self._unusable(words) from None  # the cause would quote tokens

    def keep(self, url: str, login: Login) -> None:
        """Store the login at this server, which becomes the default for commands."""
        with self._changing() as kept:
            self._write(Logins(default=url, servers={**kept.servers, url: login}))

    def forget(self, url: str | None) -> tuple[str, Login]:
        """Remove and return the login at a server, by default at the commands' server.

        UserError when there is none.
        """
        with self._changing() as kept:
            name = kept.default if url is None else url
            if name is None or name not in kept.servers:
                there = ", ".join(sorted(kept.servers)) or "none"
                where = "any server" if name is None else name
                words = f"you are not signed in to {where}; you are to: {there}"
                raise UserError("no-login", words)
            rest = {each: login for each, login in kept.servers.items() if each != name}
            self._write(
                Logins(default=kept.default if kept.default in rest else None, servers=rest)
            )
            return name, kept.servers[name]

    @contextmanager
    def _changing(self) -> Iterator[Logins]:
        """Yield the stored logins, locked against other processes."""
        folder = self.path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            locked = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise SetupError(f"{folder} cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(locked, fcntl.LOCK_EX)
            yield self.read()
        finally:
            os.close(locked)

    def _write(self, logins: Logins) -> None:
        """Replace the file atomically: readers get either the old one or the new one."""
        fresh = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        try:
            opened = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(opened, "w", encoding="utf-8") as file:
                file.write(logins.model_dump_json(indent=2))
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self.path)
        except OSError as error:
            raise SetupError(f"{self.path} cannot be written: {error.strerror}") from error
        finally:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)

    def _unusable(self, words: str) -> UserError:
        return UserError("bad-credentials", f"the logins of {self.path} cannot be used: {words}")
