"""Lists in pages that are drawn anew whenever they are turned: the boards, the audit.

The buttons carry what they need in their own id, so they work after any restart.
"""

import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

import discord
from typing_extensions import override

from bot.discord import viewers
from bot.discord.context import DOOR, door_of
from bot.discord.escaping import MOST, line, moment
from bot.discord.responses import renewing
from bot.discord.roles import ADMIN, require
from bot.domain.board import Board
from bot.domain.records import NamedAuditEntry
from bot.services.audit import audit_page
from bot.services.lookup import visible_boards

_BOARDS, _DECISIONS = 10, 8
"""Lines of a page."""
_WIDTHS = (200, 60, 20)
"""Letters of anybody's words in a line; fewer where a page would not fit into a message."""
_ACCOUNT = re.compile(rf"^person {DOOR}:(?P<user>[0-9]{{1,20}})$")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A page as it is shown, and whether there is one before and one after it."""

    text: str
    number: int
    more: bool


class Book(StrEnum):
    """What is leafed through."""

    BOARDS = "boards"
    """The boards that a person sees."""
    AUDIT = "audit"
    """What was decided; for admins."""


class LeafButton(
    discord.ui.DynamicItem[discord.ui.Button[Any]],
    template=r"podium:leaf:(?P<book>boards|audit):(?P<turn>previous|next):(?P<number>[0-9]{1,6})",
):
    """Leads to the page of this number; the first page is 0."""

    def __init__(self, book: Book, turn: str, number: int, *, disabled: bool = False) -> None:
        custom_id = f"podium:leaf:{book}:{turn}:{number}"
        label = turn.capitalize()
        super().__init__(discord.ui.Button(label=label, custom_id=custom_id, disabled=disabled))
        self.book = book
        self.number = number

    @override
    @classmethod
    async def from_custom_id(
        cls,
        interaction: discord.Interaction[Any],
        item: discord.ui.Item[Any],
        match: re.Match[str],
    ) -> Self:
        del interaction, item
        return cls(Book(match["book"]), match["turn"], int(match["number"]))

    @override
    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        async with renewing(interaction) as answer:
            text, view = await leaf(interaction, self.book, self.number)
            await answer.interaction.edit_original_response(content=text, view=view)


async def leaf(
    interaction: discord.Interaction[Any], book: Book, number: int = 0
) -> tuple[str, discord.ui.View | None]:
    """One page of a book as it is now, with buttons where there are several."""
    found = await _PAGES[book](interaction, number)
    if found.number == 0 and not found.more:
        return found.text, None
    view = discord.ui.View(timeout=None)
    before, after = max(found.number - 1, 0), found.number + 1
    view.add_item(LeafButton(book, "previous", before, disabled=found.number == 0))
    view.add_item(LeafButton(book, "next", after, disabled=not found.more))
    return found.text, view


async def _boards(interaction: discord.Interaction[Any], number: int) -> Leaf:
    door = door_of(interaction)
    now = door.clock.now()
    found = await visible_boards(door.store, await viewers.viewer_of(interaction))
    if not found:
        return Leaf("There is no board yet; `/leaderboard create` makes one.", 0, more=False)
    boards = sorted(found, key=lambda each: (not each.is_open(now), each.name))
    people = await door.store.statistics.participants()
    last = (len(boards) - 1) // _BOARDS
    number = min(number, last)
    shown = boards[number * _BOARDS :][:_BOARDS]

    def lines(width: int) -> Iterator[str]:
        for board in shown:
            yield board_line(board, people.get(board.id, 0), width, is_open=board.is_open(now))

    return Leaf(_fitting(lines), number, more=number < last)


def board_line(board: Board, people: int, width: int, *, is_open: bool) -> str:
    """A board with its GPU types, its deadline in the reader's own time zone, and its size."""
    gpus = line(", ".join(board.gpus), min(width, 60))
    season = "no deadline" if board.deadline is None else f"until {moment(board.deadline)}"
    crowd = "nobody yet" if people == 0 else "1 person" if people == 1 else f"{people} people"
    mark = "🟢" if is_open else "⚪"
    return f"{mark} **{line(board.name, width)}** on {gpus}, {season}, {crowd}"


async def _audit(interaction: discord.Interaction[Any], number: int) -> Leaf:
    require(interaction, ADMIN)
    page = await audit_page(door_of(interaction).store, number, _DECISIONS)
    if not page.decisions:
        return Leaf("Nothing was decided before.", number, more=False)

    def lines(width: int) -> Iterator[str]:
        return (decision_line(each, width) for each in page.decisions)

    return Leaf(_fitting(lines), number, page.more)


def decision_line(decision: NamedAuditEntry, width: int) -> str:
    """Who did what, when and why; a person of Discord can be clicked on, and is not called."""
    row = decision.row
    account = _ACCOUNT.match(row.subject)
    subject = line(row.subject, width)
    if account is not None:
        subject = viewers.mention(viewers.person(int(account["user"])))
    who = line(decision.actor_name or "Podium", min(width, 32))
    why = f": {line(row.reason, width)}" if row.reason else ""
    return f"<t:{int(row.at.timestamp())}:f> **{who}** {line(row.action)} {subject}{why}"


def _fitting(lines: Callable[[int], Iterator[str]]) -> str:
    """The lines with as much of everybody's words as a message takes."""
    pages = ["\n".join(lines(width)) for width in _WIDTHS]
    return next((page for page in pages if len(page) <= MOST), pages[-1][:MOST])


_PAGES: dict[Book, Callable[[discord.Interaction[Any], int], Awaitable[Leaf]]] = {
    Book.BOARDS: _boards,
    Book.AUDIT: _audit,
}
