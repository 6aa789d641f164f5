"""The standings of a board in pages, with buttons and menus that survive a restart.

Each of them has everything it needs in its id, so it works as long as the message exists.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, Self

import discord
from typing_extensions import override

from bot.discord.context import Interaction, context_of
from bot.discord.interaction_claims import replacing, replying
from bot.discord.options import MOST_CHOICES, MOST_MENUS, gpu_menu, offered_values, split_into_menus
from bot.discord.roles import viewer_of
from bot.domain.ids import BoardId, PersonId
from bot.domain.leaderboard import Season
from bot.reports import short
from bot.reports.blocks import Report, Text
from bot.reports.charts import season_chart
from bot.reports.confirmations import short_finals_report
from bot.services import lookup, standings

MAX_GPUS_AT_ONCE = 5
"""The most GPU types whose standings are shown at once."""


class PageDirection(StrEnum):
    """Which way a button leads."""

    PREVIOUS = "previous"
    """To the better ranks."""
    NEXT = "next"
    """To the lower ranks."""
    MINE = "mine"
    """To the rank of the person who presses it."""
    FINAL = "final"
    """To the table of the final."""


_LABELS = {
    PageDirection.PREVIOUS: "Previous",
    PageDirection.NEXT: "Next",
    PageDirection.MINE: "My place",
    PageDirection.FINAL: "Final",
}


class PageButton(
    discord.ui.DynamicItem[discord.ui.Button[Any]],
    template=r"podium:page:(?P<direction>previous|next|mine|final):(?P<board>[0-9]{1,18}):"
    r"(?P<page>[0-9]{1,6}):(?P<gpu>.{1,32})",
):
    """Shows the previous or next page, the viewer's own, or the final; the first page is 0."""

    def __init__(
        self,
        direction: PageDirection,
        board: BoardId,
        gpu: str,
        page: int,
        *,
        disabled: bool = False,
    ) -> None:
        custom_id = f"podium:page:{direction}:{board}:{page}:{gpu}"
        label = _LABELS[direction]
        super().__init__(discord.ui.Button(label=label, custom_id=custom_id, disabled=disabled))
        self.direction = direction
        self.board = board
        self.gpu = gpu
        self.page = page

    @override
    @classmethod
    async def from_custom_id(
        cls, interaction: Interaction, item: discord.ui.Item[Any], match: re.Match[str]
    ) -> Self:
        del interaction, item
        board = BoardId(int(match["board"]))
        return cls(PageDirection(match["direction"]), board, match["gpu"], int(match["page"]))

    @override
    async def callback(self, interaction: Interaction) -> None:
        if self.direction is PageDirection.FINAL:
            async with replying(interaction) as answer:
                found = (await _season(interaction, self.board, self.gpu))[0].leaderboard
                ended = () if found.final is None else (found.final,)
                await answer.show(short_finals_report(found.board.name, ended))
            return
        async with replacing(interaction) as answer:
            season, person = await _season(interaction, self.board, self.gpu)
            page: int | None = self.page
            if self.direction is PageDirection.MINE:
                page = short.page_of(season.leaderboard, person)
            note = f"you have no place on {self.gpu} yet" if page is None else ""
            await answer.replace(*_page(season, person, page or 0, note))


class PageSelect(
    discord.ui.DynamicItem[discord.ui.Select[Any]],
    template=r"podium:places:(?P<board>[0-9]{1,18}):(?P<gpu>.{1,32})",
):
    """Shows the page that is chosen by its places."""

    def __init__(self, board: BoardId, gpu: str, names: Sequence[str], page: int) -> None:
        menu: discord.ui.Select[Any] = discord.ui.Select(
            custom_id=f"podium:places:{board}:{gpu}",
            placeholder="Jump to a place",
            options=[
                discord.SelectOption(label=names[n].capitalize(), value=str(n), default=n == page)
                for n in menu_pages(len(names), page)
            ],
        )
        super().__init__(menu)
        self.board = board
        self.gpu = gpu

    @override
    @classmethod
    async def from_custom_id(
        cls, interaction: Interaction, item: discord.ui.Item[Any], match: re.Match[str]
    ) -> Self:
        del interaction, item
        return cls(BoardId(int(match["board"])), match["gpu"], ("?",), 0)

    @override
    async def callback(self, interaction: Interaction) -> None:
        async with replacing(interaction) as answer:
            season, person = await _season(interaction, self.board, self.gpu)
            await answer.replace(*_page(season, person, int(self.item.values[0])))


def menu_pages(pages: int, page: int) -> list[int]:
    """Return the pages that a menu offers: all, or the current one and others at equal steps."""
    if pages <= MOST_CHOICES:
        return list(range(pages))
    steps = MOST_CHOICES - 2
    spread = {round(number * (pages - 1) / steps) for number in range(steps + 1)}
    return sorted(spread | {page})


