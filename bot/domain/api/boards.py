"""The bodies of `/api/v1/leaderboards`."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from pydantic import Field

from bot.domain.api.base import ResponseBody, Time
from bot.domain.api.finals import FinalBody, PendingBody
from bot.domain.board import Board, SourceVisibility, TaskVersion, Visibility
from bot.domain.leaderboard import BoardOverview
from bot.domain.records import FailedRun
from bot.domain.scoring import PairRatio, ScoreValue, Standing
from bot.domain.tasks.grading import not_run
from bot.domain.tasks.template import shown_files
from bot.domain.times import speed_up_over
from runners.contract.evaluation import Timing
from runners.contract.task import Device, Grader, LanguageName, RankingBy, TaskFormat, Workload


class BestTime(Time):
    """The fastest time on one GPU type."""

    gpu: str
    person: str
    submission: int


class BoardLine(ResponseBody):
    """A board: one task, its GPU types and its season."""

    name: str
    id: int
    gpus: tuple[str, ...]
    deadline: datetime | None
    """None: the board stays open."""
    is_open: bool
    created_at: datetime
    creator_id: int
    task_version_id: int
    """The version that judges new submissions."""
    visibility: Visibility
    source_visibility: SourceVisibility
    """When others may read the submitted sources."""
    pools: dict[str, str] = Field(default_factory=dict)
    """By GPU type, the only pool that times its ranked runs; any pool times the other types."""
    opens_at: datetime | None = None
    """When it opens to people other than its creator; None: it has already opened."""
    late_runs: bool = False
    """Whether it accepts submissions in unranked modes after its deadline."""

    @classmethod
    def of(cls, board: Board, now: datetime) -> "BoardLine":
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
            opens_at=board.rules.opens_at,
            late_runs=board.rules.late_runs,
        )


class BoardAnswer(BoardLine):
    """A board with its activity."""

    participants: int
    """How many people have submitted, in any mode."""
    best: tuple[BestTime, ...]
    """For the current task version, on each GPU type with a ranked time."""

    @classmethod
    def seen(cls, overview: BoardOverview, now: datetime) -> "BoardAnswer":
        """Return a board with its activity."""
        best = tuple(
            BestTime(
                gpu=score.gpu,
                person=score.person_name,
                submission=score.submission,
                **asdict(score.value),
            )
            for score in overview.best
        )
        line = dict(BoardLine.of(overview.board, now))
        return cls(**line, participants=overview.participants, best=best)


class BoardsAnswer(ResponseBody):
    """The boards that the caller may see, by name; `next` is the next page's cursor."""

    boards: tuple[BoardAnswer, ...]
    next: str | None = None


class TaskFileBody(ResponseBody):
    """A file of a task."""

    name: str
    size: int
    """In bytes, as UTF-8."""
    not_run: bool = False
    """Whether it is an evaluation program that does not run, because Podium's judge grades."""


class WorkloadBody(ResponseBody):
    """One input shape; `spec` is its line in reports."""

    spec: str
    workload: Workload

    @classmethod
    def of(cls, workloads: Sequence[Workload]) -> "tuple[WorkloadBody, ...]":
        """Return the shapes of some cases."""
        return tuple(cls(spec=each.spec, workload=each) for each in workloads)


class TaskAnswer(ResponseBody):
    """One version of a board's task."""

    board: str
    name: str
    version: int
    version_note: str
    created_at: datetime
    description: str
    language: LanguageName
    format: TaskFormat
    grader: Grader
    device: Device
    ranking_by: RankingBy
    gpus: tuple[str, ...]
    """The GPU types of the board."""
    libraries: tuple[str, ...]
    multi_gpu: bool
    tests: tuple[WorkloadBody, ...]
    benchmarks: tuple[WorkloadBody, ...]
    test_timeout_s: int
    benchmark_timeout_s: int
    ranked_timeout_s: int
    submission_file: str
    files: tuple[TaskFileBody, ...]
    templates: tuple[str, ...]
    """The languages that have a template."""

    @classmethod
    def of(cls, board: Board, version: TaskVersion) -> "TaskAnswer":
        """Return a task without the contents of its files."""
        task = version.definition
        unused = not_run(task)
        files = (
            TaskFileBody(
                name=name, size=len(text.encode(errors="surrogatepass")), not_run=name in unused
            )
            for name, text in shown_files(task, board.name).items()
        )
        return cls(
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
            tests=WorkloadBody.of(task.tests),
            benchmarks=WorkloadBody.of(task.benchmarks),
            test_timeout_s=task.test_timeout,
            benchmark_timeout_s=task.benchmark_timeout,
            ranked_timeout_s=task.ranked_timeout,
            submission_file=task.submission_file,
            files=tuple(files),
            templates=tuple(task.templates),
        )


