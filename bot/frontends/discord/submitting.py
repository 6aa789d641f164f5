"""Takes a submission in through this door: the file, the GPU types, the store, the answer."""

from dataclasses import dataclass, replace
from typing import Any

import discord
from typing_extensions import override

from bot.domain import acceptance
from bot.domain.errors import UserError
from bot.domain.heading import parse_heading
from bot.domain.submission import Submission, SubmissionRequest
from bot.frontends.discord.answers import Answer, answering
from bot.frontends.discord.door import Door, door_of
from bot.frontends.discord.guilds import require_room
from bot.frontends.discord.options import MOST_CHOICES
from bot.frontends.discord.places import display_here
from bot.services.lookup import find_board
from bot.services.submit import submit
from runners.contract.task import Mode

MENU_S = 840.0
"""A menu may be left unanswered; after 14 minutes Discord would refuse the answer anyway."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that a person wants judged; no board means that its heading names one."""

    file_name: str
    content: bytes
    mode: Mode
    board: str | None = None
    gpus: tuple[str, ...] = ()


async def read(script: discord.Attachment) -> bytes:
    """The bytes of an attachment; UserError before anything too large is fetched."""
    if script.size > acceptance.MAX_SOURCE_BYTES:
        raise UserError(
            "too-large",
            f"the file has {script.size:,} bytes; at most "
            f"{acceptance.MAX_SOURCE_BYTES:,} are taken",
        )
    return await script.read()


async def take_in(answer: Answer, upload: Upload) -> None:
    """Store the submission and say so, or first ask for the GPU types where several are offered."""
    door = door_of(answer.interaction)
    await require_room(door, answer.interaction)
    try:
        stored = await _store(door, answer.interaction, upload)
    except UserError as error:
        if error.code != "choose-gpu":
            raise
        await _ask_for_gpus(door, answer, upload)
        return
    await answer.say(stored_words(stored))


async def _store(door: Door, interaction: discord.Interaction[Any], upload: Upload) -> Submission:
    person = await door.person(interaction.user)
    request = SubmissionRequest(
        person=person.id,
        file_name=upload.file_name,
        content=upload.content,
        mode=upload.mode,
        board=upload.board,
        gpus=upload.gpus,
        display=display_here(interaction),
    )
    return await submit(door.store, door.clock, request)


def stored_words(submission: Submission) -> str:
    """What is said at once; everything else comes with the submission's own messages."""
    gpus = ", ".join(submission.gpus)
    return (
        f"Submission #{submission.id} is stored: {submission.mode} on {gpus}. "
        "Its thread, or this conversation, follows it live."
    )


async def _ask_for_gpus(door: Door, answer: Answer, upload: Upload) -> None:
    heading = parse_heading(acceptance.source_text(upload.content))
    board = await find_board(door.store, acceptance.board_name(upload.board, heading))
    await answer.say("Choose the GPU types to run on:", GpuMenus(upload, board.gpus))


class GpuMenus(discord.ui.View):
    """As many menus as the GPU types need, 25 in each, and a button to go on."""

    def __init__(self, upload: Upload, gpus: tuple[str, ...]) -> None:
        super().__init__(timeout=MENU_S)
        self.upload = upload
        self.menus = [
            GpuMenu(gpus[start : start + MOST_CHOICES])
            for start in range(0, min(len(gpus), 4 * MOST_CHOICES), MOST_CHOICES)
        ]
        for menu in self.menus:
            self.add_item(menu)
        self.add_item(Go())

    async def submit(self, interaction: discord.Interaction[Any]) -> None:
        """Submit on what is chosen by now, once."""
        async with answering(interaction) as answer:
            chosen = tuple(gpu for menu in self.menus for gpu in menu.values)
            if not chosen:
                raise UserError("choose-gpu", "choose at least one GPU type, then press Submit")
            if self.is_finished():
                raise UserError("submitted", "this menu was used already; submit the file again")
            self.stop()
            await take_in(answer, replace(self.upload, gpus=chosen))


class GpuMenu(discord.ui.Select["GpuMenus"]):
    """Up to 25 GPU types, of which any number may be chosen."""

    def __init__(self, gpus: tuple[str, ...]) -> None:
        super().__init__(
            placeholder=f"{gpus[0]} to {gpus[-1]}" if len(gpus) > 1 else gpus[0],
            min_values=0,
            max_values=len(gpus),
            options=[discord.SelectOption(label=gpu, value=gpu) for gpu in gpus],
        )

    @override
    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        """Keep the choice until Submit is pressed."""
        await interaction.response.defer()


class Go(discord.ui.Button["GpuMenus"]):
    """Submits on the chosen GPU types."""

    def __init__(self) -> None:
        super().__init__(label="Submit", style=discord.ButtonStyle.primary)

    @override
    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        """Hand over to the menus."""
        if self.view is not None:
            await self.view.submit(interaction)
