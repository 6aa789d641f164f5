"""What admins decide: who may submit, how often, and what is not ranked."""

from datetime import datetime
from typing import Protocol

from bot.domain.ids import BoardId, PersonId, SubmissionId
from bot.domain.moderation import Exclusion, RateLimit
from runners.contract.task import Mode


class Moderation(Protocol):
    """Bans, limits, exclusions, and whether submissions are taken at all."""

    async def ban(self, person: PersonId, reason: str) -> None:
        """Keep a person from submitting; a new reason replaces the old one.

        Whatever of the person's is stored once this is done was stored before.
        """

    async def unban(self, person: PersonId) -> bool:
        """False when the person was not banned."""

    async def ban_of(self, person: PersonId) -> str | None:
        """Why the person may not submit."""

    async def bans(self) -> dict[PersonId, str]:
        """Why each banned person may not submit."""

    async def exclude(self, exclusion: Exclusion) -> None:
        """Take a submission off its board, where it still is; a new reason replaces the old one."""

    async def include(self, submission: SubmissionId) -> bool:
        """Rank it again; False when it was not excluded."""

    async def exclusion_of(self, submission: SubmissionId) -> Exclusion | None: ...

    async def pause(self, notice: str) -> None:
        """Take no submissions until `resume`; `notice` tells people why."""

    async def resume(self) -> bool:
        """False when nothing was paused."""

    async def pause_notice(self) -> str | None:
        """Why no submissions are taken; None while they are."""

    async def pause_board(self, board: BoardId, notice: str) -> None:
        """Take no submissions to one board until `resume_board`."""

    async def resume_board(self, board: BoardId) -> bool:
        """False when it was not paused."""

    async def board_pauses(self) -> dict[BoardId, str]:
        """The notice of each board that is paused."""

    async def pause_pool(self, gpu: str, notice: str) -> None:
        """Begin no more jobs of a GPU type until `resume_pool`; what runs goes on to its end."""

    async def resume_pool(self, gpu: str) -> bool:
        """False when it was not paused; the workers are told."""

    async def pool_pauses(self) -> dict[str, str]:
        """The notice of each GPU type that is paused."""

    async def open_room(self, house: str, room: str) -> None:
        """Take submissions in this room of a house, such as a channel of a guild."""

    async def close_room(self, house: str, room: str) -> bool:
        """Take none there any more; False when none were."""

    async def rooms(self, house: str) -> tuple[str, ...]:
        """Where submissions are taken; empty when nobody has said so."""

    async def set_limit(self, limit: RateLimit) -> None:
        """Set the limit of this board and mode."""

    async def drop_limit(self, board: BoardId | None, mode: Mode | None) -> bool:
        """False when there was none."""

    async def limits(self) -> tuple[RateLimit, ...]:
        """Every limit, the wider ones first."""

    async def limited_by(
        self, person: PersonId, board: BoardId, mode: Mode, now: datetime
    ) -> tuple[RateLimit, datetime] | None:
        """A limit that the person has reached, with the oldest submission that counts."""
