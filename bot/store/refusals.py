"""The refusals of the store that are a person's doing, worded once for both stores."""

from bot.domain.errors import UserError


def board_exists(name: str) -> UserError:
    """The refusal of a board name that is taken."""
    return UserError(
        "board-exists",
        f"there is already a board named {name!r}; choose another name, or update that board",
    )
