"""Boards, standings and the audit log in pages, with buttons that survive a restart.

The buttons contain what they need in their own id, so they work after any restart, as long as the
message exists.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

import discord
from typing_extensions import override

from bot.discord.context import DOOR, Interaction, context_of
from bot.discord.escaping import MOST, line, moment
from bot.discord.options import in_menus, span
from bot.discord.responses import InteractionReply, renewing
from bot.discord.roles import ADMIN, mention, person, require, viewer_of
from bot.domain.board import Board
from bot.domain.ids import BoardId
from bot.domain.leaderboard import Season
from bot.domain.records import NamedAuditEntry
from bot.reports.blocks import Report
from bot.reports.charts import season_chart
from bot.reports.standings import standings_pages, standings_side_by_side
from bot.services.audit import audit_page
from bot.services.lookup import visible_board, visible_boards
from bot.services.standings import season

_BOARDS, _DECISIONS = 10, 8
"""Lines per page."""
_WIDTHS = (200, 60, 20)
"""The most characters of a user's text per line; fewer if a page would exceed a message."""
_ACCOUNT = re.compile(rf"^person {DOOR}:(?P<user>[0-9]{{1,20}})$")


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
    template=r"podium:leaf:(?P<book>boards|audit):(?P<turn>previous|next):(?P<number>[0-9]{1,6})",
):
    """Shows the page of this number; the first page is 0."""

    def __init__(self, book: PagedList, turn: str, number: int, *, disabled: bool = False) -> None:
        custom_id = f"podium:leaf:{book}:{turn}:{number}"
        label = turn.capitalize()
        super().__init__(discord.ui.Button(label=label, custom_id=custom_id, disabled=disabled))
        self.book = book
        self.number = number

    @override
    @classmethod
    async def from_custom_id(
        cls,
        interaction: Interaction,
        item: discord.ui.Item[Any],
        match: re.Match[str],
    ) -> Self:
        del interaction, item
        return cls(PagedList(match["book"]), match["turn"], int(match["number"]))

    @override
    async def callback(self, interaction: Interaction) -> None:
        async with renewing(interaction) as answer:
            text, view = await leaf(interaction, self.book, self.number)
            await answer.interaction.edit_original_response(content=text, view=view)


async def leaf(
    interaction: Interaction, book: PagedList, number: int = 0
) -> tuple[str, discord.ui.View | None]:
    """Return one page as of now, with buttons if there are several."""
    found = await _PAGES[book](interaction, number)
    if found.number == 0 and not found.more:
        return found.text, None
    view = discord.ui.View(timeout=None)
    before, after = max(found.number - 1, 0), found.number + 1
    view.add_item(ListPageButton(book, "previous", before, disabled=found.number == 0))
    view.add_item(ListPageButton(book, "next", after, disabled=not found.more))
    return found.text, view


async def _boards(interaction: Interaction, number: int) -> ListPage:
    door = context_of(interaction)
    now = door.clock.now()
    found = await visible_boards(door.store, await viewer_of(interaction))
    if not found:
        return ListPage(
            "There are no boards yet. Create one with `/leaderboard create`.", 0, more=False
        )
    boards = sorted(found, key=lambda each: (not each.is_open(now), each.name))
    people = await door.store.statistics.participants()
    last = (len(boards) - 1) // _BOARDS
    number = min(number, last)
    shown = boards[number * _BOARDS :][:_BOARDS]

    def lines(width: int) -> Iterator[str]:
        for board in shown:
            yield board_line(board, people.get(board.id, 0), width, is_open=board.is_open(now))

    return ListPage(_fitting(lines), number, more=number < last)


def board_line(board: Board, people: int, width: int, *, is_open: bool) -> str:
    """Return a board's GPU types, deadline in the reader's time zone, and participants."""
    gpus = line(", ".join(board.gpus), min(width, 60))
    season = "no deadline" if board.deadline is None else f"until {moment(board.deadline)}"
    crowd = "nobody yet" if people == 0 else "1 person" if people == 1 else f"{people} people"
    mark = "🟢" if is_open else "⚪"
    return f"{mark} **{line(board.name, width)}** on {gpus}, {season}, {crowd}"


async def _audit(interaction: Interaction, number: int) -> ListPage:
    require(interaction, ADMIN)
    page = await audit_page(context_of(interaction).store, number, _DECISIONS)
    if not page.decisions:
        return ListPage("There are no earlier entries.", number, more=False)

    def lines(width: int) -> Iterator[str]:
        return (decision_line(each, width) for each in page.decisions)

    return ListPage(_fitting(lines), number, page.more)


def decision_line(decision: NamedAuditEntry, width: int) -> str:
    """Return who did what, when and why; Discord users can be clicked but are not notified."""
    row = decision.entry
    account = _ACCOUNT.match(row.subject)
    subject = line(row.subject, width)
    if account is not None:
        subject = mention(person(int(account["user"])))
    who = line(decision.actor_name or "Podium", min(width, 32))
    why = f": {line(row.reason, width)}" if row.reason else ""
    return f"<t:{int(row.at.timestamp())}:f> **{who}** {line(row.action)} {subject}{why}"


def _fitting(lines: Callable[[int], Iterator[str]]) -> str:
    """Return the lines with as much of the users' texts as fits into a message."""
    pages = ["\n".join(lines(width)) for width in _WIDTHS]
    return next((page for page in pages if len(page) <= MOST), pages[-1][:MOST])


