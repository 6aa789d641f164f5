"""The buttons beneath a submission; they carry its number, so they work after any restart."""

import re
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, Self

import discord
from typing_extensions import override

from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.submission import SubmissionState
from bot.frontends.discord.answers import Answer, answering
from bot.frontends.discord.door import Door, door_of
from bot.frontends.discord.places import display_here
from bot.reports.blocks import Attachment, Report
from bot.services.cancel import cancel
from bot.services.rerun import RerunRequest, rerun
from bot.services.source import source
from bot.services.status import SubmissionStatus
from runners.contract.task import Mode


class Deed(StrEnum):
    """What a button does."""

    CANCEL = "cancel"
    """Stop what is queued or running."""
    AGAIN = "again"
    """Submit the same source in the same mode."""
    RANKED = "ranked"
    """Submit the same source as a ranked run."""
    SOURCE = "source"
    """Show the file."""


_LABELS = {
    Deed.CANCEL: ("Cancel", discord.ButtonStyle.danger),
    Deed.AGAIN: ("Run again", discord.ButtonStyle.secondary),
    Deed.RANKED: ("Make ranked", discord.ButtonStyle.primary),
    Deed.SOURCE: ("Source", discord.ButtonStyle.secondary),
}


class SubmissionButton(
    discord.ui.DynamicItem[discord.ui.Button[Any]],
    template=r"podium:(?P<deed>[a-z]+):(?P<submission>[0-9]{1,18})",
):
    """One deed on one submission."""

    def __init__(self, deed: Deed, submission: SubmissionId) -> None:
        label, style = _LABELS[deed]
        custom_id = f"podium:{deed}:{submission}"
        super().__init__(discord.ui.Button(label=label, style=style, custom_id=custom_id))
        self.deed = deed
        self.submission = submission

    @override
    @classmethod
    async def from_custom_id(
        cls,
        interaction: discord.Interaction[Any],
        item: discord.ui.Item[Any],
        match: re.Match[str],
    ) -> Self:
        del interaction, item
        return cls(Deed(match["deed"]), SubmissionId(int(match["submission"])))

    @override
    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        async with answering(interaction) as answer:
            await _DEEDS[self.deed](door_of(interaction), answer, self.submission)


async def _cancel(door: Door, answer: Answer, submission: SubmissionId) -> None:
    person = await door.person(answer.interaction.user)
    stopped = await cancel(door.store, person.id, submission)
    if not stopped:
        raise UserError("finished", f"submission {submission} has ended already")
    await answer.say(f"Stopping submission #{submission}.")


async def _again(door: Door, answer: Answer, submission: SubmissionId) -> None:
    await _rerun(door, answer, submission, None)


async def _ranked(door: Door, answer: Answer, submission: SubmissionId) -> None:
    await _rerun(door, answer, submission, Mode.RANKED)


async def _rerun(door: Door, answer: Answer, submission: SubmissionId, mode: Mode | None) -> None:
    person = await door.person(answer.interaction.user)
    display = display_here(answer.interaction)
    request = RerunRequest(person.id, submission, mode, display)
    again = await rerun(door.store, door.clock, request)
    await answer.say(f"Submission #{again.id} is stored: {again.mode} on {', '.join(again.gpus)}.")


async def _source(door: Door, answer: Answer, submission: SubmissionId) -> None:
    person = await door.person(answer.interaction.user)
    found = await source(door.store, door.clock, person.id, submission)
    file = Attachment(found.file_name, found.text.encode())
    await answer.show(Report(f"Source of submission #{submission}", (file,)))


_DEEDS: dict[Deed, Callable[[Door, Answer, SubmissionId], Awaitable[None]]] = {
    Deed.CANCEL: _cancel,
    Deed.AGAIN: _again,
    Deed.RANKED: _ranked,
    Deed.SOURCE: _source,
}


def buttons_of(status: SubmissionStatus) -> discord.ui.View:
    """The buttons that make sense for a submission as it stands."""
    deeds = [Deed.CANCEL, Deed.SOURCE]
    if status.is_final:
        deeds = [Deed.AGAIN, Deed.SOURCE]
        if _may_be_ranked(status):
            deeds.insert(1, Deed.RANKED)
    view = discord.ui.View(timeout=None)
    for deed in deeds:
        view.add_item(SubmissionButton(deed, status.submission.id))
    return view


def _may_be_ranked(status: SubmissionStatus) -> bool:
    passed = all(each.evaluation and not each.evaluation.stage for each in status.jobs)
    finished = status.state is SubmissionState.FINISHED
    return finished and passed and status.submission.mode is not Mode.RANKED
