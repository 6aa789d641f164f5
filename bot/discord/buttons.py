"""The buttons below a submission, a check and the announcement of a board, and what each does.

Each button has the number of its submission or board in its id, so it works after a restart.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from enum import StrEnum
from functools import partial
from typing import Any, Self

import discord
from typing_extensions import override

from bot.discord import options
from bot.discord.channels import SubmissionDisplay, display_for
from bot.discord.context import FRONT_END, Interaction, button_key, context_of, interaction_key
from bot.discord.escaping import plain
from bot.discord.interaction_claims import direct_response, replying
from bot.discord.responses import InteractionReply
from bot.discord.roles import ADMIN, admin_decision, require, viewer_of
from bot.domain.board import Board, Viewer
from bot.domain.errors import UserError
from bot.domain.ids import BoardId, PublicationId, SubmissionId
from bot.domain.status import SubmissionStatus
from bot.domain.submission import Display, Submission
from bot.reports.blocks import Attachment, Report
from bot.reports.short import short_report
from bot.reports.tasks import template_report
from bot.services import lookup, moderation, status, submissions
from bot.services.publishing.state import cancel_publication
from runners.contract.task import Mode


class SubmissionAction(StrEnum):
    """What a button below a submission does."""

    CANCEL = "cancel"
    """Stop what is queued or running."""
    AGAIN = "again"
    """Submit the same source again in the same mode."""
    RANKED = "ranked"
    """Submit the same source as a ranked run."""
    SOURCE = "source"
    """Show the file."""
    DETAILS = "details"
    """Show the report, as far as the person who asks may read it."""
    STOP = "stop"
    """Stop anyone's submission, as an admin."""


class BoardAction(StrEnum):
    """What a button below a board does."""

    TEMPLATE = "template"
    """Send a template."""
    REJUDGE = "rejudge"
    """Judge everyone's best submission to that version again, by the current version."""


_LABELS = {
    SubmissionAction.CANCEL: ("Cancel", discord.ButtonStyle.danger),
    SubmissionAction.AGAIN: ("Run again", discord.ButtonStyle.secondary),
    SubmissionAction.RANKED: ("Make ranked", discord.ButtonStyle.primary),
    SubmissionAction.SOURCE: ("Source", discord.ButtonStyle.secondary),
    SubmissionAction.DETAILS: ("Details", discord.ButtonStyle.secondary),
    SubmissionAction.STOP: ("Cancel it", discord.ButtonStyle.danger),
}


_BUTTON = r"podium:(?P<action>[a-z]+):(?P<submission>[0-9]{1,18})"


def submission_of(custom_id: str) -> SubmissionId | None:
    """Return the submission that a button is for; None for another button."""
    found = re.fullmatch(_BUTTON, custom_id)
    return None if found is None else SubmissionId(int(found["submission"]))


class SubmissionButton(discord.ui.DynamicItem[discord.ui.Button[Any]], template=_BUTTON):
    """A button for one action on one submission."""

    def __init__(self, action: SubmissionAction, submission: SubmissionId) -> None:
        label, style = _LABELS[action]
        custom_id = f"podium:{action}:{submission}"
        super().__init__(discord.ui.Button(label=label, style=style, custom_id=custom_id))
        self.action = action
        self.submission = submission

    @override
    @classmethod
    async def from_custom_id(
        cls, interaction: Interaction, item: discord.ui.Item[Any], match: re.Match[str]
    ) -> Self:
        del interaction, item
        return cls(SubmissionAction(match["action"]), SubmissionId(int(match["submission"])))

    @override
    async def callback(self, interaction: Interaction) -> None:
        if self.action is SubmissionAction.STOP:
            async with direct_response(interaction):
                require(interaction, ADMIN)
                await interaction.response.send_modal(_CancelForm(self.submission))
            return
        async with replying(interaction) as answer:
            await _ACTIONS[self.action](answer, self.submission)


class _CancelForm(discord.ui.Modal):
    """A form that asks an admin why they cancel a submission."""

    reason: options.FormField = options.text_field("Reason, shown to its owner", required=False)

    def __init__(self, submission: SubmissionId) -> None:
        super().__init__(title=f"Cancel submission #{submission}")
        self.submission = submission

    @override
    async def on_submit(self, interaction: Interaction) -> None:
        async with replying(interaction) as answer:
            await cancel_as_admin(answer, self.submission, options.typed_into(self.reason))


