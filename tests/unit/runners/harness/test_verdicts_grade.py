from runners.contract.evaluation import CaseKind, CaseStatus
from runners.contract.task import Workload
from runners.contract.verdict import Stage, Verdict
from runners.harness.verdicts import GradingResult, VerdictError, skipped


def test_a_fresh_grade_has_passed_and_a_failed_one_says_where() -> None:
    result = GradingResult()
    assert result.passed

    result.fail(Stage.TEST, VerdictError(Verdict.CRASHED, "it fell"))

    assert (result.passed, result.verdict, result.stage) == (False, Verdict.CRASHED, Stage.TEST)


def test_a_skipped_case_keeps_its_name() -> None:
    case = skipped(CaseKind.TEST, Workload(args={"size": 3}))

    assert (case.spec, case.status) == ("size: 3", CaseStatus.SKIPPED)
