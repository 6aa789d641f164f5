"""The pages of a leaderboard: buttons and menus that carry what they need in their own id.

So they work after any restart, for as long as the message stands.
"""

import re
from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Any, Self

import discord
from typing_extensions import override

from bot.discord.context import door_of
from bot.discord.options import in_menus, span
from bot.discord.responses import Answer, renewing
from bot.discord.viewers import viewer_of
from bot.domain.ids import BoardId
from bot.domain.leaderboard import Season
from bot.reports.blocks import Report
from bot.reports.season import season_chart
from bot.reports.standings import standings_beside, standings_pages
from bot.services.lookup import seen_board
from bot.services.season import season

MOST_AT_ONCE = 5
"""GPU types whose standings are shown at once."""


class Turn(StrEnum):
    """Which way a button leads."""

    PREVIOUS = "previous"
    """To the better ranks."""
    NEXT = "next"
    """To the ranks beneath."""


class PageButton(
    discord.ui.DynamicItem[discord.ui.Button[Any]],
    template=r"podium:page:(?P<turn>previous|next):(?P<board>[0-9]{1,18}):(?P<page>[0-9]{1,6}):"
    r"(?P<gpu>.{1,32})",
):
    """Leads to the page before or after; the first page is 0."""

    def __init__(
        self, turn: Turn, board: BoardId, gpu: str, page: int, *, disabled: bool = False
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
        interaction: discord.Interaction[Any],
        item: discord.ui.Item[Any],
        match: re.Match[str],
    ) -> Self:
        del interaction, item
        board = BoardId(int(match["board"]))
        return cls(Turn(match["turn"]), board, match["gpu"], int(match["page"]))

    @override
    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        async with renewing(interaction) as answer:
            found = await _season(answer, self.board, self.gpu)
            pages = standings_pages(found.leaderboard)
            page = min(self.page, len(pages) - 1)
            await answer.renew(pages[page], page_view(found, page, len(pages)))


class GpuMenu(
    discord.ui.DynamicItem[discord.ui.Select[Any]],
    template=r"podium:gpus:(?P<board>[0-9]{1,18}):(?P<number>[0-9])",
):
    """Leads to the board's standings on another GPU type, or on several at once."""

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
        interaction: discord.Interaction[Any],
        item: discord.ui.Item[Any],
        match: re.Match[str],
    ) -> Self:
        del interaction
        options = item.options if isinstance(item, discord.ui.Select) else []
        board = BoardId(int(match["board"]))
        return cls(board, int(match["number"]), [option.value for option in options])

    @override
    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        async with renewing(interaction) as answer:
            found = [await _season(answer, self.board, gpu) for gpu in self.item.values]
            report, view = first_page(found[0]) if len(found) == 1 else beside(found)
            await answer.renew(report, view, pictures=True)


async def _season(answer: Answer, board: BoardId, gpu: str) -> Season:
    door = door_of(answer.interaction)
    viewer = await viewer_of(answer.interaction)
    found = await seen_board(door.store, viewer, board)
    return await season(door.store, door.clock, viewer, found.name, gpu=gpu)


def first_page(found: Season) -> tuple[Report, discord.ui.View]:
    """The best ranks with the season's plot, and what leads on from there."""
    pages = standings_pages(found.leaderboard)
    chart = season_chart(found)
    blocks = (*pages[0].blocks, *(() if chart is None else (chart,)))
    return Report(pages[0].title, blocks), page_view(found, 0, len(pages))


def beside(found: Sequence[Season]) -> tuple[Report, discord.ui.View]:
    """The best ranks on several GPU types, and the menu."""
    view = discord.ui.View(timeout=None)
    _add_menus(view, found[0], [each.leaderboard.gpu for each in found])
    return standings_beside([each.leaderboard for each in found]), view


def _add_menus(view: discord.ui.View, found: Season, chosen: Collection[str]) -> None:
    board = found.leaderboard.board
    if len(board.gpus) > 1:
        for number, gpus in enumerate(in_menus(board.gpus)):
            view.add_item(GpuMenu(board.id, number, gpus, chosen))


def page_view(found: Season, page: int, pages: int) -> discord.ui.View:
    """Buttons where there are several pages, a menu where there are several GPU types."""
    view = discord.ui.View(timeout=None)
    board, gpu = found.leaderboard.board, found.leaderboard.gpu
    _add_menus(view, found, (gpu,))
    if pages > 1:
        before, after = max(page - 1, 0), page + 1
        view.add_item(PageButton(Turn.PREVIOUS, board.id, gpu, before, disabled=page == 0))
        view.add_item(PageButton(Turn.NEXT, board.id, gpu, after, disabled=after == pages))
    return view
