"""Answers an acknowledged interaction: sends the result or the error.

Only `error_message` decides what a person reads about an error.
"""

import asyncio
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO

import aiohttp
import discord
import structlog
from discord import app_commands

from bot.discord.channels import direct_messages
from bot.discord.context import FRONT_END, Interaction, context_of, interaction_key
from bot.discord.draw import MessageDraft, message_drafts, with_pictures
from bot.discord.escaping import MESSAGE_LIMIT, plain, with_discord_times
from bot.domain.errors import StoreError, UserError
from bot.domain.submission import UntoldOutcome
from bot.reports.blocks import Attachment, Report
from runners.contract.runner import RunnerError

_log = structlog.get_logger(__name__)
_ALT_TEXT = 1024
"""The most characters of a picture's alternative text."""
ALREADY_ANSWERED = 40060
"""Another process of this application has answered the interaction."""
UNKNOWN_INTERACTION = 10062
"""More than three seconds have passed, so the interaction can no longer be answered."""


class SupersededError(Exception):
    """Another process answers this interaction, or it is too late to answer: send nothing."""


@dataclass(slots=True)
class InteractionReply:
    """An acknowledged interaction; its first message fills the acknowledgement, others follow.

    Filling it twice is harmless. When the interaction can no longer be answered, the person gets a
    direct message if there are any with them; otherwise, their next answer begins with the outcome.
    """

    interaction: Interaction
    is_filled: bool = False
    """Whether the acknowledgement has a message: the first reply, or the one that was clicked."""
    is_followed: bool = False
    """Whether a submission's display continues in this answer, or else in a thread."""
    save: Callable[["InteractionReply", str], Awaitable[None]] | None = None
    """Stores an outcome before it is sent."""
    conversation: discord.PartialMessageable | None = None
    """The person's direct messages, if they were looked up before the account is deleted."""
    storable: str = ""
    """What may be stored of the outcome, without secrets; empty if that is nothing."""
    unsent: UntoldOutcome | None = None
    """The outcome, if it could not be sent."""
    tells_earlier: bool = False
    """Whether it begins with the outcome of an earlier command that could not be sent."""
    has_told: bool = False
    """Whether it has begun so."""

    async def find_conversation(self) -> discord.PartialMessageable | None:
        """Return the direct messages with the person, if there are any."""
        if self.conversation is None:
            asked = self.interaction
            self.conversation = await direct_messages(
                asked.client, context_of(asked), asked.user.id
            )
        return self.conversation

    async def say(self, text: str, view: discord.ui.View | None = None) -> None:
        """Send one short message, already escaped; the commands that it names become links."""
        await self._send(MessageDraft(_linked(text)), view)

    async def conclude(self, outcome: str | Report, secret: str = "") -> None:
        """Send the outcome of a change.

        A short outcome is stored first: if this process ends, the next one only sends it. If it
        cannot be sent, it is stored without the secret.
        """
        drafts = message_drafts(outcome) if isinstance(outcome, Report) else ()
        drafts = drafts or (MessageDraft(_linked(str(outcome))),)
        if len(drafts) == 1 and not drafts[0].files:
            said = drafts[0].content
            self.storable = said.replace(secret, NOT_STORED) if secret else said
            if self.save is not None:
                await self.save(self, said)
        await self.show_all(drafts)

    async def show(self, report: Report, view: discord.ui.View | None = None) -> None:
        """Send a report in as many messages as needed; the view comes with the last."""
        await self.show_all(message_drafts(await with_pictures(report)), view)

    async def replace(
        self, report: Report, view: discord.ui.View, *, pictures: bool = False
    ) -> None:
        """Replace the report in the clicked message; its files stay unless `pictures`."""
        draft, *more = message_drafts(await with_pictures(report))
        await self.replace_message(draft, view, pictures=pictures)
        for each in more:
            await self._send(each, None)

    async def replace_message(
        self, draft: MessageDraft, view: discord.ui.View | None, *, pictures: bool = False
    ) -> None:
        """Replace the clicked message; its files stay unless `pictures`."""
        edit = partial(self.interaction.edit_original_response, content=draft.content, view=view)
        if pictures:
            edit = partial(edit, attachments=as_files(draft.files))
        if not await self._with_token(edit):
            await self._send_direct(draft, view)

    async def show_all(
        self, drafts: Sequence[MessageDraft], view: discord.ui.View | None = None
    ) -> bool:
        """Send messages in order; the view comes with the last. Return whether all were sent."""
        *first, last = drafts
        sent = [await self._send(draft, None) for draft in first]
        return all([*sent, await self._send(last, view)])

    async def _send(self, draft: MessageDraft, view: discord.ui.View | None) -> bool:
        earlier = await self._earlier_outcome()
        parts = [(draft, view)]
        if earlier is not None:
            parts = self._with_earlier(earlier, draft, view)
        for each, its_view in parts:
            if not await self._with_token(partial(self._answer, each, its_view)):
                return not self.is_followed and await self._send_direct(draft, view)
            self.is_filled = True
            self.has_told = self.has_told or (earlier is not None and earlier in each.content)
        return True

    async def _earlier_outcome(self) -> str | None:
        """Return an outcome that could not be sent to this person; None once one is told."""
        asked = self.interaction
        if not self.tells_earlier or self.has_told or not asked.token:
            return None
        interactions, earlier = context_of(asked).store.interactions, None
        with suppress(StoreError, TimeoutError):  # the next answer tells it
            async with asyncio.timeout(EARLIER_WAIT_S):
                key = interaction_key(asked)
                earlier = await interactions.take_untold(addressee_of(asked), key)
        self.tells_earlier = earlier is not None  # asked once
        return earlier

    def _with_earlier(
        self, earlier: str, draft: MessageDraft, view: discord.ui.View | None
    ) -> list[tuple[MessageDraft, discord.ui.View | None]]:
        """Return the messages that say both; an answer that a display edits keeps its own."""
        own, content = (MessageDraft(earlier), None), f"{earlier}\n\n{draft.content}"
        if self.is_followed:
            return [(draft, view), own]
        if len(content) > MESSAGE_LIMIT:
            return [own, (draft, view)]
        return [(replace(draft, content=content), view)]

    async def _with_token(self, send: Callable[[], Awaitable[object]]) -> bool:
        """Send something that needs the interaction's token; return False if it has expired."""
        if not self.interaction.token:  # expired before the work was done
            return False
        try:
            await send()
        except discord.HTTPException as error:
            if error.status not in {401, 404}:
                raise
            return False
        return True

    async def _answer(self, draft: MessageDraft, view: discord.ui.View | None) -> None:
        files = as_files(draft.files)
        if self.is_filled:
            shown = discord.utils.MISSING if view is None else view
            await self.interaction.followup.send(
                draft.content, files=files, view=shown, ephemeral=True
            )
        else:
            await self.interaction.edit_original_response(
                content=draft.content, view=view, attachments=files
            )

    async def _send_direct(self, draft: MessageDraft, view: discord.ui.View | None) -> bool:
        channel = await self.find_conversation()
        shown = discord.utils.MISSING if view is None else view
        try:
            if channel is not None:
                await channel.send(draft.content, files=as_files(draft.files), view=shown)
                return True
        except (discord.Forbidden, discord.NotFound):
            pass  # the person has closed their direct messages
        self.unsent = _untold(self.interaction, self.storable)
        _log.warning("a reply was not sent", action="untold")
        return False


