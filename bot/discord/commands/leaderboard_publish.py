"""`/leaderboard create|update`: makes a board or its next version from a task zip."""

from dataclasses import dataclass, replace
from typing import Any

import discord
from discord import app_commands

from bot.discord import options, publish_form
from bot.discord.context import context_of
from bot.discord.options import Tree, group
from bot.discord.responses import replying
from bot.discord.roles import ADMIN, CREATOR, member, require, viewer_of
from bot.domain.board import Access, SourceVisibility, Visibility, parse_pins
from bot.domain.errors import UserError
from bot.domain.publication import PublishRequest
from bot.domain.times import parse_deadline
from bot.services.lookup import own_board


async def setup(tree: Tree) -> None:
    """Add both commands."""
    parent = group(tree, "leaderboard")
    parent.add_command(create)
    parent.add_command(update)


@dataclass(frozen=True, slots=True)
class _Change:
    """The requested change of who may see a board; None keeps the current value."""

    visibility: Visibility | None = None
    members_only: bool | None = None
    sources: SourceVisibility | None = None


_POOL = "Pool for ranked runs, such as modal or A100=local; any removes it"
_OF_ACCESS = {
    "visibility": "Private: only people invited by /leaderboard invite can see it",
    "members_only": "Only for members of this server",
    "sources": "When others may read the submitted sources",
}


@app_commands.command(description="Create a board from a task zip")
@app_commands.describe(
    leaderboard_name="The board's name",
    task_zip="Task zip made by `podium task pack`",
    deadline="YYYY-MM-DD[ HH:MM][ zone], default zone UTC; leave empty for no deadline",
    gpus="GPU types, separated by commas; leave empty to choose from a menu",
    pool=_POOL,
    **_OF_ACCESS,
)
@app_commands.autocomplete(gpus=options.gpus)
async def create(  # noqa: PLR0913  an argument for each option
    interaction: discord.Interaction[Any],
    *,
    leaderboard_name: app_commands.Range[str, 1, 64],
    task_zip: discord.Attachment,
    deadline: str | None = None,
    gpus: str | None = None,
    visibility: Visibility = Visibility.PUBLIC,
    members_only: bool = False,
    sources: SourceVisibility = SourceVisibility.AFTER_DEADLINE,
    pool: str | None = None,
) -> None:
    """Check the zip, run its solutions, publish, and tell the channel."""
    async with replying(interaction) as answer:
        require(interaction, CREATOR, ADMIN)
        door = context_of(interaction)
        if await door.store.boards.find(leaderboard_name) is not None:
            raise UserError(
                "board-exists",
                f"board {leaderboard_name!r} already exists; "
                "use `/leaderboard update` or another name",
            )
        person = await door.person(interaction.user)
        request = PublishRequest(
            person.id,
            leaderboard_name,
            options.gpu_names(gpus),
            None if deadline is None else parse_deadline(deadline),
            access=_access(interaction, Access(), _Change(visibility, members_only, sources)),
            pins=parse_pins((pool or "",)),
        )
        await publish_form.create(await publish_form.upload_of(task_zip, request, answer), answer)


def _access(interaction: discord.Interaction[Any], present: Access, change: _Change) -> Access:
    """Return the requested access; what is not given stays."""
    house = present.house
    if change.members_only is not None:
        house = member(interaction.guild_id or 0) if change.members_only else None
    return replace(
        present,
        visibility=change.visibility or present.visibility,
        house=house,
        source=change.sources or present.source,
    )


@app_commands.command(description="Change a board's deadline, task or visibility")
@app_commands.describe(
    leaderboard_name="The board",
    deadline="YYYY-MM-DD[ HH:MM][ zone], or 'none' to remove the deadline",
    task_zip="Zip of the new task version, made by `podium task pack`",
    gpus="The new list of all its GPU types, separated by commas",
    pool=_POOL,
    **_OF_ACCESS,
)
@app_commands.autocomplete(leaderboard_name=options.boards, gpus=options.gpus)
async def update(  # noqa: PLR0913  an argument for each option
    interaction: discord.Interaction[Any],
    *,
    leaderboard_name: str,
    deadline: str | None = None,
    task_zip: discord.Attachment | None = None,
    gpus: str | None = None,
    visibility: Visibility | None = None,
    members_only: bool | None = None,
    sources: SourceVisibility | None = None,
    pool: str | None = None,
) -> None:
    """Old scores stay with their version."""
    async with replying(interaction) as answer:
        require(interaction, CREATOR, ADMIN)
        change = _Change(visibility, members_only, sources)
        if (deadline, task_zip, gpus, pool, change) == (None, None, None, None, _Change()):
            raise UserError(
                "nothing", "name at least one setting to change, such as deadline or task_zip"
            )
        viewer = await viewer_of(interaction)
        board = await own_board(context_of(interaction).store, viewer, leaderboard_name)
        endless = deadline is not None and deadline.strip().lower() == "none"
        request = PublishRequest(
            viewer.person,
            board.name,
            options.gpu_names(gpus),
            None if deadline is None or endless else parse_deadline(deadline),
            endless=endless,
            as_admin=viewer.sees_all,
            access=_access(interaction, board.access, change),
            pins=parse_pins((pool or "",)),
        )
        if task_zip is None:
            await publish_form.reconfigure(board, request, answer)
            return
        upload = await publish_form.upload_of(task_zip, request, answer)
        await publish_form.update(upload, board, answer)
