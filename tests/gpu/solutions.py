"""Do all shipped solutions get their verdicts on this GPU, and which times? Prints a table.

Run from the repository root on a machine with a GPU:  python tests/gpu/solutions.py [TASK ...]
It needs PyTorch, Triton, pydantic, PyYAML, nvcc, ninja and a C++ compiler.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bot.domain.tasks.bundle import Solution, solutions  # noqa: E402 - found by the line above
from bot.domain.tasks.task_file import parse_task  # noqa: E402 - found by the line above
from bot.store.task_folders import read_folder, task_folders  # noqa: E402 - found by the line above
from runners.contract.evaluation import Evaluation, EvaluationRequest, RoundPolicy  # noqa: E402 - found by the line above
from runners.contract.task import Mode, TaskDefinition  # noqa: E402 - found by the line above
from runners.contract.verdict import Verdict  # noqa: E402 - found by the line above
from tests.gpu.asking import HarnessError, Server, serving  # noqa: E402 - found by the line above

SHORT = RoundPolicy(looks=(2,), samples=3)
"""Enough to meet every benchmark with fresh inputs; the times are not wanted."""
COLUMNS = "{:3s} {:10s} {:28s} {:7s} {:18s} {:18s} {:>6s} {}"


@dataclass(frozen=True, slots=True)
class Trial:
    """One solution to be judged in one mode."""

    task: TaskDefinition
    solution: Solution
    mode: Mode
    rounds: RoundPolicy

    @property
    def request(self) -> EvaluationRequest:
        """The request to the harness."""
        return EvaluationRequest(
            request_id=f"{self.task.name}/{self.solution.name}",
            task=self.task,
            source=self.solution.source,
            mode=self.mode,
            gpu="GPU",
            rounds=self.rounds,
        )


def trials(names: list[str], rounds: int, *, everywhere: bool) -> Iterator[Trial]:
    """Right solutions in mode test, the first of each kind also ranked; wrong ones ranked briefly.

    A wrong solution that passes every test is caught by the benchmarks only. With `everywhere`
    each task has the first of each kind ranked.
    """
    ranked = RoundPolicy(looks=(rounds,))
    kinds: set[tuple[str, ...]] = set()
    for folder in task_folders(ROOT / "tasks" / "examples"):
        if names and folder.name not in names:
            continue
        bundle = read_folder(folder)
        task = parse_task(bundle)
        if everywhere:
            kinds.clear()
        for each in solutions(bundle):
            if each.expect is not Verdict.PASSED:
                yield Trial(task, each, Mode.RANKED, SHORT)
                continue
            yield Trial(task, each, Mode.TEST, SHORT)
            if each.needs not in kinds:
                kinds.add(each.needs)
                yield Trial(task, each, Mode.RANKED, ranked)


def judge(server: Server, trial: Trial) -> tuple[bool, str]:
    """Whether the verdict is the expected one, and its row of the table."""
    wanted = trial.solution.expect
    try:
        found, seconds = server.ask(trial.request)
    except HarnessError as error:
        print(f"{trial.task.name} {trial.solution.name}: {error}", flush=True)
        return False, row(trial, "harness error", 0.0)
    right = found.verdict is wanted
    if not right:
        explain(trial, found)
    return right, row(trial, found.verdict.value, seconds, times(found))


def row(trial: Trial, got: str, seconds: float, measured: str = "") -> str:
    """A line of the table."""
    name, wanted = Path(trial.solution.name).stem, trial.solution.expect.value
    mark = "ok" if got == wanted else "BAD"
    mode, spent = trial.mode.value, f"{seconds:.2f}"
    return COLUMNS.format(mark, trial.task.name, name, mode, wanted, got, spent, measured)


def times(found: Evaluation) -> str:
    """Every measured time with its half-width, rounds and bound, in microseconds."""
    timed = (case.measurement for case in found.cases if case.measurement is not None)
    return ", ".join(
        f"{m.time_ns / 1e3:.2f} +- {m.half_width_ns / 1e3:.2f} us "
        f"({m.rounds} rounds, bound {m.bound_ns / 1e3:.2f})"
        for m in timed
    )


def explain(trial: Trial, found: Evaluation) -> None:
    """Print the reason of an unexpected verdict."""
    cases = [f"{case.spec}: {case.message}" for case in found.cases if case.message]
    steps = {step: round(spent, 2) for step, spent in found.durations_s.items()}
    print(f"--- {trial.task.name} {trial.solution.name} {trial.mode.value}: {found.verdict.value}")
    print(f"{found.stage} {found.message[:600]} {cases[:1]} {steps}\n{found.log[-3000:]}")


def main() -> int:
    """Judge everything; return the number of wrong verdicts, at most 100."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", help="names of example tasks; all when none is given")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of a ranked run")
    parser.add_argument("--everywhere", action="store_true", help="rank one of a kind per task")
    chosen = parser.parse_args()
    rows = []
    with serving() as server:
        print(server.ready[:1500], flush=True)
        for trial in trials(chosen.tasks, chosen.rounds, everywhere=chosen.everywhere):
            rows.append(judge(server, trial))
            print(rows[-1][1], flush=True)
    print(COLUMNS.format("", "task", "solution", "mode", "expected", "got", "s", "measured"))
    for _, text in rows:
        print(text)
    good = sum(right for right, _ in rows)
    print(f"{good} of {len(rows)} as expected")
    return min(len(rows) - good, 100)


if __name__ == "__main__":
    raise SystemExit(main())
