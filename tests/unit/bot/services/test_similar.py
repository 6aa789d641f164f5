"""Changed names, comments and layout hide no copy; different kernels are not similar."""

import pytest

from bot.services import similar
from bot.services.similar import LEAST_PARTS, NEAR, fingerprint, similarity
from tests.architecture.tree import ROOT

SOLUTIONS = ROOT / "tasks" / "examples"
ONE = (ROOT / "bot" / "domain" / "scoring.py").read_text(encoding="utf-8")
OTHER = (ROOT / "bot" / "domain" / "status.py").read_text(encoding="utf-8")


def test_a_renamed_and_commented_copy_is_near_identical() -> None:
    copied = ONE.replace("self", "this").replace("each", "one_of_them")
    copied = "# my own work\n" + copied.replace("\n\n", "\n\n# and here\n")
    assert len(fingerprint(ONE)) > LEAST_PARTS
    assert similarity(fingerprint(ONE), fingerprint(copied)) >= NEAR


def test_different_code_is_not_near_identical() -> None:
    assert similarity(fingerprint(ONE), fingerprint(OTHER)) < 0.3


def test_empty_sources_are_not_similar_and_a_short_one_has_no_parts() -> None:
    assert similarity(fingerprint(""), fingerprint("")) == 0.0
    assert fingerprint("def custom_kernel(data):\n    return data\n") == frozenset()


def test_no_two_solutions_of_the_examples_are_near_identical_by_chance() -> None:
    texts = {path: path.read_text() for path in SOLUTIONS.glob("*/solutions/correct/*.py")}
    found = {path: fingerprint(text) for path, text in texts.items()}
    large = {path: each for path, each in found.items() if len(each) >= LEAST_PARTS}
    near = [
        (one.name, other.name)
        for one in large
        for other in large
        if one < other and similarity(large[one], large[other]) >= NEAR
    ]
    assert len(large) > 3
    assert near == []


@pytest.mark.parametrize("begin", ["/* ", '""" ', '"', "'", '"\\\\', "//", "#"])
def test_the_begins_of_many_comments_take_no_minutes(begin: str) -> None:
    """64 KiB of comments without an end took 13 s, in which the whole bot stood still."""
    assert similar._COMMENT.sub("", f"kernel = '{begin}'\n{begin * 300_000}").startswith("kernel")


def test_a_copy_between_two_texts_that_look_like_a_comments_ends_is_near_identical() -> None:
    copied = f'BEGIN = "/*"\n{ONE}\nEND = "*/"\nOTHER = \'a "\'\n'
    assert similarity(fingerprint(ONE), fingerprint(copied)) >= NEAR
