"""A submission: the state of each of its jobs, the results of its evaluations, and its profile."""

import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from io import BytesIO
from itertools import groupby

from bot.domain.costs import gpu_time_line
from bot.domain.ids import SubmissionId
from bot.domain.job import JobState
from bot.domain.noise import TOO_NOISY, passed_too_noisy
from bot.domain.records import StoredFile
from bot.domain.scoring import counted, ended_early, judged
from bot.domain.status import JobStatus, SubmissionStatus, cancel_words, numbered, place_of_failure
from bot.domain.submission import SubmissionState
from bot.domain.times import show_score, show_span, show_time
from bot.reports.blocks import Attachment, Block, Column, Log, Report, Table, Text, Tone
from bot.reports.confirmations import compared_lines
from bot.reports.machine import (
    Noted,
    combined_line,
    compiled_line,
    kernel_lines,
    machine_lines,
    measured_cases,
    noisy_lines,
    run_lines,
    turn_lines,
)
from runners.contract.comparison import SLOWER_MOST
from runners.contract.evaluation import (
    RANKED_ROUNDS,
    CaseResult,
    Evaluation,
    StopReason,
    Timing,
)
from runners.contract.files import EvaluationFile
from runners.contract.task import Mode
from runners.contract.verdict import VERDICT_WORDS, Verdict

IN_PROCESS = (
    "in-process timing: the times come from the task's own evaluation program; Podium's judge "
    "verified neither times nor outputs"
)

_CASE_COLUMNS = (
    Column("case"), Column("arguments"), Column("status"), Column("time", numeric=True),
    Column("claimed", numeric=True), Column("rounds", numeric=True),
)  # fmt: skip
_UNTIMED = 3
"""How many of these columns are shown if no case was timed."""


def evaluation_report(
    evaluation: Evaluation, title: str | None = None, *, cost: float | None = None
) -> Report:
    """Return everything in an evaluation; for viewers with fewer rights, pass a disclosed one."""
    blocks = (*result_blocks(evaluation, cost), *_machine_blocks(evaluation))
    return Report(title or f"{evaluation.task} on {evaluation.gpu}", blocks)


def around_benchmarks(
    evaluation: Evaluation, cost: float | None
) -> tuple[list[Block], list[Block]]:
    """Return what stands above a page's own table and figures of the benchmarks, and below them."""
    untimed = [each for each in numbered(evaluation.cases) if each[1].measurement is None]
    notes = _quiet(_build_and_profile_lines(evaluation))
    below = [*_cases(untimed), *notes, *_log(evaluation), gpu_time(evaluation, cost)]
    above = [*_summary(evaluation), *map(Text, _ended_early(evaluation))]
    return above, below + _machine_blocks(evaluation)


def _machine_blocks(evaluation: Evaluation) -> list[Block]:
    return _quiet(machine_lines(evaluation))


def _quiet(lines: Iterable[str]) -> list[Block]:
    return [Text(line, Tone.QUIET) for line in lines]


def result_blocks(evaluation: Evaluation, cost: float | None = None) -> list[Block]:
    """Return everything in an evaluation except its machine and sandbox."""
    notes = [*short_notes(evaluation), *run_lines(evaluation)]
    details = [*_cases(numbered(evaluation.cases)), *_quiet(notes), *_log(evaluation)]
    return [*_summary(evaluation), *details, gpu_time(evaluation, cost)]


def _summary(evaluation: Evaluation) -> list[Block]:
    """Return the verdict, and why it is not another one."""
    blocks: list[Block] = [verdict_line(evaluation)]
    if evaluation.message:
        blocks.append(Text(evaluation.message, _tone(evaluation.verdict)))
    blocks += [
        Text(f"{case.spec}: {case.message}", Tone.BAD)
        for case in evaluation.cases
        if case.message and case.message != evaluation.message
    ]
    return [*blocks, *map(Text, noisy_lines(evaluation))]


def _cases(cases: Iterable[tuple[int, CaseResult]]) -> list[Block]:
    rows = [_row(number, case) for number, case in cases]
    shown = len(_CASE_COLUMNS) if any(time for *_, time, _, _ in rows) else _UNTIMED
    table = Table("cases", _CASE_COLUMNS[:shown], tuple(each[:shown] for each in rows))
    return [table] if rows else []


def _log(evaluation: Evaluation) -> list[Block]:
    return [Log("submission output", evaluation.log)] if evaluation.log else []


def gpu_time(evaluation: Evaluation, cost: float | None) -> Text:
    """Return the GPU time that an evaluation used, with its cost if that is known."""
    return Text(gpu_time_line(evaluation.gpu, evaluation.gpu_s, cost), Tone.QUIET)


