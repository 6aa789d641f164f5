"""Which grader grades a task: Podium's judge, or the evaluation program that the task brings.

Podium's judge replaces such a program only if the program is known to time one call as the judge
does and both agree on the task's solutions, or if the task's creator chooses so. Also by which time
of several benchmarks a task ranks.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from bot.domain.tasks.lint import GraderComparison, TaskReport
from runners.contract.task import Device, Grader, RankingBy, TaskDefinition

HOW_TO_CHOOSE = (
    "choose which one grades: `grader: native` (Podium's judge) or `grader: popcorn` (the task's "
    "own program) in task.yml, `podium task publish --grader native`, the option grader of "
    "`/leaderboard create` and `/leaderboard update`, the field Grader of the page or of the form "
    "in /api/v1"
)
_TO_REPLACE = "To have Podium's judge grade instead, choose the grader native."
DEFAULT_PROGRAM = "eval.py"
ONE_CALL = frozenset(
    {
        "6b9e84f93b94f0ce1fa3eace2a29d52ebfdbbd3587ee989a4b480ab6eee41f94",  # amd
        "573a7a042b6eb6998d95ca330534d0395d0016b730d9a7660e26d499cde575d7",  # amd_202602
        "523900f7958f99af237b9ea314901b72449b96f5f2b2a380b757d676c9241319",  # bioml/trimul
        "fef54da05e87a970d52eeac2665b593eb9b611895b03f008f0a15a8c2f27a9aa",  # nvidia
        "9db6907fb5585058445012562e522dd5a807588712540ef250ddb22784e760a8",  # pmpp
        "f9fc51ddb46cb7e19cb5892919354dc4687bef3547fc2ceea54c9e69ac317a03",  # pmpp_v2
    }
)
"""`script_hash` of public scripts that were read and time one call of the kernel per window.

Each is the eval.py of this folder of `problems` in github.com/gpu-mode/reference-kernels.
"""


def script_hash(text: str) -> str:
    """Return the SHA-256 of a script, regardless of its line ends and trailing blanks."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    plain = "\n".join(line.rstrip(" \t") for line in lines).rstrip("\n") + "\n"
    return hashlib.sha256(plain.encode(errors="surrogatepass")).hexdigest()


class Basis(StrEnum):
    """On what the choice of a grader is based."""

    ONLY = "only"
    """No other grader can grade the task, or no other is considered any more."""
    CHOSEN = "chosen"
    """The task's creator chose; a difference between the graders is only shown."""
    KNOWN = "known"
    """The program is known; Podium's judge grades if the check shows that both agree."""
    UNKNOWN = "unknown"
    """The program is not known, so it grades; a difference needs a choice."""


@dataclass(frozen=True, slots=True)
class Grading:
    """Which grader grades a task, and why in words for people.

    `program` is the name of the task's own evaluation. `other_device` is the device of the task
    under the other grader if the check compares both; None if it does not.
    """

    grader: Grader = Grader.NATIVE
    why: str = "Podium's judge grades: the task has no evaluation program of its own."
    basis: Basis = Basis.ONLY
    program: str = DEFAULT_PROGRAM
    other_device: Device | None = None

    @property
    def is_open(self) -> bool:
        """Return whether a difference between the graders needs a choice by the creator."""
        return self.basis in {Basis.KNOWN, Basis.UNKNOWN}

    def other_task(self, task: TaskDefinition) -> TaskDefinition | None:
        """Return the task under the other grader; None if the check does not compare both."""
        if self.other_device is None:
            return None
        changes = {"grader": _other(self.grader), "device": self.other_device}
        return task.model_copy(update=changes)


NO_PROGRAM = Grading()
"""The grading of a task without an evaluation program of its own."""


def _other(grader: Grader) -> Grader:
    return Grader.POPCORN if grader is Grader.NATIVE else Grader.NATIVE


def choose_grader(
    chosen: Grader | None, faults: Mapping[Grader, str], program: str, text: str | None
) -> Grading:
    """Return the grader of a task before its check; at least one has no fault.

    `faults` says why a grader cannot grade the task. `text` is the program's source, None if the
    task has no file of that name.
    """
    if faults[Grader.POPCORN]:
        without = replace(NO_PROGRAM, program=program)
        fault = faults[Grader.POPCORN]
        return without if text is None else replace(without, why=f"{_ours(program)}: {fault}.")
    if chosen is not None:
        words = _ours(program) if chosen is Grader.NATIVE else _own(program)
        return Grading(chosen, f"{words}: the task's creator chose so.", Basis.CHOSEN, program)
    if faults[Grader.NATIVE]:
        why = f"{_own(program)}, because Podium's judge cannot: {faults[Grader.NATIVE]}."
        return Grading(Grader.POPCORN, why, Basis.ONLY, program)
    if text is not None and script_hash(text) in ONE_CALL:
        why = f"{_ours(program)}: it is a public script that times one call, as the judge does."
        return Grading(Grader.NATIVE, why, Basis.KNOWN, program)
    why = f"{_own(program)}: Podium does not know this program."
    return Grading(Grader.POPCORN, why, Basis.UNKNOWN, program)


