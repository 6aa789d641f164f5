"""What is kept with a task zip while it is proven: where it is told, and what was told of it."""

from typing import Any

import discord
from pydantic import BaseModel, ConfigDict

from bot.domain.ids import BoardId
from bot.reports.blocks import Tone
from bot.services.publishing.publish import Change


class Outcome(BaseModel):
    """How a release ended, as it is told; `board` is set where it was published."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    title: str
    lines: tuple[tuple[str, Tone], ...]
    board: BoardId | None = None
    before: int = 0
    """The number of the task version which it replaces."""
    change: Change = Change.UNCHANGED


class Stand(BaseModel):
    """The channel that a release came from, and how far it has got."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    channel: int
    user: int
    thread: int | None = None
    """Where it is told: a private thread's number, or that of direct messages."""
    direct: bool = False
    """Whether that is direct messages."""
    live: int | None = None
    """The message that moves with the check."""
    publishing: bool = False
    """Whether the solutions have passed, and the board may be stored already."""
    outcome: Outcome | None = None
    told: int = 0
    """How many messages of the outcome are sent."""
    announced: bool = False

    @classmethod
    def here(cls, interaction: discord.Interaction[Any]) -> "Stand":
        """In the channel of an interaction, or in that channel's parent."""
        channel = interaction.channel
        parent = channel.parent_id if isinstance(channel, discord.Thread) else None
        return cls(channel=parent or interaction.channel_id or 0, user=interaction.user.id)
