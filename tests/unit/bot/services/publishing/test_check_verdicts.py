"""What a finding says of a solution that one grader has run, or both."""

import pytest

from bot.domain.tasks.bundle import Solution
from bot.domain.tasks.grading import NO_PROGRAM, Basis, Grading
from bot.domain.tasks.lint import Finding, GraderComparison, Level
from bot.services.publishing.check import any_of, comparable, in_words, solution_finding
from runners.contract.task import Device, Grader
from runners.contract.verdict import VERDICT_WORDS, Verdict
from tests.doubles.factories import make_capabilities, make_evaluation, make_task

NATIVE, POPCORN = Grader
TASK = make_task()
OWN = make_task(grader=POPCORN)
RIGHT = Solution("solutions/correct/a.py", "", Verdict.PASSED)
WRONG = Solution("solutions/wrong/b.py", "", Verdict.WRONG_ANSWER)
BOTH = Grading(NATIVE, "", Basis.KNOWN, other_device=Device.ANY)


def found(
    solution: Solution, native: Verdict, popcorn: Verdict, *, difference: Level = Level.ERROR
) -> Finding:
    evaluations = [make_evaluation(verdict=each, message="") for each in (native, popcorn)]
    return solution_finding(solution, (TASK, OWN), evaluations, difference)


def test_one_grader_says_whether_its_verdict_is_the_expected_one() -> None:
    right = [make_evaluation(verdict=Verdict.PASSED)]
    crashed = [make_evaluation(verdict=Verdict.CRASHED, message="out of luck")]
    assert solution_finding(RIGHT, (TASK,), right, Level.ERROR) == Finding(
        Level.INFO, RIGHT.name, "passed, as expected"
    )
    assert solution_finding(RIGHT, (TASK,), crashed, Level.ERROR) == Finding(
        Level.ERROR, RIGHT.name, "got crashed (out of luck), expected passed"
    )


@pytest.mark.parametrize(
    ("solution", "native", "popcorn", "agrees"),
    [
        (RIGHT, Verdict.PASSED, Verdict.PASSED, True),
        (WRONG, Verdict.WRONG_ANSWER, Verdict.CRASHED, True),
        (WRONG, Verdict.WRONG_ANSWER, Verdict.TASK_ERROR, False),
        (RIGHT, Verdict.PASSED, Verdict.CRASHED, False),
        (WRONG, Verdict.WRONG_ANSWER, Verdict.PASSED, False),
        (WRONG, Verdict.TASK_ERROR, Verdict.TASK_ERROR, False),
    ],
)
def test_both_agree_if_both_let_it_pass_or_both_refuse_it(
    solution: Solution, native: Verdict, popcorn: Verdict, *, agrees: bool
) -> None:
    finding = found(solution, native, popcorn)
    right = solution is RIGHT
    words = VERDICT_WORDS[native], VERDICT_WORDS[popcorn]
    assert finding.comparison == GraderComparison(right, *words, agrees)
    assert (finding.level is Level.INFO) == agrees
    assert ("both graders agree" in finding.message) == agrees


def test_a_difference_names_both_and_is_only_shown_where_the_creator_has_chosen() -> None:
    finding = found(RIGHT, Verdict.PASSED, Verdict.CRASHED, difference=Level.WARNING)
    assert finding.level is Level.WARNING
    assert finding.message == (
        "the graders disagree; Podium's judge: passed; the task's own evaluation: crashed; "
        "expected: passed"
    )
    chosen_is_wrong = found(RIGHT, Verdict.CRASHED, Verdict.PASSED, difference=Level.WARNING)
    assert chosen_is_wrong.level is Level.ERROR


def test_a_long_message_is_cut() -> None:
    words = in_words(make_evaluation(verdict=Verdict.CRASHED, message="x" * 1000))
    assert len(words) == 400
    assert words.endswith("...")
    assert any_of({Verdict.PASSED, Verdict.CRASHED}) == "crashed or passed"


def test_a_runner_that_lacks_something_for_the_other_grader_compares_nothing() -> None:
    here = make_capabilities(graders=(NATIVE,))
    able = make_capabilities(graders=tuple(Grader))
    assert comparable(TASK, NO_PROGRAM, able, "CPU") == (None, "")
    assert comparable(TASK, BOTH, here, "CPU") == (None, "missing grader popcorn on CPU")
    assert comparable(TASK, BOTH, able, "CPU") == (OWN, "")