def short_notes(evaluation: Evaluation) -> Iterator[str]:
    """Yield the notes that explain a result, without the raw runs."""
    for lines in (turn_lines, _ended_early, _lifted, _build_and_profile_lines):
        yield from lines(evaluation)


def _build_and_profile_lines(evaluation: Evaluation) -> Iterator[str]:
    if evaluation.mode is Mode.PROFILE:
        yield from kernel_lines(evaluation.log)
    if evaluation.compiled is not None:
        yield compiled_line(evaluation.compiled)
    if evaluation.environment.timing is Timing.IN_PROCESS:
        yield IN_PROCESS


def verdict_line(evaluation: Evaluation, *, with_total: bool = True) -> Text:
    """Return the verdict, the case or the stage that failed, and the evaluation's duration."""
    words, where = in_words(evaluation), place_of_failure(evaluation)
    run = f" in a {evaluation.mode} run"
    # A run that is too noisy to be ranked says so itself.
    run = {Tone.GOOD: run, Tone.BAD: f",{run}"}.get(words.tone, "")
    total = f", {evaluation.wall_s:.1f} s in total" if with_total else ""
    return Text(f"{words.text}{where}{run} on {evaluation.gpu}{total}", words.tone)


def in_words(evaluation: Evaluation) -> Text:
    """Return the verdict, or that the run passed but is not ranked."""
    if passed_too_noisy(evaluation):
        return Text(TOO_NOISY)
    return Text(VERDICT_WORDS[evaluation.verdict], _tone(evaluation.verdict))


def _ended_early(evaluation: Evaluation) -> Iterator[str]:
    ranked = evaluation.mode is Mode.RANKED
    found: dict[str, list[Noted]] = {}
    for number, case, measured in measured_cases(evaluation):
        slow = measured.stop_reason is StopReason.SLOW
        if not ended_early(measured) or not (ranked or slow):
            continue
        line = f"timing ended after only {measured.rounds} of {RANKED_ROUNDS.looks[0]} rounds"
        if slow:
            calls = sum(map(len, measured.samples))
            line = (
                f"timed by {calls} calls: more than {SLOWER_MOST} times slower than the reference"
            )
        value = show_time(counted(measured).time_ns) if ranked else ""
        found.setdefault(line, []).append((number, case.spec, value))
    counts = ", so the upper end of its interval counts: {}"
    for line, noted in found.items():
        yield from combined_line(
            noted, line + counts if ranked else line, "" if ranked else f"{line}: {{}}"
        )


def _lifted(evaluation: Evaluation) -> Iterator[str]:
    found = []
    for number, case, each in measured_cases(evaluation):
        if each.lifted:
            counts, claimed = show_time(judged(each).time_ns), show_time(each.claimed_ns or 0.0)
            found.append((number, case.spec, f"{counts} counts, not {claimed}"))
    yield from combined_line(
        found, "{}: the judge's clock does not confirm what the submission's own says"
    )


def _tone(verdict: Verdict) -> Tone:
    return Tone.GOOD if verdict is Verdict.PASSED else Tone.BAD


def _row(number: int, case: CaseResult) -> tuple[str, ...]:
    named, measured = (f"{case.kind} {number}", case.spec, case.status.value), case.measurement
    if measured is None:
        return (*named, "", "", "")
    value = judged(measured)
    return (
        *named,
        show_score(value),
        "" if value.claimed_ns is None else show_time(value.claimed_ns),
        str(measured.rounds),
    )


def status_report(
    progress: SubmissionStatus, files: Sequence[StoredFile] = (), *, machine: bool = True
) -> Report:
    """Return a line for each job without an evaluation, the evaluations, and the files.

    With `machine`, the machines and sandboxes are described too.
    """
    submission = progress.submission
    blocks: list[Block] = [*head_lines(progress)]
    for job in progress.jobs:
        if job.evaluation is None:
            blocks.append(job_line(job))
        else:
            blocks += result_blocks(job.evaluation, job.cost)
            blocks += _machine_blocks(job.evaluation) if machine else ()
        blocks += compared_lines(job)
    blocks += archives(submission.id, files)
    return Report(title_of(progress), tuple(blocks))


def title_of(progress: SubmissionStatus) -> str:
    """Return the title of a submission's report."""
    submission = progress.submission
    return f"submission #{submission.id}: {submission.file_name} on {progress.board.name}"


def head_lines(progress: SubmissionStatus) -> Iterator[Text]:
    """Yield why the submission is not ranked, and its warning, if there is one."""
    if progress.exclusion is not None:
        why = f": {progress.exclusion.reason}" if progress.exclusion.reason else ""
        yield Text(f"{progress.exclusion.kind}, so it is not ranked{why}", Tone.BAD)
    if warning := warning_of(progress):
        yield Text(f"Warning: {warning}", Tone.BAD)