def _page(
    season: Season, person: PersonId, page: int, note: str = ""
) -> tuple[Report, discord.ui.View]:
    """Return a page with its buttons and menus; the note comes first."""
    pages = short.standings_pages(season.leaderboard, person)
    page = min(page, len(pages) - 1)
    notes = (Text(note),) if note else ()
    report = replace(pages[page], blocks=(*notes, *pages[page].blocks))
    return report, page_view(season, page)


class StandingsGpuSelect(
    discord.ui.DynamicItem[discord.ui.Select[Any]],
    template=r"podium:gpus:(?P<board>[0-9]{1,18}):(?P<number>[0-9])",
):
    """Shows the board's standings on another GPU type, or on several at once."""

    def __init__(
        self, board: BoardId, number: int, gpus: Sequence[str], chosen: Collection[str] = ()
    ) -> None:
        most = min(MAX_GPUS_AT_ONCE, len(gpus))
        super().__init__(gpu_menu(f"podium:gpus:{board}:{number}", gpus, chosen, most=most))
        self.board = board

    @override
    @classmethod
    async def from_custom_id(
        cls, interaction: Interaction, item: discord.ui.Item[Any], match: re.Match[str]
    ) -> Self:
        del interaction
        return cls(BoardId(int(match["board"])), int(match["number"]), offered_values(item))

    @override
    async def callback(self, interaction: Interaction) -> None:
        async with replacing(interaction) as answer:
            found = [await _season(interaction, self.board, gpu) for gpu in self.item.values]
            seasons = [season for season, _ in found]
            await answer.replace(*standings_view(seasons, found[0][1]), pictures=True)


async def _season(interaction: Interaction, board: BoardId, gpu: str) -> tuple[Season, PersonId]:
    context = context_of(interaction)
    viewer = await viewer_of(interaction)
    name = (await lookup.visible_board(context.store, viewer, board)).name
    season = await standings.season(context.store, context.clock, viewer, name, gpu=gpu)
    return season, viewer.person


def standings_view(seasons: Sequence[Season], person: PersonId) -> tuple[Report, discord.ui.View]:
    """Return the best ranks on one GPU type with its plot, or on several."""
    if len(seasons) == 1:
        return first_page(seasons[0], person)
    return several_gpus_page(seasons, person)


def first_page(season: Season, person: PersonId) -> tuple[Report, discord.ui.View]:
    """Return the best ranks with the season's plot, and the buttons and menus."""
    pages = short.standings_pages(season.leaderboard, person)
    chart = season_chart(season)
    blocks = (*pages[0].blocks, *(() if chart is None else (chart,)))
    return Report(pages[0].title, blocks), page_view(season, 0)


def several_gpus_page(
    seasons: Sequence[Season], person: PersonId
) -> tuple[Report, discord.ui.View]:
    """Return the best ranks on several GPU types, and the menus to choose others."""
    view = discord.ui.View(timeout=None)
    for menu in _gpu_menus(seasons[0], [each.leaderboard.gpu for each in seasons]):
        view.add_item(menu)
    return short.standings_side_by_side([each.leaderboard for each in seasons], person), view


def _gpu_menus(season: Season, chosen: Collection[str]) -> Iterator[StandingsGpuSelect]:
    board = season.leaderboard.board
    if len(board.gpus) > 1:
        for number, gpus in enumerate(split_into_menus(board.gpus)):
            yield StandingsGpuSelect(board.id, number, gpus, chosen)


def page_view(season: Season, page: int) -> discord.ui.View:
    """Return menus of GPU types and of places, and the buttons, as far as there are several."""
    view = discord.ui.View(timeout=None)
    board, gpu = season.leaderboard.board, season.leaderboard.gpu
    menus = list(_gpu_menus(season, (gpu,)))
    for menu in menus:
        view.add_item(menu)
    names = short.page_names(season.leaderboard)
    if len(names) > 1:
        if len(menus) < MOST_MENUS:
            view.add_item(PageSelect(board.id, gpu, names, page))
        before, after = max(page - 1, 0), page + 1
        end = after == len(names)
        view.add_item(PageButton(PageDirection.PREVIOUS, board.id, gpu, before, disabled=page == 0))
        view.add_item(PageButton(PageDirection.NEXT, board.id, gpu, after, disabled=end))
        view.add_item(PageButton(PageDirection.MINE, board.id, gpu, 0))
    final = season.leaderboard.final
    if final is not None and final.rows is not None:
        view.add_item(PageButton(PageDirection.FINAL, board.id, gpu, 0))
    return view
