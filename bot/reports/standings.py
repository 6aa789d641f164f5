"""A leaderboard, a person's rank on it, and leaderboards as CSV."""

import csv
import io
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from bot.domain.leaderboard import BoardStandings, Placement
from bot.domain.noise import TOO_NOISY
from bot.domain.records import FailedRun
from bot.domain.scoring import Score, ScoreValue, Standing
from bot.domain.status import SubmissionStatus
from bot.domain.times import (
    SpeedUp,
    describe_speed_up,
    medal,
    ordinal,
    ratio_in_turn,
    show_deadline,
    show_gap,
    show_score,
    show_time,
    speed_up,
    speed_up_of,
    speed_up_over,
)
from bot.reports.blocks import Block, Column, Report, Table, Text, Tone
from bot.reports.confirmations import final_line, pending_table
from bot.reports.escaping import escape_formula, one_line
from bot.reports.submission import IN_PROCESS
from runners.contract.evaluation import CPU, Evaluation
from runners.contract.task import Mode
from runners.contract.verdict import VERDICT_WORDS, Verdict

_COLUMNS = (Column("rank", numeric=True), Column("who"), Column("time", numeric=True))
_CLAIMED = Column("claimed", numeric=True)
_VS_FIRST = Column("vs first", numeric=True)
_VS_REFERENCE = Column("vs reference", numeric=True)
_LIGHT = (Column("speed of light", numeric=True),)
_MARK = "*"
"""Marks a time that the judge's clock does not confirm."""
_OWN_RUN_MARK = "~"
"""Marks a speedup over the reference's own run, if others were timed in turn with it."""
_TIMED_BY = (Column("timed by"),)
"""Shown when several pools timed the entries, because their times may not be comparable."""
_LAST_COLUMNS = (Column("ranked runs", numeric=True), Column("submission", numeric=True))
_ABSENT_COLUMNS = (
    Column("who"),
    Column("verdict"),
    Column("reason"),
    Column("submission", numeric=True),
)


def standings_report(leaderboard: BoardStandings) -> Report:
    """Return the ranks, the runs to be confirmed, then the people without a rank."""
    blocks: list[Block] = [*standings_notes(leaderboard)]
    if leaderboard.entries:
        blocks.append(standings_table(leaderboard, leaderboard.entries))
    else:
        blocks.append(Text("no ranked submissions yet", Tone.QUIET))
    if leaderboard.pending:
        blocks.append(pending_table(leaderboard.pending))
    if leaderboard.refused:
        blocks.append(absent_table(leaderboard.refused))
    return Report(title_of_standings(leaderboard), tuple(blocks))


def page_notes(leaderboard: BoardStandings) -> Iterator[Text]:
    """Yield the notes on a page of ranks, cut to one line each."""
    for text in standings_notes(leaderboard):
        if not text.text.startswith(_CLAIMED.name):  # these times are not on the pages
            yield Text(cut(text.text, 150), text.tone)


def title_of_standings(leaderboard: BoardStandings) -> str:
    """Return the board, the GPU type, and the task version if there are several."""
    title = f"{leaderboard.board.name} on {leaderboard.gpu}"
    if leaderboard.version > 1:
        title += f" (task version {leaderboard.version})"
    return title


def standings_notes(leaderboard: BoardStandings) -> Iterator[Text]:
    """Yield the notes above the ranks: the deadline, and notes on this task version."""
    deadline = leaderboard.board.deadline
    if deadline is not None:
        yield Text(f"deadline: {show_deadline(deadline)}", Tone.QUIET)
    pool = leaderboard.board.pool_for(leaderboard.gpu, Mode.RANKED)
    if pool:
        yield Text(f"ranked runs on {leaderboard.gpu} are timed only by pool {pool}", Tone.QUIET)
    if leaderboard.note:
        yield Text(f"task version {leaderboard.version}: {leaderboard.note}", Tone.QUIET)
    yield from _confirming(leaderboard)
    if leaderboard.speed_of_light_ns is not None:
        least = show_time(leaderboard.speed_of_light_ns)
        yield Text(
            f"speed of light {least}: the minimum time to move the data once at peak memory "
            "bandwidth",
            Tone.QUIET,
        )
    if leaderboard.reference is not None:
        taken = leaderboard.reference
        yield Text(f"reference: {show_score(taken)}", Tone.QUIET)
    elif leaderboard.reference_failure:
        why = cut(leaderboard.reference_failure)
        yield Text(f"reference: no time ({why}); only you, the creator, can see this", Tone.QUIET)
    yield from (Text(words, Tone.QUIET) for words in _how_to_read(leaderboard))


