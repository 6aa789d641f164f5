"""Response bodies of boards, tasks and standings."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from typing import TypeVar

from bot.domain.api.base import Time
from bot.domain.api.boards import (
    Absent,
    BestTime,
    BoardAnswer,
    BoardLine,
    LeaderboardsAnswer,
    StandingBody,
    StandingsAnswer,
    TaskAnswer,
    TaskFileBody,
    WorkloadBody,
)
from bot.domain.board import Board, TaskVersion
from bot.domain.leaderboard import BoardOverview, BoardStandings
from bot.domain.records import FailedRun
from bot.domain.reference_times import speed_up
from bot.domain.scoring import ScoreValue, Standing
from bot.domain.tasks.template import shown_files
from runners.contract.evaluation import Timing
from runners.contract.task import Workload


def time_answer(value: ScoreValue | None) -> Time | None:
    """Return a time, or None."""
    if value is None:
        return None
    return Time(time_ns=value.time_ns, half_width_ns=value.half_width_ns)


def board_line(board: Board, now: datetime) -> BoardLine:
    """Return a board's public data, without its guests."""
    return BoardLine(
        name=board.name,
        id=board.id,
        gpus=board.gpus,
        deadline=board.deadline,
        is_open=board.is_open(now),
        created_at=board.created_at,
        creator_id=board.creator,
        task_version_id=board.task_version,
        visibility=board.access.visibility,
        source_visibility=board.access.source,
        pools=dict(board.pins),
    )


def board_answer(found: BoardOverview, now: datetime) -> BoardAnswer:
    """Return a board with its activity."""
    best = tuple(
        BestTime(
            gpu=score.gpu,
            person=score.person_name,
            submission=score.submission,
            time_ns=score.value.time_ns,
            half_width_ns=score.value.half_width_ns,
        )
        for score in found.best
    )
    line = dict(board_line(found.board, now))
    return BoardAnswer(**line, participants=found.participants, best=best)


def task_answer(board: Board, version: TaskVersion) -> TaskAnswer:
    """Return a task without the contents of its files."""
    task = version.definition
    return TaskAnswer(
        board=board.name,
        name=task.name,
        version=version.number,
        version_note=task.version_note,
        created_at=version.created_at,
        description=task.description,
        language=task.lang,
        format=task.format,
        grader=task.grader,
        device=task.device,
        ranking_by=task.ranking_by,
        gpus=board.gpus,
        libraries=task.libraries,
        multi_gpu=task.multi_gpu,
        tests=_cases(task.tests),
        benchmarks=_cases(task.benchmarks),
        test_timeout_s=task.test_timeout,
        benchmark_timeout_s=task.benchmark_timeout,
        ranked_timeout_s=task.ranked_timeout,
        submission_file=task.submission_file,
        files=tuple(
            TaskFileBody(name=name, size=len(text.encode(errors="surrogatepass")))
            for name, text in shown_files(task, board.name).items()
        ),
        templates=tuple(task.templates),
    )


def _cases(workloads: Sequence[Workload]) -> tuple[WorkloadBody, ...]:
    return tuple(WorkloadBody(spec=each.spec, workload=each) for each in workloads)


async def leaderboards_answer(found: Sequence[BoardStandings], now: datetime) -> LeaderboardsAnswer:
    """Return a board's leaderboards; yields to other tasks when they are large."""
    return LeaderboardsAnswer(
        board=board_line(found[0].board, now),
        leaderboards=tuple([await _standings(each) for each in found]),
    )


async def _standings(leaderboard: BoardStandings) -> StandingsAnswer:
    return StandingsAnswer(
        board=leaderboard.board.name,
        gpu=leaderboard.gpu,
        task_version=leaderboard.version,
        version_note=leaderboard.note,
        deadline=leaderboard.board.deadline,
        speed_of_light_ns=leaderboard.speed_of_light_ns,
        timing=Timing.IN_PROCESS if leaderboard.in_process else Timing.OUTSIDE,
        reference=time_answer(leaderboard.reference),
        reference_failure=leaderboard.reference_failure,
        entries=tuple(
            [_entry(each, leaderboard.reference) async for each in yielding(leaderboard.entries)]
        ),
        absent=tuple([_absent(each) async for each in yielding(leaderboard.refused)]),
    )


def _entry(entry: Standing, reference: ScoreValue | None) -> StandingBody:
    score = entry.score
    return StandingBody(
        rank=entry.rank,
        person=score.person_name,
        person_id=score.person,
        time_ns=score.value.time_ns,
        half_width_ns=score.value.half_width_ns,
        vs_reference=None if reference is None else speed_up(reference, score.value),
        attempts=entry.attempts,
        submission=score.submission,
        submitted_at=score.submitted_at,
        pool=score.pool,
    )


def _absent(refusal: FailedRun) -> Absent:
    return Absent(
        person=refusal.person_name,
        person_id=refusal.person,
        verdict=refusal.verdict,
        stage=refusal.stage,
        message=refusal.message,
        submission=refusal.submission,
        submitted_at=refusal.submitted_at,
    )


STEP_S = 0.001
"""A request needs about ten turns of the event loop; each may wait for one such step."""

Thing = TypeVar("Thing")


async def yielding(things: Iterable[Thing], step_s: float = STEP_S) -> AsyncIterator[Thing]:
    """Yield the same items, and let other tasks run after every `step_s` seconds."""
    now = asyncio.get_running_loop().time
    ends = now() + step_s
    for each in things:
        yield each
        if now() >= ends:
            await asyncio.sleep(0)
            ends = now() + step_s
