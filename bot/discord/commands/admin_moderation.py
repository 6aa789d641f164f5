"""Moderation: `/admin pause|resume|disqualify|requalify|rejudge|final|ban|unban|reset-name`.

Also `/admin submission look|cancel`, and "Moderate" in the menu of a message about a submission.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Literal, TypeVar

import discord
from discord import app_commands

from bot.discord import buttons, options, roles
from bot.discord.context import (
    ADMIN_NEEDS,
    FRONT_END,
    Interaction,
    Tree,
    add_commands,
    context_of,
    interaction_key,
)
from bot.discord.escaping import discord_time, line
from bot.discord.interaction_claims import replying
from bot.discord.publication_messages import show_check
from bot.discord.responses import InteractionReply
from bot.domain.errors import UserError
from bot.domain.finals import DEFAULT_TOP, LEAST_TOP, MOST_TOP, FinalRequest
from bot.domain.ids import SubmissionId
from bot.reports.blocks import Attachment, Text
from bot.reports.confirmations import short_finals_report
from bot.reports.submission import status_report
from bot.services import finals, lookup, moderation, submissions

T = TypeVar("T")


async def setup(tree: Tree) -> None:
    """Add this file's commands."""
    add_commands(tree, "admin", pause, resume, disqualify, requalify, rejudge, final, ban, unban)
    add_commands(tree, "admin", reset_name)
    add_commands(tree, "admin submission", look, cancel)
    tree.add_command(app_commands.ContextMenu(name="Moderate", callback=moderate))


_Reason = app_commands.Range[str, 1, 300]
_SCOPE = {
    "leaderboard_name": "Only this board",
    "gpu": "Only jobs on this GPU type; they wait in the queue",
}


@app_commands.command(description="Pause submissions; those already stored are still judged")
@app_commands.describe(reason="Shown to everyone who submits", **_SCOPE)
@app_commands.autocomplete(leaderboard_name=options.boards, gpu=options.gpus)
async def pause(
    interaction: Interaction,
    *,
    reason: _Reason,
    leaderboard_name: str | None = None,
    gpu: str | None = None,
) -> None:
    """Stay paused until `/admin resume`, even after restarts."""
    async with replying(interaction) as answer:
        decision = await roles.admin_decision(interaction, reason)
        store = context_of(interaction).store
        _require_not_both(leaderboard_name, gpu)
        if leaderboard_name is not None:
            board = await lookup.find_board(
                store, await roles.viewer_of(interaction), leaderboard_name
            )
            await moderation.pause_board(store, decision, board)
            await answer.conclude(f"Submissions to {line(board.name)} are paused.")
        elif gpu is not None:
            found = await moderation.pause_gpu(store, decision, gpu)
            await answer.conclude(
                f"Jobs on {line(found)} are paused and wait in the queue; running jobs finish."
            )
        else:
            await moderation.pause(store, decision)
            await answer.conclude("Submissions are paused.")


@app_commands.command(description="End a pause of all submissions, of a board or of a GPU type")
@app_commands.describe(
    reason="Reason, kept in the audit log",
    leaderboard_name="Only this board",
    gpu="Only this GPU type",
)
@app_commands.autocomplete(leaderboard_name=options.boards, gpu=options.gpus)
async def resume(
    interaction: Interaction,
    *,
    reason: app_commands.Range[str, 0, 300] = "",
    leaderboard_name: str | None = None,
    gpu: str | None = None,
) -> None:
    """End only the named pause; others stay."""
    async with replying(interaction) as answer:
        decision = await roles.admin_decision(interaction, reason)
        store = context_of(interaction).store
        _require_not_both(leaderboard_name, gpu)
        if leaderboard_name is not None:
            board = await lookup.find_board(
                store, await roles.viewer_of(interaction), leaderboard_name
            )
            await moderation.resume_board(store, decision, board)
            await answer.conclude(f"Submissions to {line(board.name)} are accepted again.")
        elif gpu is not None:
            found = await moderation.resume_gpu(store, decision, gpu)
            await answer.conclude(f"Jobs on {line(found)} run again.")
        else:
            await moderation.resume(store, decision)
            await answer.conclude("Submissions are accepted again.")


def _require_not_both(board: str | None, gpu: str | None) -> None:
    if board is not None and gpu is not None:
        raise UserError("two-things", "name a board or a GPU type, not both")


