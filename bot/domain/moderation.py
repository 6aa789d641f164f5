"""What prevents a submission: bans, pauses, limits; and what takes one off its board."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from bot.domain.errors import UserError
from bot.domain.ids import BoardId, SubmissionId
from bot.domain.times import show_span
from runners.contract.task import Mode


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `most` submissions of one person per window; None covers every board or mode."""

    most: int
    window: timedelta
    board: BoardId | None = None
    mode: Mode | None = None

    def __post_init__(self) -> None:
        if self.most < 1 or self.window <= timedelta(0):
            raise ValueError("a limit has a number and a time")

    def refusal(self, counted: datetime, now: datetime) -> UserError:
        """Return the refusal after `most` submissions since `counted`, the oldest counted one."""
        plain = "submission" if self.most == 1 else "submissions"
        what = f"{self.mode} {plain}" if self.mode else plain
        verb = "is" if self.most == 1 else "are"
        where = " to this leaderboard" if self.board else ""
        lifts_at = counted + self.window
        when = f"in {show_span(max(1.0, (lifts_at - now).total_seconds()))}"
        return UserError(
            "rate-limit",
            f"at most {self.most} {what}{where} {verb} allowed in {span(self.window)}; submit "
            f"again {when}",
            {when: lifts_at},
        )


def banned(reason: str) -> UserError:
    """Return the refusal for a banned person."""
    return UserError("banned", f"you are banned from submitting: {reason}; contact an admin")


def span(window: timedelta) -> str:
    """Return a limit's window in words."""
    return show_span(window.total_seconds())


class ExclusionKind(StrEnum):
    """Why a submission is no longer ranked."""

    WITHDRAWN = "withdrawn"
    """Its owner took it off the board."""
    DISQUALIFIED = "disqualified"
    """An admin took it off the board."""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A submission that keeps its result but is not ranked."""

    submission: SubmissionId
    kind: ExclusionKind
    reason: str
