"""Keys by which a program may repeat a submission without making a second one."""

import re
from dataclasses import dataclass
from datetime import timedelta

from bot.domain.errors import UserError

KEPT = timedelta(hours=24)
"""For how long a key stands for the submission that it was first sent with."""
LONGEST_KEY = 200
_BARE = rf"[!#-\[\]-~]{{1,{LONGEST_KEY}}}"
KEY_PATTERN = f'^("{_BARE}"|{_BARE})$'
"""Printable ASCII but quote, backslash and space; as RFC 8941 has strings, or without quotes."""


@dataclass(frozen=True, slots=True)
class Once:
    """A key of one person, and by what another submission with the same key is told apart."""

    key: str
    digest: str


def key_of(text: str) -> str:
    """The key in the value of an `Idempotency-Key` header; UserError `bad-key` when it is none."""
    if not re.fullmatch(KEY_PATTERN, text):
        raise UserError(
            "bad-key",
            f"this is no key; send 1 to {LONGEST_KEY} letters, digits or signs, such as a new UUID",
        )
    return text.strip('"')


def reused(key: str) -> UserError:
    """The refusal of a key that came with another submission before."""
    return UserError(
        "key-reused",
        f"the key {key!r} came with another submission within {KEPT.total_seconds() / 3600:.0f} h; "
        "repeat that one as it was, or send a new key",
    )
