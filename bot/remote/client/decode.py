"""Converts a server's responses to the values that a local Podium's services return.

ValueError when a response has a value that this version does not know.
"""

from datetime import UTC, datetime

from bot.domain.api import boards, finals, publishing, submissions
from bot.domain.api.admin import RunnerAnswer
from bot.domain.api.base import Time
from bot.domain.board import NOBODY, Access, Board, SeasonRules
from bot.domain.competition import Competition, CompetitionStandings, OverallEntry, PointsRule
from bot.domain.confirmation import Confirmation, ConfirmationState, LostPlace
from bot.domain.finals import Final, FinalRow
from bot.domain.ids import (
    BoardId,
    CompetitionId,
    ConfirmationId,
    FinalId,
    JobId,
    PersonId,
    SubmissionId,
    TaskVersionId,
)
from bot.domain.job import PRIORITIES, Job, Worker
from bot.domain.leaderboard import BoardStandings
from bot.domain.records import FailedRun, HistoryEntry, JobResult, StoredFile
from bot.domain.scoring import PairRatio, Score, ScoreValue, Standing
from bot.domain.status import JobStatus, QueuePosition, SubmissionStatus
from bot.domain.submission import Exclusion, Submission
from runners.contract.evaluation import Timing
from runners.contract.files import EvaluationFile
from runners.contract.task import GPU_NAME
from runners.contract.verdict import Verdict


def board_of(answer: boards.BoardLine) -> Board:
    """Return a board; its guild and guests are not sent."""
    return Board(
        id=BoardId(answer.id),
        name=answer.name,
        gpus=answer.gpus,
        deadline=answer.deadline,
        creator=PersonId(answer.creator_id),
        task_version=TaskVersionId(answer.task_version_id),
        created_at=answer.created_at,
        access=Access(answer.visibility, source=answer.source_visibility),
        pins=tuple(sorted(answer.pools.items())),
        rules=SeasonRules(answer.opens_at, answer.late_runs),
    )


def competition_of(answer: publishing.CompetitionAnswer) -> Competition:
    """Return a competition; a board that has not opened has only its name and date."""
    return Competition(
        id=CompetitionId(0),
        name=answer.name,
        creator=PersonId(answer.creator_id or 0),
        description=answer.description,
        points=PointsRule(answer.ranks),
        opens_at=answer.opens_at,
        boards=tuple(map(_competition_board, answer.boards)),
    )


def _competition_board(answer: publishing.CompetitionBoardBody) -> Board:
    if answer.board is not None:
        return board_of(answer.board)
    return Board(
        id=BoardId(0),
        name=answer.name,
        gpus=(),
        deadline=None,
        creator=NOBODY,
        task_version=TaskVersionId(0),
        created_at=answer.opens_at or datetime.now(UTC),
        rules=SeasonRules(answer.opens_at),
    )


def competition_standings_of(
    answer: publishing.CompetitionStandingsAnswer,
) -> CompetitionStandings:
    """Return a competition with its overall ranking."""
    competition = competition_of(answer)
    boards = {each.name: each for each in competition.boards}
    return CompetitionStandings(
        competition,
        tuple((boards[each.board], each.gpu) for each in answer.leaderboards),
        tuple(
            OverallEntry(each.rank, PersonId(each.person_id), each.person, each.total, each.points)
            for each in answer.entries
        ),
    )


def leaderboards_of(answer: boards.LeaderboardsAnswer) -> tuple[BoardStandings, ...]:
    """Return every leaderboard of a response."""
    board = board_of(answer.board)
    version = TaskVersionId(answer.board.task_version_id)
    return tuple(_standings(board, version, each) for each in answer.leaderboards)


