"""Lists are cut to what Discord takes, and a comma list of GPU types is read leniently."""

import pytest

from bot.discord.options import choices, gpu_names, menu_label, split_into_menus


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
    assert menu_label(["A", "B", "C"]) == "GPU types: A to C"
    assert menu_label(["A"]) == "GPU types: A"