_PAGES: dict[PagedList, Callable[[Interaction, int], Awaitable[ListPage]]] = {
    PagedList.BOARDS: _boards,
    PagedList.AUDIT: _audit,
}


MOST_AT_ONCE = 5
"""How many GPU types' standings are shown at once."""


class PageDirection(StrEnum):
    """Which way a button leads."""

    PREVIOUS = "previous"
    """To the better ranks."""
    NEXT = "next"
    """To the lower ranks."""


class PageButton(
    discord.ui.DynamicItem[discord.ui.Button[Any]],
    template=r"podium:page:(?P<turn>previous|next):(?P<board>[0-9]{1,18}):(?P<page>[0-9]{1,6}):"
    r"(?P<gpu>.{1,32})",
):
    """Shows the previous or next page; the first page is 0."""

    def __init__(
        self, turn: PageDirection, board: BoardId, gpu: str, page: int, *, disabled: bool = False
    ) -> None:
        custom_id = f"podium:page:{turn}:{board}:{page}:{gpu}"
        label = turn.value.capitalize()
        super().__init__(discord.ui.Button(label=label, custom_id=custom_id, disabled=disabled))
        self.board = board
        self.gpu = gpu
        self.page = page

    @override
    @classmethod
    async def from_custom_id(
        cls,
        interaction: Interaction,
        item: discord.ui.Item[Any],
        match: re.Match[str],
    ) -> Self:
        del interaction, item
        board = BoardId(int(match["board"]))
        return cls(PageDirection(match["turn"]), board, match["gpu"], int(match["page"]))

    @override
    async def callback(self, interaction: Interaction) -> None:
        async with renewing(interaction) as answer:
            found = await _season(answer, self.board, self.gpu)
            pages = standings_pages(found.leaderboard)
            page = min(self.page, len(pages) - 1)
            await answer.renew(pages[page], page_view(found, page, len(pages)))


class StandingsGpuSelect(
    discord.ui.DynamicItem[discord.ui.Select[Any]],
    template=r"podium:gpus:(?P<board>[0-9]{1,18}):(?P<number>[0-9])",
):
    """Shows the board's standings on another GPU type, or on several at once."""

    def __init__(
        self, board: BoardId, number: int, gpus: Sequence[str], chosen: Collection[str] = ()
    ) -> None:
        menu: discord.ui.Select[Any] = discord.ui.Select(
            custom_id=f"podium:gpus:{board}:{number}",
            placeholder=span(gpus),
            max_values=min(MOST_AT_ONCE, len(gpus)),
            options=[
                discord.SelectOption(label=gpu, value=gpu, default=gpu in chosen) for gpu in gpus
            ],
        )
        super().__init__(menu)
        self.board = board

    @override
    @classmethod
    async def from_custom_id(
        cls,
        interaction: Interaction,
        item: discord.ui.Item[Any],
        match: re.Match[str],
    ) -> Self:
        del interaction
        options = item.options if isinstance(item, discord.ui.Select) else []
        board = BoardId(int(match["board"]))
        return cls(board, int(match["number"]), [option.value for option in options])

    @override
    async def callback(self, interaction: Interaction) -> None:
        async with renewing(interaction) as answer:
            found = [await _season(answer, self.board, gpu) for gpu in self.item.values]
            report, view = first_page(found[0]) if len(found) == 1 else beside(found)
            await answer.renew(report, view, pictures=True)


async def _season(answer: InteractionReply, board: BoardId, gpu: str) -> Season:
    door = context_of(answer.interaction)
    viewer = await viewer_of(answer.interaction)
    found = await visible_board(door.store, viewer, board)
    return await season(door.store, door.clock, viewer, found.name, gpu=gpu)


def first_page(found: Season) -> tuple[Report, discord.ui.View]:
    """Return the best ranks with the season's plot, and the controls."""
    pages = standings_pages(found.leaderboard)
    chart = season_chart(found)
    blocks = (*pages[0].blocks, *(() if chart is None else (chart,)))
    return Report(pages[0].title, blocks), page_view(found, 0, len(pages))


def beside(found: Sequence[Season]) -> tuple[Report, discord.ui.View]:
    """Return the best ranks on several GPU types, and the menu."""
    view = discord.ui.View(timeout=None)
    _add_menus(view, found[0], [each.leaderboard.gpu for each in found])
    return standings_side_by_side([each.leaderboard for each in found]), view


def _add_menus(view: discord.ui.View, found: Season, chosen: Collection[str]) -> None:
    board = found.leaderboard.board
    if len(board.gpus) > 1:
        for number, gpus in enumerate(in_menus(board.gpus)):
            view.add_item(StandingsGpuSelect(board.id, number, gpus, chosen))


def page_view(found: Season, page: int, pages: int) -> discord.ui.View:
    """Return buttons for several pages and a menu for several GPU types."""
    view = discord.ui.View(timeout=None)
    board, gpu = found.leaderboard.board, found.leaderboard.gpu
    _add_menus(view, found, (gpu,))
    if pages > 1:
        before, after = max(page - 1, 0), page + 1
        view.add_item(PageButton(PageDirection.PREVIOUS, board.id, gpu, before, disabled=page == 0))
        view.add_item(PageButton(PageDirection.NEXT, board.id, gpu, after, disabled=after == pages))
    return view
