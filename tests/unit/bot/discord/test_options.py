"""Lists are cut to what Discord takes, and a comma list of GPU types is read leniently."""

import asyncio
from dataclasses import replace
from unittest.mock import AsyncMock

import pytest

from bot.discord import options
from bot.discord.context import DiscordContext
from bot.discord.options import choices, gpu_menu, gpu_names, split_into_menus
from bot.domain.board import TaskVersion
from bot.domain.ids import TaskVersionId
from bot.domain.submission import Submission
from tests.doubles.interaction import command_used
from tests.doubles.place import Place


def test_at_most_25_choices_of_at_most_100_letters_are_offered() -> None:
    found = choices(["", "x" * 101, *(f"board-{number}" for number in range(40))])
    assert len(found) == 25
    assert found[0].value == "board-0"


@pytest.mark.parametrize(
    ("text", "names"),
    [(None, ()), (" ", ()), ("CPU", ("CPU",)), (" CPU ,, H100,", ("CPU", "H100"))],
)
def test_a_comma_list_becomes_names(text: str | None, names: tuple[str, ...]) -> None:
    assert gpu_names(text) == names


def test_menus_take_25_each_and_four_fit() -> None:
    kinds = [f"G{number}" for number in range(130)]
    parts = split_into_menus(kinds)
    assert [len(part) for part in parts] == [25] * 4
    assert [kind for part in parts for kind in part] == kinds[:100]
    assert split_into_menus([]) == []


def test_a_menu_says_what_it_holds() -> None:
    assert gpu_menu("x", ["A", "B", "C"], most=3).placeholder == "GPU types: A to C"
    assert gpu_menu("x", ["A"], most=1).placeholder == "GPU types: A"


async def test_the_newest_submissions_are_read_once_for_all_admins_whatever_they_type(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [await place.submit() for _ in range(12)]
    calls: list[int] = []
    newest = place.store.submissions.newest

    async def counted(limit: int) -> tuple[Submission, ...]:
        calls.append(limit)
        return await newest(limit)

    monkeypatch.setattr(place.store.submissions, "newest", counted)
    monkeypatch.setattr(options, "has_role", lambda *_: True)
    context = DiscordContext(place.store, place.clock)
    admins = [command_used(context, number) for number in range(1, 9)]
    typed = ["", "1", str(made[-1].id), "x", "9" * 30, "-1", "\u0661", "2"]
    asked = zip(admins, typed, strict=True)
    found = await asyncio.gather(*(options.any_submissions(*each) for each in asked))
    assert len(calls) == 1
    assert [each.value for each in found[0]] == [each.id for each in reversed(made)]
    (choice,) = found[2]
    assert choice.value == made[-1].id
    assert choice.name.startswith(f"#{made[-1].id} {made[-1].file_name}, ranked, by ")
    assert [bool(each) for each in found[3:7]] == [False] * 4


async def test_languages_are_read_once_for_everyone_and_only_of_visible_boards(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    version = place.store.boards.version

    async def counted(number: TaskVersionId) -> TaskVersion:
        calls.append(number)
        found = await version(number)
        assert found is not None
        templates = {"templates": {"python": "x = 1\n", "triton": "x = 2\n"}}
        return replace(found, definition=found.definition.model_copy(update=templates))

    monkeypatch.setattr(place.store.boards, "version", counted)
    context = DiscordContext(place.store, place.clock)
    shown = [place.board]
    monkeypatch.setattr(options, "_visible", AsyncMock(side_effect=lambda _: shown))
    people = [command_used(context, number) for number in range(1, 9)]
    for each in people:
        each.namespace.leaderboard_name = place.board.name
    found = await asyncio.gather(*(options.languages(each, "P") for each in people))
    assert {tuple(choice.value for choice in each) for each in found} == {("python",)}
    assert calls == [place.board.task_version]
    assert await options.languages(people[0], "cu") == []
    shown.clear()
    assert await options.languages(people[0], "") == []
    assert len(calls) == 1


def test_the_number_that_is_typed_whole_comes_first() -> None:
    names = {112: "#112", 11: "#11", 1: "#1", 2: "#2"}
    assert [each.value for each in options._numbered_choices(names, "1")] == [1, 112, 11]
