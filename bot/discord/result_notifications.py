"""Messages after a report: how its confirmation ended, and that a long run's result is ready.

Notifications of results are off by default. They are offered once, below a person's first long run.
"""

import re
from datetime import datetime, timedelta
from typing import Any, Self

import discord
from typing_extensions import override

from bot.discord.buttons import buttons_of
from bot.discord.context import FRONT_END, DiscordContext, Interaction, context_of
from bot.discord.displays import DisplayedSubmission, DisplayWriter, OnceMessage
from bot.discord.draw import confirmation_text, result_text
from bot.discord.interaction_claims import replying
from bot.domain.job import JobState
from bot.domain.notifications import NotificationKind
from bot.domain.status import SubmissionStatus
from bot.services.notify import set_notifications

LONG = timedelta(minutes=2)
"""A run is long if its result takes this time or more: its person may no longer be watching."""


class NotificationButton(
    discord.ui.DynamicItem[discord.ui.Button[Any]], template=r"podium:notices:(?P<choice>on|off)"
):
    """Switches notifications of results on or off for the person who presses it."""

    def __init__(self, choice: str) -> None:
        label = "Notify me of results" if choice == "on" else "No more notifications"
        super().__init__(discord.ui.Button(label=label, custom_id=f"podium:notices:{choice}"))
        self.choice = choice

    @override
    @classmethod
    async def from_custom_id(
        cls, interaction: Interaction, item: discord.ui.Item[Any], match: re.Match[str]
    ) -> Self:
        del interaction, item
        return cls(match["choice"])

    @override
    async def callback(self, interaction: Interaction) -> None:
        async with replying(interaction) as answer:
            store, enabled = context_of(interaction).store, self.choice == "on"
            person = await context_of(interaction).person(interaction.user)
            await set_notifications(store, person.identity, {NotificationKind.RESULT: enabled})
            words = "Notifications of results are off. `/profile notices` switches them on."
            if enabled:
                words = (
                    "When a run of yours has taken two minutes or more, a message near its report "
                    "will say that the result is ready. `/profile notices` switches this off."
                )
            await answer.conclude(words)


def took_long(status: SubmissionStatus, now: datetime) -> bool:
    """Return whether the result took, or takes, `LONG` or more."""
    ends = [each.job.finished_at or now for each in status.jobs]
    return max(ends, default=now) - status.submission.created_at >= LONG


async def view_of(context: DiscordContext, status: SubmissionStatus) -> discord.ui.View:
    """Return the submission's buttons, with the offer of notifications if they are offered here."""
    view, submission, people = buttons_of(status), status.submission, context.store.people
    if took_long(status, context.clock.now()):
        person = await people.get(submission.person)
        identity = "" if person is None else person.identity
        is_on = NotificationKind.RESULT in await context.store.listeners.kinds(identity)
        if not is_on and await people.offer_notifications(submission.person, submission.id):
            view.add_item(NotificationButton("on"))
    return view


async def send_confirmation(
    writer: DisplayWriter, shown: DisplayedSubmission, owner: str, status: SubmissionStatus
) -> None:
    """Send how the submission's confirmation ended, if the report said that it was pending."""
    if not status.is_settled and not shown.state.awaited:
        await writer.record(shown, owner, awaited=True)
    if status.is_settled and shown.state.awaited and not shown.state.confirmed:
        text, nonce = confirmation_text(status), f"{shown.submission}-confirmed"
        message = OnceMessage.of_text(text, nonce)
        await writer.send_once(shown, shown.state.private, message)
        await writer.record(shown, owner, confirmed=True)


async def send_result(
    writer: DisplayWriter, shown: DisplayedSubmission, owner: str, status: SubmissionStatus
) -> None:
    """Notify the person once of a long run's result, if they have switched that on."""
    state, context = shown.state, writer.context
    cancelled = all(each.job.state is JobState.CANCELLED for each in status.jobs)
    if state.told or cancelled or not took_long(status, context.clock.now()):
        return
    if NotificationKind.RESULT in await context.store.listeners.kinds(f"{FRONT_END}:{state.user}"):
        view = discord.ui.View(timeout=None)
        view.add_item(NotificationButton("off"))
        text = result_text(status, state.user)
        message = OnceMessage.of_text(text, f"{shown.submission}-told", view, mentions=state.user)
        await writer.send_once(shown, state.private, message)
        await writer.record(shown, owner, told=True)