class StandingBody(Time):
    """A person's best score, its rank, and the number of their attempts.

    A rank is one more than the number of people who are ahead, so several may share one.
    """

    rank: int
    person: str
    person_id: int
    vs_reference: float | None
    """How many times faster than the task's own reference; None while that is unknown."""
    vs_reference_low: float | None = None
    """The lower end of its interval; null unless the judge's clock confirms both times."""
    vs_reference_high: float | None = None
    """The upper end; also null if there is none, because the time may be next to nothing."""
    vs_reference_in_turn: bool = False
    """Whether the reference was timed in turn with it; else the reference's own run counts."""
    attempts: int
    submission: int
    submitted_at: datetime
    pool: str = ""
    """The pool that timed it: `local`, `modal`, `ray`, or a remote worker's name."""

    @classmethod
    def of(cls, entry: Standing, reference: ScoreValue | None) -> "StandingBody":
        """Return an entry with its speedup over the reference, if that is known."""
        score = entry.score
        faster = speed_up_over(reference, score)
        return cls(
            rank=entry.rank,
            person=score.person_name,
            person_id=score.person,
            **asdict(score.value),
            vs_reference=None if faster is None else faster.factor,
            vs_reference_low=None if faster is None else faster.low,
            vs_reference_high=None if faster is None else faster.high,
            vs_reference_in_turn=score.vs_reference is not None,
            attempts=entry.attempts,
            submission=score.submission,
            submitted_at=score.submitted_at,
            pool=score.pool,
        )

    @property
    def in_turn(self) -> PairRatio | None:
        """The ratio to the reference that was timed in turn with it; None if none was."""
        if not (self.vs_reference_in_turn and self.vs_reference and self.vs_reference_low):
            return None
        ratio = 1 / self.vs_reference
        return PairRatio(ratio, 1 / self.vs_reference_low - ratio)


class Absent(ResponseBody):
    """A person without a score here; their latest ranked run failed, or passed but is too noisy."""

    person: str
    person_id: int
    verdict: str
    stage: str | None
    message: str
    submission: int
    submitted_at: datetime

    @classmethod
    def of(cls, run: FailedRun) -> "Absent":
        """Return a person's failed run."""
        return cls(
            person=run.person_name,
            person_id=run.person,
            verdict=run.verdict,
            stage=run.stage,
            message=run.message,
            submission=run.submission,
            submitted_at=run.submitted_at,
        )


class StandingsAnswer(ResponseBody):
    """One leaderboard: one task version on one GPU type, the best rank first."""

    board: str
    gpu: str
    task_version: int
    version_note: str
    deadline: datetime | None
    speed_of_light_ns: float | None
    """The minimum time that the card's memory bandwidth allows, if known."""
    timing: Timing
    reference: Time | None
    """The time of the task's own reference, if known."""
    reference_failure: str
    """Why the reference has no time; only for the board's creator."""
    entries: tuple[StandingBody, ...]
    absent: tuple[Absent, ...]
    pending: tuple[PendingBody, ...] = ()
    """Runs that would take one of the first places, until they are confirmed."""
    final: FinalBody | None = None
    """The newest final of this GPU type."""


class LeaderboardsAnswer(ResponseBody):
    """A board's leaderboards: one per GPU type, or only the requested one."""

    board: BoardLine
    leaderboards: tuple[StandingsAnswer, ...]
