"""Tests of the report of a submission for a narrow screen."""

from dataclasses import replace

import pytest

from bot.domain.ids import JobId, SubmissionId
from bot.domain.job import Job, JobState
from bot.domain.leaderboard import Placement
from bot.domain.scoring import ScoreValue, Standing
from bot.domain.status import JobStatus, SubmissionStatus
from bot.domain.submission import Submission, SubmissionState
from bot.reports.blocks import Block, Log, Table, Text, Tone
from bot.reports.short import place_lines, short_report
from runners.contract.comparison import Ratio
from runners.contract.evaluation import CaseKind, CaseStatus, Evaluation
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict
from tests.doubles.factories import (
    NOON,
    make_board,
    make_case,
    make_evaluation,
    make_measurement,
    make_score,
)

FIRST = Placement(
    "CPU", ScoreValue(29_140, 60), 1, shared=False, entries=7, is_best=True, improved=False
)


def neighbor(place: int, time_ns: float) -> Standing:
    """Return another person's standing."""
    return Standing(place, make_score(place, time_ns), 1)


SOURCE = "import torch\n\ndef custom_kernel(data):\n    return data / 0\n"


def status(*evaluations: Evaluation) -> SubmissionStatus:
    """Return a finished submission with these results."""
    board = make_board()
    submission = Submission(
        SubmissionId(7), board.creator, board.id, board.task_version, "kernel.py", "hash",
        Mode.RANKED, ("CPU",), SubmissionState.FINISHED, NOON,
    )  # fmt: skip
    job = Job(
        id=JobId(1), submission=SubmissionId(7), person=board.creator, gpu="CPU",
        mode=Mode.RANKED, priority=10, turn=1, state=JobState.SUCCEEDED, attempt=1, max_attempts=3,
        fence=1, worker=None, call=None, cancel_requested=False, error=None, run_at=NOON,
        created_at=NOON, started_at=None, finished_at=None,
    )  # fmt: skip
    jobs = tuple(JobStatus(job, evaluation=each) for each in evaluations)
    return SubmissionStatus(submission, board, jobs)


def failed(**changes: object) -> Evaluation:
    """Return a wrong answer in the second of three tests."""
    cases = (
        make_case(),
        make_case(spec="size: 17", status=CaseStatus.FAILED, message="got 1.0, expected 2.0"),
        make_case(status=CaseStatus.SKIPPED),
    )
    values = {"verdict": Verdict.WRONG_ANSWER, "stage": Stage.TEST, "cases": cases}
    return make_evaluation(**(values | changes))


def texts(blocks: tuple[Block, ...]) -> list[str]:
    """Return the texts, in order."""
    return [block.text for block in blocks if isinstance(block, Text)]


def test_verdict_time_place_gap_and_change_come_first_in_this_order() -> None:
    place = replace(
        FIRST,
        best=FIRST.value,
        previous=ScoreValue(30_000, 60),
        behind=neighbor(2, 30_600),
        reference=ScoreValue(93_248, 100),
    )
    blocks = short_report(status(make_evaluation()), [place]).blocks
    assert blocks[0] == Text("passed in a ranked run on CPU", Tone.GOOD)
    assert blocks[1] == Text("29.14 µs ± 0.06", Tone.STRONG)
    assert texts(blocks)[2:6] == [
        "🥇 1st of 7, 5.0 % ahead of 2nd",
        "3.0 % faster than before, 30.0 µs",
        "3.2x vs reference",
        "passed: 2 of 2 tests, 1 of 1 benchmark",
    ]
    assert not any(isinstance(block, Table | Log) for block in blocks)


def test_a_report_has_one_speedup_over_the_reference() -> None:
    place = replace(FIRST, reference=ScoreValue(93_248, 100))

    def said(*ratios: float) -> list[str]:
        cases = [
            make_case(
                CaseKind.BENCHMARK,
                spec=f"size: {number}",
                measurement=make_measurement(29_140).model_copy(
                    update={"vs_reference": Ratio(ratio=ratio, half_width=0.01, rounds=5)}
                ),
            )
            for number, ratio in enumerate(ratios)
        ]
        blocks = short_report(status(make_evaluation(cases=tuple(cases))), [place]).blocks
        return [each for each in texts(blocks) if "vs reference" in each]

    assert said(0.5) == ["size: 0: 2.0x vs reference, timed in turn with it"]
    total, each = said(0.25, 1.0)
    assert total == "2.0x vs reference, timed in turn with it"
    assert each == (
        "vs reference, timed in turn with it: benchmark 1 4.0x (3.8 to 4.2); "
        "benchmark 2 1.00x (0.99 to 1.01)"
    )


