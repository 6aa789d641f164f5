"""The phases of an evaluation, as KernelBot divides it.

Our ranked run checks every timed answer on inputs that nobody has seen, so it is both of
KernelBot's at once: the one with the public score, and the secret one that confirms it. Of neither
more is told than time and verdict.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bot.frontends.web.compat.kernelbot.results import result_of
from runners.contract.evaluation import CaseKind, Evaluation
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict

_KINDS = {Mode.TEST: CaseKind.TEST, Mode.BENCHMARK: CaseKind.BENCHMARK}


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of an evaluation; `result` is None where nothing may be told of its cases."""

    mode: Mode
    passed: bool
    secret: bool = False
    result: Mapping[str, str] | None = None


def phases(evaluation: Evaluation) -> Iterator[Phase]:
    """The phases that an evaluation came to, in order; hand in a disclosed one."""
    passed = evaluation.verdict is Verdict.PASSED
    mode = evaluation.mode
    if mode is not Mode.RANKED:
        kind = _KINDS.get(mode)
        result = None if kind is None else result_of(evaluation, kind, passed=passed)
        yield Phase(mode, passed, result=result)
        return
    timed = passed or evaluation.stage is Stage.TIMING
    if not timed or any(case.kind is CaseKind.TEST for case in evaluation.cases):
        yield Phase(Mode.TEST, timed, result=result_of(evaluation, CaseKind.TEST, passed=timed))
    if timed:
        yield Phase(mode, passed)
        yield Phase(mode, passed, secret=True)
