"""The report of where a submission stands, while it waits, while it runs and at its end."""

from collections.abc import Sequence

from bot.domain.durations import show_span
from bot.domain.job import JobState
from bot.domain.records import StoredFile
from bot.domain.status import JobStatus, SubmissionStatus
from bot.reports.blocks import Block, Report, Text, Tone
from bot.reports.profile import archives
from bot.reports.submission import VERDICT_WORDS, evaluation_report
from runners.contract.verdict import Verdict


def status_report(progress: SubmissionStatus, files: Sequence[StoredFile] = ()) -> Report:
    """One line per job while it moves, the whole evaluation once there is one, and its files."""
    submission = progress.submission
    title = f"submission #{submission.id}: {submission.file_name} on {progress.board.name}"
    blocks: list[Block] = []
    if progress.exclusion is not None:
        why = f": {progress.exclusion.reason}" if progress.exclusion.reason else ""
        blocks.append(Text(f"{progress.exclusion.kind}, so it is not ranked{why}", Tone.BAD))
    if warning := warning_of(progress):
        blocks.append(Text(f"Warning: {warning}", Tone.BAD))
    for job in progress.jobs:
        if job.evaluation is None:
            blocks.append(job_line(job))
        else:
            blocks += evaluation_report(job.evaluation).blocks
    blocks += archives(submission.id, files)
    return Report(title, tuple(blocks))


def warning_of(progress: SubmissionStatus) -> str:
    """What its person should know until the judge has said; empty when there is nothing."""
    waits = any(job.evaluation is None for job in progress.jobs)
    return progress.submission.warning if waits else ""


def job_line(progress: JobStatus) -> Text:
    """One job in a few words, such as `CPU: timing 2/5`."""
    job = progress.job
    if progress.evaluation is not None:
        passed = progress.evaluation.verdict is Verdict.PASSED
        words = VERDICT_WORDS[progress.evaluation.verdict]
        return Text(f"{job.gpu}: {words}", Tone.GOOD if passed else Tone.BAD)
    match job.state:
        case JobState.QUEUED:
            return Text(f"{job.gpu}: {_waiting(progress)}")
        case JobState.RUNNING:
            return Text(f"{job.gpu}: {_running(progress)}")
        case JobState.FAILED:
            return Text(
                f"{job.gpu}: given up after {job.attempt} of {job.max_attempts} tries; "
                f"our fault, not the submission's: {job.error or 'no reason is known'}",
                Tone.BAD,
            )
        case JobState.CANCELLED | JobState.SUCCEEDED:
            return Text(f"{job.gpu}: {job.state}", Tone.QUIET)


def _about(seconds: float) -> str:
    span = show_span(seconds)
    return span if span.startswith("under") else f"about {span}"


def _waiting(progress: JobStatus) -> str:
    words = "queued"
    if progress.place is not None:
        words += f", place {progress.place.position}"
        if progress.place.paused is not None:
            words += f"; {progress.job.gpu} is paused: {progress.place.paused}"
        elif progress.place.estimate_s is not None:
            words += f", {_about(progress.place.estimate_s)}"
        elif progress.place.running:
            words += f", {progress.place.running} running now"
    if progress.job.error:
        words += (
            f"; try {progress.job.attempt} of {progress.job.max_attempts} failed, our fault: "
            f"{progress.job.error}"
        )
    return words


def _running(progress: JobStatus) -> str:
    count = f" {progress.done}/{progress.total}" if progress.stage and progress.total else ""
    note = f", {progress.note}" if progress.note else ""
    return f"{progress.stage or 'starting'}{count}{note}"
