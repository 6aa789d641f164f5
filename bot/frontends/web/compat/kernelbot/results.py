"""What an evaluation says, as KernelBot's evaluators say it: `key: value`, times in nanoseconds.

`err` is half of our 95 % interval, what every door shows behind `±`. Where a task's own evaluation
timed a kernel, its single samples are not known: there is no `std`, `best` and `worst` then.
"""

import statistics
from collections.abc import Iterable, Iterator

from bot.reports.lines import clean
from runners.contract.evaluation import CaseKind, CaseResult, CaseStatus, Evaluation, Measurement

_STATUSES = {CaseStatus.PASSED: "pass", CaseStatus.FAILED: "fail"}
"""Of a case that was skipped nothing is said."""


def result_of(evaluation: Evaluation, kind: CaseKind, *, passed: bool) -> dict[str, str]:
    """The cases of one kind, and whether they were right."""
    cases = [case for case in evaluation.cases if case.kind is kind]
    found = {f"{kind}-count": str(len(cases))}
    for number, case in enumerate(cases):
        found |= {f"{kind}.{number}.{key}": value for key, value in _said(case)}
    return found | {"check": check(passed=passed)}


def check(*, passed: bool) -> str:
    """The last word of a phase."""
    return "pass" if passed else "fail"


def _said(case: CaseResult) -> Iterator[tuple[str, str]]:
    yield "spec", clean(case.spec)
    if case.status in _STATUSES:
        yield "status", _STATUSES[case.status]
    if case.message:
        yield "error", clean(case.message).replace("\n", "\\n")
    if case.measurement is not None:
        yield from _times(case.measurement)


def _times(measured: Measurement) -> Iterator[tuple[str, str]]:
    samples = [sample for each in measured.samples for sample in each]
    yield "runs", str(len(samples) or measured.rounds)
    yield "mean", _ns(measured.time_ns)
    yield "err", _ns(measured.half_width_ns)
    if samples:
        yield "std", _ns(statistics.stdev(samples) if len(samples) > 1 else 0.0)
        yield from _ends(samples)


def _ends(samples: Iterable[float]) -> Iterator[tuple[str, str]]:
    ordered = sorted(samples)
    yield "best", _ns(ordered[0])
    yield "worst", _ns(ordered[-1])


def _ns(time_ns: float) -> str:
    return repr(float(time_ns))
