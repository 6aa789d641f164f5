"""The solutions that a task ships, with the verdicts they expect."""

import pytest

from bot.domain.errors import UserError
from bot.domain.tasks.bundle import MOST_SOLUTIONS, TaskBundle, solutions
from runners.contract.verdict import Verdict


def make_bundle(**files: str) -> TaskBundle:
    named = {f"add/solutions/{path}": text.encode() for path, text in files.items()}
    return TaskBundle({"add/task.yml": b"", **named}, "add")


def test_a_correct_solution_is_expected_to_pass_and_a_wrong_one_to_be_wrong() -> None:
    found = solutions(make_bundle(**{"wrong/a.py": "x = 1\n", "correct/b.py": "y = 1\n"}))
    assert [(each.name, each.expect, each.source) for each in found] == [
        ("solutions/correct/b.py", Verdict.PASSED, "y = 1\n"),
        ("solutions/wrong/a.py", Verdict.WRONG_ANSWER, "x = 1\n"),
    ]


def test_the_heading_tells_the_verdict_and_the_needs() -> None:
    source = "#!PODIUM expect timed_out\n#!PODIUM needs triton cuda\n"
    (found,) = solutions(make_bundle(**{"wrong/a.py": source}))
    assert found.expect is Verdict.TIMED_OUT
    assert found.needs == ("triton", "cuda")


def test_other_files_and_deeper_folders_are_not_solutions() -> None:
    files = {"correct/README.md": "x", "correct/sub/c.py": "x", "other/d.py": "x"}
    assert solutions(make_bundle(**files)) == ()


@pytest.mark.parametrize(
    ("path", "source", "word"),
    [
        ("wrong/a.py", "#!PODIUM expect wrong_anwser\n", "wrong_answer"),
        ("wrong/a.py", "#!PODIUM expect passed\n", "solutions/correct"),
        ("correct/a.py", "#!PODIUM expect crashed\n", "solutions/wrong"),
        ("correct/a.py", "#!PODIUM expects\n", "line 1"),
    ],
)
def test_a_heading_that_cannot_be_is_refused_with_the_file(
    path: str, source: str, word: str
) -> None:
    with pytest.raises(UserError) as caught:
        solutions(make_bundle(**{path: source}))
    assert f"add/solutions/{path}" in caught.value.message
    assert word in caught.value.message


def test_more_solutions_than_a_check_may_run_are_refused() -> None:
    names = [f"wrong/number{each}.py" for each in range(MOST_SOLUTIONS)]
    assert len(solutions(make_bundle(**dict.fromkeys(names, "x = 1\n")))) == MOST_SOLUTIONS
    with pytest.raises(UserError, match="at most 100 solutions are allowed"):
        solutions(make_bundle(**dict.fromkeys((*names, "correct/a.py"), "x = 1\n")))
