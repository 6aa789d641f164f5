"""Names, comments and layout hide nothing; two kernels of two people are not alike."""

from bot.services.similar import LEAST_PRINTS, NEAR, likeness, prints
from tests.architecture.tree import ROOT

SOLUTIONS = ROOT / "tasks" / "examples"
ONE = (ROOT / "bot" / "domain" / "scoring.py").read_text(encoding="utf-8")
OTHER = (ROOT / "bot" / "domain" / "status.py").read_text(encoding="utf-8")


def test_a_renamed_and_commented_copy_is_near_identical() -> None:
    copied = ONE.replace("self", "this").replace("each", "one_of_them")
    copied = "# my own work\n" + copied.replace("\n\n", "\n\n# and here\n")
    assert len(prints(ONE)) > LEAST_PRINTS
    assert likeness(prints(ONE), prints(copied)) >= NEAR


def test_other_code_is_not() -> None:
    assert likeness(prints(ONE), prints(OTHER)) < 0.3


def test_nothing_is_like_nothing_and_a_short_source_has_no_parts() -> None:
    assert likeness(prints(""), prints("")) == 0.0
    assert prints("def custom_kernel(data):\n    return data\n") == frozenset()


def test_no_two_solutions_of_the_examples_are_near_identical_by_chance() -> None:
    texts = {path: path.read_text() for path in SOLUTIONS.glob("*/solutions/correct/*.py")}
    found = {path: prints(text) for path, text in texts.items()}
    large = {path: each for path, each in found.items() if len(each) >= LEAST_PRINTS}
    near = [
        (one.name, other.name)
        for one in large
        for other in large
        if one < other and likeness(large[one], large[other]) >= NEAR
    ]
    assert len(large) > 3
    assert near == []
