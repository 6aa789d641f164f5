"""Brings one submission's display forward: thread, live message, report, public line.

Every step is written down as soon as it is done, and each message carries a nonce, so that who
goes on after a kill neither skips a message nor sends it twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import discord

from bot.domain.display import Display
from bot.domain.ids import SubmissionId
from bot.frontends.discord.answers import as_files
from bot.frontends.discord.buttons import buttons_of
from bot.frontends.discord.door import Door
from bot.frontends.discord.draw import Sheet, sheets
from bot.frontends.discord.places import Place
from bot.frontends.discord.showing.pace import Pace
from bot.frontends.discord.viewers import of_room
from bot.frontends.discord.words import line
from bot.reports.placement import placement_line
from bot.reports.status import job_line, status_report
from bot.services.placement import placements
from bot.services.status import SubmissionStatus, status
from runners.contract.task import Mode

_THREAD_MINUTES: Literal[1440] = 1440
_ARCHIVED = 50083


@dataclass(slots=True)
class Show:
    """A display that this process holds."""

    submission: SubmissionId
    place: Place
    drawn: str = ""
    """The live message as Discord has it, as far as this process knows."""

    @classmethod
    def of(cls, display: Display) -> "Show":
        """The display as it was left."""
        return cls(display.submission, Place.model_validate_json(display.place))


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a display has come: to its end, or to where it should be looked at again."""

    done: bool = False
    again_s: float | None = None


class OthersError(Exception):
    """Another process has taken this display over."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Everything that it takes to show a submission."""

    client: discord.Client
    door: Door
    pace: Pace

    async def forward(self, show: Show, owner: str) -> Reached:
        """Draw what has changed; raises what Discord or the store raises, and may be repeated."""
        now = await status(self.door.store, show.submission)
        await self._open(show, owner, now)
        again_s = await self._draw_live(show, owner, now)
        if again_s is not None or not now.is_final:
            return Reached(again_s=again_s)
        await self._report(show, owner, sheets(status_report(now)))
        await self._announce(show, owner, now)
        written = show.place.model_dump_json()
        await self.door.store.displays.finish(show.submission, owner, written)
        return Reached(done=True)

    async def _note(self, show: Show, owner: str, **changes: object) -> None:
        show.place = show.place.model_copy(update=changes)
        written = show.place.model_dump_json()
        if not await self.door.store.displays.note(show.submission, owner, written):
            raise OthersError

    async def _open(self, show: Show, owner: str, now: SubmissionStatus) -> None:
        """A private thread for the person, or direct messages where none can be made."""
        place = show.place
        if not place.in_guild or place.thread is not None:
            return
        try:
            thread = await self._new_thread(place, _thread_name(now))
        except (discord.Forbidden, discord.NotFound):
            await self._turn_to_direct_messages(show, owner)
            return
        await self._note(show, owner, thread=thread.id)
        await thread.add_user(discord.Object(place.user))

    async def _new_thread(self, place: Place, name: str) -> discord.Thread:
        channel = self.client.get_channel(place.channel)
        if channel is None:
            channel = await self.client.fetch_channel(place.channel)
        if not isinstance(channel, discord.TextChannel):
            raise TypeError(f"channel {place.channel} takes no threads")
        return await channel.create_thread(
            name=name,
            type=discord.ChannelType.private_thread,
            invitable=False,
            auto_archive_duration=_THREAD_MINUTES,
        )

    async def _turn_to_direct_messages(self, show: Show, owner: str) -> None:
        user = await self.client.fetch_user(show.place.user)
        channel = await user.create_dm()
        await self._note(show, owner, channel=channel.id, in_guild=False)

    def _where(self, place: Place) -> discord.PartialMessageable:
        return self.client.get_partial_messageable(place.thread or place.channel)

    async def _draw_live(self, show: Show, owner: str, now: SubmissionStatus) -> float | None:
        """Send or edit the message that moves; seconds to wait when it is too early to edit."""
        text = live_text(now)
        place = show.place
        if place.live is None:
            nonce = f"{show.submission}-live"
            message = await self._where(place).send(text, view=buttons_of(now), nonce=nonce)
            await self._note(show, owner, live=message.id)
        elif text != show.drawn:
            early_s = self.pace.wait_for(place.live)
            if early_s > 0:
                return early_s
            await self.pace.turn(place.live)
            await self._edit(place, place.live, text, buttons_of(now))
        show.drawn = text
        return None

    async def _edit(self, place: Place, message: int, text: str, view: discord.ui.View) -> None:
        live = self._where(place).get_partial_message(message)
        try:
            await live.edit(content=text, view=view)
        except discord.NotFound:
            return  # somebody has removed it: their choice
        except discord.HTTPException as error:
            if error.code != _ARCHIVED or place.thread is None:
                raise
            await self._unarchive(place.thread)
            await live.edit(content=text, view=view)

    async def _unarchive(self, thread: int) -> None:
        found = await self.client.fetch_channel(thread)
        if isinstance(found, discord.Thread):
            await found.edit(archived=False)

    async def _report(self, show: Show, owner: str, report: Sequence[Sheet]) -> None:
        for number, sheet in enumerate(report, start=1):
            if number > show.place.reported:
                await self._where(show.place).send(
                    sheet.content,
                    files=as_files(sheet.files),
                    nonce=f"{show.submission}-report-{number}",
                )
                await self._note(show, owner, reported=number)
        if show.place.live is not None:
            self.pace.forget(show.place.live)

    async def _announce(self, show: Show, owner: str, now: SubmissionStatus) -> None:
        """The public line, with a thread of its own where others find the times."""
        if now.submission.mode is not Mode.RANKED or not show.place.in_guild:
            return
        won = await placements(self.door.store, show.submission)
        readers = of_room(self.client, show.place.channel)
        if not won or not now.board.access.admits(readers):
            return
        channel = self.client.get_partial_messageable(show.place.channel)
        if show.place.announced is None:
            lines = [f"<@{show.place.user}>'s submission {_thread_name(now)}"]
            lines += [placement_line(each).text for each in won]
            nonce = f"{show.submission}-place"
            message = await channel.send("\n".join(lines), nonce=nonce)
            await self._note(show, owner, announced=message.id)
        await self._open_publicly(show, owner, now)

    async def _open_publicly(self, show: Show, owner: str, now: SubmissionStatus) -> None:
        if show.place.opened or show.place.announced is None:
            return
        channel = await self.client.fetch_channel(show.place.channel)
        if not isinstance(channel, discord.TextChannel):
            return
        message = channel.get_partial_message(show.place.announced)
        thread = await message.create_thread(
            name=_thread_name(now), auto_archive_duration=_THREAD_MINUTES
        )
        await self._note(show, owner, opened=True)
        for sheet in sheets(status_report(now)):
            await thread.send(sheet.content, files=as_files(sheet.files))


def live_text(now: SubmissionStatus) -> str:
    """The submission and one line for each GPU type."""
    submission = now.submission
    name = line(submission.file_name, 60)
    head = f"**Submission #{submission.id}**: {name}, {submission.mode} on **{now.board.name}**"
    return "\n".join([head, *(f"> {line(job_line(each).text, 150)}" for each in now.jobs)])[:2000]


def _thread_name(now: SubmissionStatus) -> str:
    name = " ".join(now.submission.file_name.split())[:50]
    return f"#{now.submission.id} {name} on {now.board.name}"[:100]
