"""What grading found."""

from dataclasses import dataclass, field

from runners.contract.evaluation import CaseKind, CaseResult, CaseStatus
from runners.contract.task import Workload
from runners.contract.verdict import Stage, Verdict
from runners.harness.ruling import Ruling

STAGES = {
    CaseKind.TEST: Stage.TEST,
    CaseKind.BENCHMARK: Stage.TIMING,
    CaseKind.PROFILE: Stage.TIMING,
}
"""The stage in which a case of each kind can fail."""


@dataclass(slots=True)
class Grade:
    """What grading found: the verdict, where it fell, and every case."""

    verdict: Verdict = Verdict.PASSED
    stage: Stage | None = None
    message: str = ""
    cases: list[CaseResult] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether nothing has failed so far."""
        return self.verdict is Verdict.PASSED

    def fail(self, stage: Stage, ruling: Ruling) -> None:
        """Note where and how the evaluation ended."""
        self.verdict, self.message = ruling.verdict, ruling.message
        self.stage = ruling.stage or stage


def skipped(kind: CaseKind, workload: Workload) -> CaseResult:
    """A case to which it did not come, because an earlier one had ended the evaluation."""
    return CaseResult(spec=workload.spec, kind=kind, status=CaseStatus.SKIPPED)