def _how_to_read(leaderboard: BoardStandings) -> Iterator[str]:
    """Yield what the times and ranks mean."""
    entries, in_turn = leaderboard.entries, _any_in_turn(leaderboard)
    values = [entry.score.value for entry in entries]
    by_ratio = in_turn and leaderboard.gpu == CPU
    if by_ratio or any(value.resolution_ns for value in values):
        usual = "the ratio to the reference times its usual time on this board"
        by = usual if by_ratio else "by the judge's clock"
        yield f"time: {by}; it counts at the upper end of its ±"
    if _has_claims(entries):
        yield "claimed: by the submission's own clock; it decides nothing"
    if not all(value.confirmed for value in values):
        yield f"{_MARK} not confirmed by the judge's clock; counts as it was reported"
    if len({entry.rank for entry in entries}) < len(entries):
        yield "= shared rank: times that the judge cannot tell apart"
    if _decided_by_ratio(entries):
        yield "where times overlap: the runs were compared, and the ratio decides their ranks"
    if in_turn:
        yield f"vs reference: timed in turn with it ({_OWN_RUN_MARK}: by its own run)"


def _decided_by_ratio(standings: Sequence[Standing]) -> bool:
    """Return whether a comparison gave a person another rank than these times alone would."""
    passes = sorted(each.score.value.passes_ns for each in standings)
    return any(
        each.rank != 1 + bisect_left(passes, each.score.value.upper_ns) for each in standings
    )


def _has_claims(entries: Sequence[Standing]) -> bool:
    return any(entry.score.value.claimed_ns is not None for entry in entries)


def _confirming(leaderboard: BoardStandings) -> Iterator[Text]:
    """Yield why no place is confirmed here, and how far the newest final is."""
    if leaderboard.in_process:
        yield Text(IN_PROCESS, Tone.QUIET)
        yield Text("no place is confirmed: that needs the judge's own times", Tone.QUIET)
    if leaderboard.final is not None:
        yield Text(final_line(leaderboard.final), Tone.QUIET)


def standings_table(leaderboard: BoardStandings, entries: Sequence[Standing]) -> Table:
    """Return a row for each of these entries of the leaderboard."""
    shared = Counter(entry.rank for entry in leaderboard.entries)
    light_ns = leaderboard.speed_of_light_ns
    several = _has_several_pools(leaderboard)
    claims, in_turn = _has_claims(leaderboard.entries), _any_in_turn(leaderboard)
    compared = _VS_REFERENCE if in_turn or leaderboard.reference is not None else _VS_FIRST
    best_ns = min((entry.score.value.upper_ns for entry in leaderboard.entries), default=1.0)
    rows = tuple(
        (
            f"{entry.rank}=" if shared[entry.rank] > 1 else str(entry.rank),
            entry.score.person_name,
            show_score(entry.score.value, _MARK),
            *((_claimed(entry.score.value),) if claims else ()),
            f"{entry.score.value.upper_ns / best_ns:.2f}x"
            if compared is _VS_FIRST
            else _speed_up(leaderboard.reference, entry.score, others_in_turn=in_turn),
            *(() if light_ns is None else (f"{light_ns / entry.score.value.time_ns:.0%}",)),
            *((entry.score.pool or "unknown",) if several else ()),
            str(entry.attempts),
            f"#{entry.score.submission}",
        )
        for entry in entries
    )
    light = () if light_ns is None else _LIGHT
    timed_by = _TIMED_BY if several else ()
    columns = (*_COLUMNS, *((_CLAIMED,) if claims else ()), compared, *light, *timed_by)
    return Table("standings", (*columns, *_LAST_COLUMNS), rows)


def _claimed(value: ScoreValue) -> str:
    return "" if value.claimed_ns is None else show_time(value.claimed_ns)


def _has_several_pools(leaderboard: BoardStandings) -> bool:
    """Return whether several pools of machines timed the entries."""
    return len({entry.score.pool for entry in leaderboard.entries}) > 1


def _speed_up(reference: ScoreValue | None, score: Score, *, others_in_turn: bool) -> str:
    """Return the speedup over the reference, marked if only others were timed in turn with it."""
    faster = speed_up_over(reference, score)
    mark = _OWN_RUN_MARK if others_in_turn and score.vs_reference is None else ""
    return "" if faster is None else mark + describe_speed_up(faster)


def _any_in_turn(leaderboard: BoardStandings) -> bool:
    return any(entry.score.vs_reference is not None for entry in leaderboard.entries)


def absent_table(refused: Sequence[FailedRun]) -> Table:
    """Return a row for each of these people without a rank."""
    return Table("not ranked", _ABSENT_COLUMNS, tuple(_absent(each) for each in refused))


def _absent(run: FailedRun) -> tuple[str, ...]:
    verdict = Verdict(run.verdict)
    noisy = verdict is Verdict.PASSED
    words = (TOO_NOISY, "") if noisy else (VERDICT_WORDS[verdict], cut(run.message))
    return (run.person_name, *words, f"#{run.submission}")


def cut(text: str, most: int = 100) -> str:
    """Return the first line of a text, at most this long."""
    line = text.strip().split("\n", maxsplit=1)[0]
    return line if len(line) <= most else f"{line[: most - 1]}…"