EARLIER_WAIT_S = 1.0
"""How long an answer waits for the database to know whether an earlier outcome was not sent."""
NOT_STORED = "(secret, not stored)"
"""Replaces a secret in an outcome that could not be sent."""
NOT_SENT = "It has ended, but its answer could not be sent. Run it again if you still need it."


def addressee_of(interaction: Interaction) -> str:
    """Return the credential of the person who asked."""
    return f"{FRONT_END}:{interaction.user.id}"


def _untold(interaction: Interaction, outcome: str) -> UntoldOutcome | None:
    """Return what the person is told of it later; None for a click that changed nothing."""
    command = interaction.command
    if command is None and not outcome:
        return None
    is_form = interaction.type is discord.InteractionType.modal_submit
    what = "form" if is_form else "click"
    if command is not None:
        slash = "" if isinstance(command, app_commands.ContextMenu) else "/"
        what = f"command `{slash}{command.qualified_name}`"
    head = f"-# Your earlier {what}, {discord.utils.format_dt(interaction.created_at, 'R')}:\n"
    said = _linked(head + (outcome or NOT_SENT))
    return UntoldOutcome(addressee_of(interaction), said[:MESSAGE_LIMIT])


def webhook_of(client: discord.Client, token: str) -> discord.Webhook:
    """Return the webhook that sends what belongs to an interaction, while its token is valid."""
    found = discord.Webhook.partial(client.application_id or 0, token, client=client)
    found.type = discord.WebhookType.application  # without it, discord.py refuses `ephemeral`
    return found


