"""What a person may see of an evaluation; the inputs of ranked runs stay secret."""

from runners.contract.evaluation import CaseKind, CaseResult, CaseStatus, Evaluation
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict

_PUBLIC_STAGES = frozenset({Stage.BUILD, Stage.TEST})
"""A submission that failed before any benchmark has not seen secret inputs."""


def disclosed(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation without what could reveal the inputs of a ranked run.

    A submission may print its inputs, so even the log of a passed ranked run stays hidden.
    """
    if is_public(evaluation):
        return evaluation
    return evaluation.model_copy(
        update={
            "log": "",
            "files": (),
            "message": _message(evaluation),
            "cases": tuple(_case(index, case) for index, case in _numbered(evaluation)),
        }
    )


def is_public(evaluation: Evaluation) -> bool:
    """Return whether all of it may be shown: it ended before any secret input was made.

    A submission is built again for every round, so even a build failure may come after secret
    inputs.
    """
    begun = any(
        case.kind is CaseKind.BENCHMARK and case.status is not CaseStatus.SKIPPED
        for case in evaluation.cases
    )
    return evaluation.mode is not Mode.RANKED or (evaluation.stage in _PUBLIC_STAGES and not begun)


QUOTING = frozenset({Verdict.BUILD_FAILED, Verdict.CRASHED, Verdict.INVALID_SUBMISSION})
"""Verdicts whose messages come from a compiler or an exception and may quote the source."""


def without_quotes(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation without anything that could quote the hidden source."""
    hidden: dict[str, object] = {"log": "", "files": ()}
    if evaluation.verdict in QUOTING:
        cases = (each.model_copy(update={"message": ""}) for each in evaluation.cases)
        hidden |= {"message": "", "cases": tuple(cases)}
    return evaluation.model_copy(update=hidden)


def _numbered(evaluation: Evaluation) -> list[tuple[int, CaseResult]]:
    """Return each case with its number, from 1, within its kind."""
    counts = dict.fromkeys(CaseKind, 0)
    numbered = []
    for case in evaluation.cases:
        counts[case.kind] += 1
        numbered.append((counts[case.kind], case))
    return numbered


def _case(number: int, case: CaseResult) -> CaseResult:
    failed = case.status is CaseStatus.FAILED
    spec = f"{case.kind} {number}" if failed else case.spec
    return case.model_copy(update={"spec": spec, "message": ""})


def _message(evaluation: Evaluation) -> str:
    if evaluation.verdict is Verdict.PASSED:
        return ""
    if evaluation.verdict is Verdict.TIMING_REJECTED:
        return evaluation.message  # the judge's own two numbers, without the inputs
    for number, case in _numbered(evaluation):
        if case.status is CaseStatus.FAILED:
            return f"{evaluation.verdict} at {case.kind} {number} of the ranked run"
    return f"{evaluation.verdict} in the ranked run"
