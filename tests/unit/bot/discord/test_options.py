"""Lists are cut to what Discord takes, and a comma list of GPU types is read leniently."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import AsyncMock

import pytest

from bot.discord import options
from bot.discord.context import DiscordContext
from bot.discord.options import choices, gpu_menu, gpu_names, split_into_menus
from bot.domain.board import TaskVersion
from bot.domain.ids import SubmissionId, TaskVersionId
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


async def test_a_typed_number_is_read_once_for_all_admins(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await place.submit()
    calls: list[int] = []
    several = place.store.submissions.several

    async def counted(numbers: Sequence[SubmissionId]) -> tuple[Submission, ...]:
        calls.append(len(numbers))
        return await several(numbers)

    monkeypatch.setattr(place.store.submissions, "several", counted)
    monkeypatch.setattr(options, "has_role", lambda *_: True)
    context = DiscordContext(place.store, place.clock)
    admins = [command_used(context, number) for number in range(1, 9)]
    typed = [options.any_submissions(each, str(made.id)) for each in admins]
    found = await asyncio.gather(*typed)
    assert calls == [11]
    (choice,) = found[0]
    assert choice.value == made.id
    assert choice.name.startswith(f"#{made.id} {made.file_name}, ranked, by ")
    assert all(each == found[0] for each in found)


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
