"""Tests of what a runner is asked and what it answers."""

import pytest
from pydantic import ValidationError

from runners.contract.comparison import LIMITS_OF_COMPARISON, Comparison, Ratio
from runners.contract.evaluation import (
    BENCHMARK_ROUNDS,
    COMPARED_ROUNDS,
    HOST_ROUNDS,
    RANKED_ROUNDS,
    CaseKind,
    CaseStatus,
    Evaluation,
    EvaluationRequest,
    RoundPolicy,
)
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict
from tests.doubles.factories import make_case, make_evaluation, make_measurement, make_request


@pytest.mark.parametrize("looks", [(), (5, 3), (3, 3), (0, 3)])
def test_looks_are_ascending_round_counts(looks: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError, match="ascending"):
        RoundPolicy(looks=looks)


def test_a_request_has_the_rounds_of_its_mode_unless_it_names_others() -> None:
    assert make_request(mode=Mode.RANKED).round_policy == HOST_ROUNDS
    assert make_request(mode=Mode.RANKED, gpu="H100").round_policy == RANKED_ROUNDS
    assert make_request(mode=Mode.BENCHMARK).round_policy == BENCHMARK_ROUNDS
    rival = make_request(mode=Mode.RANKED, rival="# its source")
    assert rival.round_policy == HOST_ROUNDS
    assert rival.model_copy(update={"gpu": "H100"}).round_policy == COMPARED_ROUNDS
    own = RoundPolicy(looks=(2,))
    assert make_request(mode=Mode.RANKED, rounds=own).round_policy == own


def test_a_first_attempt_is_asked_for_as_older_workers_know_it() -> None:
    first = make_request()
    again = first.model_copy(update={"used_s": 1.5})
    assert "used_s" not in first.model_dump_json()
    for request in (first, again):
        assert EvaluationRequest.model_validate_json(request.model_dump_json()) == request


def test_a_measurement_belongs_to_a_passed_benchmark_alone() -> None:
    with pytest.raises(ValidationError, match="measurement"):
        make_case(measurement=make_measurement())
    with pytest.raises(ValidationError, match="measurement"):
        make_case(CaseKind.BENCHMARK, measurement=None)
    with pytest.raises(ValidationError, match="measurement"):
        make_case(CaseKind.BENCHMARK, status=CaseStatus.FAILED)


def test_a_passed_evaluation_has_neither_a_failed_case_nor_a_failing_stage() -> None:
    with pytest.raises(ValidationError, match="only passed cases"):
        make_evaluation(cases=(make_case(status=CaseStatus.FAILED),))
    with pytest.raises(ValidationError, match="only passed cases"):
        make_evaluation(stage=Stage.TEST)


def test_a_failing_verdict_names_its_stage() -> None:
    with pytest.raises(ValidationError, match="names its stage"):
        make_evaluation(verdict=Verdict.CRASHED, stage=None)


def test_an_evaluation_survives_its_journey_as_json_and_nothing_is_added_on_the_way() -> None:
    evaluation = make_evaluation()
    text = evaluation.model_dump_json()
    assert Evaluation.model_validate_json(text) == evaluation
    with pytest.raises(ValidationError):
        Evaluation.model_validate_json(text.replace("{", '{"rank": 1, ', 1))


@pytest.mark.parametrize("time_ns", [0.0, -1.0, float("nan"), float("inf")])
def test_no_time_is_zero_negative_or_not_finite(time_ns: float) -> None:
    with pytest.raises(ValidationError):
        make_measurement(time_ns)


def test_only_a_ranked_run_has_a_rival_and_older_workers_are_told_of_none() -> None:
    alone = make_request(mode=Mode.RANKED)
    compared = make_request(mode=Mode.RANKED, rival="the holder's source")
    assert "rival" not in alone.model_dump_json()
    assert EvaluationRequest.model_validate_json(compared.model_dump_json()) == compared
    assert compared.left_s == LIMITS_OF_COMPARISON * alone.left_s
    with pytest.raises(ValidationError, match="only a ranked run has a rival"):
        make_request(mode=Mode.TEST, rival="the holder's source")


def test_an_older_bot_is_told_of_a_comparison_only_if_there_is_one() -> None:
    ratio = Ratio(ratio=0.98, half_width=0.01, rounds=5)
    compared = make_evaluation(
        comparison=Comparison(benchmarks=(ratio,), rival_verdict=Verdict.PASSED)
    )
    assert "comparison" not in make_evaluation().model_dump_json()
    assert Evaluation.model_validate_json(compared.model_dump_json()) == compared


def test_a_submission_that_failed_has_no_ratio() -> None:
    ratios = (Ratio(ratio=0.98, half_width=0.01, rounds=5),)
    compared = Comparison(benchmarks=ratios, rival_verdict=Verdict.PASSED)
    with pytest.raises(ValidationError, match="a submission that failed"):
        make_evaluation(verdict=Verdict.CRASHED, stage=Stage.TIMING, comparison=compared)
