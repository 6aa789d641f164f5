"""Buttons and menus of standings fit a message, and have all of their data in their ids."""

from dataclasses import replace
from itertools import pairwise
from unittest.mock import Mock

import discord
import pytest

from bot.discord.standings_view import (
    PageButton,
    PageDirection,
    PageSelect,
    StandingsGpuSelect,
    menu_pages,
    page_view,
    several_gpus_page,
)
from bot.domain.leaderboard import BoardStandings, Season
from bot.reports.blocks import Text
from tests.doubles.factories import NOON, make_score, rank
from tests.doubles.place import Place


def found(place: Place, gpus: tuple[str, ...], gpu: str, people: int = 0) -> Season:
    entries = rank([make_score(number, 100.0 * number) for number in range(1, people + 1)])
    board = replace(place.board, gpus=gpus)
    return Season(BoardStandings(board, 1, gpu, entries, ()), (), NOON, 0)


@pytest.mark.parametrize(("count", "rows"), [(1, 2), (2, 3), (60, 5), (130, 5)])
async def test_menus_and_buttons_fit_a_message(place: Place, count: int, rows: int) -> None:
    kinds = tuple(f"{number:03}{'G' * 29}" for number in range(count))
    shown = page_view(found(place, kinds, kinds[0], 400), page=1).to_components()
    assert len(shown) == rows <= 5
    parts = [part for row in shown for part in row["components"]]
    assert all(len(part["custom_id"]) <= 100 for part in parts)
    assert all(len(part.get("options", ())) <= 25 for part in parts)


async def test_a_single_page_of_one_gpu_type_has_no_buttons(place: Place) -> None:
    assert not page_view(found(place, ("CPU",), "CPU", 10), page=0).children


async def test_the_first_and_last_page_lead_no_further_and_my_place_is_always_offered(
    place: Place,
) -> None:
    for page, disabled in ((0, [True, False]), (1, [False, False]), (2, [False, True])):
        view = page_view(found(place, ("CPU",), "CPU", 30), page)
        menu, row = view.to_components()
        assert [part["disabled"] for part in row["components"]] == [*disabled, False]
        assert row["components"][2]["label"] == "My place"
        (options,) = (part["options"] for part in menu["components"])
        assert [each["label"] for each in options] == [
            "Places 1 to 10",
            "Places 11 to 20",
            "Places 21 to 30",
        ]
        assert [each["default"] for each in options] == [number == page for number in range(3)]


@pytest.mark.parametrize("page", [0, 7, 499])
def test_of_many_pages_a_menu_offers_the_ends_the_current_one_and_equal_steps(page: int) -> None:
    offered = menu_pages(500, page)
    assert len(offered) <= 25
    assert offered == sorted(offered)
    assert {0, page, 499} <= set(offered)
    assert max(after - before for before, after in pairwise(offered)) <= 22


async def test_buttons_and_menus_are_recreated_from_their_ids(place: Place) -> None:
    for direction in PageDirection:
        button = PageButton(direction, place.board.id, "A100:8", 7)
        match = PageButton.__discord_ui_compiled_template__.fullmatch(button.custom_id)
        assert match is not None
        again = await PageButton.from_custom_id(Mock(spec=discord.Interaction), button.item, match)
        assert (again.custom_id, again.page, again.gpu) == (button.custom_id, 7, "A100:8")
        assert again.direction is direction
    places = PageSelect(place.board.id, "A100:8", ["places 1 to 10"], 0)
    match = PageSelect.__discord_ui_compiled_template__.fullmatch(places.custom_id)
    assert match is not None
    same = await PageSelect.from_custom_id(Mock(spec=discord.Interaction), places.item, match)
    assert (same.board, same.gpu) == (place.board.id, "A100:8")
    menu = StandingsGpuSelect(place.board.id, 2, ["CPU", "H100"], ("H100",))
    match = StandingsGpuSelect.__discord_ui_compiled_template__.fullmatch(menu.custom_id)
    assert match is not None
    known = await StandingsGpuSelect.from_custom_id(
        Mock(spec=discord.Interaction), menu.item, match
    )
    assert [option.value for option in known.item.options] == ["CPU", "H100"]


async def test_a_menu_takes_several_gpu_types_at_once(place: Place) -> None:
    kinds = ("CPU", "H100", "T4")
    seasons = [found(place, kinds, gpu) for gpu in kinds[:2]]
    report, view = several_gpus_page(seasons, place.board.creator)
    assert report.title == f"{place.board.name} on CPU, H100"
    words = [block.text for block in report.blocks if isinstance(block, Text)]
    assert words == [
        "CPU", "no ranked submissions yet",
        "H100", "no ranked submissions yet",
    ]  # fmt: skip
    ((menu,),) = (row["components"] for row in view.to_components())
    assert menu["max_values"] == 3
    assert [option["value"] for option in menu["options"] if option["default"]] == ["CPU", "H100"]
