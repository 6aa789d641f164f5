"""Reports of submissions and standings for a narrow screen: what matters most comes first.

That is whether a submission passed or why not, its time, its place and the gap to the next, and the
change to the person's own best; in standings the medal, name, time, and gap to the first.
The complete reports are in `bot.reports.submission` and `bot.reports.standings`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from bot.domain import times
from bot.domain.leaderboard import BoardStandings, Placement
from bot.domain.names import cut_name
from bot.domain.records import StoredFile
from bot.domain.scoring import ScoreValue, Standing, judged
from bot.domain.status import JobStatus, SubmissionStatus, failed_cases, is_public
from bot.reports import submission
from bot.reports.blocks import Block, Column, Log, Report, Table, Text, Tone
from bot.reports.confirmations import compared_lines, pending_table
from bot.reports.machine import noisy_lines
from bot.reports.standings import (
    absent_table,
    cut,
    page_notes,
    rank_among,
    speed_up_line,
    title_of_standings,
    vs_reference,
)
from runners.contract.evaluation import CaseKind, CaseStatus, Evaluation

RANKS = 10
"""How many ranks are on a page."""
_OTHERS = 8
"""How many people without a rank are on a page."""
_NAME = 32
_REASON = 60
"""The most characters of a name, and of the reason why a person has no rank."""
_COLUMNS = (Column("who"), Column("time", numeric=True), Column("gap", numeric=True))
_EMPTY = "no ranked submissions yet"
_LINE = re.compile(r"\bline (\d{1,6})\b")
"""Where a message names a line of the submission."""
_AROUND = 1
"""How many lines before and after it are shown."""
_WIDEST = 200
"""The most characters of a shown line of source."""


def short_report(
    progress: SubmissionStatus,
    placements: Sequence[Placement] = (),
    files: Sequence[StoredFile] = (),
    source: str = "",
) -> Report:
    """Return the report; `source` is empty for people who may not read it."""
    blocks: list[Block] = [*submission.head_lines(progress)]
    places = {each.gpu: each for each in placements}
    for job in progress.jobs:
        if job.evaluation is None:
            blocks += submission.job_line(job), *compared_lines(job)
        else:
            blocks += _job_blocks(job, job.evaluation, places.get(job.job.gpu), source)
    blocks += submission.archives(progress.submission.id, files)
    return Report(submission.title_of(progress), tuple(blocks))


def _job_blocks(
    job: JobStatus, evaluation: Evaluation, place: Placement | None, source: str
) -> Iterator[Block]:
    yield submission.verdict_line(evaluation, with_total=False)
    if evaluation.stage is None:
        yield from _times(evaluation, place)
    else:
        yield from _failure(evaluation, source)
    yield from compared_lines(job)
    yield from _time_notes(evaluation, place)
    yield from map(Text, noisy_lines(evaluation))
    counts = _passed_words(evaluation)
    details = [counts] if counts else []
    for each in (*details, *submission.short_notes(evaluation)):
        yield Text(each, Tone.QUIET)
    if evaluation.log:
        yield Log("submission output", evaluation.log)
    yield submission.gpu_time(evaluation, job.cost)


def _failure(evaluation: Evaluation, source: str) -> Iterator[Block]:
    """Yield the failed case, the message, and the line of the submission that it names."""
    failed = failed_cases(evaluation)
    for number, case in failed:
        named = f"{case.kind} {number}"
        arguments = "" if case.spec == named else f": {case.spec}"
        if arguments or len(failed) > 1:
            yield Text(f"{named}{arguments}", Tone.QUIET)
        if case.message and case.message != evaluation.message:
            yield _message(case.message)
    if evaluation.message:
        yield _message(evaluation.message)
    quoted = _quoted_lines(evaluation.message, source) if is_public(evaluation) else ""
    if quoted:
        yield Log("your source", quoted)


def _message(text: str) -> Block:
    return Log("message", text) if "\n" in text.strip() else Text(text)


def _quoted_lines(message: str, source: str) -> str:
    """Return the line of the source that the message names, with those around it."""
    lines, found = source.splitlines(), _LINE.findall(message)
    if not found or not 1 <= int(found[-1]) <= len(lines):
        return ""
    number = int(found[-1])
    shown = range(max(1, number - _AROUND), min(len(lines), number + _AROUND) + 1)
    width = len(str(shown[-1]))
    return "\n".join(
        f"{'>' if each == number else ' '} {each:>{width}}  {lines[each - 1][:_WIDEST]}"
        for each in shown
    )


def _times(evaluation: Evaluation, place: Placement | None) -> Iterator[Block]:
    """Yield the time, its place, and the change; then each benchmark if there are several."""
    timed = [case for case in evaluation.cases if case.measurement is not None]
    if place is not None:
        yield Text(times.show_score(place.value), Tone.STRONG)
        yield from map(Text, place_lines(place))
    elif len(timed) == 1 and timed[0].measurement is not None:
        yield Text(times.show_score(judged(timed[0].measurement)), Tone.STRONG)
    if len(timed) > 1:
        rows = ((case.spec, times.show_score(judged(case.measurement))) for case in timed
                if case.measurement is not None)  # fmt: skip
        yield Table("benchmarks", (Column("arguments"), Column("time", numeric=True)), tuple(rows))


def _time_notes(evaluation: Evaluation, place: Placement | None) -> Iterator[Text]:
    """Yield the speedup over the reference, and what the submission's own clock says."""
    if evaluation.stage is not None:
        return
    timed = [case.measurement for case in evaluation.cases if case.measurement is not None]
    if place is not None:
        said_below = len(timed) == 1 and timed[0].vs_reference is not None
        if not said_below and (faster := speed_up_line(place, evaluation)):
            yield Text(faster, Tone.QUIET)
        yield from _claim(place.value)
    elif len(timed) == 1:
        yield from _claim(judged(timed[0]))


