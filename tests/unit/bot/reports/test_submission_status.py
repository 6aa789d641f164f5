"""Tests of the report of where a submission stands."""

from dataclasses import replace

import pytest

from bot.domain.costs import gpu_time_line
from bot.domain.ids import JobId, SubmissionId
from bot.domain.job import Job, JobState
from bot.domain.records import StoredFile
from bot.domain.status import JobStatus, QueuePosition, SubmissionStatus, with_costs
from bot.domain.submission import Exclusion, ExclusionKind, Submission, SubmissionState
from bot.reports.blocks import Attachment, Text, Tone
from bot.reports.submission import around_benchmarks, job_line, job_notes, outcome, status_report
from runners.contract.evaluation import CaseKind, CaseStatus, Measurement, StopReason
from runners.contract.files import EvaluationFile
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.factories import (
    NOON,
    make_board,
    make_case,
    make_evaluation,
    make_measurement,
)


def _job(state: JobState, error: str | None = None) -> Job:
    board = make_board()
    return Job(
        id=JobId(1), submission=SubmissionId(7), person=board.creator, gpu="H100",
        mode=Mode.RANKED, priority=10, turn=1, state=state, attempt=2, max_attempts=3,
        fence=1, worker=None, call=None, cancel_requested=False, error=error, run_at=NOON,
        created_at=NOON, started_at=None, finished_at=None,
    )  # fmt: skip


def _submission() -> Submission:
    board = make_board()
    return Submission(
        SubmissionId(7), board.creator, board.id, board.task_version, "kernel.py", "hash",
        Mode.RANKED, ("H100",), SubmissionState.RUNNING, NOON,
    )  # fmt: skip


def test_files_come_after_everything_else() -> None:
    file = StoredFile("H100", EvaluationFile.of("case-1.ncu-rep", b"NVR"))
    done = JobStatus(_job(JobState.SUCCEEDED), evaluation=make_evaluation(gpu="H100"))
    progress = SubmissionStatus(_submission(), make_board(), (done,))
    *rest, last = status_report(progress, [file]).blocks
    assert isinstance(last, Attachment)
    assert last.name == "profile-7-H100.zip"
    assert tuple(rest) == status_report(progress).blocks


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (JobStatus(_job(JobState.QUEUED)), "H100: queued"),
        (
            JobStatus(_job(JobState.QUEUED), place=QueuePosition(3, None)),
            "H100: queued, position 3",
        ),
        (
            JobStatus(_job(JobState.QUEUED), place=QueuePosition(1, None, running=2)),
            "H100: queued, position 1, 2 running now",
        ),
        (
            JobStatus(_job(JobState.QUEUED), place=QueuePosition(3, 42.0, "a new driver")),
            "H100: queued, position 3; H100 is paused: a new driver",
        ),
        (
            JobStatus(_job(JobState.QUEUED), place=QueuePosition(3, 42.0)),
            "H100: queued, position 3, about 42 s",
        ),
        (
            JobStatus(_job(JobState.QUEUED), place=QueuePosition(6, 0.4)),
            "H100: queued, position 6, under 1 s",
        ),
        (
            JobStatus(_job(JobState.QUEUED, "lost")),
            "H100: queued; runs again: attempt 2 of 3 ended through no fault of yours (lost)",
        ),
        (JobStatus(_job(JobState.RUNNING)), "H100: starting"),
        (JobStatus(_job(JobState.RUNNING), "build"), "H100: build"),
        (JobStatus(_job(JobState.RUNNING), "timing", 2, 5), "H100: timing 2/5"),
        (JobStatus(_job(JobState.RUNNING), "timing", 2, 5, "hot"), "H100: timing 2/5, hot"),
        (JobStatus(_job(JobState.CANCELLED)), "H100: cancelled"),
        (
            JobStatus(_job(JobState.FAILED, "no machine")),
            (
                "H100: internal error after 2 of 3 attempts; your submission is not at fault. "
                "Reason: no machine"
            ),
        ),
        (JobStatus(_job(JobState.SUCCEEDED), evaluation=make_evaluation()), "H100: passed"),
    ],
)
def test_a_job_is_told_in_a_few_words(status: JobStatus, words: str) -> None:
    assert job_line(status).text == words


def test_a_failing_verdict_is_shown_as_bad() -> None:
    evaluation = make_evaluation(verdict=Verdict.CRASHED)
    assert job_line(JobStatus(_job(JobState.SUCCEEDED), evaluation=evaluation)).tone is Tone.BAD


def test_a_run_without_a_rank_tells_its_times_at_once() -> None:
    def notes(measured: Measurement, mode: Mode) -> list[str]:
        cases = (make_case(CaseKind.BENCHMARK, measurement=measured),)
        evaluation = make_evaluation(cases=cases, mode=mode)
        return [*job_notes(JobStatus(_job(JobState.SUCCEEDED), evaluation=evaluation))]

    noisy, calm = make_measurement(1e6, 0.23e6), make_measurement(1e6, 1e3)
    time, why = notes(noisy, Mode.RANKED)
    assert time.startswith("size: 1024: 1.00 ms ±")
    assert "varies by 23%" in why
    (benchmark,) = notes(calm, Mode.BENCHMARK)
    assert benchmark.startswith("size: 1024: 1.00")
    assert notes(calm, Mode.RANKED) == []
    failed = make_case(CaseKind.TEST, status=CaseStatus.FAILED)
    wrong = make_evaluation(verdict=Verdict.WRONG_ANSWER, cases=(make_case(), failed))
    done = JobStatus(_job(JobState.SUCCEEDED), evaluation=wrong)
    assert [*job_notes(done)] == ["in test 2 of 2"]
    assert [*job_notes(JobStatus(_job(JobState.QUEUED)))] == []


