"""Where a submission is shown and how far that has got, as it is kept with the submission."""

from typing import Any

import discord
from pydantic import BaseModel, ConfigDict

from bot.discord.context import DOOR
from bot.domain.display import NewDisplay


class Place(BaseModel):
    """The channel that a submission came from, and what stands there already."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    channel: int
    user: int
    in_guild: bool
    thread: int | None = None
    """The private thread of the submission; in direct messages there is none."""
    direct: int | None = None
    """The person's direct messages, where the channel takes no private thread or has lost it."""
    unseen: bool = False
    """Whether Discord takes neither, so that the person has to ask for the report."""
    live: int | None = None
    """The message that moves with the submission."""
    reported: int = 0
    """How many messages of the full report are sent."""
    announced: int | None = None
    """The public line of a ranked submission."""
    opened: bool = False
    """Whether the public line has its thread."""

    @property
    def private(self) -> int:
        """Where the person alone reads of the submission."""
        return self.direct or self.thread or self.channel


def display_here(interaction: discord.Interaction[Any]) -> NewDisplay:
    """A display in the channel of an interaction, or in that channel's parent."""
    channel = interaction.channel
    place = Place(
        channel=channel.parent_id
        if isinstance(channel, discord.Thread)
        else interaction.channel_id or 0,
        user=interaction.user.id,
        in_guild=interaction.guild_id is not None,
    )
    return NewDisplay(DOOR, place.model_dump_json())
