"""What does profile mode show of kernels on this GPU, and how long does it take? Prints a table.

Run from the repository root on a machine with a GPU:  python tests/gpu/profiles.py [--save DIR]
It needs PyTorch, Triton, pydantic, PyYAML, nvcc, ninja, a C++ compiler and Nsight Compute.
With --save every log and report is kept in a folder.
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
from bot.store.task_folders import read_folder  # noqa: E402 - found by the line above
from runners.contract.evaluation import (  # noqa: E402 - found by the line above
    Evaluation,
    EvaluationRequest,
    KernelNameBase,
    ProfileOptions,
)
from runners.contract.task import Device, Mode, TaskDefinition, TaskFormat, Workload  # noqa: E402 - found by the line above
from runners.contract.verdict import Verdict  # noqa: E402 - found by the line above
from runners.harness.toolchains import ncu  # noqa: E402 - found by the line above
from tests.doubles.kernels import LINEAR, RIGHT  # noqa: E402 - found by the line above
from tests.exploits.corpus import kernels  # noqa: E402 - found by the line above
from tests.exploits.tasks import order_of  # noqa: E402 - found by the line above
from tests.gpu.asking import HarnessError, Server, serving  # noqa: E402 - found by the line above

KERNELS = ("torch_add", "triton_add", "inline_cuda", "code_add", "many_launches")
PROGRAM = ROOT / "tasks" / "cuda_programs" / "vectoradd_program"
WORDS = (
    "Speed Of Light",
    "Occupancy",
    "Memory Workload",
    "DRAM Throughput",
    "Registers Per Thread",
)
"""What the tables of every kernel have."""
EXCERPTS = {
    "no kernel of that name": slice(-20, None),
    "many_launches": slice(-40, None),
    "a model": slice(-30, None),
}
"""Which lines of a log are printed."""
SECTION = "Section: GPU Speed Of Light Throughput"
"""Occurs once in the tables of each kernel."""
BEGINS = b"NVR"
"""How a report of Nsight Compute begins."""
ROW = "{:3s} {:18s} {:8s} {:>6s} {:>6s} {:>7s} {:>7s} {:>7s} {:>7s} {}"
HEADS = ("", "kernel", "verdict", "s", "ncu s", "kernels", "log KiB", "MiB", "packed", "")


@dataclass(frozen=True, slots=True)
class Trial:
    """A right submission in profile mode."""

    name: str
    request: EvaluationRequest
    kernels: int | None = None
    """How many kernels its tables must have, where that is known; of none there is no report."""


def trials() -> Iterator[Trial]:
    """Kernels written in every way, and a model."""
    found = {kernel.name: kernel for kernel in kernels("honest_cuda")}
    for name in KERNELS:
        order = order_of(found[name])
        yield Trial(name, order.model_copy(update={"mode": Mode.PROFILE, "gpu": "GPU"}))
    yield from _filtered(order_of(found["many_launches"]))
    bundle = read_folder(PROGRAM)
    right = next(each for each in solutions(bundle) if each.expect is Verdict.PASSED)
    request = EvaluationRequest(
        request_id="program",
        task=parse_task(bundle),
        source=right.source,
        mode=Mode.PROFILE,
        gpu="GPU",
    )
    yield Trial("a program", request)
    task = TaskDefinition(
        name="linear",
        lang="py",
        format=TaskFormat.KERNELBENCH,
        description="A layer of KernelBench's form.",
        files={"reference.py": LINEAR},
        benchmarks=(Workload(args={"precision": "fp32"}),),
        device=Device.CUDA,
    )
    request = EvaluationRequest(
        request_id="model", task=task, source=RIGHT, mode=Mode.PROFILE, gpu="GPU"
    )
    yield Trial("a model", request)


def _filtered(order: EvaluationRequest) -> Iterator[Trial]:
    """The options that popcorn's clients send, for sixteen launches of one kernel."""
    options = {
        "three of many launches": (ProfileOptions(launch_count=3), 3),
        "found by an expression": (
            ProfileOptions(
                kernel_name="regex:.*add.*",
                kernel_name_base=KernelNameBase.DEMANGLED,
                launch_count=2,
            ),
            2,
        ),
        "no kernel of that name": (ProfileOptions(kernel_name="nothing_like_it"), 0),
    }
    for name, (profile, kernels_wanted) in options.items():
        update = {"mode": Mode.PROFILE, "gpu": "GPU", "profile": profile}
        yield Trial(name, order.model_copy(update=update), kernels_wanted)


def faults(trial: Trial, found: Evaluation) -> list[str]:
    """The parts of a profile that are not as expected."""
    if trial.kernels == 0:
        return ["it has a report"] if found.files else []
    told = found.log.count(SECTION)
    if trial.kernels not in {None, told}:
        return [f"{told} kernels, not {trial.kernels}"]
    lacking = [f"no {word!r}" for word in WORDS if word not in found.log]
    if not found.files:
        return [*lacking, "no report"]
    content = found.files[0].content()
    return lacking if content.startswith(BEGINS) else [*lacking, f"begins {content[:16]!r}"]


def judge(server: Server, trial: Trial, folder: Path | None) -> tuple[bool, str]:
    """Whether all is as expected, and its row of the table."""
    try:
        found, seconds = server.ask(trial.request)
    except HarnessError as error:
        return False, ROW.format("BAD", trial.name, "error", *[""] * 6, str(error)[:200])
    wrong = [] if found.verdict == "passed" else [found.message]
    wrong += faults(trial, found)
    for line in found.log.splitlines()[EXCERPTS.get(trial.name, slice(0))]:
        print(line)
    if folder is not None:
        keep(folder / trial.name.replace(" ", "_"), found)
    content = found.files[0].content() if found.files else b""
    return not wrong, ROW.format(
        "BAD" if wrong else "ok",
        trial.name,
        found.verdict.value,
        f"{seconds:.1f}",
        f"{found.durations_s.get('ncu', 0) + found.durations_s.get('ncu tables', 0):.1f}",
        str(found.log.count(SECTION)),
        f"{len(found.log.encode()) / 1024:.1f}",
        f"{len(content) / 2**20:.2f}",
        f"{sum(each.packed_size for each in found.files) / 2**20:.2f}",
        "; ".join(wrong) or f"{content[:8]!r}",
    )


def keep(folder: Path, found: Evaluation) -> None:
    """Write the log and the reports to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log.txt").write_text(found.log)
    (folder / "durations.txt").write_text("\n".join(map(str, found.durations_s.items())))
    for each in found.files:
        (folder / each.name).write_bytes(each.content())


def main() -> int:
    """Profile everything; return the number of unexpected rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", type=Path, help="a folder for logs and reports")
    parser.add_argument("--only", nargs="+", help="the names of some of the kernels")
    asked = parser.parse_args()
    try:
        print(f"ncu: {ncu.here()}")
    except ncu.UnusableError as error:
        print(f"ncu: {error}")
    lines = [(True, ROW.format(*HEADS))]
    with serving() as server:
        for trial in trials():
            if not asked.only or trial.name in asked.only:
                lines.append(judge(server, trial, asked.save))
                print(lines[-1][1], flush=True)
    print("\n" + "\n".join(text for _, text in lines))
    bad = sum(not good for good, _ in lines)
    print(f"{bad} not as wanted")
    return min(bad, 100)


if __name__ == "__main__":
    raise SystemExit(main())
