"""Prints what a busy machine does to the times of CPU kernels that do the same as their reference.

python -m tests.benchmarks.cpu_noise [--hogs 0 2] [--only NAME ...] [--repeats 1] [--limit 180]
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.domain.reference_times import reference_source
from runners.contract.evaluation import Evaluation, Measurement
from runners.contract.task import Mode, TaskDefinition, Workload
from tests.doubles.judging import Harness, make_judging, make_sort_task, serving

SINE = """
import torch

def generate_input(size: int, seed: int):
    return torch.randn(size, generator=torch.Generator().manual_seed(seed))

def ref_kernel(data):
    return data.exp().sin()

def check_implementation(data, output):
    return torch.equal(output, ref_kernel(data))
"""
SINES = "import torch\ndef custom_kernel(data):\n    return data.exp().sin()\n"
ADD = """
import torch

def generate_input(size: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    shape, dtype = (size, size), torch.float16
    return tuple(torch.randn(shape, generator=generator).to(dtype) for _ in range(2))

def ref_kernel(data):
    return data[0] + data[1]

def check_implementation(data, output):
    return torch.equal(output, ref_kernel(data))
"""
ADDED = "import torch\ndef custom_kernel(data):\n    return data[0] + data[1]\n"


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that does what its reference does: its speed-up is 1."""

    reference: str
    source: str
    size: int

    def task(self, limit_s: int) -> TaskDefinition:
        """The task, with one benchmark."""
        return make_sort_task(
            self.reference,
            benchmarks=(Workload(args={"size": self.size, "seed": 1}),),
            ranked_timeout=limit_s,
        )


KERNELS = {
    "same 30k": Kernel(SINE, SINES, 30_000),
    "same 160k": Kernel(SINE, SINES, 160_000),
    "same 500k": Kernel(SINE, SINES, 500_000),
    "same 1500k": Kernel(SINE, SINES, 1_500_000),
    "add 1024": Kernel(ADD, ADDED, 1024),
    "add 4096": Kernel(ADD, ADDED, 4096),
}
"""Operations by the number of their elements, or fp16 matrices by their side."""


@contextmanager
def hogs(count: int) -> Iterator[None]:
    """Processes that compute all the time, each in its own session, as other programs are."""
    busy = [sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(busy, start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


def judged(harness: Harness, task: TaskDefinition, source: str) -> Evaluation:
    """One ranked run with all rounds."""
    return harness.evaluate(make_judging(source, Mode.RANKED, task=task, rounds=None))


def measured(evaluation: Evaluation) -> Measurement | None:
    """The time of the only benchmark."""
    return next((case.measurement for case in evaluation.cases if case.measurement), None)


def others_load(seconds: float = 1.0) -> float:
    """How many cores other processes keep busy while this one sleeps."""
    before = _busy_s()
    subprocess.run(["sleep", str(seconds)], check=True)
    return (_busy_s() - before) / seconds


def _busy_s() -> float:
    total = Path("/proc/stat").read_text().partition("\n")[0]
    values = [int(word) for word in total.split()[1:9]]
    return (sum(values) - values[3] - values[4]) / os.sysconf("SC_CLK_TCK")


def row(harness: Harness, name: str, count: int, limit_s: int) -> None:
    """Judge the kernel and its reference, and print their times and the speed-up."""
    kernel, load = KERNELS[name], others_load()
    task = kernel.task(limit_s)
    source = reference_source(task) or ""
    with hogs(count):
        reference = measured(judged(harness, task.with_all_files_shared, source))
        evaluation = judged(harness, task, kernel.source)
    found = measured(evaluation)
    start = f"{name:>12} {count:>4} {load:5.1f}"
    if found is None or reference is None:
        print(f"{start}  {evaluation.verdict}: {evaluation.message}", flush=True)
        return
    own = found.vs_reference
    told = f"{1 / own.ratio:7.3f} {own.half_width / own.ratio:6.1%}" if own else f"{'none':>14}"
    calls = sum(map(len, found.samples))
    print(
        f"{start} {found.time_ns / 1e6:9.3f} {found.half_width_ns / found.time_ns:9.1%}"
        f" {reference.time_ns / found.time_ns:7.2f} {told}"
        f" {found.left_out:>4}/{calls + found.left_out:<4} {found.rounds:>6}"
        f" {evaluation.wall_s:8.1f}",
        flush=True,
    )


def main() -> None:
    """Measure on this machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hogs", type=int, nargs="+", default=[0, 2])
    parser.add_argument("--only", nargs="+", default=[*KERNELS], choices=[*KERNELS])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--limit", type=int, default=180, help="seconds of a ranked run")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores; `others`: cores that other processes kept busy before")
    print(
        f"{'kernel':>12} {'hogs':>4} {'others':>6} {'ms':>8} {'±':>9} {'apart':>7}"
        f" {'paired':>7} {'±':>6} {'left out':>9} {'rounds':>6} {'seconds':>8}"
    )
    with serving() as harness:
        for count in options.hogs:
            for name in options.only * options.repeats:
                row(harness, name, count, options.limit)


if __name__ == "__main__":
    main()
