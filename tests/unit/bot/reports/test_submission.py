"""Tests of the report of one evaluation."""

import pytest

from bot.reports.blocks import Log, Report, Table, Text, Tone
from bot.reports.machine import compiled_line
from bot.reports.submission import evaluation_report, verdict_line
from runners.contract.evaluation import (
    CaseKind,
    CaseStatus,
    StopReason,
    Timing,
)
from runners.contract.launch import Compiled
from runners.contract.task import Mode
from runners.contract.verdict import VERDICT_WORDS, Stage, Verdict
from tests.doubles.factories import make_case, make_environment, make_evaluation, make_measurement


def _table(report: Report) -> Table:
    return next(block for block in report.blocks if isinstance(block, Table))


def _texts(report: Report) -> list[str]:
    return [block.text for block in report.blocks if isinstance(block, Text)]


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_has_its_words(verdict: Verdict) -> None:
    assert VERDICT_WORDS[verdict]


def test_a_passed_evaluation_is_shown_well_with_its_time_and_interval() -> None:
    timed = make_case(CaseKind.BENCHMARK, measurement=make_measurement(29_140.0, 59.0))
    report = evaluation_report(make_evaluation(cases=(make_case(), timed)))
    first = report.blocks[0]
    assert isinstance(first, Text)
    assert first.tone is Tone.GOOD
    assert first.text.startswith("passed in a ranked run on CPU")
    assert _table(report).rows[1][3] == "29.14 µs ± 0.06"


def test_the_first_line_of_a_run_that_is_too_noisy_says_that_it_is_not_ranked() -> None:
    noisy = make_case(CaseKind.BENCHMARK, measurement=make_measurement(1e6, 0.23e6))
    first = evaluation_report(make_evaluation(cases=(noisy,))).blocks[0]
    assert isinstance(first, Text)
    assert first.tone is Tone.PLAIN
    assert first.text.startswith("passed, but too noisy to be ranked on CPU, ")
    failed = make_evaluation(verdict=Verdict.WRONG_ANSWER, stage=Stage.TIMING, cases=(noisy,))
    words = "wrong answer (stage: timing), in a ranked run on CPU, "
    assert verdict_line(failed).text.startswith(words)


def test_cases_are_numbered_within_their_kind() -> None:
    cases = (make_case(), make_case(), make_case(CaseKind.BENCHMARK))
    rows = _table(evaluation_report(make_evaluation(cases=cases))).rows
    assert [row[0] for row in rows] == ["test 1", "test 2", "benchmark 1"]


def test_a_failed_evaluation_names_stage_message_and_case() -> None:
    failed = make_case(status=CaseStatus.FAILED, message="1 of 16 values differ")
    report = evaluation_report(
        make_evaluation(
            verdict=Verdict.WRONG_ANSWER, stage=Stage.TEST, message="no", cases=(failed,)
        )
    )
    assert "wrong answer in test 1 of 1" in _texts(report)[0]
    assert "no" in _texts(report)
    assert "size: 16: 1 of 16 values differ" in _texts(report)


@pytest.mark.parametrize(
    ("rounds", "words"),
    [
        (((980.0,), (1_020.0,)), "2 of 5 rounds, so the upper end of its interval counts: 1.02 µs"),
        (
            ((1_000.0,),),
            "1 of 5 rounds, so the upper end of its interval counts: 1.02 µs",
        ),
    ],
)
def test_a_time_that_does_not_count_as_it_is_has_a_line_that_says_what_counts(
    rounds: tuple[tuple[float, ...], ...], words: str
) -> None:
    measured = make_measurement(1_000.0, 15.0).model_copy(
        update={"stop_reason": StopReason.TIME_CAP, "rounds": len(rounds), "samples": rounds}
    )
    timed = make_case(CaseKind.BENCHMARK, measurement=measured)
    lines = _texts(evaluation_report(make_evaluation(cases=(timed,))))
    assert f"size: 1024: timing ended after only {words}" in lines
    tried = evaluation_report(make_evaluation(cases=(timed,), mode=Mode.BENCHMARK))
    assert "timing ended" not in " ".join(_texts(tried))


def test_a_kernel_that_is_far_too_slow_is_said_to_be_timed_by_few_calls() -> None:
    measured = make_measurement(1_000.0, 10.0).model_copy(
        update={"stop_reason": StopReason.SLOW, "rounds": 2, "samples": ((1_000.0,) * 3,) * 2}
    )
    timed = make_case(CaseKind.BENCHMARK, measurement=measured)
    words = "size: 1024: timed by 6 calls: more than 100 times slower than the reference"
    counts = ", so the upper end of its interval counts: 1.01 µs"

    assert words + counts in _texts(evaluation_report(make_evaluation(cases=(timed,))))
    tried = evaluation_report(make_evaluation(cases=(timed,), mode=Mode.BENCHMARK))
    assert words in _texts(tried)


