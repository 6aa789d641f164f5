"""Names that look alike have one skeleton, and are told apart by handles."""

import pytest

from bot.domain.names import cut_name, is_ambiguous, skeleton, split_handle, with_handle


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ada", "\N{CYRILLIC CAPITAL LETTER A}d\N{CYRILLIC SMALL LETTER A}"),
        ("scope", "\u0455\u0441\u043e\u0440\u0435"),  # Cyrillic: the example of UTS 39
        ("Alice", "AIice"),
        ("Alice", "A1ice"),
        ("Tim", "Tirn"),
        ("B0B", "BOB"),
        ("Ada", "A\N{ZERO WIDTH SPACE}da"),
        ("Ada", "Ada\N{HANGUL FILLER}"),
        ("Ada", "\N{RIGHT-TO-LEFT OVERRIDE}Ada"),
        ("Ada L", " Ada\N{NO-BREAK SPACE}  L"),
        ("Ada", "\uff21\uff44\uff41"),  # fullwidth
        ("Ada", "\U0001d4d0\U0001d4ed\U0001d4ea"),  # mathematical
        ("ADA", "ada"),
        ("Mallory", "mallory"),
        ("\u00c5sa", "A\u030asa"),  # composed, and decomposed
        ("paypal", "p\u0430yp\u0430l"),
    ],
)
def test_names_that_look_alike_have_one_skeleton(one: str, other: str) -> None:
    assert one != other
    assert skeleton(one) == skeleton(other)


@pytest.mark.parametrize(
    ("one", "other"), [("Ada", "Adam"), ("Åsa", "Asa"), ("Bob", "Rob"), ("", "x"), ("李", "王")]
)
def test_different_names_have_different_skeletons(one: str, other: str) -> None:
    assert skeleton(one) != skeleton(other)


def test_a_name_that_pretends_to_have_a_handle_is_ambiguous() -> None:
    assert is_ambiguous("Ada (@ada)")
    assert is_ambiguous("Ada (\N{FULLWIDTH COMMERCIAL AT}ada)")
    assert is_ambiguous("Ada (\N{SMALL COMMERCIAL AT}ada)")
    assert not is_ambiguous("Ada (she)")


def test_a_handle_is_shown_whole_however_short_the_name_is_cut() -> None:
    shown = with_handle("Ada (@ada)", "discord:17", "mallory")
    assert shown == "Ada (@ada) (@mallory)"
    assert split_handle(shown) == ("Ada (@ada)", "(@mallory)")
    assert split_handle("Ada (she)") == ("Ada (she)", "")
    assert with_handle("Ada", "local:ada", "") == "Ada (@local:ada)"
    assert cut_name("A" * 40 + " (@mallory)", 8) == "AAAAAAA… (@mallory)"
    assert cut_name("Ada (@mallory)", 8) == "Ada (@mallory)"
    assert cut_name("A" * 9, 8) == "AAAAAAA…"