@app_commands.command(description="Remove a submission from its board; its result is kept")
@app_commands.describe(number="Submission number", reason="Reason, shown with the result")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.any_submissions)
async def disqualify(interaction: Interaction, number: options.Number, reason: _Reason) -> None:
    """Rank the owner's next best submission instead."""
    async with replying(interaction) as answer:
        decision = await roles.admin_decision(interaction, reason)
        context = context_of(interaction)
        await moderation.disqualify(context.store, decision, SubmissionId(number))
        await answer.conclude(f"Submission #{number} is no longer ranked.")


@app_commands.command(description="Put a disqualified submission back on its board")
@app_commands.describe(number="Submission number", reason="Reason, kept in the audit log")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.any_submissions)
async def requalify(interaction: Interaction, number: options.Number, reason: _Reason) -> None:
    """End a disqualification or a withdrawal."""
    async with replying(interaction) as answer:
        decision = await roles.admin_decision(interaction, reason)
        context = context_of(interaction)
        await moderation.requalify(context.store, decision, SubmissionId(number))
        await answer.conclude(
            f"Submission #{number} is ranked again; if it takes one of the first places from "
            "another person, only after both are compared."
        )


@app_commands.command(description="Judge a submission again with its board's current task")
@app_commands.describe(number="Submission number", reason="Reason, kept in the audit log")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.any_submissions)
async def rejudge(interaction: Interaction, number: options.Number, reason: _Reason) -> None:
    """Submit the same source again for the same person."""
    async with replying(interaction) as answer:
        decision = await roles.admin_decision(interaction, reason)
        context = context_of(interaction)
        key = interaction_key(interaction)
        again = await submissions.rejudge_submission(
            context.store, decision, SubmissionId(number), key
        )
        await answer.conclude(f"Submission #{number} is judged again as #{again.id}.")


_Lasts = Literal["1 day", "3 days", "7 days", "30 days"]
_DAYS: Mapping[_Lasts, int] = {"1 day": 1, "3 days": 3, "7 days": 7, "30 days": 30}


@app_commands.command(
    description="Ban a person from submitting and stop their unfinished submissions"
)
@app_commands.describe(
    who="The person",
    reason="Shown to the person",
    lasts="When the ban ends by itself (default: when an admin lifts it)",
)
async def ban(
    interaction: Interaction, who: discord.User, reason: _Reason, lasts: _Lasts | None = None
) -> None:
    """Cancel unfinished submissions; judged ones keep their results and ranks."""
    async with replying(interaction) as answer:
        decision = await roles.admin_decision(interaction, reason)
        context = context_of(interaction)
        await context.person(who)  # a person who never submitted can be banned too
        until = None if lasts is None else context.clock.now() + timedelta(days=_DAYS[lasts])
        stopped = await moderation.ban(context.store, decision, f"{FRONT_END}:{who.id}", until)
        end = "" if until is None else f" until {discord_time(until)}"
        words = f"{line(who.name)} may not submit{end}."
        if stopped:
            noun = "submission was" if stopped == 1 else "submissions were"
            words += f" {stopped} unfinished {noun} stopped."
        await answer.conclude(words)


@app_commands.command(description="Let a person submit again")
@app_commands.describe(who="The person", reason="Reason, kept in the audit log")
async def unban(interaction: Interaction, who: discord.User, reason: _Reason) -> None:
    """End the ban."""
    async with replying(interaction) as answer:
        decision = await roles.admin_decision(interaction, reason)
        context = context_of(interaction)
        await moderation.unban(context.store, decision, f"{FRONT_END}:{who.id}")
        await answer.conclude(f"{line(who.name)} may submit again.")


@app_commands.command(
    name="reset-name", description="Show a person by their user name until they choose another name"
)
@app_commands.describe(who="The person", reason="Shown to the person")
async def reset_name(interaction: Interaction, who: discord.User, reason: _Reason) -> None:
    """Replace the person's name with their user name; refuse names like the old one later."""
    async with replying(interaction) as answer:
        decision = await roles.admin_decision(interaction, reason)
        context = context_of(interaction)
        person = await context.person(who)
        await moderation.reset_name(context.store, decision, person.identity)
        await answer.conclude(
            f"The name {line(person.name)} is reset; boards show {line(person.handle)}. The person "
            "is notified if they have begun direct messages with me."
        )