def rank_among(rank: int, entries: int, *, shared: bool) -> str:
    """Return a rank among all people, such as `1st (shared) of 7`."""
    return f"{ordinal(rank)}{' (shared)' if shared else ''} of {entries}"


def speed_up_line(place: Placement, evaluation: Evaluation | None) -> str:
    """Return the speedup over the reference, timed in turn if that is known; empty without one."""
    if (in_turn := ratio_in_turn(evaluation)) is not None:
        return _vs_reference(speed_up_of(in_turn), in_turn=True)
    if place.reference is None:
        return ""
    return _vs_reference(speed_up(place.reference, place.value), in_turn=False)


def _vs_reference(faster: SpeedUp, *, in_turn: bool) -> str:
    words = f"{describe_speed_up(faster)} vs reference"
    return f"{words}, timed in turn with it" if in_turn else words


def vs_reference(reference: ScoreValue | None, score: Score) -> str:
    """Return the speedup of a score over the reference, and how it is known; empty without one."""
    faster = speed_up_over(reference, score)
    in_turn = score.vs_reference is not None
    return "" if faster is None else _vs_reference(faster, in_turn=in_turn)


def placement_line(place: Placement, evaluation: Evaluation | None = None) -> Text:
    """Return a person's rank and time, such as `🥇 1st of 7 on H100: 29.14 µs ± 0.06`."""
    time = show_score(place.value)
    if place.value.claimed_ns is not None:
        time += f", claimed {_claimed(place.value)}"
    if faster := speed_up_line(place, evaluation):
        time += f", {faster}"
    if not place.is_best:
        return Text(f"{time} on {place.gpu}; not this person's best time", Tone.QUIET)
    rank = rank_among(place.rank, place.entries, shared=place.shared)
    best = ", a personal best" if place.improved else ""
    shared = "; shared: the judge cannot tell these times apart" if place.shared else ""
    return Text(f"{medal(place.rank)}{rank} on {place.gpu}: {time}{best}{shared}", Tone.PLAIN)


def placement_lines(places: Sequence[Placement], status: SubmissionStatus) -> list[Text]:
    """Return the line of each rank of a submission."""
    found = {each.job.gpu: each.evaluation for each in status.jobs}
    return [placement_line(each, found.get(each.gpu)) for each in places]


_MOST_NAMED = 2
"""If more people share the first rank, only one of them is named."""


def first_names(entries: Sequence[Standing]) -> str:
    """Return who shares the first rank: one or two names, or one name and how many others."""
    names = [each.score.person_name for each in entries if each.rank == 1]
    return f"{names[0]} and {len(names) - 1} more" if len(names) > _MOST_NAMED else ", ".join(names)


def gaps(leaderboard: BoardStandings, own: Standing) -> tuple[str, ...]:
    """Return how far a standing is behind the next rank, and its speedup over the reference."""
    lines = []
    ahead = [each for each in leaderboard.entries if each.rank < own.rank]
    if ahead:
        following, value = ahead[-1], own.score.value
        ahead_ns = following.score.value.time_ns
        name = f"{ordinal(following.rank)}, {one_line(following.score.person_name)}"
        gap = show_gap(value.time_ns, ahead_ns, name)
        lines.append(f"{gap}: {show_time(max(0.0, value.time_ns - ahead_ns))} more")
    if faster := vs_reference(leaderboard.reference, own.score):
        lines.append(faster)
    return tuple(lines)


def standing_line(standing: Standing) -> str:
    """Return a standing in one line, such as `1st: Ada, 29.14 µs ± 0.06 (#17)`."""
    score = standing.score
    time = show_score(score.value)
    return f"{ordinal(standing.rank)}: {one_line(score.person_name)}, {time} (#{score.submission})"


COLUMNS = (
    "board", "gpu", "task_version", "rank", "person", "time_ns", "half_width_ns", "vs_reference",
    "attempts", "submission", "submitted_at", "pool", "resolution_ns", "claimed_ns",
    "vs_reference_low", "vs_reference_high", "vs_reference_in_turn",
)  # fmt: skip


def standings_csv(leaderboards: Iterable[BoardStandings]) -> str:
    """Return a line per leaderboard entry, times in ns; names cannot be formulas."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for leaderboard in leaderboards:
        writer.writerows([escape_formula(cell) for cell in row] for row in _rows(leaderboard))
    return text.getvalue()


def _rows(leaderboard: BoardStandings) -> Iterator[tuple[object, ...]]:
    reference = leaderboard.reference
    for entry in leaderboard.entries:
        score = entry.score
        faster = speed_up_over(reference, score)
        yield (
            leaderboard.board.name,
            leaderboard.gpu,
            leaderboard.version,
            entry.rank,
            score.person_name,
            score.value.time_ns,
            score.value.half_width_ns,
            None if faster is None else faster.factor,
            entry.attempts,
            score.submission,
            score.submitted_at.isoformat(),
            score.pool,
            score.value.resolution_ns,
            score.value.claimed_ns,
            None if faster is None else faster.low,
            None if faster is None else faster.high,
            score.vs_reference is not None,
        )
