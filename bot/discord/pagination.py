"""Boards and the audit log in pages, with buttons that survive a restart.

Each button has everything it needs in its id, so it works as long as the message exists.
"""

import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

import discord
from typing_extensions import override

from bot.discord.context import FRONT_END, Interaction, context_of
from bot.discord.draw import MessageDraft
from bot.discord.escaping import MESSAGE_LIMIT, discord_time, line, with_times
from bot.discord.interaction_claims import replacing
from bot.discord.roles import ADMIN, require, viewer_of
from bot.domain.board import Board
from bot.domain.records import NamedAuditEntry
from bot.services import audit, lookup

_BOARDS_PER_PAGE, _ENTRIES_PER_PAGE = 10, 8
_WIDTHS = (200, 60, 20)
"""The most characters of a user's text per line; fewer if a page would exceed a message."""
_CHANNEL = re.compile(r"channel ([0-9]{1,20}) of guild [0-9]{1,20}")
_USER = re.compile(rf"(?:\bperson )?\b{FRONT_END}:([0-9]{{1,20}})(?![0-9…])")
"""People and channels of Discord in the subject of an audit entry."""


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page, and whether there are pages before and after it."""

    text: str
    number: int
    more: bool


class PagedList(StrEnum):
    """Which list is shown in pages."""

    BOARDS = "boards"
    """The boards that a person may see."""
    AUDIT = "audit"
    """Decisions; for admins."""


class ListPageButton(
    discord.ui.DynamicItem[discord.ui.Button[Any]],
    template=r"podium:leaf:(?P<paged_list>boards|audit):(?P<direction>previous|next):(?P<number>[0-9]{1,6})",
):
    """Shows the page of this number; the first page is 0."""

    def __init__(
        self, paged_list: PagedList, direction: str, number: int, *, disabled: bool = False
    ) -> None:
        custom_id = f"podium:leaf:{paged_list}:{direction}:{number}"
        label = direction.capitalize()
        super().__init__(discord.ui.Button(label=label, custom_id=custom_id, disabled=disabled))
        self.paged_list = paged_list
        self.number = number

    @override
    @classmethod
    async def from_custom_id(
        cls, interaction: Interaction, item: discord.ui.Item[Any], match: re.Match[str]
    ) -> Self:
        del interaction, item
        return cls(PagedList(match["paged_list"]), match["direction"], int(match["number"]))

    @override
    async def callback(self, interaction: Interaction) -> None:
        async with replacing(interaction) as answer:
            text, view = await list_page(interaction, self.paged_list, self.number)
            await answer.replace_message(MessageDraft(text), view)


async def list_page(
    interaction: Interaction, paged_list: PagedList, number: int = 0
) -> tuple[str, discord.ui.View | None]:
    """Return one page as of now, with buttons if there are several."""
    page = await _PAGES[paged_list](interaction, number)
    if page.number == 0 and not page.more:
        return page.text, None
    view = discord.ui.View(timeout=None)
    before, after = max(page.number - 1, 0), page.number + 1
    view.add_item(ListPageButton(paged_list, "previous", before, disabled=page.number == 0))
    view.add_item(ListPageButton(paged_list, "next", after, disabled=not page.more))
    return page.text, view


async def _boards(interaction: Interaction, number: int) -> ListPage:
    context = context_of(interaction)
    now = context.clock.now()
    found = await lookup.visible_boards(context.store, await viewer_of(interaction))
    if not found:
        return ListPage(
            "There are no boards yet. Create one with `/leaderboard create`.", 0, more=False
        )
    boards = sorted(found, key=lambda each: (not each.is_open(now), each.name))
    people = await context.store.statistics.participants()
    last = (len(boards) - 1) // _BOARDS_PER_PAGE
    number = min(number, last)
    shown = boards[number * _BOARDS_PER_PAGE :][:_BOARDS_PER_PAGE]

    def lines(width: int) -> Iterator[str]:
        for board in shown:
            yield board_line(board, people.get(board.id, 0), width, is_open=board.is_open(now))

    return ListPage(_fit_page(lines), number, more=number < last)


def board_line(board: Board, people: int, width: int, *, is_open: bool) -> str:
    """Return a board's name, GPU types, deadline in the reader's time zone, and participants."""
    gpus = line(", ".join(board.gpus), min(width, 60))
    until = "no deadline" if board.deadline is None else f"until {discord_time(board.deadline)}"
    participants = (
        "nobody yet" if people == 0 else "1 person" if people == 1 else f"{people} people"
    )
    mark = "🟢" if is_open else "⚪"
    return f"{mark} **{line(board.name, width)}** on {gpus}, {until}, {participants}"


async def _audit(interaction: Interaction, number: int) -> ListPage:
    require(interaction, ADMIN)
    page = await audit.audit_page(context_of(interaction).store, number, _ENTRIES_PER_PAGE)
    if not page.decisions:
        return ListPage("There are no earlier entries.", number, more=False)

    def lines(width: int) -> Iterator[str]:
        return (audit_line(each, width) for each in page.decisions)

    return ListPage(_fit_page(lines), number, page.more)


def audit_line(decision: NamedAuditEntry, width: int) -> str:
    """Return who did what, when and why; Discord users can be clicked but are not notified."""
    entry = decision.entry
    subject = _with_mentions(_CHANNEL.sub(r"<#\1>", line(entry.subject, width)))
    actor = line(decision.actor_name or "Podium", min(width, 32))
    reason = f": {_with_mentions(line(entry.reason, width, with_times))}" if entry.reason else ""
    return f"<t:{int(entry.at.timestamp())}:f> **{actor}** {line(entry.action)} {subject}{reason}"


def _with_mentions(escaped: str) -> str:
    """Return an escaped text with the accounts of Discord users as mentions."""
    return _USER.sub(r"<@\1>", escaped)


def _fit_page(lines: Callable[[int], Iterator[str]]) -> str:
    """Return the lines with as much of the users' texts as fits into a message."""
    pages = ["\n".join(lines(width)) for width in _WIDTHS]
    return next((page for page in pages if len(page) <= MESSAGE_LIMIT), pages[-1][:MESSAGE_LIMIT])


_PAGES: dict[PagedList, Callable[[Interaction, int], Awaitable[ListPage]]] = {
    PagedList.BOARDS: _boards,
    PagedList.AUDIT: _audit,
}