def test_a_claim_that_the_judges_clock_does_not_confirm_is_said_to_count_for_nothing() -> None:
    words = (
        "size: 1024: 6.30 µs counts, not 4.34 µs: the judge's clock does not confirm what the "
        "submission's own says"
    )
    for claimed, told in ((4_340.0, True), (6_300.0, False), (None, False)):
        measured = make_measurement(6_300.0, 10.0).model_copy(update={"claimed_ns": claimed})
        timed = make_case(CaseKind.BENCHMARK, measurement=measured)
        texts = _texts(evaluation_report(make_evaluation(cases=(timed,))))
        assert (words in texts) is told


def test_the_judges_own_time_stands_before_what_the_submission_claims() -> None:
    measurement = make_measurement(2_800.0, 100.0).model_copy(
        update={"bound_ns": 5_870.0, "resolution_ns": 4_040.0, "claimed_ns": 2_800.0}
    )
    timed = make_case(CaseKind.BENCHMARK, measurement=measurement)
    table = _table(evaluation_report(make_evaluation(cases=(timed,))))
    assert [each.name for each in table.columns][3:5] == ["time", "claimed"]
    assert table.rows[0][3:5] == ("5.9 µs ± 4.2", "2.80 µs")


def test_a_time_that_only_the_tasks_own_evaluation_took_is_marked() -> None:
    measurement = make_measurement(2_800.0, 100.0).model_copy(
        update={"bound_ns": 0.0, "claimed_ns": 2_800.0, "stop_reason": StopReason.TASK}
    )
    timed = make_case(CaseKind.BENCHMARK, measurement=measurement)
    table = _table(evaluation_report(make_evaluation(cases=(timed,))))
    assert table.rows[0][3:5] == ("2.80 µs ± 0.10 (unconfirmed)", "")


def test_times_that_nobody_confirmed_are_said_to_be_such() -> None:
    environment = make_environment().model_copy(update={"timing": Timing.IN_PROCESS})
    report = evaluation_report(make_evaluation(environment=environment))
    assert [text for text in _texts(report) if text.startswith("in-process timing")]
    assert "in-process" not in " ".join(_texts(evaluation_report(make_evaluation())))


def test_what_a_compiler_told_is_one_line() -> None:
    told = Compiled(registers=24, spill_stores=0, spill_loads=0, stack=0, shared=256, constant=376)
    assert (
        "kernel: 24 registers, no spills, 256 bytes of static shared memory, 0 of local, "
        "376 of constant"
    ) in _texts(evaluation_report(make_evaluation(compiled=told)))

    untold = told.model_copy(update={"constant": None})
    assert compiled_line(untold).endswith("static shared memory, 0 of local")
    spilling = told.model_copy(update={"spill_stores": 8, "spill_loads": 16})
    assert "8 bytes stored and 16 loaded in spills" in compiled_line(spilling)


def test_what_the_candidate_printed_is_a_log() -> None:
    report = evaluation_report(make_evaluation(log="hello"))
    assert [block.text for block in report.blocks if isinstance(block, Log)] == ["hello"]


def test_raw_runs_and_costs_are_told_at_a_glance() -> None:
    samples = ((29_000.0, 30_000.0, 31_000.0), (28_000.0, 29_500.0))
    measured = make_measurement(29_140.0, 60.0).model_copy(update={"samples": samples})
    timed = make_case(CaseKind.BENCHMARK, measurement=measured)
    alone = make_evaluation(cases=(timed,))
    words = _texts(evaluation_report(alone))
    (runs,) = [each for each in words if " runs, " in each]
    assert runs.endswith("5 runs, 28.0 µs to 31.0 µs; median per round: 30.0 µs, 28.8 µs")
    several = alone.model_copy(update={"gpus": 4, "wall_s": 2.0, "gpu": "L4"})
    words = _texts(evaluation_report(several, cost=0.5))
    assert words[0].endswith("2.0 s in total")
    assert "GPU time 8.0 s on L4, about $0.50" in words


def test_a_profile_tells_the_occupancy_of_its_kernels_and_no_other_mode_does() -> None:
    head = "  add(float *) (4, 1, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 9.0"
    log = f"{head}\n    Achieved Occupancy        %        58.19\n"
    line = "add(float *): occupancy 58.19 %"
    assert line in _texts(evaluation_report(make_evaluation(mode=Mode.PROFILE, log=log)))
    assert line not in _texts(evaluation_report(make_evaluation(mode=Mode.TEST, log=log)))