def choose_later(
    task: TaskDefinition, grading: Grading, chosen: Grader | None
) -> tuple[TaskDefinition, Grading]:
    """Return the task under a grader that its creator chose apart from the task's files.

    The task stays as it is if only one grader can grade it, or if task.yml or an option names one.
    """
    other = grading.other_task(task)
    if chosen is None or other is None or not grading.is_open:
        return task, grading
    words = _ours(grading.program) if chosen is Grader.NATIVE else _own(grading.program)
    why = f"{words}: the task's creator chose so."
    if chosen is grading.grader:
        device = grading.other_device if chosen is Grader.NATIVE else None
        return task, replace(grading, why=why, basis=Basis.CHOSEN, other_device=device)
    device = task.device if chosen is Grader.NATIVE else None
    return other, Grading(chosen, why, Basis.CHOSEN, grading.program, device)


def same_program(task: TaskDefinition, other: TaskDefinition) -> bool:
    """Return whether both have the same evaluation program, so that one choice is for both."""
    names = {DEFAULT_PROGRAM, task.config.main, other.config.main}
    return all(task.files.get(name) == other.files.get(name) for name in names)


def _ours(program: str) -> str:
    return f"Podium's judge grades, and {program} is not run"


def _own(program: str) -> str:
    return f"The task's own {program} grades"


def settle(
    task: TaskDefinition, grading: Grading, reports: Sequence[TaskReport]
) -> tuple[TaskDefinition, Grading]:
    """Return the task under the grader that its check allows, and why.

    If a known program was not compared with Podium's judge, the program grades instead. If the
    graders disagree and the creator has not chosen, the reports have errors, and nothing may be
    published.
    """
    other = grading.other_task(task)
    if other is None:
        return task, grading
    compared = [each for report in reports for each in report.comparisons]
    if not all(each.agrees for each in compared):
        return task, _disagreeing(grading)
    reason = next(_why_not_compared(compared, reports), "")
    if not reason:
        words = f"Both agree on {_count(compared)}."
        if grading.basis is Basis.UNKNOWN:
            words += f" {_TO_REPLACE}"
        return task, replace(grading, why=f"{grading.why} {words}")
    if grading.basis is Basis.KNOWN and (not reports or any(each.was_run for each in reports)):
        why = f"{_own(grading.program)}, because Podium's judge was not compared with it: {reason}"
        own = Grading(other.grader, f"{why}. {_TO_REPLACE}", program=grading.program)
        return other, own
    words = f"The graders were not compared: {reason}."
    return task, replace(grading, why=f"{grading.why} {words}")


def _disagreeing(grading: Grading) -> Grading:
    words = f"Podium's judge and the task's own {grading.program} disagree"
    if grading.is_open:
        return replace(grading, why=f"{words}, and the creator has not chosen which one grades.")
    return replace(grading, why=f"{grading.why} {words}, as listed.")


def _why_not_compared(
    compared: Sequence[GraderComparison], reports: Sequence[TaskReport]
) -> Iterator[str]:
    """Yield the reasons why the comparison of the graders is incomplete, the first one first."""
    if not reports:
        yield "no solution was run"
    if not compared:
        yield from (each.uncompared for each in reports if each.uncompared)
    if not any(each.is_right for each in compared):
        yield "no correct solution was run by both"
    if all(each.is_right for each in compared):
        yield "no wrong solution was run by both"


def _count(compared: Sequence[GraderComparison]) -> str:
    right = sum(each.is_right for each in compared)
    return f"all solutions ({right} correct, {len(compared) - right} wrong)"


def not_run(task: TaskDefinition) -> frozenset[str]:
    """Return the task's files that look like its evaluation but are not run."""
    if task.grader is not Grader.NATIVE:
        return frozenset()
    return frozenset({task.config.main, DEFAULT_PROGRAM}) & task.files.keys()


_RANKED_BY = {
    RankingBy.LAST: "the time of the last benchmark",
    RankingBy.MEAN: "the mean time of its benchmarks",
    RankingBy.GEOM: "the geometric mean of its benchmarks' times",
}


def ranked_by(task: TaskDefinition) -> str:
    """Return in words by what the task ranks; empty if it has only one benchmark."""
    return f"ranked by {_RANKED_BY[task.ranking_by]}" if len(task.benchmarks) > 1 else ""
