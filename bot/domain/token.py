"""Personal tokens: shown once, kept as a digest."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from bot.domain.ids import PersonId, TokenId

PREFIX = "podium_"
"""So that a leaked one is recognised by people and by scanners."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is kept: nobody can tell from it what its owner sends."""

    id: TokenId
    person: PersonId
    label: str
    created_at: datetime
    revoked_at: datetime | None


def digest_of(secret: str) -> str:
    """What is stored of a token; it is random, so a plain hash cannot be guessed back."""
    return hashlib.sha256(secret.encode()).hexdigest()
