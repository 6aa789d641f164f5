"""The families of errors that front ends show; anything else is a bug."""

import difflib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from runners.contract.task import FILE_NAME_FORM, GPU_NAME, TASK_NAME_FORM

_LONGEST_NAME = 100
"""The most characters of a wrong name that are repeated in a message."""
_FORMS = {
    GPU_NAME.pattern: (
        "must be the name of a GPU type, such as H100 or CPU: at most 32 letters, digits and any "
        "of . _ : ! -"
    ),
    TASK_NAME_FORM: (
        "must be at most 64 lowercase letters, digits, - and _, and start with a letter or a digit"
    ),
    FILE_NAME_FORM: (
        "must be a file name of at most 100 letters, digits and any of . _ + -, and begin with a "
        "letter, a digit or _"
    ),
}
"""For each pattern, a description of the texts that match it."""


class UserError(Exception):
    """The person's mistake; the message says what was wrong and what to do next.

    `code` is a stable slug such as `unknown-board`, for programs. `moments` maps words of the
    message that name a time to that time, for front ends that can show it in the reader's zone.
    """

    def __init__(
        self, code: str, message: str, moments: Mapping[str, datetime] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.moments = {} if moments is None else dict(moments)


class StoreError(Exception):
    """The database is unavailable or refused a statement: an internal error, retried where safe."""


class SetupError(StoreError):
    """The installation cannot start with this configuration; the message says what to do."""


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> UserError:
    """Return the refusal of an unknown name, with the nearest names or all of them."""
    known, what = sorted(valid), "GPU type" if kind == "gpu" else kind
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}..."
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    elif known:
        hint = f"available: {', '.join(known[:20])}"
    else:
        hint = f"no {what} exists yet"
    return UserError(f"unknown-{kind}", f"no {what} named {name!r}; {hint}")


def board_moved(name: str) -> UserError:
    """Return the refusal of a change that was prepared for an earlier task of the board."""
    return UserError(
        "board-moved",
        f"the task of leaderboard {name!r} has changed in the meantime; run the command again to "
        "see the current differences",
    )


def fault_words(fault: Mapping[str, Any]) -> str:
    """Return in words what is wrong with one value, from an entry of pydantic's list of errors."""
    message = str(fault["msg"]).removeprefix("Value error, ").replace("Input should be", "must be")
    if fault["type"] != "string_pattern_mismatch":
        return message
    # An entry may lack the context, but its message ends with the pattern.
    pattern = message.removeprefix("String should match pattern '").removesuffix("'")
    return _FORMS.get(pattern, f"must have the form {pattern}")
