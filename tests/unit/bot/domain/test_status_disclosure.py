import pytest

from bot.domain.status import disclosed, redacted
from runners.contract.comparison import Comparison
from runners.contract.evaluation import CaseKind, CaseResult, CaseStatus, Evaluation
from runners.contract.files import EvaluationFile
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict
from tests.doubles.factories import make_case, make_evaluation

HIDDEN = "seed 4711"


def failing(stage: Stage, verdict: Verdict = Verdict.WRONG_ANSWER) -> Evaluation:
    return make_evaluation(
        verdict=verdict,
        stage=stage,
        message=HIDDEN,
        log=HIDDEN,
        cases=(
            make_case(),
            make_case(CaseKind.BENCHMARK, message=HIDDEN),
            CaseResult(
                spec=HIDDEN, kind=CaseKind.BENCHMARK, status=CaseStatus.FAILED, message=HIDDEN
            ),
            CaseResult(spec="size: 9", kind=CaseKind.BENCHMARK, status=CaseStatus.SKIPPED),
        ),
    )


@pytest.mark.parametrize("verdict", [Verdict.WRONG_ANSWER, Verdict.CRASHED, Verdict.TASK_ERROR])
@pytest.mark.parametrize("stage", [Stage.PREPARE, Stage.BUILD, Stage.TIMING])
def test_a_secret_run_shows_verdict_time_and_number_only(stage: Stage, verdict: Verdict) -> None:
    shown = disclosed(failing(stage, verdict))
    assert HIDDEN not in shown.model_dump_json()
    assert shown.message == f"{verdict} at benchmark 2 of the ranked run"
    assert [case.spec for case in shown.cases][1:] == ["size: 1024", "benchmark 2", "size: 9"]
    assert shown.cases[1].measurement is not None


@pytest.mark.parametrize("stage", [Stage.BUILD, Stage.TEST])
def test_a_ranked_run_that_failed_on_public_ground_is_shown_in_full(stage: Stage) -> None:
    skipped = CaseResult(spec="size: 9", kind=CaseKind.BENCHMARK, status=CaseStatus.SKIPPED)
    public = failing(stage).model_copy(update={"cases": (make_case(), skipped)})
    assert disclosed(public) == public


def test_other_modes_are_shown_in_full() -> None:
    evaluation = failing(Stage.TIMING).model_copy(update={"mode": Mode.BENCHMARK})
    assert disclosed(evaluation) == evaluation


def test_a_redacted_evaluation_keeps_no_words_of_it_or_of_its_rival() -> None:
    lost = Comparison(rival_verdict=Verdict.CRASHED, rival_detail=HIDDEN)
    kept = redacted(failing(Stage.TIMING).model_copy(update={"comparison": lost}))

    assert kept.comparison is not None
    assert kept.comparison.rival_verdict is Verdict.CRASHED
    assert HIDDEN not in "".join((kept.message, kept.log, kept.comparison.rival_detail))


def test_what_a_passed_ranked_run_printed_stays_hidden() -> None:
    kept = (EvaluationFile.of("a", HIDDEN.encode()),)
    shown = disclosed(make_evaluation(log=HIDDEN, message=HIDDEN, files=kept))
    assert (shown.log, shown.message, shown.verdict) == ("", "", Verdict.PASSED)
    assert shown.files == ()


def test_a_rejected_time_keeps_the_judge_s_numbers() -> None:
    evaluation = make_evaluation(
        verdict=Verdict.TIMING_REJECTED, stage=Stage.TIMING, message="claimed 3 µs, bound 27 µs"
    )
    assert disclosed(evaluation).message == "claimed 3 µs, bound 27 µs"


def test_a_failure_without_a_failed_case_names_only_the_verdict() -> None:
    evaluation = make_evaluation(verdict=Verdict.TIMED_OUT, stage=Stage.TIMING, message=HIDDEN)
    assert disclosed(evaluation).message == "timed_out in the ranked run"


def test_why_a_rival_failed_is_hidden_because_it_may_tell_of_secret_inputs() -> None:
    compared = Comparison(rival_verdict=Verdict.CRASHED, rival_detail=HIDDEN)

    shown = disclosed(make_evaluation(comparison=compared))

    assert HIDDEN not in shown.model_dump_json()
    assert shown.comparison == Comparison(rival_verdict=Verdict.CRASHED)
