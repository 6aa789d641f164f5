"""Tokens of people and of workers: shown once, kept as a digest."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bot.domain.ids import PersonId, TokenId

PREFIX = "podium_"
"""So that a leaked one is recognised by people and by scanners."""


class TokenScope(StrEnum):
    """What a token is good for; it is refused everywhere else."""

    PERSON = "person"
    """To act for the person whose it is."""
    WORKER = "worker"
    """To judge as the worker that its label names."""


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

    def serves(self, scope: TokenScope, now: datetime) -> bool:
        """Whether it is good for that at this time."""
        live = self.expires_at is None or now < self.expires_at
        return self.scope is scope and self.revoked_at is None and live


def digest_of(secret: str) -> str:
    """What is stored of a token; it is random, so a plain hash cannot be guessed back."""
    return hashlib.sha256(secret.encode()).hexdigest()
