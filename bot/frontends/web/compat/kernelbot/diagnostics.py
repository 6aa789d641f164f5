"""What became of a phase in KernelBot's words for a process: exit code, output, compilation."""

from bot.frontends.web.compat.kernelbot.drawing import shortened
from bot.frontends.web.compat.kernelbot.phases import Phase
from bot.reports.evaluation import verdict_line
from runners.contract.evaluation import Evaluation
from runners.contract.verdict import Stage, Verdict

Json = dict[str, object]

_EXITS = {Verdict.PASSED: 0, Verdict.WRONG_ANSWER: 112, Verdict.TIMED_OUT: 114}
"""What KernelBot's evaluators end with; everything else is a crash there."""
_CRASH = 1
_RAN = {_EXITS[Verdict.PASSED], _EXITS[Verdict.WRONG_ANSWER]}


def diagnostics(evaluation: Evaluation, phase: Phase, *, stdout: str = "") -> Json:
    """How a phase ended."""
    verdict = Verdict.PASSED if phase.passed else evaluation.verdict
    exit_code = _EXITS.get(verdict, _CRASH)
    return {
        "stdout": stdout,
        "stderr": "" if phase.passed else _wrong(evaluation),
        "success": exit_code in _RAN,
        "exit_code": exit_code,
        "duration": evaluation.wall_s,
    }


def compilation(evaluation: Evaluation) -> Json | None:
    """How it was built; None where there is nothing to tell of that."""
    failed = evaluation.stage is Stage.BUILD
    if not failed and evaluation.compiled is None:
        return None
    return {
        "nvcc_found": True,
        "nvcc_version": evaluation.environment.cuda or "",
        "success": not failed,
        "command": "",
        "stdout": shortened(evaluation.log) if failed else "",
        "stderr": _wrong(evaluation) if failed else "",
        "exit_code": _CRASH if failed else 0,
    }


def _wrong(evaluation: Evaluation) -> str:
    return shortened(f"{verdict_line(evaluation).text}: {evaluation.message}")
