"""What a person sees of a submission and its jobs: state and cost, without secret inputs."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from bot.domain.board import Board
from bot.domain.confirmation import Confirmation, LostPlace
from bot.domain.costs import Prices, cost
from bot.domain.job import FINAL_STATES, Job, submission_state
from bot.domain.scoring import ScoreValue
from bot.domain.submission import Exclusion, Submission, SubmissionState
from runners.contract.evaluation import CaseKind, CaseResult, CaseStatus, Evaluation
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """A queued job's position, from 1, and the estimated seconds until it ends.

    The estimate is None if there is nothing to base it on.
    """

    position: int
    estimate_s: float | None
    paused: str | None = None
    """The notice of this GPU type's pause; None unless it is paused."""
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
    """What its GPU time costs in dollars; None where no price is known."""
    confirmation: Confirmation | None = None
    """Its last comparison with the holder of a place; None if it needed none."""
    lost: LostPlace | None = None
    """The latest loss of one of the first places to another run, which took or shares it."""
    ranks: ScoreValue | None = None
    """The time that ranks; None if that is the time of its own run."""


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
    def is_settled(self) -> bool:
        """Whether all jobs have ended, and no result waits for its confirmation."""
        pending = any(each.confirmation and each.confirmation.is_pending for each in self.jobs)
        return self.is_final and (not pending or self.exclusion is not None)

    @property
    def passed(self) -> bool:
        """Whether it passed on every GPU type."""
        return all(job.evaluation and job.evaluation.verdict is Verdict.PASSED for job in self.jobs)

    @property
    def may_be_ranked(self) -> bool:
        """Whether it passed in another mode, so a ranked run may be offered."""
        finished = self.state is SubmissionState.FINISHED
        return finished and self.passed and self.submission.mode is not Mode.RANKED


def with_costs(status: SubmissionStatus, prices: Prices) -> SubmissionStatus:
    """Return the status with the cost of each job that has an evaluation."""
    return replace(status, jobs=tuple(_with_cost(each, prices) for each in status.jobs))


def _with_cost(job: JobStatus, prices: Prices) -> JobStatus:
    if job.evaluation is None:
        return job
    return replace(job, cost=cost(prices, job.job.gpu, job.evaluation.gpu_s))


_PUBLIC_STAGES = frozenset({Stage.BUILD, Stage.TEST})
"""A submission that failed before any benchmark has not seen secret inputs."""


def disclosed(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation without what could reveal the inputs of a ranked run.

    A submission may print its inputs, so even the log of a passed ranked run stays hidden.
    """
    if is_public(evaluation):
        return evaluation
    compared = evaluation.comparison
    return evaluation.model_copy(
        update={
            "comparison": compared and compared.model_copy(update={"rival_detail": ""}),
            "log": "",
            "files": (),
            "message": _disclosed_message(evaluation),
            "cases": tuple(_disclosed_case(*each) for each in numbered(evaluation.cases)),
        }
    )


def is_public(evaluation: Evaluation) -> bool:
    """Return whether all of it may be shown: no secret input had been made when it ended.

    A submission is built again for every round, so even a build failure may come after secret
    inputs.
    """
    timed = any(
        case.kind is CaseKind.BENCHMARK and case.status is not CaseStatus.SKIPPED
        for case in evaluation.cases
    )
    return evaluation.mode is not Mode.RANKED or (evaluation.stage in _PUBLIC_STAGES and not timed)


QUOTING = frozenset({Verdict.BUILD_FAILED, Verdict.CRASHED, Verdict.INVALID_SUBMISSION})
"""Verdicts whose messages come from a compiler or an exception and may quote the source."""


def without_quotes(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation without anything that could quote the hidden source."""
    hidden: dict[str, object] = {"log": "", "files": ()}
    if evaluation.verdict in QUOTING:
        cases = (each.model_copy(update={"message": ""}) for each in evaluation.cases)
        hidden |= {"message": "", "cases": tuple(cases)}
    return evaluation.model_copy(update=hidden)


def redacted(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation without words of the submission: times and verdicts stay."""
    blank: dict[str, object] = {"log": "", "files": (), "message": ""}
    blank["cases"] = tuple(each.model_copy(update={"message": ""}) for each in evaluation.cases)
    if evaluation.comparison is not None:
        blank["comparison"] = evaluation.comparison.model_copy(update={"rival_detail": ""})
    return evaluation.model_copy(update=blank)


def numbered(cases: Iterable[CaseResult]) -> Iterator[tuple[int, CaseResult]]:
    """Yield each case with its number, from 1, within its kind."""
    counts: Counter[CaseKind] = Counter()
    for case in cases:
        counts[case.kind] += 1
        yield counts[case.kind], case


def failed_cases(evaluation: Evaluation) -> list[tuple[int, CaseResult]]:
    """Return the cases that failed, with their numbers."""
    return [each for each in numbered(evaluation.cases) if each[1].status is CaseStatus.FAILED]


def place_of_failure(evaluation: Evaluation) -> str:
    """Return which case failed, such as ` in test 3 of 5`, or else which stage."""
    for number, case in failed_cases(evaluation):
        total = sum(each.kind is case.kind for each in evaluation.cases)
        return f" in {case.kind} {number} of {total}"
    known = evaluation.stage is None or evaluation.verdict is Verdict.BUILD_FAILED
    return "" if known else f" (stage: {evaluation.stage})"


def _disclosed_case(number: int, case: CaseResult) -> CaseResult:
    failed = case.status is CaseStatus.FAILED
    spec = f"{case.kind} {number}" if failed else case.spec
    return case.model_copy(update={"spec": spec, "message": ""})


def _disclosed_message(evaluation: Evaluation) -> str:
    if evaluation.verdict is Verdict.PASSED:
        return ""
    if evaluation.verdict is Verdict.TIMING_REJECTED:
        return evaluation.message  # the judge's own two numbers, without the inputs
    for number, case in numbered(evaluation.cases):
        if case.status is CaseStatus.FAILED:
            return f"{evaluation.verdict} at {case.kind} {number} of the ranked run"
    return f"{evaluation.verdict} in the ranked run"


_BY_ADMIN = "cancelled by an admin"
_LONGEST_WHY = 300
"""The most characters of an admin's reason that the owner reads."""


def admin_cancel_words(reason: str) -> str:
    """Return what the owner of a job reads after an admin has cancelled it."""
    why = " ".join(reason.split())[:_LONGEST_WHY]
    return f"{_BY_ADMIN}: {why}" if why else _BY_ADMIN


def cancel_words(job: Job) -> str:
    """Return the state of an ended job; if an admin cancelled it, say so with the reason."""
    error = job.error or ""
    return error if error.startswith(_BY_ADMIN) else job.state.value