def _claim(value: ScoreValue) -> Iterator[Text]:
    if value.claimed_ns is not None:
        yield Text(
            f"the submission's own clock says {times.show_time(value.claimed_ns)}", Tone.QUIET
        )


def place_lines(place: Placement) -> Iterator[str]:
    """Yield the place with the gap to the next, then the change to the person's own best."""
    best = place.best or place.value
    rank = rank_among(place.rank, place.entries, shared=place.shared)
    whose = "" if place.is_best else "your place stays "
    yield f"{whose}{times.medal(place.rank)}{rank}{_gap(place, best)}"
    if place.shared:
        yield "shared: the judge cannot tell these times apart"
    if not place.is_best:
        yield _change(place.value, best, "your best")
    elif place.previous is not None:
        yield _change(place.value, place.previous, "before")
    else:
        yield "your first time here"


def _gap(place: Placement, best: ScoreValue) -> str:
    """Return how far the next person is: the one ahead, or for the first place the one behind."""
    if place.ahead is not None:
        ahead_ns, rank = place.ahead.score.value.time_ns, times.ordinal(place.ahead.rank)
        return f", {times.show_gap(best.time_ns, ahead_ns, rank)}"
    if place.behind is not None:
        other_ns, rank = place.behind.score.value.time_ns, times.ordinal(place.behind.rank)
        if other_ns >= 2 * best.time_ns:
            return f", {times.show_change(best.time_ns, other_ns, rank)}"
        return f", {times.show_percent(other_ns / best.time_ns - 1)} ahead of {rank}"
    return ""


def _change(value: ScoreValue, other: ScoreValue, name: str) -> str:
    """Return how a time compares with another, such as `2.9 % faster than your best, 30.00 µs`."""
    change = times.show_change(value.time_ns, other.time_ns, name)
    return f"{change}, {times.show_time(other.time_ns)}"


def _passed_words(evaluation: Evaluation) -> str:
    """Return how many tests and benchmarks passed, such as `5 of 5 tests passed`."""
    words = []
    for kind in CaseKind:
        cases = [each for each in evaluation.cases if each.kind is kind]
        passed = sum(each.status is CaseStatus.PASSED for each in cases)
        if cases:
            words.append(f"{passed} of {len(cases)} {kind}{'s' if len(cases) != 1 else ''}")
    return f"passed: {', '.join(words)}" if words else ""


