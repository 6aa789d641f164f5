"""The report of what a person has submitted, newest first."""

from collections.abc import Sequence

from bot.domain.durations import show_time
from bot.domain.records import HistoryEntry, JobResult
from bot.domain.submission import SubmissionState
from bot.reports.blocks import Column, Report, Table, Text, Tone
from bot.reports.submission import VERDICT_WORDS

_COLUMNS = (
    Column("submission", numeric=True),
    Column("when (UTC)"),
    Column("board"),
    Column("task version", numeric=True),
    Column("file"),
    Column("mode"),
    Column("outcome"),
)


def history_report(person_name: str, past: Sequence[HistoryEntry]) -> Report:
    """One line per submission; several GPU types share it."""
    title = f"submissions of {person_name}"
    if not past:
        return Report(title, (Text("nothing yet", Tone.QUIET),))
    return Report(title, (history_table(past),))


def history_table(past: Sequence[HistoryEntry]) -> Table:
    """A row for each submission."""
    return Table("submissions", _COLUMNS, tuple(_row(each) for each in past))


def history_line(past: HistoryEntry) -> str:
    """One submission in a line, such as `#17, 2026-11-22 09:15, ranked; H100: passed`."""
    given = past.submission
    when = f"{given.created_at:%Y-%m-%d %H:%M}"
    return f"#{given.id}, {when}, {given.mode.value}; {', '.join(_outcomes(past))}"


def _row(past: HistoryEntry) -> tuple[str, ...]:
    submission = past.submission
    return (
        f"#{submission.id}",
        f"{submission.created_at:%Y-%m-%d %H:%M}",
        past.board_name,
        str(past.version),
        submission.file_name,
        submission.mode.value,
        ", ".join(_outcomes(past)),
    )


def _outcomes(past: HistoryEntry) -> tuple[str, ...]:
    """What there is, and the state as long as that is not all: a job may run or be given up."""
    outcomes = tuple(_outcome(each) for each in past.results)
    state = past.submission.state
    return outcomes if state is SubmissionState.FINISHED else (*outcomes, state.value)


def _outcome(outcome: JobResult) -> str:
    if outcome.score is not None:
        shown = show_time(outcome.score.time_ns, outcome.score.half_width_ns)
        return f"{outcome.gpu}: {shown}"
    return f"{outcome.gpu}: {VERDICT_WORDS[outcome.verdict]}"