def as_files(attachments: Sequence[Attachment]) -> list[discord.File]:
    """Return the attachments as uploads, each readable once."""
    return [
        discord.File(BytesIO(each.data), each.name, description=each.about[:_ALT_TEXT] or None)
        for each in attachments
    ]


async def try_to_say(answer: InteractionReply, message: str) -> bool:
    """Send a message or log why it was not sent; return False if a retry may succeed."""
    answer.storable = message[:2000]
    try:
        await answer.say(message[:2000])
    except (discord.DiscordException, aiohttp.ClientError, OSError, StoreError) as error:
        _log.warning("a reply was not sent", action="untold", words=message, error=repr(error))
        return not (isinstance(error, StoreError) or is_temporary(error))
    return True


def is_superseded(error: BaseException) -> bool:
    """Return whether another process answers the interaction, or it is too late to answer."""
    codes = {ALREADY_ANSWERED, UNKNOWN_INTERACTION}
    return isinstance(error, discord.HTTPException) and error.code in codes


COMMAND_IDS: dict[str, int] = {}
"""The ids of the published commands by name, for links to them."""
_COMMAND = re.compile(r"`/(?P<path>(?P<name>[a-z-]+)(?: [a-z-]+){0,2})`")
_WORD = re.compile(r"[a-z]+(?=[ ,])")
MARK = "⚠️"
"""The beginning of every message about what went wrong."""


def is_worth_logging(record: logging.LogRecord) -> bool:
    """Return False for discord.py's log of a click that another bot process answered."""
    return not (record.exc_info and isinstance(record.exc_info[1], SupersededError))


MAY_BE_DONE = (
    "The bot was restarted during your command; what it changes may have been changed before that."
)
"""Added to an error of a resumed command."""


def error_message(error: BaseException, *, is_resumed: bool = False) -> str | None:
    """Return the message for the person, already escaped; None when nothing is to be shown.

    It begins with a mark and a capital, and names commands as links.
    """
    original = root_cause(error)
    match original:
        case SupersededError():
            return None
        case UserError(code="wrong-channel", message=message):
            text = _with_links(message, str)  # our own text, with clickable channels
        case UserError(message=message, moments=moments):
            text = _with_links(message, lambda part: with_discord_times(part, moments))
        case app_commands.CheckFailure():
            text = plain(str(original))
        case _:
            text = _internal_error(original)
    if is_resumed and isinstance(original, UserError):
        text = f"{text.removesuffix('.')}. {MAY_BE_DONE}"
    return f"{MARK} {text[:1].upper()}{text[1:]}" if _WORD.match(text) else f"{MARK} {text}"


def _with_links(text: str, escape: Callable[[str], str]) -> str:
    """Return the text escaped, with links in place of the published commands that it names."""
    parts, end = [], 0
    for found in _COMMAND.finditer(text):
        number = COMMAND_IDS.get(found["name"])
        if number is not None:
            parts += [escape(text[end : found.start()]), f"</{found['path']}:{number}>"]
            end = found.end()
    return "".join([*parts, escape(text[end:])])


def _linked(text: str) -> str:
    """Return an escaped text with links to commands, if it still fits a message."""
    linked = _with_links(text, str)
    return linked if len(linked) <= MESSAGE_LIMIT else text


def _internal_error(error: BaseException) -> str:
    """Return the message for an internal error; the log has details under the incident's id."""
    incident = secrets.token_hex(4)
    _log.error("a command failed", action="incident", incident=incident, exc_info=error)
    if isinstance(error, StoreError | RunnerError):
        return f"Internal error: the service is unavailable. Try again soon (incident {incident})."
    if isinstance(error, discord.HTTPException) or is_temporary(error):
        return f"Discord rejected part of the answer. Nothing is lost (incident {incident})."
    return f"This is a bug in Podium. Please report incident {incident}."


def is_temporary(error: BaseException) -> bool:
    """Return whether Discord is unavailable or overloaded, so that a retry may succeed."""
    if isinstance(error, discord.HTTPException):
        return error.status >= 500 or error.status == 429
    return isinstance(error, discord.RateLimited | aiohttp.ClientError | TimeoutError | OSError)


def root_cause(error: BaseException) -> BaseException:
    """Return the original error, unwrapped from discord.py's errors and from task groups."""
    while True:
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        elif isinstance(error, app_commands.CommandInvokeError):
            error = error.original
        elif isinstance(error, app_commands.TransformerError):
            message = "an option has a value that cannot be used here; choose another one"
            error = error.__cause__ or UserError("wrong-option", message)
        else:
            return error
