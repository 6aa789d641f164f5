"""A person's submissions, and their own results on a board."""

from collections.abc import Iterator, Sequence

from bot.domain import times
from bot.domain.confirmation import ConfirmationState
from bot.domain.ids import SubmissionId
from bot.domain.leaderboard import BoardStandings, OwnStanding, PersonalBoard
from bot.domain.noise import TOO_NOISY
from bot.domain.records import HistoryEntry, JobResult
from bot.domain.scoring import Standing
from bot.domain.submission import SubmissionState
from bot.reports.blocks import Block, Chart, Column, Report, Series, Table, Text, Tone
from bot.reports.charts import DAY, points
from bot.reports.confirmations import STATE_WORDS
from bot.reports.standings import rank_among, vs_reference
from runners.contract.verdict import VERDICT_WORDS, Verdict

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
    """Return a table with one line per submission, for all its GPU types."""
    title = f"submissions of {person_name}"
    if not past:
        return Report(title, (Text("no submissions yet", Tone.QUIET),))
    return Report(title, (history_table(past),))


def history_table(past: Sequence[HistoryEntry]) -> Table:
    """Return a row for each submission."""
    return Table("submissions", _COLUMNS, tuple(_row(each) for each in past))


def history_line(past: HistoryEntry) -> str:
    """Return one line such as `#17, 2026-11-22 09:15 UTC, ranked; H100: passed`."""
    submission = past.submission
    when = f"{submission.created_at:%Y-%m-%d %H:%M} UTC"
    return f"#{submission.id}, {when}, {submission.mode.value}; {', '.join(_outcomes(past))}"


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
    """Return the results so far and, unless all are present, the state."""
    ranked, state = past.submission.is_ranked, past.submission.state
    outcomes = tuple(_outcome(each, ranked=ranked) for each in past.results)
    return outcomes if state is SubmissionState.FINISHED else (*outcomes, state.value)


def _outcome(outcome: JobResult, *, ranked: bool) -> str:
    found = (
        VERDICT_WORDS[outcome.verdict] if outcome.score is None else times.show_score(outcome.score)
    )
    state, lost_to = outcome.confirmation, outcome.lost_to
    words = [f"{outcome.gpu}: {TOO_NOISY if outcome.noisy else found}"]
    if outcome.exclusion is not None:
        return f"{words[0]}, {outcome.exclusion}"
    if state is not None and state is not ConfirmationState.DROPPED:
        words.append(STATE_WORDS[state])
    elif ranked and outcome.verdict is Verdict.PASSED and not (outcome.score or outcome.noisy):
        words.append("not ranked")
    if lost_to is not None:
        words.append(f"lost its place to #{lost_to}")
    return ", ".join(words)


_NEWEST = (Column("submission"), Column("outcome"), Column("when (UTC)"))
_MOST_NEWEST = 10
"""How many submissions the short list has; the complete list is a file."""


def personal_report(personal: PersonalBoard) -> Report:
    """Return the person's standing on each GPU type, its history, and the submissions."""
    blocks: list[Block] = []
    if personal.standings:
        for own in personal.standings:
            blocks += _best_lines(own)
        blocks.append(trend(f"{personal.board.name}: your ranked times", personal.standings))
    else:
        blocks.append(Text("you have no ranked submission yet", Tone.QUIET))
    if personal.past:
        blocks.append(_newest(personal.past[:_MOST_NEWEST]))
    if len(personal.past) > _MOST_NEWEST:
        blocks.append(history_table(personal.past))
    return Report(f"you on {personal.board.name}", tuple(blocks))


def _newest(past: Sequence[HistoryEntry]) -> Table:
    rows = (
        (
            f"#{each.submission.id}",
            _short_outcome(each),
            f"{each.submission.created_at:%Y-%m-%d %H:%M}",
        )
        for each in past
    )
    return Table("your newest submissions", _NEWEST, tuple(rows), is_list=True)


def _short_outcome(past: HistoryEntry) -> str:
    """Return the times of a ranked run without intervals; of others the mode and the outcome."""
    scored = [
        (each.gpu, each.score)
        for each in past.results
        if each.score is not None
        and each.exclusion is None
        and each.lost_to is None
        and each.confirmation in {None, ConfirmationState.CONFIRMED}
    ]
    finished = past.submission.state is SubmissionState.FINISHED
    if finished and scored and len(scored) == len(past.results):
        return ", ".join(f"{gpu} {times.show_time(score.time_ns)}" for gpu, score in scored)
    mode, outcomes = past.submission.mode.value, _outcomes(past)
    if finished and len(outcomes) == 1:
        return f"{mode}: {outcomes[0].partition(': ')[2]}"
    return f"{mode}, {', '.join(outcomes)}"


def _best_lines(own: OwnStanding) -> Iterator[Text]:
    """Yield the best time on a GPU type, its place, the gap to the next, and what was gained."""
    best, count = own.standing.score.value, own.standing.attempts
    yield Text(f"{own.gpu}: {times.show_score(best)}", Tone.STRONG)
    place = rank_among(own.standing.rank, own.entries, shared=own.shared)
    gap = ""
    if own.ahead is not None:
        ahead = own.ahead.score.value.time_ns
        gap = f", {times.show_gap(best.time_ns, ahead, times.ordinal(own.ahead.rank))}"
    yield Text(f"{times.medal(own.standing.rank)}{place}{gap}")
    first_ns = own.scores[0].value.time_ns
    if count > 1 and first_ns <= best.time_ns:
        yield Text("your first is still your best")
    elif count > 1:
        yield Text(times.show_change(best.time_ns, first_ns, "your first"))
    runs = "1 ranked run" if count == 1 else f"{count} ranked runs"
    reference = vs_reference(own.reference, own.standing.score)
    yield Text(f"{reference}; {runs}" if reference else runs, Tone.QUIET)


def own_rank_line(leaderboard: BoardStandings, own: Standing, number: SubmissionId) -> str:
    """Return a person's rank after a run, such as `H100: 1st of 7, 29.14 µs ± 0.06`."""
    is_shared = sum(each.rank == own.rank for each in leaderboard.entries) > 1
    rank = rank_among(own.rank, len(leaderboard.entries), shared=is_shared)
    line = f"{leaderboard.gpu}: {rank}, {times.show_score(own.score.value)}"
    best = own.score.submission
    return line if best == number else f"{line}, still by #{best}"


def trend(title: str, standings: Sequence[OwnStanding]) -> Chart:
    """Return the history of a person's ranked times on a board, a series per GPU type."""
    scored = [score.value.time_ns for own in standings for score in own.scores]
    scale, unit = times.common_unit(scored)
    series = tuple(Series(own.gpu, points(own.scores, scale)) for own in standings)
    return Chart(title, DAY, f"time ({unit})", series)
