"""The state of a submission and its jobs, as a person sees it."""

from dataclasses import dataclass

from bot.domain.board import Board
from bot.domain.job import FINAL_STATES, Job, submission_state
from bot.domain.moderation import Exclusion
from bot.domain.submission import Submission, SubmissionState
from runners.contract.evaluation import Evaluation
from runners.contract.task import Mode


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """A queued job's position, from 1, and the estimated seconds until it ends.

    The estimate is None if there is nothing to base it on.
    """

    position: int
    estimate_s: float | None
    paused: str | None = None
    """The notice of this GPU type's pause; None while its jobs start."""
    running: int = 0
    """How many jobs of this GPU type run now."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One job: `place` while it waits, `stage` while it runs, `evaluation` once it was judged.

    `done` of `total` counts the cases of the stage.
    """

    job: Job
    stage: str | None = None
    done: int = 0
    total: int = 0
    note: str = ""
    place: QueuePosition | None = None
    evaluation: Evaluation | None = None
    cost: float | None = None
    """What its GPU time costs, in the owner's currency; None where no price is known."""


@dataclass(frozen=True, slots=True)
class SubmissionStatus:
    """A submission with its jobs, by GPU type, without what a ranked run keeps secret."""

    submission: Submission
    board: Board
    jobs: tuple[JobStatus, ...]
    exclusion: Exclusion | None = None
    """Why it is not ranked, whatever its result."""

    @property
    def state(self) -> SubmissionState:
        """The state of the submission, over all its jobs."""
        return submission_state(tuple(each.job.state for each in self.jobs))

    @property
    def is_final(self) -> bool:
        """Whether all jobs have ended."""
        return all(each.job.state in FINAL_STATES for each in self.jobs)

    @property
    def may_be_ranked(self) -> bool:
        """Whether it passed in another mode, so a ranked run may be offered."""
        passed = all(each.evaluation and not each.evaluation.stage for each in self.jobs)
        finished = self.state is SubmissionState.FINISHED
        return finished and passed and self.submission.mode is not Mode.RANKED
