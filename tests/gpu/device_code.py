"""Do kernels without a host part get their verdicts on this GPU, and which times? Prints a table.

Run from the repository root on a machine with a GPU:  python tests/gpu/device_code.py
It needs PyTorch, pydantic, PyYAML and NVRTC with CUDA's headers; no nvcc and no C++ compiler.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bot.domain.tasks.bundle import solutions  # noqa: E402 - found by the line above
from bot.domain.tasks.task_file import parse_task  # noqa: E402 - found by the line above
from bot.store.task_folders import read_folder, task_folders  # noqa: E402 - found by the line above
from runners.contract.evaluation import Evaluation, EvaluationRequest, RoundPolicy  # noqa: E402 - found by the line above
from runners.contract.task import Mode  # noqa: E402 - found by the line above
from runners.contract.verdict import Verdict  # noqa: E402 - found by the line above
from tests.exploits.corpus import kernels  # noqa: E402 - found by the line above
from tests.gpu.asking import HarnessError  # noqa: E402 - found by the line above
from tests.gpu.exploits import COLUMNS, HEADS, Run, Warm  # noqa: E402 - found by the line above

SHORT = RoundPolicy(looks=(2,), samples=3)
"""Enough to meet every benchmark with fresh inputs; the times are not wanted."""
ROW = "{:3s} {:10s} {:24s} {:8s} {:18s} {:18s} {:>6s} {}"
MESSAGE_MOST = 150


@dataclass(frozen=True, slots=True)
class Trial:
    """One solution of a task of device code, in one mode, with the verdict that it must get."""

    request: EvaluationRequest
    name: str
    wanted: Verdict

    def row(self, got: str, seconds: float, told: str) -> str:
        """Its line of the table."""
        mark = "ok" if got == self.wanted.value else "BAD"
        task, mode = self.request.task.name, self.request.mode.value
        return ROW.format(mark, task, self.name, mode, self.wanted, got, f"{seconds:.2f}", told)


def trials(rounds: int) -> Iterator[Trial]:
    """Right solutions ranked with this many rounds and profiled once, wrong ones ranked briefly."""
    for folder in task_folders(ROOT / "tasks" / "cuda"):
        bundle = read_folder(folder)
        task = parse_task(bundle)
        profiled = False
        for each in solutions(bundle):
            right = each.expect is Verdict.PASSED
            modes = [Mode.RANKED] if profiled or not right else [Mode.RANKED, Mode.PROFILE]
            profiled = profiled or right
            for mode in modes:
                request = EvaluationRequest(
                    request_id=f"{task.name}/{each.name}",
                    task=task,
                    source=each.source,
                    mode=mode,
                    gpu="GPU",
                    rounds=RoundPolicy(looks=(rounds,)) if right else SHORT,
                )
                yield Trial(request, Path(each.name).stem, each.expect)


def told(found: Evaluation) -> str:
    """Every time with its bound and resolution in microseconds, what was compiled, and why."""
    timed = (case.measurement for case in found.cases if case.measurement is not None)
    parts = [
        f"{m.time_ns / 1e3:.2f} +- {m.half_width_ns / 1e3:.2f} us (bound {m.bound_ns / 1e3:.2f}, "
        f"resolution {m.resolution_ns / 1e3:.2f}, {'claim' if m.claimed_ns else 'own clock'})"
        for m in timed
    ]
    if found.compiled is not None:
        c = found.compiled
        parts.append(f"{c.registers} registers, {c.spill_stores} B spilled, {c.shared} B shared")
    return "; ".join([*parts, " ".join(found.message.split())[:MESSAGE_MOST]]).rstrip("; ")


def judge(warm: Warm, trial: Trial) -> tuple[bool, str]:
    """Whether the verdict is the expected one, and its line of the table."""
    try:
        found, seconds = warm.ask(trial.request)
    except HarnessError as error:
        return False, trial.row("harness error", 0.0, str(error)[:MESSAGE_MOST])
    right = found.verdict is trial.wanted
    if not right or trial.request.mode is Mode.PROFILE:
        print(f"--- {trial.request.request_id} {found.verdict} {found.stage}: {found.message}")
        print(found.log[-2500:])
    return right, trial.row(found.verdict.value, seconds, told(found))


def main() -> int:
    """Judge everything; return the number of unexpected results, at most 100."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="rounds of a ranked run")
    parser.add_argument("--part", choices=("solutions", "exploits"), help="one of the two alone")
    asked = parser.parse_args()
    warm = Warm()
    lines: list[tuple[bool, str]] = []
    try:
        if asked.part != "exploits":
            lines.append(
                (True, ROW.format("", "task", "solution", "mode", "wanted", "got", "s", ""))
            )
            lines += [_said(judge(warm, trial)) for trial in trials(asked.rounds)]
        if asked.part != "solutions":
            lines.append((True, COLUMNS.format(*HEADS)))
            run = Run(warm, None)
            for kernel in kernels("honest_cuda", "hostile_cuda"):
                if kernel.task == "code_add":
                    judged = run.judge(kernel)
                    lines.append(_said((judged.good, judged.text)))
    finally:
        warm.close()
    print("\n" + "\n".join(text for _, text in lines))
    bad = sum(not good for good, _ in lines)
    print(f"{bad} not as wanted, {warm.starts} harness(es)")
    return min(bad, 100)


def _said(line: tuple[bool, str]) -> tuple[bool, str]:
    print(line[1], flush=True)
    return line


if __name__ == "__main__":
    raise SystemExit(main())