def _standings(
    board: Board, version: TaskVersionId, answer: boards.StandingsAnswer
) -> BoardStandings:
    return BoardStandings(
        board=board,
        version=answer.task_version,
        gpu=answer.gpu,
        entries=tuple(_standing(board, version, answer.gpu, each) for each in answer.entries),
        refused=tuple(_refusal(answer.gpu, each) for each in answer.absent),
        note=answer.version_note,
        speed_of_light_ns=answer.speed_of_light_ns,
        reference=None if answer.reference is None else _value(answer.reference),
        reference_failure=answer.reference_failure,
        in_process=answer.timing is Timing.IN_PROCESS,
        pending=tuple(_pending(version, answer.gpu, each) for each in answer.pending),
        final=None if answer.final is None else _final(answer.final),
    )


def _pending(version: TaskVersionId, gpu: str, answer: finals.PendingBody) -> Confirmation:
    return Confirmation(
        id=ConfirmationId(0),
        submission=SubmissionId(answer.submission),
        person=PersonId(answer.person_id),
        person_name=answer.person,
        task_version=version,
        gpu=gpu,
        place=answer.place,
        state=ConfirmationState.PENDING,
        created_at=answer.submitted_at or datetime.now(UTC),
        submitted_at=answer.submitted_at,
        held=None if answer.time is None else _value(answer.time),
    )


def finals_of(answer: finals.FinalsAnswer) -> tuple[Final, ...]:
    """Return the finals of a board."""
    return tuple(map(_final, answer.finals))


def _final(answer: finals.FinalBody) -> Final:
    """Return a final; until it has ended, the server sends only the number of its entries."""
    return Final(
        id=FinalId(0),
        board=BoardId(0),
        task_version=TaskVersionId(0),
        gpu=answer.gpu,
        top=answer.top,
        created_at=answer.created_at,
        entries=None if answer.entries is None else (SubmissionId(0),) * min(answer.entries, 100),
        rows=None if answer.rows is None else tuple(map(_final_row, answer.rows)),
        ended_at=answer.ended_at,
        compared=answer.compared,
        comparison_s=answer.comparison_s,
    )


def _final_row(row: finals.FinalRowBody) -> FinalRow:
    return FinalRow(
        rank=row.rank,
        submission=SubmissionId(row.submission),
        person_name=row.person,
        time_ns=row.time_ns,
        half_width_ns=row.half_width_ns,
        resolution_ns=row.resolution_ns,
        ratio=_ratio(row.ratio),
    )


def _standing(
    board: Board, version: TaskVersionId, gpu: str, answer: boards.StandingBody
) -> Standing:
    score = Score(
        submission=SubmissionId(answer.submission),
        person=PersonId(answer.person_id),
        person_name=answer.person,
        board=board.id,
        task_version=version,
        gpu=gpu,
        value=_value(answer),
        submitted_at=answer.submitted_at,
        pool=answer.pool,
        vs_reference=answer.in_turn,
    )
    return Standing(answer.rank, score, answer.attempts)


def _refusal(gpu: str, answer: boards.Absent) -> FailedRun:
    return FailedRun(
        submission=SubmissionId(answer.submission),
        person=PersonId(answer.person_id),
        person_name=answer.person,
        gpu=gpu,
        verdict=Verdict(answer.verdict).value,
        stage=answer.stage,
        message=answer.message,
        submitted_at=answer.submitted_at,
    )


def _value(answer: Time) -> ScoreValue:
    return ScoreValue(answer.time_ns, answer.half_width_ns, answer.resolution_ns, answer.claimed_ns)


def status_of(answer: submissions.SubmissionAnswer) -> SubmissionStatus:
    """Return the status of a submission."""
    board = board_of(answer.board)
    submission = Submission(
        id=SubmissionId(answer.id),
        person=PersonId(answer.person_id),
        board=board.id,
        task_version=TaskVersionId(answer.task_version_id),
        file_name=answer.file_name,
        source_hash=answer.source_hash,
        mode=answer.mode,
        gpus=answer.gpus,
        state=answer.state,
        created_at=answer.created_at,
        warning=answer.warning,
        consent=answer.board.source_visibility,
    )
    jobs = tuple(_job_status(submission, each) for each in answer.jobs)
    why = answer.exclusion
    exclusion = None if why is None else Exclusion(submission.id, why.kind, why.reason)
    return SubmissionStatus(submission, board, jobs, exclusion)