def test_that_another_time_counts_is_said_above_the_times() -> None:
    slow = {"stop_reason": StopReason.SLOW, "samples": ((1e8,) * 3,) * 2}
    measured = make_measurement(1e8, 1e6).model_copy(update=slow)
    cases = (make_case(CaseKind.BENCHMARK, measurement=measured),)
    above, _ = around_benchmarks(make_evaluation(cases=cases), None)
    assert any("upper end of its interval counts" in str(each) for each in above)


def test_a_run_that_is_too_noisy_to_be_ranked_does_not_look_like_a_success() -> None:
    measured = make_measurement(1e6, 0.23e6)
    noisy = make_evaluation(cases=(make_case(CaseKind.BENCHMARK, measurement=measured),))
    done = JobStatus(replace(_job(JobState.SUCCEEDED), gpu="CPU"), evaluation=noisy)
    words = "passed, but too noisy to be ranked"
    assert job_line(done) == Text(f"CPU: {words}", Tone.PLAIN)
    ended = replace(_submission(), state=SubmissionState.FINISHED)
    crashed = JobStatus(
        _job(JobState.SUCCEEDED), evaluation=make_evaluation(verdict=Verdict.CRASHED)
    )
    assert outcome(SubmissionStatus(ended, make_board(), (done,))) == Text(words, Tone.PLAIN)
    both = SubmissionStatus(ended, make_board(), (done, crashed))
    assert outcome(both) == Text("crashed", Tone.BAD)
    passed = JobStatus(_job(JobState.SUCCEEDED), evaluation=make_evaluation())
    for jobs in ((done, passed), (passed, done)):
        assert outcome(SubmissionStatus(ended, make_board(), jobs)) == Text("passed", Tone.GOOD)


@pytest.mark.parametrize("kind", ExclusionKind)
@pytest.mark.parametrize("verdict", [Verdict.PASSED, Verdict.CRASHED])
def test_of_a_run_that_is_no_longer_ranked_the_reason_is_shown_first(
    kind: ExclusionKind, verdict: Verdict
) -> None:
    ended = replace(_submission(), state=SubmissionState.FINISHED)
    job = JobStatus(_job(JobState.SUCCEEDED), evaluation=make_evaluation(verdict=verdict))
    excluded = Exclusion(ended.id, kind, "a reason")
    status = SubmissionStatus(ended, make_board(), (job,), exclusion=excluded)
    assert outcome(status) == Text(kind.value, Tone.BAD)


def test_a_report_has_lines_for_moving_jobs_and_evaluations_for_ended_ones() -> None:
    jobs = (
        JobStatus(_job(JobState.RUNNING), "test", 1, 5),
        JobStatus(_job(JobState.SUCCEEDED), evaluation=make_evaluation()),
    )
    report = status_report(SubmissionStatus(_submission(), make_board(), jobs))
    assert report.title == "submission #7: kernel.py on vectoradd"
    assert report.blocks[0] == job_line(jobs[0])
    assert len(report.blocks) > 3


def test_who_is_disqualified_reads_why_above_the_result() -> None:
    why = Exclusion(SubmissionId(7), ExclusionKind.DISQUALIFIED, "it reads the answer")
    jobs = (JobStatus(_job(JobState.QUEUED)),)
    first, _ = status_report(SubmissionStatus(_submission(), make_board(), jobs, why)).blocks
    assert first == Text("disqualified, so it is not ranked: it reads the answer", Tone.BAD)


def test_what_an_evaluation_costs_is_told_where_the_price_is_known() -> None:
    done = JobStatus(_job(JobState.SUCCEEDED), evaluation=make_evaluation(gpu="H100"))
    queued = JobStatus(_job(JobState.QUEUED))
    found = SubmissionStatus(_submission(), make_board(), (done, queued))
    assert done.evaluation is not None

    priced = with_costs(found, {"H100": 0.5})
    cost = 0.5 * done.evaluation.gpu_s
    assert [each.cost for each in priced.jobs] == [cost, None]
    line = gpu_time_line("H100", done.evaluation.gpu_s, cost)
    assert Text(line, Tone.QUIET) in status_report(priced).blocks
    assert with_costs(found, {"A100": 0.5}) == found
    bare = gpu_time_line("H100", done.evaluation.gpu_s, None)
    assert Text(bare, Tone.QUIET) in status_report(found).blocks


def test_a_job_that_waits_for_a_quota_says_so_after_its_queue_position() -> None:
    job = replace(_job(JobState.QUEUED), waits="0 s of each person's 60 s a day are left")
    line = job_line(JobStatus(job, place=QueuePosition(3, 20.0)))
    assert line.text.endswith("queued, position 3; 0 s of each person's 60 s a day are left")