@app_commands.command(description="Compare a board's first entries, each with the one before")
@app_commands.describe(
    leaderboard_name="The board",
    top="How many entries to compare",
    gpu="Only this GPU type",
    cancel="Cancel the running final",
    reason="Reason, kept in the audit log",
)
@app_commands.autocomplete(leaderboard_name=options.boards, gpu=options.gpus)
async def final(
    interaction: Interaction,
    *,
    leaderboard_name: str,
    top: app_commands.Range[int, LEAST_TOP, MOST_TOP] = DEFAULT_TOP,
    gpu: str | None = None,
    cancel: bool = False,
    reason: app_commands.Range[str, 0, 300] = "",
) -> None:
    """Start or cancel a final; if one already runs, show how far it is."""
    async with replying(interaction) as answer:
        decision = await roles.admin_decision(interaction, reason)
        store, viewer = context_of(interaction).store, await roles.viewer_of(interaction)
        name = line(leaderboard_name)
        if cancel:
            await finals.cancel_final(store, viewer, decision, leaderboard_name)
            await answer.conclude(
                f"The final of {name} is cancelled; its standings stay as they are."
            )
            return
        request = FinalRequest(leaderboard_name, gpu, top)
        try:
            started = await finals.start_final(store, viewer, decision, request)
        except UserError as error:
            if error.code != "final-running":
                raise
            found = await finals.finals_of(store, viewer, leaderboard_name)
            await answer.show(short_finals_report(leaderboard_name, found))
            return
        gpus = ", ".join(line(each.gpu) for each in started)
        await answer.conclude(
            f"The final of {name} on {gpus} has begun. `/leaderboard show` shows its progress and, "
            "at its end, its table, by the button *Final*. The table is also on the board's page, "
            "and goes to everyone who is notified of records."
        )


@app_commands.command(description="Show anyone's report and source; recorded in the audit log")
@app_commands.describe(number="Submission number")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.any_submissions)
async def look(interaction: Interaction, number: options.Number) -> None:
    """Show all that its owner sees, and only to this admin."""
    async with replying(interaction) as answer:
        await _show(answer, SubmissionId(number))


@app_commands.command(description="Cancel anyone's submission")
@app_commands.describe(number="Submission number", reason="Reason, shown to its owner")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.any_submissions)
async def cancel(
    interaction: Interaction, number: options.Number, reason: app_commands.Range[str, 0, 300] = ""
) -> None:
    """End queued jobs at once, running ones within seconds."""
    async with replying(interaction) as answer:
        await buttons.cancel_as_admin(answer, SubmissionId(number), reason)


@app_commands.default_permissions(ADMIN_NEEDS)
async def moderate(interaction: Interaction, message: discord.Message) -> None:
    """Show the submission, or the running check of a task, that a message of the bot is about."""
    async with replying(interaction) as answer:
        roles.require(interaction, roles.ADMIN)
        is_own = message.author.id == interaction.application_id
        check, number = _first(message, buttons.check_of), _submission_of(message)
        if is_own and check is not None:
            await show_check(answer, check)
        elif is_own and number is not None:
            await _show(answer, number)
        else:
            raise UserError(
                "no-submission",
                "this message is not about a submission or a running check; choose one of mine",
            )


_NUMBER = re.compile(r"\bsubmission #(\d{1,18})\b", re.IGNORECASE)


def _submission_of(message: discord.Message) -> SubmissionId | None:
    """Return the submission whose buttons a message has, or which it names first."""
    found = _first(message, buttons.submission_of)
    named = _NUMBER.search(message.content)
    if found is None and named is not None:
        return SubmissionId(int(named[1]))
    return found


def _first(message: discord.Message, number_of: Callable[[str], T | None]) -> T | None:
    """Return the first number that a button of a message has."""
    for row in message.components:
        for item in getattr(row, "children", ()):
            found = number_of(getattr(item, "custom_id", None) or "")
            if found is not None:
                return found
    return None


async def _show(answer: InteractionReply, number: SubmissionId) -> None:
    decision = await roles.admin_decision(answer.interaction, "")
    context = context_of(answer.interaction)
    seen = await moderation.look(context.store, context.clock, decision, number)
    report = await asyncio.to_thread(status_report, seen.status, machine=False)
    who = "" if seen.person is None else seen.person.distinct_name
    source = Attachment(seen.source.file_name, seen.source.text.encode())
    blocks = (Text(f"Submitted by {who}"), *report.blocks, source)
    view = None if seen.status.is_final else buttons.stop_button(number)
    await answer.show(replace(report, blocks=blocks), view)