def warning_of(progress: SubmissionStatus) -> str:
    """Return the warning for its submitter until it is judged; empty when there is none."""
    waits = any(job.evaluation is None for job in progress.jobs)
    return progress.submission.warning if waits else ""


def job_line(progress: JobStatus) -> Text:
    """Return one job in a few words, such as `CPU: timing 2/5`."""
    job = progress.job
    if progress.evaluation is not None:
        verdict = in_words(progress.evaluation)
        return Text(f"{job.gpu}: {verdict.text}", verdict.tone)
    match job.state:
        case JobState.QUEUED:
            return Text(f"{job.gpu}: {_waiting(progress)}")
        case JobState.RUNNING:
            return Text(f"{job.gpu}: {_running(progress)}")
        case JobState.FAILED:
            return Text(
                f"{job.gpu}: internal error after {job.attempt} of {job.max_attempts} attempts; "
                f"your submission is not at fault. Reason: {job.error or 'unknown'}",
                Tone.BAD,
            )
        case JobState.CANCELLED | JobState.SUCCEEDED:
            words = cancel_words(job)
            return Text(f"{job.gpu}: {words}", Tone.QUIET if words == job.state else Tone.BAD)


def job_notes(progress: JobStatus) -> Iterator[str]:
    """Yield where a run failed, or the times of one without a rank and why it has none."""
    evaluation = progress.evaluation
    if evaluation is None:
        return
    if evaluation.verdict is not Verdict.PASSED:
        yield from filter(None, (place_of_failure(evaluation).strip(),))
    elif evaluation.mode is not Mode.RANKED or passed_too_noisy(evaluation):
        timed = measured_cases(evaluation)
        found = [(number, case.spec, show_score(judged(each))) for number, case, each in timed]
        yield from combined_line(found, "{}")
        yield from noisy_lines(evaluation)


def outcome(progress: SubmissionStatus) -> Text:
    """Return why it is not ranked, a verdict other than passed, or its state, in few words.

    It is too noisy only if it did not pass on another GPU type.
    """
    if progress.exclusion is not None:
        return Text(progress.exclusion.kind.value, Tone.BAD)
    found = [in_words(each.evaluation) for each in progress.jobs if each.evaluation is not None]
    ended = sorted(found, key=lambda each: (Tone.BAD, Tone.GOOD, Tone.PLAIN).index(each.tone))
    if ended and (ended[0].tone is Tone.BAD or progress.state is SubmissionState.FINISHED):
        return ended[0]
    tone = Tone.BAD if progress.state is SubmissionState.FAILED else Tone.QUIET
    return Text(progress.state.value, tone)


def _about(seconds: float) -> str:
    span = show_span(seconds)
    return span if span.startswith("under") else f"about {span}"


def _waiting(progress: JobStatus) -> str:
    words = "queued"
    if progress.place is not None:
        words += f", position {progress.place.position}"
        if progress.job.waits:
            words += f"; {progress.job.waits}"
            return words
        if progress.place.paused is not None:
            words += f"; {progress.job.gpu} is paused: {progress.place.paused}"
        elif progress.place.estimate_s is not None:
            words += f", {_about(progress.place.estimate_s)}"
        elif progress.place.running:
            words += f", {progress.place.running} running now"
    if progress.job.error:
        words += (
            f"; runs again: attempt {progress.job.attempt} of {progress.job.max_attempts} ended "
            f"through no fault of yours ({progress.job.error})"
        )
    return words


def _running(progress: JobStatus) -> str:
    count = f" {progress.done}/{progress.total}" if progress.stage and progress.total else ""
    note = f", {progress.note}" if progress.note else ""
    return f"{progress.stage or 'starting'}{count}{note}"


_WHEN = (1980, 1, 1, 0, 0, 0)
"""A constant time, so that the same files give the same archive."""


def archives(submission: SubmissionId, files: Sequence[StoredFile]) -> tuple[Attachment, ...]:
    """Return a zip of files for each GPU type; `files` are sorted by GPU type."""
    return tuple(
        Attachment(f"profile-{submission}-{gpu}.zip", _zipped([each.file for each in of_gpu]))
        for gpu, of_gpu in groupby(files, lambda each: each.gpu)
    )


def _zipped(files: Sequence[EvaluationFile]) -> bytes:
    """Return a zip of the files, without those that cannot be decoded."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in files:
            with suppress(ValueError):
                archive.writestr(
                    zipfile.ZipInfo(each.name, _WHEN), each.content(), zipfile.ZIP_DEFLATED
                )
    return buffer.getvalue()
