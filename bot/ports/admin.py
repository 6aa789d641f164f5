"""Moderation, statistics, and the state of the database."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from bot.domain.ids import BoardId, PersonId, SubmissionId
from bot.domain.moderation import Exclusion, RateLimit
from bot.domain.records import DayCount, Schema, Usage
from bot.domain.tally import Tally
from runners.contract.task import Mode
from runners.contract.verdict import Verdict


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


class Statistics(Protocol):
    """Counts, made by the store so that nothing has to be read for them."""

    async def people(self) -> int:
        """How many accounts there are."""

    async def participants(self) -> Mapping[BoardId, int]:
        """How many people have submitted to each board; boards without any are absent."""

    async def days(self, since: datetime) -> tuple[DayCount, ...]:
        """The days since then on which something was submitted, oldest first."""

    async def verdicts(self, since: datetime) -> Mapping[Verdict, int]:
        """How often each verdict was given since then; those never given are absent."""

    async def usage(self, since: datetime) -> tuple[Usage, ...]:
        """What evaluations that ended since then needed of the GPUs, by board, person and type."""


class Operations(Protocol):
    """Counts that only grow, and answers that cost next to nothing."""

    async def schema(self) -> Schema:
        """How new the database is; StoreError while it does not answer."""

    async def tallies(self) -> tuple[Tally, ...]:
        """What became of every evaluation so far, by GPU type, mode and verdict.

        The counts of what was deleted since stay: they are for rates, which must not be negative.
        """

    async def lost_leases(self) -> Mapping[str, int]:
        """How many leases have run out so far, by GPU type."""

    async def waiting_since(self) -> Mapping[str, datetime]:
        """When the longest waiting of the queued jobs that are due was stored, by GPU type."""
