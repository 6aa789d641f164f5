"""Tokens of people and of workers: shown once, kept as a digest."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from bot.domain.ids import PersonId, TokenId

PREFIX = "podium_"
"""So that a leaked one is recognised by people and by scanners."""


class TokenScope(StrEnum):
    """What a token is good for; it is refused everywhere else."""

    READ = "read"
    """To read what the person may read."""
    PERSON = "person"
    """To act for the person whose it is: to submit, for example."""
    ADMIN = "admin"
    """To act for the person as an admin too, as long as the person is one."""
    WORKER = "worker"
    """To judge as the worker that its label names."""
    SESSION = "session"
    """A browser in which the person is signed in, to act as the person."""
    ADMIN_SESSION = "admin-session"
    """One in which the person acts as an admin too, as long as the person is one."""

    @property
    def word(self) -> str:
        """What people choose it by."""
        return "submit" if self is TokenScope.PERSON else self.value


_PERSONAL = frozenset({TokenScope.READ, TokenScope.PERSON, TokenScope.ADMIN})


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is kept: nobody can tell from it what its owner sends.

    `person` is whose it is, or who made that of a worker.
    """

    id: TokenId
    person: PersonId
    label: str
    created_at: datetime
    revoked_at: datetime | None
    scope: TokenScope = TokenScope.PERSON
    expires_at: datetime | None = None
    begun_by: TokenId | None = None
    """Of a browser that was signed in by a token: that token, with which it ends."""

    @property
    def may(self) -> str:
        """Its scope in the word that people choose it by."""
        return self.scope.word

    @property
    def is_personal(self) -> bool:
        """Whether it is one to call with for its person; a browser's cookie is none."""
        return self.scope in _PERSONAL

    @property
    def of_worker(self) -> bool:
        """Whether it is a worker's, and nobody's to call with."""
        return self.scope is TokenScope.WORKER

    def is_live(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired at this time."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def scope_of(word: Literal["read", "submit", "admin"]) -> TokenScope:
    """The scope that people name by this word."""
    return TokenScope.PERSON if word == "submit" else TokenScope(word)


def digest_of(secret: str) -> str:
    """What is stored of a token; it is random, so a plain hash cannot be guessed back."""
    return hashlib.sha256(secret.encode()).hexdigest()
