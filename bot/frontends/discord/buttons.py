"""The buttons beneath a submission; they carry its number, so they work after any restart."""

import re
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, Self

import discord
from typing_extensions import override

from bot.domain.access import Viewer
from bot.domain.board import Board
from bot.domain.errors import UserError
from bot.domain.ids import BoardId, SubmissionId
from bot.domain.submission import SubmissionState
from bot.frontends.discord.answers import Answer, answering
from bot.frontends.discord.door import Door, door_of
from bot.frontends.discord.places import display_here
from bot.frontends.discord.viewers import viewer_of
from bot.reports.blocks import Attachment, Report
from bot.reports.task import template_report
from bot.services.cancel import cancel
from bot.services.lookup import own_board, task_of
from bot.services.moderate import Deed
from bot.services.rejudge import rejudge_standings
from bot.services.rerun import RerunRequest, rerun
from bot.services.source import source
from bot.services.status import SubmissionStatus
from runners.contract.task import Mode


class SubmissionDeed(StrEnum):
    """What a button does."""

    CANCEL = "cancel"
    """Stop what is queued or running."""
    AGAIN = "again"
    """Submit the same source in the same mode."""
    RANKED = "ranked"
    """Submit the same source as a ranked run."""
    SOURCE = "source"
    """Show the file."""


class BoardDeed(StrEnum):
    """What a button beneath a board does."""

    TEMPLATE = "template"
    """Give a file to begin with."""
    REJUDGE = "rejudge"
    """Judge everyone's best submission to the version before by the present one."""


_LABELS = {
    SubmissionDeed.CANCEL: ("Cancel", discord.ButtonStyle.danger),
    SubmissionDeed.AGAIN: ("Run again", discord.ButtonStyle.secondary),
    SubmissionDeed.RANKED: ("Make ranked", discord.ButtonStyle.primary),
    SubmissionDeed.SOURCE: ("Source", discord.ButtonStyle.secondary),
}


class SubmissionButton(
    discord.ui.DynamicItem[discord.ui.Button[Any]],
    template=r"podium:(?P<deed>[a-z]+):(?P<submission>[0-9]{1,18})",
):
    """One deed on one submission."""

    def __init__(self, deed: SubmissionDeed, submission: SubmissionId) -> None:
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
        return cls(SubmissionDeed(match["deed"]), SubmissionId(int(match["submission"])))

    @override
    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        async with answering(interaction) as answer:
            await _DEEDS[self.deed](door_of(interaction), answer, self.submission)


async def _cancel(door: Door, answer: Answer, submission: SubmissionId) -> None:
    stopped = await cancel(door.store, await viewer_of(answer.interaction), submission)
    if not stopped:
        raise UserError("finished", f"submission {submission} has ended already")
    await answer.say(f"Stopping submission #{submission}.")


async def _again(door: Door, answer: Answer, submission: SubmissionId) -> None:
    await _rerun(door, answer, submission, None)


async def _ranked(door: Door, answer: Answer, submission: SubmissionId) -> None:
    await _rerun(door, answer, submission, Mode.RANKED)


async def _rerun(door: Door, answer: Answer, submission: SubmissionId, mode: Mode | None) -> None:
    viewer = await viewer_of(answer.interaction)
    request = RerunRequest(viewer, submission, mode, display_here(answer.interaction))
    again = await rerun(door.store, door.clock, request)
    await answer.say(f"Submission #{again.id} is stored: {again.mode} on {', '.join(again.gpus)}.")


async def _source(door: Door, answer: Answer, submission: SubmissionId) -> None:
    viewer = await viewer_of(answer.interaction)
    found = await source(door.store, door.clock, viewer, submission)
    file = Attachment(found.file_name, found.text.encode())
    await answer.show(Report(f"Source of submission #{submission}", (file,)))


_DEEDS: dict[SubmissionDeed, Callable[[Door, Answer, SubmissionId], Awaitable[None]]] = {
    SubmissionDeed.CANCEL: _cancel,
    SubmissionDeed.AGAIN: _again,
    SubmissionDeed.RANKED: _ranked,
    SubmissionDeed.SOURCE: _source,
}


def buttons_of(status: SubmissionStatus) -> discord.ui.View:
    """The buttons that make sense for a submission as it stands."""
    deeds = [SubmissionDeed.CANCEL, SubmissionDeed.SOURCE]
    if status.is_final:
        deeds = [SubmissionDeed.AGAIN, SubmissionDeed.SOURCE]
        if _may_be_ranked(status):
            deeds.insert(1, SubmissionDeed.RANKED)
    view = discord.ui.View(timeout=None)
    for deed in deeds:
        view.add_item(SubmissionButton(deed, status.submission.id))
    return view


def _may_be_ranked(status: SubmissionStatus) -> bool:
    passed = all(each.evaluation and not each.evaluation.stage for each in status.jobs)
    finished = status.state is SubmissionState.FINISHED
    return finished and passed and status.submission.mode is not Mode.RANKED


class BoardButton(
    discord.ui.DynamicItem[discord.ui.Button[Any]],
    template=r"podium:board:(?P<deed>[a-z]+):(?P<board>[0-9]{1,18}):(?P<version>[0-9]{1,9})",
):
    """One deed on one version of a board."""

    def __init__(self, deed: BoardDeed, board: BoardId, version: int) -> None:
        label, style = _BOARD_LABELS[deed]
        custom_id = f"podium:board:{deed}:{board}:{version}"
        super().__init__(discord.ui.Button(label=label, style=style, custom_id=custom_id))
        self.deed = deed
        self.board = board
        self.version = version

    @override
    @classmethod
    async def from_custom_id(
        cls,
        interaction: discord.Interaction[Any],
        item: discord.ui.Item[Any],
        match: re.Match[str],
    ) -> Self:
        del interaction, item
        return cls(BoardDeed(match["deed"]), BoardId(int(match["board"])), int(match["version"]))

    @override
    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        async with answering(interaction) as answer:
            door = door_of(interaction)
            viewer = await viewer_of(interaction)
            board = await door.store.boards.get(self.board)
            if board is None or not board.visible_to(viewer):
                raise UserError("unknown-board", "this leaderboard is gone")
            match self.deed:
                case BoardDeed.TEMPLATE:
                    await answer.show(
                        template_report(*await task_of(door.store, viewer, board.name))
                    )
                case BoardDeed.REJUDGE:
                    await _rejudge(answer, viewer, board, self.version)


_BOARD_LABELS = {
    BoardDeed.TEMPLATE: ("Template", discord.ButtonStyle.primary),
    BoardDeed.REJUDGE: ("Judge again", discord.ButtonStyle.primary),
}


async def _rejudge(answer: Answer, viewer: Viewer, board: Board, version: int) -> None:
    store = door_of(answer.interaction).store
    await own_board(store, viewer, board.name)
    versions = await store.boards.versions(board.id)
    before = next((each for each in versions if each.number == version - 1), None)
    if before is None:
        raise UserError("no-version", f"there is no version before {version}")
    deed = Deed(viewer.person, f"task version {version}")
    count = await rejudge_standings(store, deed, board, before.id)
    await answer.say(f"{count} submissions are judged again.")


def board_buttons(board: Board, version: int, *, rejudge: bool) -> discord.ui.View:
    """The buttons beneath the news of a board."""
    view = discord.ui.View(timeout=None)
    deed = BoardDeed.REJUDGE if rejudge else BoardDeed.TEMPLATE
    view.add_item(BoardButton(deed, board.id, version))
    return view
