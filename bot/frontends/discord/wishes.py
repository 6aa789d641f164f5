"""What is kept with a task zip while it is proven: what is wanted, and what was told of it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import discord
from pydantic import BaseModel, ConfigDict, TypeAdapter

from bot.domain.access import Access
from bot.domain.archive import read_zip
from bot.domain.ids import BoardId, PersonId, TaskVersionId
from bot.domain.task_bundle import TaskBundle
from bot.domain.task_file import ParsedTask, read_task
from bot.reports.blocks import Tone
from bot.services.publish import Change, PublishRequest
from runners.contract.task import TaskDefinition


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person wants of a board, whatever its task is; `zip_name` is the zip's own."""

    person: PersonId
    name: str
    gpus: tuple[str, ...]
    deadline: datetime | None
    endless: bool = False
    as_admin: bool = False
    access: Access | None = None
    onto: TaskVersionId | None = None
    zip_name: str = ""

    def request(self, task: TaskDefinition) -> PublishRequest:
        """The wish with its task."""
        return PublishRequest(
            person=self.person,
            task=task,
            name=self.name,
            gpus=self.gpus,
            deadline=self.deadline,
            endless=self.endless,
            as_admin=self.as_admin,
            access=self.access,
            onto=self.onto,
        )


WISH = TypeAdapter(Wish)
"""A wish as text, which a release keeps."""


def read(data: bytes, wish: Wish) -> tuple[TaskBundle, ParsedTask]:
    """The files of a zip, and the task which they make."""
    bundle = read_zip(data, name=wish.zip_name)
    return bundle, read_task(bundle)


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