@pytest.mark.parametrize(
    ("place", "lines"),
    [
        (FIRST, ["🥇 1st of 7", "your first time here"]),
        (
            replace(FIRST, rank=4, ahead=neighbor(3, 28_000)),
            ["4th of 7, 4.1 % behind 3rd", "your first time here"],
        ),
        (
            replace(FIRST, rank=2, is_best=False, best=ScoreValue(14_000, 9)),
            ["your place stays 🥈 2nd of 7", "2.1x as long as your best, 14.0 µs"],
        ),
        (
            replace(FIRST, rank=3, shared=True),
            [
                "🥉 3rd (shared) of 7",
                "shared: the judge cannot tell these times apart",
                "your first time here",
            ],
        ),
    ],
)
def test_place_gap_and_change_are_shown(place: Placement, lines: list[str]) -> None:
    assert list(place_lines(place)) == lines


def test_a_wrong_answer_names_the_case_with_its_arguments_and_what_differs() -> None:
    blocks = short_report(status(failed(mode=Mode.TEST))).blocks
    assert blocks[0] == Text("wrong answer in test 2 of 3, in a test run on CPU", Tone.BAD)
    assert texts(blocks)[1:4] == [
        "test 2: size: 17", "got 1.0, expected 2.0", "passed: 1 of 3 tests"
    ]  # fmt: skip


def test_of_a_secret_stage_the_owner_sees_verdict_and_case_number_alone() -> None:
    hidden = make_case(
        CaseKind.BENCHMARK, spec="benchmark 1", status=CaseStatus.FAILED, measurement=None
    )
    message = "crashed at benchmark 1 of the ranked run"
    found = failed(
        verdict=Verdict.CRASHED, stage=Stage.TIMING, cases=(make_case(), hidden), message=message
    )
    blocks = short_report(status(found), source=SOURCE).blocks
    assert texts(blocks)[:2] == ["crashed in benchmark 1 of 1, in a ranked run on CPU", message]
    assert not any(isinstance(block, Log) for block in blocks)


def test_a_crash_shows_the_line_of_the_submission_that_it_names() -> None:
    message = "ZeroDivisionError: division by zero (line 4)"
    found = failed(verdict=Verdict.CRASHED, message=message, mode=Mode.TEST)
    logs = [
        block for block in short_report(status(found), source=SOURCE).blocks
        if isinstance(block, Log)
    ]  # fmt: skip
    assert logs == [Log("your source", "  3  def custom_kernel(data):\n> 4      return data / 0")]


def test_nothing_is_quoted_of_a_secret_stage_nor_for_others() -> None:
    named = "ZeroDivisionError (line 4)"
    secret = failed(verdict=Verdict.CRASHED, stage=Stage.TIMING, message=named)
    public = failed(verdict=Verdict.CRASHED, message=named, mode=Mode.TEST)
    for found, source in ((secret, SOURCE), (public, ""), (public, "one line")):
        blocks = short_report(status(found), source=source).blocks
        assert not any(isinstance(block, Log) for block in blocks)


def test_a_message_of_several_lines_keeps_its_lines_and_output_is_shown() -> None:
    found = failed(
        verdict=Verdict.BUILD_FAILED, stage=Stage.BUILD, cases=(), message="a\n  ^", log="hi"
    )
    blocks = short_report(status(found)).blocks
    assert texts(blocks)[0] == "build failed, in a ranked run on CPU"
    assert [block for block in blocks if isinstance(block, Log)] == [
        Log("message", "a\n  ^"), Log("submission output", "hi")
    ]  # fmt: skip


def test_several_benchmarks_are_listed_with_their_times() -> None:
    timed = tuple(
        make_case(CaseKind.BENCHMARK, spec=f"size: {n}", measurement=make_measurement(n * 1_000.0))
        for n in (1, 2)
    )
    blocks = short_report(status(make_evaluation(cases=timed, mode=Mode.BENCHMARK))).blocks
    (table,) = (block for block in blocks if isinstance(block, Table))
    assert table.rows == (("size: 1", "1.000 µs ± 0.002"), ("size: 2", "2.000 µs ± 0.002"))


def test_a_run_that_is_too_noisy_to_be_ranked_is_neither_a_rank_nor_a_failure() -> None:
    noisy = make_case(CaseKind.BENCHMARK, measurement=make_measurement(1e6, 0.23e6))
    blocks = short_report(status(make_evaluation(cases=(noisy,)))).blocks
    assert blocks[0] == Text("passed, but too noisy to be ranked on CPU")
    tones = [each.tone for each in blocks if isinstance(each, Text)]
    assert not {Tone.GOOD, Tone.BAD} & set(tones)
    assert "too noisy here: varies by 23%" in " ".join(texts(blocks))
