"""The refusals of the store that are a person's doing, worded once for both stores."""

from collections.abc import Iterable

from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId, is_the_houses


def board_exists(name: str) -> UserError:
    """The refusal of a board name that is taken."""
    return UserError(
        "board-exists",
        f"there is already a board named {name!r}; choose another name, or update that board",
    )


def require_number(made: Iterable[SubmissionId], expected: int | None) -> None:
    """UserError unless so many of a board's submissions are people's; None takes any number."""
    if expected is not None and sum(not is_the_houses(each) for each in made) != expected:
        raise UserError(
            "moved", "somebody submitted meanwhile; nothing was deleted; give the command again"
        )
