"""What leads on from a page of standings fits a message, and carries all it needs in its id."""

from dataclasses import replace
from unittest.mock import Mock

import discord
import pytest

from bot.discord.pagination import (
    PageButton,
    PageDirection,
    StandingsGpuSelect,
    page_view,
    several_gpus_page,
)
from bot.reports.blocks import Text
from tests.doubles.place import Place


def found(place: Place, gpus: tuple[str, ...], gpu: str) -> Mock:
    season = Mock()
    season.leaderboard.board = replace(place.board, gpus=gpus)
    season.leaderboard.gpu = gpu
    return season


@pytest.mark.parametrize(("count", "menus"), [(1, 0), (2, 1), (60, 3), (130, 4)])
async def test_menus_and_buttons_fit_a_message(place: Place, count: int, menus: int) -> None:
    kinds = tuple(f"{number:03}{'G' * 29}" for number in range(count))
    view = page_view(found(place, kinds, kinds[0]), page=1, pages=3)
    rows = view.to_components()
    assert len(rows) == menus + 1 <= 5
    parts = [part for row in rows for part in row["components"]]
    assert all(len(part["custom_id"]) <= 100 for part in parts)
    assert all(len(part.get("options", ())) <= 25 for part in parts)


async def test_one_page_of_one_gpu_type_needs_nothing(place: Place) -> None:
    assert not page_view(found(place, ("CPU",), "CPU"), page=0, pages=1).children


async def test_the_ends_lead_no_further(place: Place) -> None:
    for page, disabled in ((0, [True, False]), (1, [False, False]), (2, [False, True])):
        view = page_view(found(place, ("CPU",), "CPU"), page, pages=3)
        (row,) = view.to_components()
        assert [part["disabled"] for part in row["components"]] == disabled


async def test_a_button_and_a_menu_are_known_again_by_their_ids(place: Place) -> None:
    button = PageButton(PageDirection.NEXT, place.board.id, "A100:8", 7)
    match = PageButton.__discord_ui_compiled_template__.fullmatch(button.custom_id)
    assert match is not None
    again = await PageButton.from_custom_id(Mock(spec=discord.Interaction), button.item, match)
    assert (again.custom_id, again.page, again.gpu) == (button.custom_id, 7, "A100:8")
    menu = StandingsGpuSelect(place.board.id, 2, ["CPU", "H100"], ("H100",))
    match = StandingsGpuSelect.__discord_ui_compiled_template__.fullmatch(menu.custom_id)
    assert match is not None
    known = await StandingsGpuSelect.from_custom_id(
        Mock(spec=discord.Interaction), menu.item, match
    )
    assert [option.value for option in known.item.options] == ["CPU", "H100"]


async def test_a_menu_takes_several_gpu_types_at_once(place: Place) -> None:
    kinds = ("CPU", "H100", "T4")
    seasons = []
    for gpu in kinds[:2]:
        season = found(place, kinds, gpu)
        season.leaderboard.entries, season.leaderboard.version = (), 1
        seasons.append(season)
    report, view = several_gpus_page(seasons)
    assert report.title == f"{place.board.name} on CPU, H100"
    words = [block.text for block in report.blocks if isinstance(block, Text)]
    assert words == [
        f"{place.board.name} on CPU", "no ranked submissions yet",
        f"{place.board.name} on H100", "no ranked submissions yet",
    ]  # fmt: skip
    ((menu,),) = (row["components"] for row in view.to_components())
    assert menu["max_values"] == 3
    assert [option["value"] for option in menu["options"] if option["default"]] == ["CPU", "H100"]