async def cancel(answer: InteractionReply, submission: SubmissionId) -> None:
    """Cancel the submission's jobs: queued ones at once, running ones within seconds."""
    viewer = await viewer_of(answer.interaction)
    stopped = await submissions.cancel(context_of(answer.interaction).store, viewer, submission)
    if not stopped:
        raise UserError("finished", f"submission {submission} has already ended")
    await answer.conclude(f"Stopping submission #{submission}.")


async def cancel_as_admin(answer: InteractionReply, submission: SubmissionId, reason: str) -> None:
    """Cancel anyone's submission, as an admin."""
    decision = await admin_decision(answer.interaction, reason)
    store = context_of(answer.interaction).store
    if not await moderation.cancel(store, decision, submission):
        raise UserError("finished", f"submission {submission} has already ended")
    await answer.conclude(f"Stopping submission #{submission}.")


async def run_again(
    answer: InteractionReply, submission: SubmissionId, mode: Mode | None = None
) -> None:
    """Submit the same source again, in the same mode unless another one is given.

    Of several clicks on one button, only the first submits. The others show its submission.
    """
    asked = answer.interaction
    context, viewer, display = context_of(asked), await viewer_of(asked), display_for(asked)
    request = submissions.RerunRequest(viewer, submission, mode, display, button_key(asked))
    again = await submissions.rerun(context.store, context.clock, request)
    shown = await context.store.displays.find(again.id)
    if shown is not None and _made_by(shown) != interaction_key(asked):
        await answer.say(
            f"Submission #{submission} was already submitted again as #{again.id}. "
            f"`/submission show id:{again.id}` shows it, and its message has this button too."
        )
        return
    await say_stored(answer, again, f"Submission #{submission} runs again as #{again.id}. ")


def _made_by(shown: Display) -> str | None:
    """Return the key of the interaction that made a submission."""
    return SubmissionDisplay.model_validate_json(shown.place).answer


async def show_source(answer: InteractionReply, submission: SubmissionId) -> None:
    """Send the file to people who may read it."""
    context, viewer = context_of(answer.interaction), await viewer_of(answer.interaction)
    source = await status.source(context.store, context.clock, viewer, submission)
    file = Attachment(source.file_name, source.text.encode())
    await answer.show(Report(f"Source of submission #{submission}", (file,)))


async def show_details(answer: InteractionReply, submission: SubmissionId) -> None:
    """Show the report, as far as the person who asks may read it."""
    context, viewer = context_of(answer.interaction), await viewer_of(answer.interaction)
    found = await status.read_submission(context.store, context.clock, viewer, submission)
    await answer.show(await asyncio.to_thread(short_report, found))


async def say_stored(answer: InteractionReply, stored: Submission, head: str = "") -> None:
    """Confirm that a submission is stored; its display then continues in this answer."""
    answer.is_followed = True
    board = await context_of(answer.interaction).store.boards.get(stored.board)
    stated = stored.consent.statement(None if board is None else board.deadline)
    await answer.say(f"{head}{stored_message(stored)}\n-# {stated}")


def stored_message(submission: Submission) -> str:
    """Return the reply to a stored submission: it says where the progress is shown."""
    gpus = plain(", ".join(submission.gpus))
    return (
        f"Submission #{submission.id} is stored: {submission.mode} on {gpus}.\n"
        "-# This message shows its progress and its report for 15 minutes; "
        f"`/submission show id:{submission.id}` shows them at any time."
    )


_ACTIONS: dict[SubmissionAction, Callable[[InteractionReply, SubmissionId], Awaitable[None]]] = {
    SubmissionAction.CANCEL: cancel,
    SubmissionAction.AGAIN: run_again,
    SubmissionAction.RANKED: partial(run_again, mode=Mode.RANKED),
    SubmissionAction.SOURCE: show_source,
    SubmissionAction.DETAILS: show_details,
}


def details_button(submission: SubmissionId) -> discord.ui.View:
    """Return the button below a public line."""
    view = discord.ui.View(timeout=None)
    view.add_item(SubmissionButton(SubmissionAction.DETAILS, submission))
    return view


def stop_button(submission: SubmissionId) -> discord.ui.View:
    """Return the button below an unfinished submission that an admin looks at."""
    view = discord.ui.View(timeout=None)
    view.add_item(SubmissionButton(SubmissionAction.STOP, submission))
    return view


