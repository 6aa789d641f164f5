"""Lists are cut to what Discord takes, and a comma list of GPU types is read leniently."""

import asyncio
from collections.abc import Sequence

import pytest

from bot.discord import options
from bot.discord.context import DiscordContext
from bot.discord.options import choices, gpu_menu, gpu_names, split_into_menus
from bot.domain.ids import SubmissionId
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
