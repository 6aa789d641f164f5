"""Any number of GPU types can be chosen of, and a question goes on once."""

import pytest

from bot.discord.context import DiscordContext
from bot.discord.options import GpuMenus, Question
from bot.discord.responses import InteractionReply
from bot.domain.errors import UserError
from tests.doubles.asked import asked, said
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore


def context() -> DiscordContext:
    clock = ManualClock()
    return DiscordContext(MemoryStore(clock), clock)


async def nothing(answer: InteractionReply, chosen: tuple[str, ...]) -> None:
    raise AssertionError


def kinds(count: int) -> list[str]:
    return [f"G{number:03}" for number in range(count)]


@pytest.mark.parametrize(
    ("count", "menus", "left_out"), [(1, 1, 0), (25, 1, 0), (26, 2, 0), (60, 3, 0), (130, 4, 30)]
)
async def test_gpu_types_are_spread_over_menus(count: int, menus: int, left_out: int) -> None:
    view = GpuMenus(kinds(count), nothing)
    assert len(view.menus) == menus
    assert all(len(menu.options) <= 25 for menu in view.menus)
    assert len(view.left_out) == left_out
    assert len(view.to_components()) == menus + 1
    assert ("with the option `gpus`" in view.with_left_out("Which?")) == bool(left_out)


async def test_what_is_chosen_in_all_menus_counts() -> None:
    view = GpuMenus(kinds(60), nothing)
    view.menus[0]._values = ["G001"]  # as a click leaves it; the library has no setter
    view.menus[2]._values = ["G055", "G059"]
    assert view.chosen() == ("G001", "G055", "G059")


async def test_the_types_that_the_task_names_are_chosen_until_they_are_changed() -> None:
    view = GpuMenus(kinds(30), nothing, selected=("G002", "G028", "B200"))
    assert view.chosen() == ("G002", "G028")
    chosen = [each.value for menu in view.menus for each in menu.options if each.default]
    assert chosen == ["G002", "G028"]
    await view.menus[0].callback(asked(context()))  # everything was taken out of it
    assert view.chosen() == ("G028",)


async def test_nothing_chosen_is_refused() -> None:
    with pytest.raises(UserError, match="choose at least one"):
        GpuMenus(kinds(3), nothing).chosen()


async def test_a_question_goes_on_once() -> None:
    went_on: list[tuple[str, ...]] = []

    async def note(answer: InteractionReply, chosen: tuple[str, ...]) -> None:
        went_on.append(chosen)

    view = Question(note, "Yes")
    clicks = [asked(context(), number) for number in range(2)]
    for each in clicks:
        await view.proceed(each)
    assert went_on == [()]
    told = ["⚠️ This was already answered; run the command again"]
    assert [said(each) for each in clicks] == [[], told]