def standings_pages(leaderboard: BoardStandings, own: int | None = None) -> tuple[Report, ...]:
    """Return the ranks, then the people without one; `own` is the person who reads them."""
    ranks = _ranks(leaderboard, leaderboard.entries, own)
    tables = [
        *_chunks(ranks, RANKS, _NAME + 12),
        *_chunks(pending_table(leaderboard.pending), RANKS, _NAME),
        *_chunks(absent_table(leaderboard.refused), _OTHERS, _REASON),
    ]
    blocks: list[Block] = [*tables] or [Text(_EMPTY, Tone.QUIET)]
    title = title_of_standings(leaderboard)
    return tuple(
        Report(title, (block, *_small_print(leaderboard, number, len(blocks))))
        for number, block in enumerate(blocks)
    )


def page_of(leaderboard: BoardStandings, person: int) -> int | None:
    """Return the number of the page on which a person is ranked, from 0; None without a rank."""
    for number, entry in enumerate(leaderboard.entries):
        if entry.score.person == person:
            return number // RANKS
    return None


def page_names(leaderboard: BoardStandings) -> tuple[str, ...]:
    """Return what is on each page, such as `places 11 to 20`."""
    count = len(leaderboard.entries)
    names = [_range(start + 1, min(start + RANKS, count)) for start in range(0, count, RANKS)]
    for name, others, size in (
        ("confirmation pending", len(leaderboard.pending), RANKS),
        ("not ranked", len(leaderboard.refused), _OTHERS),
    ):
        pages = -(-others // size)
        names += [name if pages == 1 else f"{name}, {each + 1}" for each in range(pages)]
    return tuple(names)


def _range(first: int, last: int) -> str:
    return f"places {first} to {last}" if first < last else f"place {first}"


def standings_side_by_side(
    leaderboards: Sequence[BoardStandings], own: int | None = None
) -> Report:
    """Return the best of several GPU types of one board, each with its own ranks."""
    most = RANKS if len(leaderboards) < 3 else RANKS // 2
    board, blocks = f"{leaderboards[0].board.name} on ", list[Block]()
    for each in leaderboards:
        best = next(_chunks(_ranks(each, each.entries, own), most, _NAME + 12), None)
        blocks.append(Text(title_of_standings(each).removeprefix(board), Tone.STRONG))
        blocks.append(best or Text(_EMPTY, Tone.QUIET))
    gpus = ", ".join(each.gpu for each in leaderboards)
    return Report(f"{board}{gpus}", tuple(blocks))


def _ranks(leaderboard: BoardStandings, entries: Sequence[Standing], own: int | None) -> Table:
    shared = Counter(entry.rank for entry in leaderboard.entries)
    rows = tuple(
        (
            _place(entry, shared=shared[entry.rank] > 1, own=entry.score.person == own),
            times.show_score(entry.score.value, "*"),
            _gap_to_first(entry, leaderboard.entries[0].score.value),
        )
        for entry in entries
    )
    return Table("", _COLUMNS, rows, is_list=True)


def _place(entry: Standing, *, shared: bool, own: bool) -> str:
    """Return medal and name, such as `🥇 Ada`; from the fourth rank on, its number and name."""
    name = cut_name(entry.score.person_name, _NAME)
    return f"{times.rank_sign(entry.rank, shared=shared)} {name}{' (you)' if own else ''}"


def _gap_to_first(entry: Standing, best: ScoreValue) -> str:
    if entry.rank == 1:
        return ""
    return times.show_gap(entry.score.value.time_ns, best.time_ns)


def _chunks(table: Table, size: int, most: int) -> Iterator[Table]:
    """Yield lists of `size` rows, with cells cut to `most` characters."""
    for start in range(0, len(table.rows), size):
        rows = table.rows[start : start + size]
        short = tuple(
            (cut_name(first, _NAME + 12), *(cut(cell, most) for cell in others))
            for first, *others in rows
        )
        yield Table(table.title, table.columns, short, is_list=True)


def _small_print(leaderboard: BoardStandings, number: int, pages: int) -> Iterator[Text]:
    """Yield which page it is, and on the first one the notes on the board."""
    if pages > 1:
        yield Text(f"page {number + 1} of {pages}", Tone.QUIET)
    if number == 0:
        first = next(iter(leaderboard.entries), None)
        if first and (faster := vs_reference(leaderboard.reference, first.score)):
            yield Text(f"1st: {faster}", Tone.QUIET)
        yield from page_notes(leaderboard)