def _job_status(submission: Submission, answer: submissions.JobAnswer) -> JobStatus:
    place = answer.place
    return JobStatus(
        job=_job(submission, answer),
        stage=answer.stage,
        done=answer.done,
        total=answer.total,
        note=answer.note,
        place=None if place is None else _place(place),
        evaluation=answer.evaluation,
        cost=answer.cost,
        confirmation=_confirmation(submission, answer),
        lost=_lost(answer.lost_place),
        ranks=None if answer.ranks is None else _value(answer.ranks),
    )


def _confirmation(submission: Submission, answer: submissions.JobAnswer) -> Confirmation | None:
    found = answer.confirmation
    if found is None:
        return None
    return Confirmation(
        id=ConfirmationId(0),
        submission=submission.id,
        person=submission.person,
        person_name="",
        task_version=submission.task_version,
        gpu=answer.gpu,
        place=found.place,
        state=found.state,
        created_at=answer.created_at,
        rival=None if found.rival is None else SubmissionId(found.rival),
        rival_name=found.rival_person,
        run=SubmissionId(-1) if found.comparing else None,
        ratio=_ratio(found.ratio),
        reason=found.reason,
    )


def _lost(found: finals.LostPlaceBody | None) -> LostPlace | None:
    if found is None:
        return None
    ratio, submission = _ratio(found.ratio), SubmissionId(found.submission)
    return LostPlace(found.place, submission, found.person, found.shared, ratio)


def _ratio(answer: finals.RatioBody | None) -> PairRatio | None:
    return None if answer is None else PairRatio(answer.ratio, answer.half_width)


def _place(answer: submissions.QueuePositionBody) -> QueuePosition:
    return QueuePosition(answer.position, answer.estimate_s, answer.paused, answer.running)


def _job(submission: Submission, answer: submissions.JobAnswer) -> Job:
    """Return a job; fence and call are only sent to its worker, so they are empty."""
    return Job(
        id=JobId(answer.id),
        submission=submission.id,
        person=submission.person,
        gpu=answer.gpu,
        mode=submission.mode,
        priority=PRIORITIES[submission.mode],
        turn=0,
        state=answer.state,
        attempt=answer.attempt,
        max_attempts=answer.max_attempts,
        fence=0,
        worker=None,
        call=None,
        cancel_requested=False,
        error=answer.error,
        run_at=answer.created_at,
        created_at=answer.created_at,
        started_at=answer.started_at,
        finished_at=answer.finished_at,
        pool=answer.pool,
        waits=answer.waits,
    )


def entry_of(answer: submissions.PastSubmission) -> HistoryEntry:
    """Return one line of the person's own history, which omits the person."""
    number = SubmissionId(answer.id)
    submission = Submission(
        id=number,
        person=NOBODY,
        board=BoardId(answer.board_id),
        task_version=TaskVersionId(answer.task_version_id),
        file_name=answer.file_name, source_hash=answer.source_hash, mode=answer.mode,
        gpus=answer.gpus, state=answer.state, created_at=answer.created_at,
    )  # fmt: skip
    results = tuple(
        JobResult(
            number,
            each.gpu,
            each.verdict,
            None if each.time is None else _value(each.time),
            each.confirmation,
            None if each.lost_to is None else SubmissionId(each.lost_to),
            each.exclusion,
            each.too_noisy,
        )
        for each in answer.results
    )
    return HistoryEntry(submission, answer.board, answer.task_version, results)


def worker_of(answer: RunnerAnswer) -> Worker:
    """Return a live worker."""
    return Worker(answer.name, answer.gpus, answer.offers, answer.seen_at, answer.running)


def file_of(answer: submissions.ProfileFile, content: bytes) -> StoredFile:
    """Return a file with its bytes, under names without path separators."""
    if not GPU_NAME.fullmatch(answer.gpu):
        raise ValueError(f"{answer.gpu!r} is not a GPU type")
    return StoredFile(answer.gpu, EvaluationFile.of(answer.name, content))
