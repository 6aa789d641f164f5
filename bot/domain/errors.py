"""The families of errors that doors show; anything else is a bug."""

import difflib
from collections.abc import Iterable, Mapping
from datetime import datetime

_LONGEST_NAME = 100
"""Letters of a wrong name that are said again."""


class UserError(Exception):
    """The person's doing; the message says what was wrong and what to do next.

    `code` is a stable slug such as `unknown-board`, for programs. `moments` has the words of the
    message that name a time, with that time, for doors which can show it in the reader's own zone.
    """

    def __init__(
        self, code: str, message: str, moments: Mapping[str, datetime] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.moments = {} if moments is None else dict(moments)


class StoreError(Exception):
    """The database is away or refuses; our fault, and tried again where that is safe."""


class SetupError(StoreError):
    """The installation cannot start as it is; the message says what to do."""


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> UserError:
    """A refusal of a name that does not exist, with the nearest names or all of them."""
    known = sorted(valid)
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}..."
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    elif known:
        hint = f"there are: {', '.join(known[:20])}"
    else:
        hint = f"there is no {kind} yet"
    return UserError(f"unknown-{kind}", f"no {kind} named {name!r}; {hint}")


def board_moved(name: str) -> UserError:
    """The refusal of a change whose board somebody else has changed since it was begun."""
    return UserError(
        "board-moved",
        f"the task of leaderboard {name!r} was changed meanwhile; give the command again to see "
        "what differs now",
    )