def buttons_of(status: SubmissionStatus) -> discord.ui.View:
    """Return the buttons that apply to a submission in its current state."""
    offered = [SubmissionAction.CANCEL, SubmissionAction.SOURCE]
    if status.is_final:
        offered = [SubmissionAction.AGAIN, SubmissionAction.SOURCE]
        if status.may_be_ranked:
            offered.insert(1, SubmissionAction.RANKED)
    view = discord.ui.View(timeout=None)
    for action in offered:
        view.add_item(SubmissionButton(action, status.submission.id))
    return view


class BoardButton(
    discord.ui.DynamicItem[discord.ui.Button[Any]],
    template=r"podium:board:(?P<action>[a-z]+):(?P<board>[0-9]{1,18}):(?P<version>[0-9]{1,9})",
):
    """A button for one action on one version of a board."""

    def __init__(self, action: BoardAction, board: BoardId, version: int) -> None:
        label, style = _BOARD_LABELS[action]
        custom_id = f"podium:board:{action}:{board}:{version}"
        super().__init__(discord.ui.Button(label=label, style=style, custom_id=custom_id))
        self.action = action
        self.board = board
        self.version = version

    @override
    @classmethod
    async def from_custom_id(
        cls, interaction: Interaction, item: discord.ui.Item[Any], match: re.Match[str]
    ) -> Self:
        del interaction, item
        return cls(
            BoardAction(match["action"]), BoardId(int(match["board"])), int(match["version"])
        )

    @override
    async def callback(self, interaction: Interaction) -> None:
        async with replying(interaction) as answer:
            context = context_of(interaction)
            viewer = await viewer_of(interaction)
            board = await lookup.visible_board(context.store, viewer, self.board)
            match self.action:
                case BoardAction.TEMPLATE:
                    await answer.show(
                        template_report(*await lookup.task_of(context.store, viewer, board.name))
                    )
                case BoardAction.REJUDGE:
                    await _rejudge(answer, viewer, board, self.version)


_BOARD_LABELS = {
    BoardAction.TEMPLATE: ("Template", discord.ButtonStyle.primary),
    BoardAction.REJUDGE: ("Judge again", discord.ButtonStyle.primary),
}


async def _rejudge(answer: InteractionReply, viewer: Viewer, board: Board, version: int) -> None:
    store = context_of(answer.interaction).store
    count, present = await submissions.rejudge_from(store, viewer, board, version)
    subject = "1 submission is" if count == 1 else f"{count} submissions are"
    await answer.conclude(
        f"{subject} judged by task version {present}; the standings fill as results come."
    )


_CHECK_BUTTON = r"podium:check:cancel:(?P<number>[0-9]{1,18})"


class CheckButton(discord.ui.DynamicItem[discord.ui.Button[Any]], template=_CHECK_BUTTON):
    """The button that cancels the check of a task before anything is published."""

    def __init__(self, number: PublicationId) -> None:
        label, style = _LABELS[SubmissionAction.CANCEL]
        custom_id = f"podium:check:cancel:{number}"
        super().__init__(discord.ui.Button(label=label, style=style, custom_id=custom_id))
        self.number = number

    @override
    @classmethod
    async def from_custom_id(
        cls, interaction: Interaction, item: discord.ui.Item[Any], match: re.Match[str]
    ) -> Self:
        del interaction, item
        return cls(PublicationId(int(match["number"])))

    @override
    async def callback(self, interaction: Interaction) -> None:
        async with replying(interaction) as answer:
            await cancel_check(answer, self.number)


async def cancel_check(answer: InteractionReply, number: PublicationId) -> None:
    """Cancel the person's own check, or any as an admin, also one that did not come from here."""
    store, viewer = context_of(answer.interaction).store, await viewer_of(answer.interaction)
    front_end = None if viewer.sees_all else FRONT_END
    await cancel_publication(store, viewer, front_end, number)
    await answer.conclude(f"Stopping check {number}; nothing will be published.")


def check_of(custom_id: str) -> PublicationId | None:
    """Return the check that a button is for; None for another button."""
    found = re.fullmatch(_CHECK_BUTTON, custom_id)
    return None if found is None else PublicationId(int(found["number"]))


def check_buttons(number: PublicationId) -> discord.ui.View:
    """Return the buttons below a running check."""
    view = discord.ui.View(timeout=None)
    view.add_item(CheckButton(number))
    return view


def board_buttons(board: Board, version: int, *, rejudge: bool) -> discord.ui.View:
    """Return the buttons below an announcement of a board."""
    view = discord.ui.View(timeout=None)
    action = BoardAction.REJUDGE if rejudge else BoardAction.TEMPLATE
    view.add_item(BoardButton(action, board.id, version))
    return view
